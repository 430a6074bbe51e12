//! `gguf2st man [FOLDER]`

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::{Args, ManArgs};
use crate::error::{Failure, Outcome};
use crate::render::Out;

pub(super) fn run(args: &ManArgs, out: &mut Out) -> Result<Outcome, Failure> {
    let mut program = Args::command();
    program.build();
    match &args.folder {
        None => Man::new(program).render(out).map_err(Failure::output)?,
        Some(folder) => {
            write_page(&program, folder)?;
            for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
                write_page(command, folder)?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// A page under the name that `man` looks for: `gguf2st.1`, `gguf2st-inspect.1`.
fn write_page(command: &Command, folder: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let path = folder.join(format!("{name}.1"));
    page(command.clone()).and_then(|page| fs::write(&path, page)).map_err(|error| Failure::Write { path, error })
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
