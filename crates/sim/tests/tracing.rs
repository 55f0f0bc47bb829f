//! Tracer events of signals that meet, of queues and of wires.

use crate::support::{SpecBuilder, at, disk, link, ns2_tcp, standing, walk, wired};
use hopline_core::{Duration, Instant, NodeId};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::trace::{FrameLossReason, Signal, TraceEvent};
use hopline_sim::{Spec, Tracer, World, simulate};

/// A lost frame: node, signal, reason, and the other signals there.
type LostFrame = (NodeId, Signal, FrameLossReason, Vec<Signal>);

#[derive(Default)]
struct TraceRecorder {
    sent: Vec<(Signal, Duration)>,
    lost: Vec<LostFrame>,
    /// Present and largest number of packets in the queue, by node.
    queues: [(i64, i64); 4],
    /// Packets on wires: departure, due arrival and destination.
    leaves: Vec<(Instant, Instant, NodeId)>,
    arrives: Vec<(Instant, NodeId)>,
}

impl Tracer for TraceRecorder {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        match event {
            TraceEvent::FrameSent { airtime, .. } => self.sent.push((Signal { node, since: now }, airtime)),
            TraceEvent::FrameLost { signal, reason: why, others, .. } => {
                self.lost.push((node, signal, why, others.to_vec()));
            }
            TraceEvent::Queued { before, after } => {
                let (packets, most) = &mut self.queues[node.index()];
                assert_eq!(*packets, before as i64);
                *packets = after as i64;
                *most = (*most).max(*packets);
            }
            TraceEvent::PacketSent { to, arrives, .. } => self.leaves.push((now, arrives, to)),
            TraceEvent::PacketReceived(_) => self.arrives.push((now, node)),
            _ => {}
        }
    }
}

fn seen(spec: &Spec, until: f64) -> TraceRecorder {
    let mut world = World::new(spec, 1, TraceRecorder::default());
    world.run_until(at(until));
    world.finish().1
}

/// Two senders that do not hear each other, both of which the one between them hears.
fn hidden() -> Spec {
    let ms = Duration::from_millis;
    standing(&[(0.0, 0.0), (200.0, 0.0), (400.0, 0.0)])
        .change(|spec| spec.radio = Some(disk(250.0)))
        .cbr(0, 1, 1000, ms(3))
        .cbr(2, 1, 1000, ms(4))
}

#[test]
fn a_collision_is_traced_with_all_overlapping_signals() {
    let seen = seen(&hidden(), 5.0);
    let airtime = |of: Signal| seen.sent.iter().find(|(signal, _)| *signal == of).expect("it was sent").1;
    let collisions = seen.lost.iter().filter(|lost| lost.2 == FrameLossReason::Collision);
    let mut pairs = 0;
    for (node, signal, _, others) in collisions {
        assert_eq!(*node, NodeId(1), "only the one between hears two");
        assert!(!others.is_empty());
        for other in others {
            assert_eq!(signal.node.0 + other.node.0, 2, "the two ends: {signal:?} {other:?}");
            let [begins, ends] =
                [signal, other].map(|s| (s.since, s.since + airtime(*s))).map(|(a, b)| [a, b]);
            assert!(begins[0] <= ends[1] && ends[0] <= begins[1], "both were on the air together");
            pairs += 1;
        }
    }
    assert!(pairs > 50, "{pairs}");
}

#[test]
fn a_loss_during_own_transmission_is_traced_with_its_signal() {
    // Both send to each other, and sense each other too late when they begin together.
    let ms = Duration::from_millis;
    let spec = standing(&[(0.0, 0.0), (200.0, 0.0)]).change(|spec| spec.radio = Some(disk(250.0)));
    let seen = seen(&spec.cbr(0, 1, 1000, ms(2)).cbr(1, 0, 1000, ms(2)), 10.0);
    let sending: Vec<&LostFrame> =
        seen.lost.iter().filter(|lost| lost.2 == FrameLossReason::Transmitting).collect();
    assert!(!sending.is_empty());
    for (node, signal, _, others) in sending {
        assert!(others.iter().any(|other| other.node == *node), "its own is among them: {others:?}");
        assert_ne!(signal.node, *node);
    }
}

#[test]
fn losses_by_distance_and_bit_errors_are_traced() {
    let ms = Duration::from_millis;
    let leaving = standing(&[(0.0, 0.0)])
        .wireless_node(walk(&[(0.0, 200.0, 0.0), (1.0, 200.0, 0.0), (2.0, 400.0, 0.0)]))
        .cbr(0, 1, 500, ms(20));
    let reasons = |spec: &Spec| -> Vec<FrameLossReason> {
        let mut found: Vec<FrameLossReason> = seen(spec, 4.0).lost.iter().map(|lost| lost.2).collect();
        found.dedup();
        found
    };
    assert_eq!(reasons(&leaving), [FrameLossReason::BelowSensitivity]);
    let lossy = ErrorModel::PacketLoss(Probability::new(0.2).expect("a probability"));
    let noisy = standing(&[(0.0, 0.0), (200.0, 0.0)]).radio(|radio| radio.errors = lossy);
    assert_eq!(reasons(&noisy.cbr(0, 1, 500, ms(20))), [FrameLossReason::Errors]);
}

#[test]
fn every_change_of_a_queue_is_traced() {
    let spec = hidden();
    let mut world = World::new(&spec, 1, TraceRecorder::default());
    world.run_until(at(3.0));
    let (outcome, seen) = world.finish();
    let most: Vec<i64> = outcome.nodes.iter().map(|node| node.queues.max_packets.into()).collect();
    assert_eq!(most, seen.queues[..3].iter().map(|queue| queue.1).collect::<Vec<_>>());
    assert!(most[0] > 0 && most[2] > 0, "they offer more than the air takes");
}

#[test]
fn a_packet_on_a_wire_arrives_at_the_traced_time() {
    let spec =
        wired(2).link(link(0, 1, 1_000_000, Duration::from_millis(5), 50)).transfer(0, 1, ns2_tcp(8), 30_000);
    let seen = seen(&spec, 30.0);
    let mut said: Vec<(Instant, NodeId)> = seen.leaves.iter().map(|leave| (leave.1, leave.2)).collect();
    said.sort();
    let mut did = seen.arrives;
    did.sort();
    assert!(said.len() > 20);
    assert_eq!(said, did);
}

#[test]
fn tracing_changes_nothing() {
    let spec = hidden().change(|spec| spec.duration = Duration::from_secs(3));
    let mut world = World::new(&spec, 1, TraceRecorder::default());
    world.run_until(at(3.0));
    assert_eq!(world.finish().0.fingerprint, simulate(&spec, 1).fingerprint);
}
