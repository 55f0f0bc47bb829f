//! The kinds of files that people write.

use crate::{claims, plan};
use hopline_config::json_schema::FileKind;

/// Every kind of file; the first is the one meant if none is named.
pub const FILE_KINDS: &[FileKind] = &[
    hopline_scenario::FILE_KIND,
    FileKind { name: "plan", title: "a plan of hopline", keys: plan::keys::PLAN },
    FileKind { name: "claims", title: "what a paper claims, for hopline", keys: claims::keys::CLAIMS },
];

/// The kind called `name`.
#[must_use]
pub fn named(name: &str) -> Option<&'static FileKind> {
    FILE_KINDS.iter().find(|kind| kind.name == name)
}
