//! `hopline schema`.

use crate::args::Schema as Args;
use crate::problems::Failure;
use crate::{console, net};
use hopline_lab::file_kinds::FILE_KINDS;

/// Prints the JSON Schema of a kind of file.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let of_lab = FILE_KINDS.iter().find(|kind| kind.name == args.kind);
    let kind = of_lab.map_or_else(|| net::file_kind(&args.kind), |kind| Ok(*kind))?;
    console::print(&format!("{:#}\n", kind.schema()))
}
