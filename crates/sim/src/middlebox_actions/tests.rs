//! A middlebox takes, absorbs, drops, marks and makes packets, and the counters add up.

use super::*;
use crate::ids::Port;
use crate::middlebox::{Middlebox, PacketDirection, PassingPacket, PathVerdict};
use crate::middlebox_slot::{MiddleboxKind, MiddleboxSlot};
use crate::outcome::{NodeOutcome, PacketCounts};
use crate::packet::header;
use crate::spec::{
    Discipline, FailureNotification, FlowSpec, LinkSpec, NodeSpec, QueueSpec, RoutingSpec, Spec, Traffic,
};
use crate::trace::{DropReason, NoTrace};
use core::cell::Cell;
use core::num::NonZeroU16;
use hopline_core::{Duration, Instant, Length};
use hopline_queue::drop_tail::Service;
use hopline_radio::mobility::{Position, Trajectory};
use hopline_radio::phy::errors::ErrorModel;
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use hopline_wire::udp;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::rc::Rc;

/// Datagrams of this many bytes, one every 10 ms.
const LEN: u32 = 100;

/// Script that treats datagram number n by n modulo 6.
#[derive(Debug, Default)]
struct Script {
    passed: u32,
    wishes: VecDeque<Action>,
    held: Option<(Instant, Handle, PacketDirection)>,
}

impl Script {
    fn act(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        let Body::Udp { number, .. } = packet.packet().body else { return PathVerdict::Pass };
        self.passed += 1;
        match number % 6 {
            1 => PathVerdict::Dropped(DropReason::Neighborhood),
            2 => {
                self.wishes.push_back(Action::Absorb(packet.handle));
                PathVerdict::Held
            }
            3 => {
                self.held = Some((now + Duration::from_millis(5), packet.handle, packet.onward));
                PathVerdict::Held
            }
            4 => PathVerdict::Marked,
            5 => {
                self.wishes.push_back(Action::Send(another(packet)));
                PathVerdict::Pass
            }
            _ => PathVerdict::Pass,
        }
    }
}

/// Returns a datagram in the name of the source of this one.
fn another(packet: PassingPacket<'_>) -> MiddleboxPacket {
    let ip = packet.packet().ip;
    let datagram = udp::Datagram { src_port: 1, dst_port: 2, payload: Length(LEN.into()) };
    MiddleboxPacket {
        account: packet.packet().account,
        ip: header(ip.src, ip.dst, Protocol::Udp),
        body: Body::Udp { datagram, number: 999_996 },
        len_bytes: (HEADER_LEN + udp::HEADER_LEN) as u32 + LEN,
        next_hop: ip.dst,
        class: Class::Data,
        copy_of: None,
    }
}

/// Acts on what comes in.
#[derive(Debug, Default)]
struct IngressScript(Script);

/// Acts on what goes out.
#[derive(Debug, Default)]
struct EgressScript(Script);

macro_rules! scripted {
    ($machine:ident, $act:item) => {
        impl Middlebox for $machine {
            $act

            fn handle_timeout(&mut self, now: Instant) {
                if let Some((_, handle, onward)) = self.0.held.take_if(|(due, ..)| *due <= now) {
                    self.0.wishes.push_back(Action::Resume(handle, onward));
                }
            }

            fn poll_timeout(&self) -> Option<Instant> {
                self.0.held.map(|(due, ..)| due)
            }

            fn poll_action(&mut self, _now: Instant) -> Option<Action> {
                self.0.wishes.pop_front()
            }
        }
    };
}

scripted!(
    IngressScript,
    fn handle_ingress(&mut self, now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        self.0.act(now, packet)
    }
);
scripted!(
    EgressScript,
    fn handle_egress(&mut self, now: Instant, packet: PassingPacket<'_>, _next_hop: Ipv4Addr) -> PathVerdict {
        self.0.act(now, packet)
    }
);

/// Counts what passes, in and out.
#[derive(Debug)]
struct PacketCounter(Rc<Cell<u32>>);

