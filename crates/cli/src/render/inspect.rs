//! What `inspect` prints.

use std::io::{self, Write};
use std::path::Path;

use clap::builder::styling::{AnsiColor, Style};
use gguf2st_convert::{Model, Stats};
use gguf2st_gguf::TensorInfo;
use gguf2st_gguf::bstr::BStr;
use gguf2st_source::EscapedPath;

use super::json::{Inspected, first_positions};
use super::out::Look;
use super::table::{Column, Table};
use super::text::{Extent, Name, Shown, type_and_length};
use super::units;
use super::write_json;
use crate::query::Query;
use crate::summary::{Kind, Share, Summary, Token, Tokenizer};

/// Columns that a key or a tensor's name is given; longer ones reach over the next.
const NAME_COLUMNS: usize = 56;

const LABEL: Style = AnsiColor::Cyan.on_default();
const PATH: Style = Style::new().bold();

/// What is wanted of a model.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Whether to list the tensors.
    pub(crate) tensors: bool,
    /// Their statistics in file order, where wanted; `None` for a tensor whose values have no decoder.
    pub(crate) stats: Option<Vec<Option<Stats>>>,
    /// What keys and names are to contain; the summary is left out then.
    pub(crate) query: Option<Query>,
    /// How much of each value.
    pub(crate) extent: Extent,
}

impl View {
    fn keeps(&self, name: &[u8]) -> bool {
        self.query.as_ref().is_none_or(|query| query.matches(name))
    }
}

/// Writes the documented JSON object.
pub(crate) fn write_inspected_json(out: &mut impl Write, path: &Path, model: &Model, view: &View) -> io::Result<()> {
    let document = Inspected {
        path: path.as_os_str().as_encoded_bytes(),
        model,
        parameters: Summary::of(model).parameters,
        stats: view.stats.as_deref(),
        query: view.query.as_ref(),
        extent: view.extent,
    };
    write_json(out, &document)
}

/// Writes the summary, the metadata and, where wanted, the tensors.
pub(crate) fn write_text(out: &mut impl Write, look: Look, path: &Path, model: &Model, view: &View) -> io::Result<()> {
    if view.query.is_none() {
        writeln!(out, "{}", look.paint(PATH, EscapedPath(path)))?;
        write_summary(out, look, model)?;
        writeln!(out)?;
    }
    // What a query leaves nothing of is left out, unless that is everything.
    let metadata = view.query.is_none() || model.file().metadata().iter().any(|(key, _)| view.keeps(key));
    let tensors = view.tensors && (view.query.is_none() || model.tensors().any(|(_, tensor)| view.keeps(tensor.name)));
    if metadata {
        write_metadata(out, look, model, view)?;
    }
    if metadata && tensors {
        writeln!(out)?;
    }
    if tensors {
        write_tensors(out, look, model, view)?;
        if let Some(stats) = view.stats.as_ref().filter(|stats| !stats.is_empty()) {
            writeln!(out)?;
            write_stats(out, look, model, view, stats)?;
        }
    }
    if !metadata && !tensors {
        writeln!(out, "no {} that matches", if view.tensors { "metadata key or tensor" } else { "metadata key" })?;
    }
    Ok(())
}

fn write_summary(out: &mut impl Write, look: Look, model: &Model) -> io::Result<()> {
    let lines = summary_lines(model);
    let mut table = Table::new(look, [Column::new("", NAME_COLUMNS).style(LABEL)], "").indent(2);
    lines.iter().for_each(|(label, _)| table.fit(&[(*label).to_owned()]));
    lines.iter().try_for_each(|(label, text)| table.write_wrapped(out, &[(*label).to_owned()], text))
}

