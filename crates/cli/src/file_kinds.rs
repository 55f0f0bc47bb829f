//! Kinds of file that have a JSON Schema.

use crate::net;
use hopline_lab::file_kinds::FILE_KINDS;

/// Names of the kinds of file that have a schema.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILE_KINDS.iter().map(|kind| kind.name).chain(net::FILE_KINDS)
}