impl Middlebox for PacketCounter {
    fn handle_ingress(&mut self, _now: Instant, packet: PassingPacket<'_>) -> PathVerdict {
        assert!(matches!(packet.at(), Port { interface: Interface::Wire { .. }, .. }));
        self.0.set(self.0.get() + 1);
        PathVerdict::Pass
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_action(&mut self, _now: Instant) -> Option<Action> {
        None
    }
}

/// Sixty datagrams from node 0 over node 1 to node 2, and the machines at node 1.
fn run(machines: Vec<Box<dyn Middlebox>>) -> (PacketCounts, NodeOutcome) {
    let node = |n: u32| {
        let fixed = Trajectory::fixed(Position::new(0.0, 0.0));
        NodeSpec::new(NodeId(n).to_string(), fixed, [])
    };
    let link = |a, b| LinkSpec {
        arq: None,
        impairments: crate::spec::links::LinkImpairments::default(),
        a: NodeId(a),
        b: NodeId(b),
        rate_bps: 10_000_000,
        delay: Duration::from_millis(1),
        queue: QueueSpec {
            capacity: NonZeroU16::new(50).expect("not zero"),
            service_order: Service::Fifo,
            discipline: Discipline::DropTail,
        },
        errors: [ErrorModel::None; 2],
    };
    let spec = Spec {
        duration: Duration::from_secs(1),
        warmup: Duration::ZERO,
        seed: 1,
        nodes: (0..3).map(node).collect(),
        radio: None,
        links: vec![link(0, 1), link(1, 2)],
        outages: Vec::new(),
        notice_flood_attackers: Vec::new(),
        proxies: Vec::new(),
        pairs: Vec::new(),
        cells: None,
        taps: Default::default(),
        ethernet_taps: Default::default(),
        routing: RoutingSpec::Static,
        failure_notification: FailureNotification::None,
        series: Default::default(),
        custom_algorithms: Default::default(),
        extra_header_bytes: 0,
        flows: vec![FlowSpec {
            end_transports: [None, None],
            name: "f0".into(),
            src: NodeId(0),
            dst: NodeId(2),
            start: Instant::ZERO,
            stop: Instant::from_millis(599),
            traffic: Traffic::Cbr { packet_bytes: LEN, interval: Duration::from_millis(10) },
            labels: crate::spec::FlowLabels::default(),
        }],
    };
    let mut world = Engine::new(&spec, 1, NoTrace);
    world.nodes[1].middleboxes =
        machines.into_iter().map(MiddleboxKind::Scripted).map(MiddleboxSlot::new).collect();
    world.run_until(Instant::ZERO + spec.duration);
    assert_eq!(world.packets(), 0, "nothing is held for ever");
    let (mut outcome, _) = world.finish();
    (outcome.flows.remove(0).data, outcome.nodes.remove(1))
}

fn check((data, node): (PacketCounts, NodeOutcome)) {
    let bytes = u64::from(LEN) + (HEADER_LEN + udp::HEADER_LEN) as u64;
    assert_eq!((data.sent, data.middlebox_made, data.absorbed, data.lost), (60, 10, 10, 10));
    assert_eq!(data.received, 50);
    assert_eq!(
        (data.middlebox_made_bytes, data.absorbed_bytes, data.lost_bytes),
        (10 * bytes, 10 * bytes, 10 * bytes)
    );
    assert_eq!((node.drops.neighborhood, node.drops.total(), node.marks), (10, 10, 10));
}

#[test]
fn ingress_accounts_absorbed_and_made_packets() {
    check(run(vec![Box::new(IngressScript::default())]));
}

#[test]
fn egress_accounts_absorbed_and_made_packets() {
    check(run(vec![Box::new(EgressScript::default())]));
}

#[test]
fn delayed_packets_arrive_later() {
    let (with, _) = run(vec![Box::new(IngressScript::default())]);
    let (without, _) = run(Vec::new());
    assert_eq!((without.sent, without.received), (60, 60));
    let [most, least] = [with, without].map(|data| data.delays.max().expect("some arrived").as_secs_f64());
    assert!((most - least - 0.005).abs() < 1e-4, "{most} {least}");
}

#[test]
fn resumed_packets_pass_only_the_remaining_middleboxes_once() {
    let seen = |machines: fn(PacketCounter) -> Vec<Box<dyn Middlebox>>| {
        let seen = Rc::new(Cell::new(0));
        let (data, _) = run(machines(PacketCounter(seen.clone())));
        assert_eq!(data.received, 50);
        seen.get()
    };
    // Of sixty, ten are dropped and ten absorbed; what a machine makes goes out.
    assert_eq!(seen(|witness| vec![Box::new(IngressScript::default()), Box::new(witness)]), 40);
    assert_eq!(seen(|witness| vec![Box::new(witness), Box::new(IngressScript::default())]), 60);
}