fn summary_lines(model: &Model) -> Vec<(&'static str, String)> {
    let summary = Summary::of(model);
    let (file, count) = (model.file(), model.parts().len());
    let text = |text: Option<&BStr>| text.map(|text| Name(text, Extent::Brief).to_string());
    let mut lines = vec![("kind", kind(&summary))];
    let mut add = |label, text: Option<String>| lines.extend(text.map(|text| (label, text)));
    add("architecture", text(summary.architecture));
    add("name", text(summary.name));
    if model.tensors().next().is_some() {
        add("parameters", Some(parameters(summary.parameters)));
    }
    add("context length", summary.context_length.map(|tokens| format!("{} tokens", units::grouped(tokens))));
    add("quantisation", quantisation(&summary.mix, summary.tensor_bytes));
    add("bits per weight", summary.bits_per_weight().map(|bits| format!("{bits:.2}")));
    if let Some(found) = summary.tokenizer {
        add("tokenizer", Some(tokenizer(&found)));
        add("BOS", found.bos.map(token));
        add("EOS", found.eos.map(token));
    }
    // Only where there is text to be talked in.
    if summary.tokenizer.is_some() || summary.chat_template.is_some() {
        let yes = |bytes| format!("yes, {}", units::bytes(bytes as u64));
        add("chat template", Some(summary.chat_template.map_or("no".into(), yes)));
    }
    add("size", Some(size(model.parts().iter().map(|part| part.file().container_len()).fold(0, u64::saturating_add))));
    add("parts", (count > 1).then(|| parts(model)));
    add(
        "container",
        Some(format!(
            "GGUF version {}, {}-endian, {}, {}",
            file.version(),
            file.byte_order().name(),
            units::plural(model.tensors().count(), "tensor"),
            units::plural(file.metadata().len(), "metadata key"),
        )),
    );
    add(
        "data",
        Some(format!(
            "from byte {}{}, aligned to {}",
            units::grouped(file.data_offset()),
            if count > 1 { " of the first part" } else { "" },
            units::grouped(file.alignment().into())
        )),
    );
    lines
}

fn kind(summary: &Summary<'_>) -> String {
    let kind = match summary.kind {
        Kind::Model => "model",
        Kind::LoraAdapter => "LoRA adapter",
        Kind::Adapter => "adapter",
        Kind::ControlVector => "control vector",
        Kind::Projector => "projector",
        Kind::Vocabulary => "vocabulary only",
        Kind::ImportanceMatrix => "importance matrix",
        Kind::Bare => "metadata only",
    };
    match summary.part {
        // People count from one, and so do the files' names.
        Some(part) => format!("{kind}, part {} of {}", u128::from(part.number) + 1, part.count),
        None => kind.to_owned(),
    }
}

fn parameters(parameters: Option<u64>) -> String {
    match parameters {
        None => "more than 64 bits can count".into(),
        Some(number) if number < 10_000 => units::grouped(number),
        Some(number) => format!("{} ({})", units::count(number), units::grouped(number)),
    }
}

/// Each type with its part of all tensor bytes.
fn quantisation(mix: &[Share], whole: Option<u64>) -> Option<String> {
    let share = |share: &Share| match (share.bytes, whole) {
        (Some(bytes), Some(whole)) if mix.len() > 1 => {
            format!("{} {}", share.ggml_type, units::percent(bytes, whole))
        }
        (Some(bytes), None) => format!("{} {}", share.ggml_type, units::bytes(bytes)),
        (Some(_), _) => share.ggml_type.to_string(),
        (None, _) => format!("{} (size unknown)", share.ggml_type),
    };
    (!mix.is_empty()).then(|| mix.iter().map(share).collect::<Vec<_>>().join(", "))
}

fn tokenizer(tokenizer: &Tokenizer<'_>) -> String {
    let name = |text: &BStr| Name(text, Extent::Brief).to_string();
    let mut text = tokenizer.model.map_or("of unknown kind".into(), name);
    if let Some(pre) = tokenizer.pre {
        text += &format!(" ({})", name(pre));
    }
    if let Some(tokens) = tokenizer.tokens {
        text += &format!(", {} tokens", units::grouped(tokens));
    }
    text
}

