//! Groups of flows by kind and class.

use hopline_sim::Spec;
use hopline_sim::spec::FlowSpec;

/// The flows of a kind or of a class. No class has the name of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Name of the kind or class.
    pub name: &'a str,
}

impl Group<'_> {
    /// Returns whether `flow` is in the group.
    #[must_use]
    pub fn has(&self, flow: &FlowSpec) -> bool {
        flow.labels.kind == self.name || flow.labels.class == self.name
    }
}

/// Returns the groups of a run, kinds before classes, each in the order of the flows.
#[must_use]
pub fn of(spec: &Spec) -> Vec<Group<'_>> {
    let mut names: Vec<&str> = Vec::new();
    let kinds = spec.flows.iter().map(|flow| flow.labels.kind.as_str());
    let classes = spec.flows.iter().map(|flow| flow.labels.class.as_str());
    for name in kinds.chain(classes).filter(|name| !name.is_empty()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(|name| Group { name }).collect()
}
