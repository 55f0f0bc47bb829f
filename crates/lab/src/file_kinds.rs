//! Kinds of files written by users.

use crate::{claims, evaluation, plan};
use hopline_config::json_schema::FileKind;

/// All kinds of files; the first is the default.
pub const FILE_KINDS: &[FileKind] = &[
    hopline_scenario::FILE_KIND,
    FileKind { name: "plan", title: "a plan of hopline", keys: plan::keys::PLAN },
    FileKind { name: "claims", title: "what a paper claims, for hopline", keys: claims::keys::CLAIMS },
    FileKind {
        name: "evaluation",
        title: "an evaluation of congestion control algorithms, for hopline",
        keys: evaluation::keys::EVALUATION,
    },
];

/// Returns the kind called `name`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static FileKind> {
    FILE_KINDS.iter().find(|kind| kind.name == name)
}
