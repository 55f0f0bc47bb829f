//! Building blocks of the catalogue's formulas.

use super::Member;
use hopline_core::Duration;
use hopline_radio::mac::Airtime;
use hopline_sim::Outcome;
use hopline_sim::outcome::{DelayStats, DropCounts, FlowOutcome, NodeOutcome};
use hopline_sim::spec::{FlowSpec, Traffic, Transport};

pub(super) fn is_several(flows: &[Member<'_>]) -> bool {
    flows.len() > 1
}

pub(super) fn sum(flows: &[Member<'_>], of: fn(&FlowOutcome) -> u64) -> f64 {
    flows.iter().map(|(_, flow)| of(flow)).sum::<u64>() as f64
}

pub(super) fn sum_of_run(outcome: &Outcome, of: fn(&FlowOutcome) -> u64) -> f64 {
    outcome.flows.iter().map(of).sum::<u64>() as f64
}

/// Returns the number of data packets lost, and of those with a known fate.
fn loss_counts(flows: &[Member<'_>]) -> (f64, f64) {
    let lost = sum(flows, |f| f.data.lost);
    (lost, lost + sum(flows, |f| f.data.received))
}

pub(super) fn loss_pct(flows: &[Member<'_>]) -> Option<f64> {
    let (lost, known) = loss_counts(flows);
    per_hundred(lost, known)
}

pub(super) fn delivery_pct(flows: &[Member<'_>]) -> Option<f64> {
    let (lost, known) = loss_counts(flows);
    per_hundred(known - lost, known)
}

/// Returns a quantile of the delays of all data packets.
pub(super) fn delays(flows: &[Member<'_>], q: f64) -> Option<f64> {
    let all = flows.iter().fold(DelayStats::default(), |all, (_, flow)| all.with(&flow.data.delays));
    quantile(&all, q)
}

/// Returns the response times of all flows that have some; `None` if there are no exchanges.
pub(super) fn responses(flows: &[Member<'_>]) -> Option<DelayStats> {
    let asking = || flows.iter().filter(|(spec, _)| is_exchange(spec));
    asking().next()?;
    Some(asking().fold(DelayStats::default(), |all, (_, flow)| all.with(&flow.responses)))
}

pub(super) fn over_nodes(outcome: &Outcome, of: fn(&NodeOutcome) -> u64) -> f64 {
    outcome.nodes.iter().map(of).sum::<u64>() as f64
}

pub(super) fn ratio(of: f64, to: f64) -> Option<f64> {
    (to > 0.0).then(|| of / to)
}

pub(super) fn per_hundred(of: f64, to: f64) -> Option<f64> {
    ratio(100.0 * of, to)
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
    ratio(sum, n)
}

pub(super) fn count(n: u64) -> Option<f64> {
    Some(n as f64)
}

pub(super) fn quantile(delays: &DelayStats, q: f64) -> Option<f64> {
    delays.quantile(q).map(Duration::as_secs_f64)
}

pub(super) fn is_connection(flow: &FlowSpec) -> bool {
    flow.traffic.transport().is_some()
}

pub(super) fn tcp_door_count(flow: &FlowSpec, n: u64) -> Option<f64> {
    let has_door = |over: &Transport| matches!(over, Transport::Tcp(config) if config.door().is_some());
    flow.traffic.transport().is_some_and(has_door).then_some(n as f64)
}

pub(super) fn is_tcp(flow: &FlowSpec) -> bool {
    matches!(flow.traffic.transport(), Some(Transport::Tcp(_)))
}

pub(super) fn is_exchange(flow: &FlowSpec) -> bool {
    matches!(flow.traffic, Traffic::Exchange { .. })
}

/// Returns whether it is a transfer of given size, or a given number of transactions.
pub(super) fn has_end(flow: &FlowSpec) -> bool {
    match &flow.traffic {
        Traffic::Bulk { bytes, .. } => bytes.is_some(),
        Traffic::Exchange { exchange, .. } => exchange.transactions.is_some(),
        Traffic::Cbr { .. } | Traffic::OnOff { .. } | Traffic::Recorded { .. } => false,
    }
}

pub(super) fn connection_count(flow: &FlowSpec, n: u64) -> Option<f64> {
    is_connection(flow).then_some(n as f64)
}

/// Returns the radio time of all states; zero without a radio.
pub(super) fn radio_s(airtime: &Airtime) -> f64 {
    let a = airtime;
    (a.transmitting + a.receiving + a.sensing + a.nav + a.idle).as_secs_f64()
}

pub(super) fn has_radios(outcome: &Outcome) -> bool {
    outcome.nodes.iter().any(|node| radio_s(&node.airtime) > 0.0)
}

/// Returns the energy of all radios.
pub(super) fn energy_j(outcome: &Outcome) -> f64 {
    outcome.nodes.iter().map(|node| node.energy_j).sum()
}

/// Returns the share of a state in the time of all radios.
pub(super) fn radios(outcome: &Outcome, state: fn(&Airtime) -> Duration) -> Option<f64> {
    let over = |of: &dyn Fn(&Airtime) -> f64| outcome.nodes.iter().map(|n| of(&n.airtime)).sum::<f64>();
    per_hundred(over(&|a| state(a).as_secs_f64()), over(&radio_s))
}

pub(super) fn share(node: &NodeOutcome, state: fn(&Airtime) -> Duration) -> Option<f64> {
    per_hundred(state(&node.airtime).as_secs_f64(), radio_s(&node.airtime))
}

pub(super) fn radio_count(node: &NodeOutcome, n: u64) -> Option<f64> {
    (radio_s(&node.airtime) > 0.0).then_some(n as f64)
}

pub(super) fn dropped(node: &NodeOutcome, reason: fn(&DropCounts) -> u64) -> Option<f64> {
    count(reason(&node.drops))
}
