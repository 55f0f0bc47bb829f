//! User-defined algorithms of a specification, and what is said of one that fails.

use super::{CustomDisciplineId, FailedInstance, Failure, UsedAlgorithm};
use crate::spec::{Discipline, QueueSpec, Spec, Transport};
use hopline_core::NodeId;
use hopline_core::custom_algorithm::CustomAlgorithmError;
use hopline_transport::quic::{CongestionControl, CustomControllerId};
use std::collections::BTreeSet;

impl Failure {
    /// Returns the whole story, for people: which machine, where, when, and all that it says. `spec`: what
    /// was simulated.
    #[must_use]
    pub fn describe(&self, spec: &Spec) -> String {
        let node = |node: NodeId| spec.nodes.get(node.index()).map_or("?", |node| &node.name);
        let who = match self.instance {
            FailedInstance::CongestionControl { id, flow, node: at } => {
                let flow = spec.flows.get(flow.index()).map_or("?", |flow| &flow.name);
                let UsedAlgorithm { name, .. } = spec.custom_algorithms.used_congestion_control(id);
                format!("own law `{name}` of flow `{flow}` at node `{}`", node(at))
            }
            FailedInstance::Discipline { id, node: at } => {
                let UsedAlgorithm { name, .. } = spec.custom_algorithms.used_discipline(id);
                format!("own queue discipline `{name}` at node `{}`", node(at))
            }
        };
        let CustomAlgorithmError { method, message: why, .. } = &self.reason;
        format!("{who} failed in {method} at {:.9} s: {why}", self.at.as_secs_f64())
    }
}

impl Spec {
    /// Returns the user-defined algorithms that this spec uses, each once.
    #[must_use]
    pub fn custom_algorithms(&self) -> BTreeSet<UsedAlgorithm> {
        let over = self.flows.iter().flat_map(|flow| flow.traffic.transport().into_iter().chain(ends(flow)));
        let over: Vec<&Transport> = over.collect();
        let quic = over
            .iter()
            .filter_map(|over| quic_controller(over))
            .map(|id| self.custom_algorithms.used_quic_controller(id));
        let laws = over
            .iter()
            .filter_map(|over| over.custom_congestion_control())
            .map(|id| self.custom_algorithms.used_congestion_control(id));
        let queues = self.radio.iter().map(|radio| &radio.queue);
        let queues = queues.chain(self.links.iter().map(|link| &link.queue));
        let disciplines =
            queues.filter_map(custom_discipline).map(|id| self.custom_algorithms.used_discipline(id));
        laws.chain(quic).chain(disciplines).collect()
    }
}

fn ends(flow: &crate::spec::FlowSpec) -> impl Iterator<Item = &Transport> {
    flow.end_transports.iter().flatten()
}

const fn quic_controller(over: &Transport) -> Option<CustomControllerId> {
    match over {
        Transport::Quic(config) => match config.congestion_control() {
            CongestionControl::Custom(id) => Some(id),
            CongestionControl::Cubic
            | CongestionControl::NewReno
            | CongestionControl::Bbr
            | CongestionControl::S2nCubic
            | CongestionControl::S2nBbr => None,
        },
        Transport::Tcp(_) | Transport::Tpa(_) | Transport::Wide(_) => None,
    }
}

fn custom_discipline(queue: &QueueSpec) -> Option<CustomDisciplineId> {
    match queue.discipline {
        Discipline::Custom(id) => Some(id),
        Discipline::DropTail
        | Discipline::Red(_)
        | Discipline::CoDel(_)
        | Discipline::FqCoDel(_)
        | Discipline::Pie(_)
        | Discipline::DualPi2(_) => None,
    }
}
