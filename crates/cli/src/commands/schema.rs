//! `hopline schema`.

use crate::args::Schema as Args;
use crate::console;
use crate::problems::Failure;
use hopline_lab::file_kinds;

/// Prints the JSON Schema of a kind of file.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let kind = file_kinds::named(&args.kind).expect("the command line takes known kinds only");
    console::print(&format!("{:#}\n", kind.schema()))
}
