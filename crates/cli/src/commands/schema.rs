//! `hopline schema`.

use crate::args::Schema as Args;
use crate::console;
use crate::problems::Failure;
use hopline_daemon::config::keys::PROXIES;
use hopline_lab::file_kinds::FILE_KINDS;
use hopline_scenario::json_schema::FileKind;

/// Prints the JSON Schema of a kind of file.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let kind = kinds().find(|kind| kind.name == args.kind).expect("the command line takes known kinds only");
    console::print(&format!("{:#}\n", kind.schema()))
}

/// Every kind of file that has a schema.
pub(crate) fn kinds() -> impl Iterator<Item = FileKind> {
    FILE_KINDS.iter().copied().chain([PROXIES])
}