fn token(token: Token<'_>) -> String {
    match token.text {
        Some(text) => format!("{} {}", token.id, Shown(gguf2st_gguf::Value::String(text), Extent::Brief)),
        None => format!("{} (not in the vocabulary)", token.id),
    }
}

/// How many there are, and the names of the first and the last.
fn parts(model: &Model) -> String {
    let parts = model.parts();
    let name = |part: Option<&gguf2st_convert::Part>| {
        let path = part.map_or(Path::new(""), |part| part.source().name());
        EscapedPath(path.file_name().map_or(path, Path::new)).to_string()
    };
    format!("{} ({} … {})", parts.len(), name(parts.first()), name(parts.last()))
}

fn size(bytes: u64) -> String {
    if bytes < 10_000 {
        return units::bytes(bytes);
    }
    format!("{} ({} bytes)", units::bytes(bytes), units::grouped(bytes))
}

fn write_metadata(out: &mut impl Write, look: Look, model: &Model, view: &View) -> io::Result<()> {
    let metadata = model.file().metadata();
    let kept = || metadata.iter().filter(|(key, _)| view.keeps(key));
    if kept().next().is_none() {
        return writeln!(out, "no metadata");
    }
    let type_column = Column::new("type", 24).style(Style::new().dimmed());
    let mut table = Table::new(look, [Column::new("key", NAME_COLUMNS), type_column], "value");
    let cells = |key: &[u8], value: &_| [Name(key, view.extent).to_string(), type_and_length(value)];
    kept().for_each(|(key, value)| table.fit(&cells(key, &value)));
    table.write_titles(out)?;
    kept().try_for_each(|(key, value)| match view.extent {
        Extent::Brief => table.write_wrapped(out, &cells(key, &value), &Shown(value, view.extent).to_string()),
        // As long as it is: it may be megabytes, and copied text should have no breaks of ours.
        Extent::Full => table.write_row(out, &cells(key, &value), &Shown(value, view.extent)),
    })
}

fn write_tensors(out: &mut impl Write, look: Look, model: &Model, view: &View) -> io::Result<()> {
    let parts = model.parts();
    let kept = || model.tensors().enumerate().filter(|(_, (_, tensor))| view.keeps(tensor.name));
    if kept().next().is_none() {
        return writeln!(out, "no tensors");
    }
    // A pass over all offsets, for parts that need one.
    let mut rooms = vec![Vec::new(); parts.len()];
    for (_, (part, tensor)) in kept() {
        if rooms[part].is_empty() && tensor.byte_size().is_err() {
            rooms[part] = parts[part].file().rooms();
        }
    }
    let first: Vec<_> = first_positions(model).collect();
    let mut table = Table::new(
        look,
        [
            Column::new("tensor", NAME_COLUMNS),
            Column::new("part", 5).right().only_if(parts.len() > 1),
            Column::new("dims", 32),
            Column::new("type", 16),
            Column::new("bytes", 20).right(),
            Column::new("offset", 20).right(),
        ],
        "",
    );
    let cells = |part: usize, tensor: &TensorInfo<'_>| {
        let bytes = tensor.byte_size().map_or_else(|_| "unknown".into(), |bytes| bytes.to_string());
        [
            Name(tensor.name, view.extent).to_string(),
            (part + 1).to_string(),
            format!("{:?}", tensor.dims),
            tensor.ggml_type.to_string(),
            bytes,
            (u128::from(parts[part].file().data_offset()) + u128::from(tensor.offset)).to_string(),
        ]
    };
    kept().for_each(|(_, (part, tensor))| table.fit(&cells(part, &tensor)));
    table.write_titles(out)?;
    kept().try_for_each(|(position, (part, tensor))| {
        let room = rooms[part].get(position - first[part]).filter(|_| tensor.byte_size().is_err());
        let remark = room.map_or(String::new(), |room| format!("room for {}", units::bytes(*room)));
        table.write_wrapped(out, &cells(part, &tensor), &remark)
    })
}

