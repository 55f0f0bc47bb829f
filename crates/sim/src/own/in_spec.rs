//! User-defined algorithms of a specification, and what is said of one that fails.

use super::{Culprit, Failure, OwnDisciplineId, Used};
use crate::spec::{Discipline, QueueSpec, Spec, Transport};
use hopline_core::NodeId;
use hopline_core::own::OwnFailure;
use std::collections::BTreeSet;

impl Failure {
    /// Returns the whole story, for people: which machine, where, when, and all that it says. `spec`: what
    /// was simulated.
    #[must_use]
    pub fn text(&self, spec: &Spec) -> String {
        let node = |node: NodeId| spec.nodes.get(node.index()).map_or("?", |node| &node.name);
        let who = match self.culprit {
            Culprit::Law { id, flow, node: at } => {
                let flow = spec.flows.get(flow.index()).map_or("?", |flow| &flow.name);
                let Used { name, .. } = spec.machines.used_law(id);
                format!("own law `{name}` of flow `{flow}` at node `{}`", node(at))
            }
            Culprit::Discipline { id, node: at } => {
                let Used { name, .. } = spec.machines.used_discipline(id);
                format!("own queue discipline `{name}` at node `{}`", node(at))
            }
        };
        let OwnFailure { method, why, .. } = &self.reason;
        format!("{who} failed in {method} at {:.9} s: {why}", self.at.as_secs_f64())
    }
}

impl Spec {
    /// Returns the user-defined algorithms that this spec uses, each once.
    #[must_use]
    pub fn own_machines(&self) -> BTreeSet<Used> {
        let over = self.flows.iter().flat_map(|flow| flow.traffic.transport().into_iter().chain(ends(flow)));
        let laws = over.filter_map(Transport::own_law).map(|id| self.machines.used_law(id));
        let queues = self.radio.iter().map(|radio| &radio.queue);
        let queues = queues.chain(self.links.iter().map(|link| &link.queue));
        let disciplines = queues.filter_map(own_discipline).map(|id| self.machines.used_discipline(id));
        laws.chain(disciplines).collect()
    }
}

fn ends(flow: &crate::spec::FlowSpec) -> impl Iterator<Item = &Transport> {
    flow.ends.iter().flatten()
}

fn own_discipline(queue: &QueueSpec) -> Option<OwnDisciplineId> {
    match queue.discipline {
        Discipline::Own(id) => Some(id),
        Discipline::DropTail | Discipline::Red(_) | Discipline::CoDel(_) | Discipline::FqCoDel(_) => None,
    }
}
