//! What can be asked of the program. Parsing only: what a combination means is for [`commands`](crate::commands).

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args as ClapArgs, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::amounts::{self, Numbers};

const EXAMPLES: &str = "\
Examples:
  gguf2st model.gguf                      what is in it
  gguf2st model.gguf --tensors            and every tensor
  gguf2st model.gguf --query context      the metadata about one thing
  gguf2st check model.gguf                is it sound?
  gguf2st convert model.gguf model.safetensors

A MODEL is a path or an address: http(s)://…, s3://…, gs://…, az://…, hf://OWNER/REPO/FILE[@REVISION],
ollama://NAME[:TAG]. Any part of a split set (…-00001-of-00003.gguf) stands for the whole.

Exit status: 0 done; 1 a check failed or a difference was found; 2 it could not be done;
130 or 143 it was interrupted (by Ctrl-C, by SIGTERM).";

const INSPECT_EXAMPLES: &str = "\
Examples:
  gguf2st inspect model.gguf
  gguf2st inspect model.gguf --tensors --query attn_q
  gguf2st inspect model.gguf --query chat_template --full
  gguf2st inspect model.gguf --stats --query ffn_down            range, mean and deviation of their values
  gguf2st inspect model.gguf --values token_embd.weight          its first values
  gguf2st inspect hf://OWNER/REPO/model.gguf                     its head is all that is fetched
  gguf2st inspect model.gguf --json | jq .parameters";

const CHECK_EXAMPLES: &str = "\
Examples:
  gguf2st check model.gguf
  gguf2st check model.gguf --data                                are all values finite, too?
  gguf2st check model.gguf --json | jq -r .verdict

Exit status: 0 nothing fails (it may warn); 1 a check fails; 2 it could not look.";

const CONVERT_EXAMPLES: &str = "\
Examples:
  gguf2st convert model.gguf model.safetensors                  quantised tensors become BF16
  gguf2st convert model.gguf model.safetensors --dtype f16 --keep-f32 norm,bias
  gguf2st convert model.gguf model.safetensors --dtype raw      every byte kept; `restore` gives the GGUF back
  gguf2st convert model.gguf folder --shard-size 5GB            files of 5 GB and an index
  gguf2st convert model.gguf folder --shard-size 5GB --dry-run  what would be made of what
  gguf2st convert model.gguf folder --shard-size 5GB --only-shards 3,5-7
  gguf2st convert hf://OWNER/REPO/model.gguf model.safetensors  straight from the Hub

After an interruption the same command goes on with those files of a folder that are whole.

Exit status: 0 done, or nothing to do; 2 it could not be done; 130 or 143 it was interrupted.";

const ASSEMBLE_EXAMPLES: &str = "\
Examples:
  gguf2st convert model.gguf folder --shard-size 5GB --only-shards 1-4      on one machine
  gguf2st convert model.gguf folder --shard-size 5GB --only-shards 5-8      on another
  gguf2st assemble folder                                                   where all of them are";

const RESTORE_EXAMPLES: &str = "\
Examples:
  gguf2st convert model.gguf model.safetensors --dtype raw
  gguf2st restore model.safetensors again.gguf                  the same SHA-256 as model.gguf
  gguf2st restore folder again.gguf                             from the shards in a folder
  gguf2st restore set.safetensors parts                         of a split set, its parts into a folder";

const VERIFY_EXAMPLES: &str = "\
Examples:
  gguf2st verify model.safetensors --against model.gguf
  gguf2st verify model.safetensors --against model.gguf --json | jq '.tensors[] | {name, sha256}'

Exit status: 0 every tensor is equal; 1 something differs; 2 it could not be compared.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  gguf2st completions bash > ~/.local/share/bash-completion/completions/gguf2st
  gguf2st completions fish > ~/.config/fish/completions/gguf2st.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  gguf2st man | man -l -
  gguf2st man ~/.local/share/man/man1";

/// Inspect, check and convert GGUF model files.
#[derive(Debug, Parser)]
#[command(
    name = "gguf2st",
    version,
    after_help = EXAMPLES,
    override_usage = "gguf2st [OPTIONS] <MODEL>\n       gguf2st <COMMAND>",
    subcommand_negates_reqs = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Args {
    /// Without a command, a model is inspected.
    #[command(flatten)]
    pub(crate) inspect: InspectArgs,

    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What holds for every command.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct GlobalArgs {
    /// No progress and no remarks: results and errors only
    #[arg(long, global = true)]
    pub(crate) quiet: bool,

    /// When to colour; auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,

    /// How far long work has come, on standard error: a bar, a line now and then, an object of JSON a second;
    /// auto is a bar on a terminal, else lines, and nothing with --quiet
    #[arg(long, global = true, value_name = "FORM", default_value = "auto")]
    pub(crate) progress: ProgressChoice,
}

/// How progress is shown. No comments on the variants: clap would make a page of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressChoice {
    Auto,
    Bar,
    Lines,
    Json,
    None,
}

