//! Names of nodes.

use crate::field::{Field, Word};
use crate::schema::Section;
use hopline_config::source::{Origin, Problem};
use hopline_core::NodeId;
use std::collections::BTreeMap;

/// Node numbers by name.
pub(super) type Names = BTreeMap<String, NodeId>;

/// Returns the node that `section.key` names.
pub(super) fn node_named(section: &Section<'_>, key: Field<Word>, names: &Names) -> Result<NodeId, Problem> {
    let name = section.get(key);
    names.get(name).copied().ok_or_else(|| unknown_node(name, section.origin_of(key.key.name), names))
}

pub(super) fn unknown_node(name: &str, origin: &Origin, names: &Names) -> Problem {
    let near = hopline_config::source::nearest(name, names.keys().map(String::as_str));
    let guess = near.map(|near| format!("did you mean `{near}`? "));
    Problem::new(format!("there is no node `{name}`"))
        .at(origin)
        .help(guess.unwrap_or_default() + &name_examples(names))
}

pub(super) fn name_examples(names: &Names) -> String {
    const SHOWN: usize = 8;
    let mut by_number: Vec<_> = names.iter().map(|(name, id)| (*id, name.as_str())).collect();
    by_number.sort_unstable();
    let mut shown: Vec<&str> = by_number.iter().take(SHOWN).map(|(_, name)| *name).collect();
    if by_number.len() > SHOWN {
        shown.push("…");
    }
    format!("the nodes are {}", shown.join(", "))
}
