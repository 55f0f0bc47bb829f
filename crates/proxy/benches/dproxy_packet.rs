//! Cost of D-Proxy for each packet at an end of a link: an outgoing data packet that is cached, an incoming
//! one, and the ACK that frees the cached packet; with one flow and with many, without loss and with a tenth
//! of the packets lost and repaired.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Duration, Instant, Length, Seq32};
use hopline_proxy::dproxy::opaque::{self, Frame, Opaque};
use hopline_proxy::dproxy::{Config, DProxy, DProxyAction, Key};
use hopline_proxy::{Packet, TableLimits};
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use hopline_wire::tcp::{Flags, Segment};
use std::hint::black_box;
use std::net::Ipv4Addr;

const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const LINK_ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)];
const LEN: u32 = 1448;
/// Packets in flight of a flow.
const WINDOW: u32 = 16;

/// A node between two links: packets of all flows in turn come in from one link and go out over the other.
struct Node {
    upstream: DProxy<u32>,
    downstream: DProxy<u32>,
    now: Instant,
    flows: u32,
    next_flow: u32,
    round: u32,
    /// One packet in this number is lost before it comes in; 0: none.
    loss_interval: u32,
}

fn header(src: Ipv4Addr, dst: Ipv4Addr) -> Header {
    Header { src, dst, ttl: 64, protocol: Protocol::Tcp, ecn: Ecn::NotCapable, id: 0 }
}

impl Node {
    fn new(flows: u32, lossy: u32) -> Self {
        let mut config = Config::new(LINK_ENDS[0], LINK_ENDS[1], Key::new([1; 32]));
        config.limits = TableLimits {
            max_connections: flows,
            idle_timeout: Duration::from_secs(100_000),
            ..TableLimits::default()
        };
        config.cache.packets = 4 * WINDOW * flows;
        config.cache.lifetime = Duration::from_secs(100_000);
        config.max_waiting = WINDOW * flows;
        config.recovery.max_wait = Duration::from_secs(10);
        let (upstream, downstream) = (DProxy::new(config), DProxy::new(config));
        let mut node = Self {
            upstream,
            downstream,
            now: Instant::ZERO,
            flows,
            next_flow: 0,
            round: 0,
            loss_interval: lossy,
        };
        for _ in 0..2 * WINDOW * flows {
            node.exchange();
        }
        node
    }

    /// Passes a packet, and the ACK of an earlier one.
    fn exchange(&mut self) {
        let far = Ipv4Addr::from_bits(0x0a80_0000 + self.next_flow);
        self.now += Duration::from_micros(1);
        if self.loss_interval == 0 || !self.round.is_multiple_of(self.loss_interval) {
            self.data(far, self.round);
        }
        // Lost packets arrive four packets later.
        if self.loss_interval > 0 && self.round >= 4 && (self.round - 4).is_multiple_of(self.loss_interval) {
            self.data(far, self.round - 4);
        }
        let ack = Segment {
            src_port: 9,
            dst_port: 80,
            seq: Seq32(1),
            ack: Seq32(self.round.saturating_sub(WINDOW) * LEN),
            flags: Flags::ACK,
            ..Segment::<Length>::default()
        };
        let ip = header(far, LOCAL);
        let packet = Packet::new(&ip, &ack);
        let _ = black_box(self.downstream.pass_in(self.now, packet, || self.round));
        self.upstream.pass_out(self.now, packet, || self.round);
        self.next_flow += 1;
        if self.next_flow == self.flows {
            (self.next_flow, self.round) = (0, self.round + 1);
        }
    }

    fn data(&mut self, far: Ipv4Addr, round: u32) {
        let ip = header(LOCAL, far);
        let segment = Segment {
            src_port: 80,
            dst_port: 9,
            seq: Seq32(round * LEN),
            flags: Flags::ACK,
            payload: Length(LEN.into()),
            ..Segment::default()
        };
        let packet = Packet::new(&ip, &segment);
        let _ = black_box(self.upstream.pass_in(self.now, packet, || round));
        self.downstream.pass_out(self.now, packet, || round);
        while let Some(does) = self.upstream.poll_action() {
            // A released packet would go out over the other link; here it is the same packet, at the same
            // cost.
            if let DProxyAction::Forward(_) = does {
                black_box(does);
            }
        }
    }
}

/// Both ends of a link that numbers its packets.
struct NumberingLink {
    ends: [Opaque<u32>; 2],
    now: Instant,
    packet: u32,
    loss_interval: u32,
}

impl NumberingLink {
    fn new(lossy: u32) -> Self {
        let config = opaque::Config { tail_probe_delay: None, ..opaque::Config::default() };
        Self {
            ends: [1, 2].map(|epoch| Opaque::new(config, epoch)),
            now: Instant::ZERO,
            packet: 0,
            loss_interval: lossy,
        }
    }

    fn exchange(&mut self) {
        self.now += Duration::from_micros(100);
        self.packet += 1;
        self.ends[0].send(self.now, self.packet);
        self.process();
    }

    fn process(&mut self) {
        loop {
            let mut rests = true;
            for end in [0, 1] {
                while let Some(does) = self.ends[end].poll_action() {
                    if let opaque::OpaqueAction::Send(_, frame) = does {
                        rests = false;
                        let is_lost = self.loss_interval > 0
                            && matches!(frame, Frame::Data { number, sending: opaque::TransmissionKind::Original, .. }
                                if number % self.loss_interval == 0);
                        if !is_lost {
                            self.ends[1 - end].handle_frame(self.now, frame);
                        }
                    }
                }
            }
            if rests {
                return;
            }
        }
    }
}

fn packets(c: &mut Criterion) {
    for (name, lossy) in [("none lost", 0), ("one in ten lost", 10)] {
        let mut group = c.benchmark_group(format!("dproxy, {name}"));
        // A data packet that is inspected and cached, and an ACK that frees another one.
        group.throughput(Throughput::Elements(2));
        for flows in [1, 1000, 100_000] {
            let mut node = Node::new(flows, lossy);
            let id = BenchmarkId::new("reads TCP", format!("{flows} flows"));
            group.bench_function(id, |bencher| bencher.iter(|| node.exchange()));
        }
        let mut numbered = NumberingLink::new(lossy);
        let id = BenchmarkId::new("numbers packets", "both ends");
        group.bench_function(id, |bencher| bencher.iter(|| numbered.exchange()));
        group.finish();
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);