/// A second table, since a terminal is not wide enough for both in one. Where it is not even for this one,
/// names stand above their figures.
fn write_stats(
    out: &mut impl Write,
    look: Look,
    model: &Model,
    view: &View,
    stats: &[Option<Stats>],
) -> io::Result<()> {
    let tensors = || model.tensors().map(|(_, tensor)| tensor);
    let kept = || tensors().zip(stats).filter(|(tensor, _)| view.keeps(tensor.name));
    let name = |tensor: &TensorInfo<'_>| Name(tensor.name, view.extent).to_string();
    let row = |tensor: &TensorInfo<'_>, stats: &Stats| {
        let [values, min, max, mean, std, nan, inf, zeros] = figures(stats);
        [name(tensor), values, min, max, mean, std, nan, inf, zeros]
    };
    let [values, min, max, mean, std, nan, inf, zeros] = FIGURES.map(|title| Column::new(title, 20).right());
    let columns = [Column::new("tensor", NAME_COLUMNS), values, min, max, mean, std, nan, inf, zeros];
    let mut table = Table::new(look, columns, "");
    let mut below = Table::new(look, FIGURES.map(|title| Column::new(title, 20).right()), "").indent(2);
    for (tensor, stats) in kept() {
        // A long name widens its column though there are no figures behind it.
        table.fit(&row(&tensor, &stats.unwrap_or_default()));
        below.fit(&figures(&stats.unwrap_or_default()));
    }
    let apart = table.cramped();
    if apart { below.write_titles(out) } else { table.write_titles(out) }?;
    kept().try_for_each(|(tensor, stats)| match stats {
        Some(stats) if apart => {
            writeln!(out, "{}", name(&tensor))?;
            below.write_wrapped(out, &figures(stats), "")
        }
        Some(stats) => table.write_wrapped(out, &row(&tensor, stats), ""),
        None => {
            let (name, order) = (name(&tensor), model.file().byte_order().name());
            writeln!(out, "{name}  {} has no decoder for {order}-endian files", tensor.ggml_type)
        }
    })
}

const FIGURES: [&str; 8] = ["values", "min", "max", "mean", "std", "NaN", "Inf", "zeros"];

fn figures(stats: &Stats) -> [String; 8] {
    let float = |value: Option<f64>| value.map_or_else(|| "-".into(), units::short);
    let count = |count: u64| count.to_string();
    [
        count(stats.values),
        float(stats.min),
        float(stats.max),
        float(stats.mean),
        float(stats.std),
        count(stats.nan),
        count(stats.infinite),
        count(stats.zeros),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::Given;
    use gguf2st_gguf::GgmlType;
    use gguf2st_gguf::write::Builder;

    #[test]
    fn statistics_on_a_terminal_that_is_too_narrow_for_names_beside_them() {
        let container = Builder::new().tensor("blk.0.attn_norm.weight", &[4], GgmlType::F32).container(|_, _| ());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, container.unwrap()).unwrap();
        let model = Given::parse(file.path()).unwrap().to_look_at().unwrap();
        let view = View { tensors: true, stats: None, query: None, extent: Extent::Brief };
        let stats = [Some(Stats::default())];
        let written = |width| {
            let mut out = Vec::new();
            write_stats(&mut out, Look { color: false, width: Some(width) }, &model, &view, &stats).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            written(70),
            "tensor                  values  min  max  mean  std  NaN  Inf  zeros\n\
             blk.0.attn_norm.weight       0    -    -     -    -    0    0      0\n"
        );
        assert_eq!(
            written(60),
            "  values  min  max  mean  std  NaN  Inf  zeros\n\
             blk.0.attn_norm.weight\n\
             \x20      0    -    -     -    -    0    0      0\n"
        );
    }
}