/// When to colour the output. No comments on the variants: clap would make a page of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what is in a model: facts, metadata, tensors
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(InspectArgs),

    /// Check that a model is sound, line by line
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),

    /// Convert a model to a safetensors file, or to a folder of them
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),

    /// Check that a folder holds all shards of one conversion, and write their index
    #[command(after_help = ASSEMBLE_EXAMPLES)]
    Assemble(AssembleArgs),

    /// Restore the GGUF file that a safetensors file was made from with --dtype raw
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),

    /// Compare every tensor of a safetensors file or folder with the model it was made from
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),

    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),

    /// Print the manual page, or write one page a command into a folder
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArgs),
}

#[derive(Debug, Default, ClapArgs)]
pub(crate) struct InspectArgs {
    /// The GGUF file, or its address
    // Required here, though not where a command follows: hence the Option.
    #[arg(required = true, value_name = "MODEL", value_hint = clap::ValueHint::FilePath)]
    pub(crate) model: Option<OsString>,

    /// List every tensor too: name, dims, type, bytes, offset in the file
    #[arg(short, long)]
    pub(crate) tensors: bool,

    /// Decode every value and show each tensor's range, mean, deviation, NaN, infinities and zeros; implies
    /// --tensors
    #[arg(long)]
    pub(crate) stats: bool,

    /// Only metadata keys (with --tensors also tensors) that contain TEXT, in any case
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) query: Option<String>,

    /// Whole arrays and strings instead of their beginnings
    #[arg(long)]
    pub(crate) full: bool,

    /// The first values of the tensor NAME in row-major order, and nothing else
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tensors", "stats", "query", "full"])]
    pub(crate) values: Option<String>,

    /// How many values [default: 16]
    #[arg(long, value_name = "N", requires = "values")]
    pub(crate) count: Option<usize>,

    /// One JSON object, tensors included
    #[arg(long)]
    pub(crate) json: bool,
}

impl InspectArgs {
    /// Whether any of them was given.
    fn given(&self) -> bool {
        let Self { model, tensors, stats, query, full, values, count, json } = self;
        let texts = model.is_some() || query.is_some() || values.is_some() || count.is_some();
        texts || *tensors || *stats || *full || *json
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// The GGUF file, or its address
    #[arg(value_name = "MODEL", value_hint = clap::ValueHint::FilePath)]
    pub(crate) model: OsString,

    /// Decode every value too: NaN and infinities fail
    #[arg(long)]
    pub(crate) data: bool,

    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConvertArgs {
    /// The GGUF file, or its address
    #[arg(value_name = "MODEL", value_hint = clap::ValueHint::FilePath)]
    pub(crate) model: OsString,

    /// The safetensors file to write, or with --shard-size the folder; files appear when they are whole
    #[arg(value_name = "OUT", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) output: PathBuf,

    /// auto: quantised tensors become BF16, the rest stays; f32, f16, bf16: every float and quantised tensor;
    /// raw: every byte is kept
    #[arg(long, value_name = "DTYPE", default_value = "auto")]
    pub(crate) dtype: DtypeChoice,

    /// Keep tensors in F32 whose name contains one of these texts
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',')]
    pub(crate) keep_f32: Vec<String>,

    /// Finite values that are too large for the dtype are an error
    #[arg(long)]
    pub(crate) strict: bool,

    /// Make a folder of files with so many bytes of tensors at the most; SIZE is like 5GB or 4GiB
    #[arg(long, value_name = "SIZE", value_parser = amounts::bytes)]
    pub(crate) shard_size: Option<u64>,

    /// Make only the shards of these numbers, from 1, like 3,5-7
    #[arg(long, value_name = "LIST", requires = "shard_size", value_parser = amounts::numbers)]
    pub(crate) only_shards: Option<Numbers>,

    /// Print what would be made of what, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// The whole plan as one JSON object
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,

    /// How a file on this machine is read
    #[arg(long, value_name = "HOW", default_value = "read")]
    pub(crate) source: LocalChoice,

    /// Pieces of the model that are fetched before they are decoded [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) prefetch: Option<NonZeroUsize>,

    /// Bytes of the model in memory at the most, like 256MiB [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = amounts::bytes)]
    pub(crate) memory: Option<u64>,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// How a file on this machine is read. No comments on the variants: clap would make a page of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocalChoice {
    Read,
    Mmap,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AssembleArgs {
    /// The folder of shards
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

/// What float and quantised values become. No comments on the variants: clap would make a page of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeChoice {
    Auto,
    F32,
    F16,
    Bf16,
    Raw,
}

/// What holds for everything that writes a large file.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct WorkArgs {
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) threads: ThreadsArg,
}

#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct ThreadsArg {
    /// Threads to work with [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// The safetensors file or folder, made with --dtype raw
    #[arg(value_name = "IN", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) input: PathBuf,

    /// The GGUF file to write, or the folder for the parts of a split set; files appear when they are whole
    #[arg(value_name = "BACK", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// The safetensors file, or a folder of them
    #[arg(value_name = "OUT", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) output: PathBuf,

    /// The GGUF file that it should come from, or its address
    #[arg(long, value_name = "MODEL", value_hint = clap::ValueHint::FilePath)]
    pub(crate) against: OsString,

    /// One JSON object, with the SHA-256 of every tensor
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) threads: ThreadsArg,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// A folder that exists; without one the program's own page is printed
    #[arg(value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}

