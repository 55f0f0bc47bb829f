//! `hopline man`.

use crate::args::{self, Man as Args};
use crate::console;
use crate::problems::Failure;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use hopline_lab::output::{OutputError, check_directory};
use std::fs;
use std::path::Path;

/// Prints the main manual page, or writes one page for each command.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    // The pages of `help` would repeat the other pages.
    let mut command = args::Args::command().disable_help_subcommand(true);
    command.build();
    match &args.output {
        None => console::print(&page(command).1),
        Some(folder) => {
            check_directory(folder)?;
            write_all(&command, folder)
        }
    }
}

/// Writes the pages of `command` and of all its subcommands.
fn write_all(command: &Command, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| OutputError::Io { path: folder.to_owned(), error })?;
    let (name, text) = page(command.clone());
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| OutputError::Io { path, error })?;
    let mut below = command.get_subcommands().filter(|command| !command.is_hide_set());
    below.try_for_each(|command| write_all(command, folder))
}

/// Returns the name and the text of a page.
fn page(command: Command) -> (String, String) {
    let man = Man::new(command);
    let mut text = Vec::new();
    man.render(&mut text).expect("memory takes everything");
    (man.get_filename(), String::from_utf8(text).expect("names and help are UTF-8"))
}
