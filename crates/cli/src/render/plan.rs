//! What `convert --dry-run` prints.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;

use gguf2st_convert::{Dtype, Model, Plan, PlannedTensor, RESERVED_TENSOR, Shard};
use gguf2st_gguf::{Escaped, GgmlType};
use gguf2st_source::EscapedPath;
use serde::Serialize;

use super::out::Look;
use super::table::{Column, Table};
use super::units;

/// A conversion that is looked at and not carried out. Figures are bytes.
pub(crate) struct DryRun<'a> {
    /// Where the output would go.
    pub(crate) path: &'a Path,
    pub(crate) model: &'a Model,
    pub(crate) plan: &'a Plan,
    /// The files that are wanted.
    pub(crate) shards: Vec<&'a Shard>,
    /// Of those files.
    pub(crate) needed: u64,
    /// Of the model's containers.
    pub(crate) input_bytes: u64,
    /// What the disk has left, where that can be told.
    pub(crate) free: Option<u64>,
    /// Of the model in memory at the most.
    pub(crate) in_flight: u64,
    /// Of the containers' heads.
    pub(crate) heads: u64,
    /// What a run takes beside.
    pub(crate) beside: u64,
}

/// `{"plan_hash","plan","bytes","input_bytes"}`
pub(crate) fn write_json(out: &mut impl Write, run: &DryRun<'_>) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        plan_hash: String,
        plan: &'a Plan,
        bytes: u64,
        input_bytes: u64,
    }
    let DryRun { plan, input_bytes, .. } = *run;
    super::write_json(out, &Document { plan_hash: plan.hash(), plan, bytes: plan.bytes(), input_bytes })
}

/// Files, bytes by type, what is needed of disk and memory.
pub(crate) fn write_text(out: &mut impl Write, run: &DryRun<'_>) -> io::Result<()> {
    let DryRun { path, model, plan, shards, needed, input_bytes, free, in_flight, heads, beside } = run;
    writeln!(out, "plan    {}", plan.hash())?;

    let (parts, all) = (&plan.parts, plan.shards.len());
    let inputs = parts.iter().map(|part| (Escaped(part.name.as_bytes()).to_string(), part.bytes));
    let outputs = shards.iter().map(|shard| {
        let file = plan.shard_size.map(|_| path.join(&shard.file));
        (EscapedPath(file.as_deref().unwrap_or(path)).to_string(), shard.bytes())
    });
    let label = |label: &'static str| std::iter::once(label).chain(std::iter::repeat(""));
    let rows = label("input").zip(inputs).chain(label("output").zip(outputs));
    let rows: Vec<_> =
        rows.map(|(label, (name, bytes))| [label.to_owned(), name, units::grouped(bytes) + " bytes"]).collect();
    let columns = [Column::new("", 6), Column::new("", 56), Column::new("", 26).right()];
    write_rows(out, 0, columns, &rows)?;
    if shards.len() < all {
        writeln!(out, "        {} of {all} files", shards.len())?;
    }

    let dtypes = by_dtype(shards);
    let names: Vec<_> = dtypes.iter().map(|(dtype, _)| dtype.name().to_lowercase()).collect();
    // Of some of the files, what goes into those.
    let some = || shards.iter().flat_map(|shard| &shard.tensors).map(read_bytes).sum();
    let from = if shards.len() < all { some() } else { *input_bytes };
    let (from, to) = (units::decimal(from), units::decimal(*needed));
    writeln!(out, "input {from} → output {to} {}", names.join(", "))?;
    let rows: Vec<_> = by_types(model, shards)
        .into_iter()
        .map(|((from, to), sums)| {
            let tensors = units::plural(sums.tensors, "tensor");
            [from, format!("→ {to}"), tensors, units::decimal(sums.input), format!("→ {}", units::decimal(sums.output))]
        })
        .collect();
    let columns = [
        Column::new("", 16),
        Column::new("", 8),
        Column::new("", 16),
        Column::new("", 12).right(),
        Column::new("", 12),
    ];
    write_rows(out, 2, columns, &rows)?;

    let free = free.map_or_else(String::new, |free| format!(", {} free", units::decimal(free)));
    writeln!(out, "disk    {} needed{free}", units::decimal(*needed))?;
    let memory = in_flight.saturating_add(*heads).saturating_add(*beside);
    writeln!(
        out,
        "memory  {} at the most: {} of tensors, {} of heads, {} beside",
        units::bytes(memory),
        units::bytes(*in_flight),
        units::bytes(*heads),
        units::bytes(*beside)
    )
}

/// Rows below each other, as wide as they are.
fn write_rows<const N: usize>(
    out: &mut impl Write,
    indent: usize,
    columns: [Column; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let mut table = Table::new(Look::default(), columns, "").indent(indent);
    rows.iter().for_each(|row| table.fit(row));
    rows.iter().try_for_each(|row| table.write_wrapped(out, row, ""))
}

/// Bytes of each dtype in the output, most first.
fn by_dtype(shards: &[&Shard]) -> Vec<(Dtype, u64)> {
    let mut sums: BTreeMap<Dtype, u64> = BTreeMap::new();
    for tensor in shards.iter().flat_map(|shard| &shard.tensors) {
        *sums.entry(tensor.dtype).or_default() += tensor.bytes();
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    sums
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    tensors: usize,
    input: u64,
    output: u64,
}

/// What becomes of each ggml type, most bytes of output first.
fn by_types(model: &Model, shards: &[&Shard]) -> Vec<((String, Dtype), Sums)> {
    let stored: HashMap<_, _> =
        model.tensors().map(|(_, tensor)| (String::from_utf8_lossy(tensor.name), tensor.ggml_type)).collect();
    let mut sums: BTreeMap<(Option<GgmlType>, Dtype), Sums> = BTreeMap::new();
    for tensor in shards.iter().flat_map(|shard| &shard.tensors) {
        let ggml_type = stored.get(tensor.name.as_str()).filter(|_| tensor.name != RESERVED_TENSOR);
        let sum = sums.entry((ggml_type.copied(), tensor.dtype)).or_default();
        sum.tensors += 1;
        sum.input += read_bytes(tensor);
        sum.output += tensor.bytes();
    }
    let mut sums: Vec<_> = sums
        .into_iter()
        // The reserved tensor holds what is no tensor of the container.
        .map(|((from, to), sums)| ((from.map_or_else(|| "head, padding".into(), |from| from.to_string()), to), sums))
        .collect();
    sums.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.output));
    sums
}

/// Bytes of the model that a tensor is made from.
fn read_bytes(tensor: &PlannedTensor) -> u64 {
    tensor.recipe.pieces.iter().map(gguf2st_convert::Piece::bytes).sum()
}