impl Args {
    /// Reads a command line; also an error where it asks for help or the version.
    pub(crate) fn read(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args = Self::try_parse_from(line)?;
        // clap would take `gguf2st --json check MODEL` and drop the flag.
        if args.command.is_some() && args.inspect.given() {
            return Err(Self::command().error(
                ErrorKind::ArgumentConflict,
                "a MODEL or an option of inspect can't stand before a command; options go behind it",
            ));
        }
        if args.command.is_none() && args.inspect.model.is_none() {
            return Err(Self::command().error(ErrorKind::MissingRequiredArgument, "no MODEL and no command was given"));
        }
        if let Some(Command::Convert(convert)) = &args.command
            && convert.dtype == DtypeChoice::Raw
            && !convert.keep_f32.is_empty()
        {
            return Err(Self::command().error(
                ErrorKind::ArgumentConflict,
                "--keep-f32 can't be had with --dtype raw, which keeps every tensor as it is",
            ));
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Args, clap::Error> {
        Args::read(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_model_alone_is_inspected() {
        let args = read("gguf2st m.gguf -t --query=x --full --json").unwrap();
        assert!(args.command.is_none() && args.inspect.tensors && args.inspect.full && args.inspect.json);
        assert_eq!(args.inspect.query.as_deref(), Some("x"));
        let args = read("gguf2st --quiet -q x m.gguf").unwrap();
        assert!(args.global.quiet);
        assert_eq!(args.inspect.model, Some("m.gguf".into()));
    }

    #[test]
    fn global_options_stand_anywhere() {
        for line in ["gguf2st --color never check m.gguf", "gguf2st check m.gguf --color=never"] {
            let args = read(line).unwrap();
            assert!(matches!(args.command, Some(Command::Check(_))), "{line}");
            assert_eq!(args.global.color, ColorChoice::Never, "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "gguf2st",
            "gguf2st -t",
            "gguf2st -t check m",
            "gguf2st --stats check m",
            "gguf2st m check m",
            "gguf2st check",
            "gguf2st m n",
            "gguf2st m --count 3",
            "gguf2st m --values t --count -1",
            "gguf2st m --values t --tensors",
            "gguf2st m --values t --stats",
            "gguf2st m --values t --query t",
            "gguf2st convert m",
            "gguf2st convert m o --dtype q4_k",
            "gguf2st convert m o --threads 0",
            "gguf2st convert m o --prefetch 0",
            "gguf2st convert m o --memory 0",
            "gguf2st convert m o --shard-size 5G",
            "gguf2st convert m o --only-shards 1",
            "gguf2st convert m o --shard-size 5GB --only-shards 2-1",
            "gguf2st convert m o --json",
            "gguf2st convert m o --source http",
            "gguf2st assemble",
            "gguf2st convert m o --dtype raw --keep-f32 norm",
            "gguf2st verify o",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn values_of_a_tensor() {
        let args = read("gguf2st m.gguf --values blk.0.attn_q.weight --json").unwrap();
        assert_eq!((args.inspect.values.as_deref(), args.inspect.count), (Some("blk.0.attn_q.weight"), None));
        let args = read("gguf2st inspect m.gguf --values t --count 0").unwrap();
        let Some(Command::Inspect(inspect)) = args.command else { panic!("{args:?}") };
        assert_eq!(inspect.count, Some(0));
    }

    #[test]
    fn what_to_convert_to() {
        let args = read("gguf2st convert m o --dtype f16 --keep-f32 norm,bias --keep-f32 embd --threads 3 --force");
        let Some(Command::Convert(convert)) = args.unwrap().command else { panic!("another command") };
        assert_eq!((convert.dtype, convert.strict), (DtypeChoice::F16, false));
        assert_eq!(convert.keep_f32, ["norm", "bias", "embd"]);
        assert_eq!((convert.work.threads.threads, convert.work.force), (NonZeroUsize::new(3), true));
        let args = read(
            "gguf2st convert m o --shard-size 5GB --only-shards 3,5-7 --prefetch 3 --memory 64MiB --dry-run --json",
        );
        let Some(Command::Convert(convert)) = args.unwrap().command else { panic!("another command") };
        assert_eq!((convert.shard_size, convert.memory), (Some(5_000_000_000), Some(64 << 20)));
        assert_eq!(convert.only_shards, Some(Numbers(vec![3, 5, 6, 7])));
        assert_eq!((convert.prefetch, convert.source), (NonZeroUsize::new(3), LocalChoice::Read));
        let args = read("gguf2st convert m o");
        let Some(Command::Convert(convert)) = args.unwrap().command else { panic!("another command") };
        assert_eq!((convert.dtype, convert.work.force), (DtypeChoice::Auto, false));
    }

    #[test]
    fn every_command_has_an_example() {
        for command in Args::command().get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Examples:\n  gguf2st "), "{help}");
        }
    }
}
