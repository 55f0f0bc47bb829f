//! `hopline completions`.

use crate::args::{self, Completions as Args};
use crate::console;
use crate::problems::Failure;
use clap::CommandFactory;

/// Prints the completion script of a shell.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::Args::command(), "hopline", &mut script);
    console::print(&String::from_utf8(script).expect("names and help are UTF-8"))
}
