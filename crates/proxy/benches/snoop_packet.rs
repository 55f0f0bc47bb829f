//! Cost of Snoop for each packet that passes: a data packet to the mobile host or its ACK, with one
//! connection and with many, without loss and with a tenth of the packets lost.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Duration, Instant, Length, Seq32};
use hopline_proxy::Pep;
use hopline_proxy::snoop::{Config, Snoop};
use hopline_proxy::{Packet, TableLimits, Verdict};
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use hopline_wire::tcp::{Flags, SackBlock, Segment};
use std::hint::black_box;
use std::net::Ipv4Addr;

const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const LEN: u32 = 1448;
/// Packets in flight of a connection.
const WINDOW: u32 = 16;

/// Downloads in turn, a packet and an ACK each.
struct Station {
    snoop: Snoop<u32>,
    now: Instant,
    connections: u32,
    next_connection: u32,
    round: u32,
    /// One packet in this number is lost; 0: none.
    loss_interval: u32,
}

fn header(src: Ipv4Addr, dst: Ipv4Addr) -> Header {
    Header { src, dst, ttl: 64, protocol: Protocol::Tcp, ecn: Ecn::NotCapable, id: 0 }
}

impl Station {
    fn new(config: Config, connections: u32, lossy: u32) -> Self {
        let bounds = TableLimits {
            max_connections: connections,
            idle_timeout: Duration::from_secs(100_000),
            ..TableLimits::default()
        };
        let snoop = Snoop::new(Config { limits: bounds, ..config });
        let mut station = Self {
            snoop,
            now: Instant::ZERO,
            connections,
            next_connection: 0,
            round: 0,
            loss_interval: lossy,
        };
        // Windows fill.
        for _ in 0..2 * WINDOW * connections {
            let _ = black_box(station.exchange());
        }
        station
    }

    /// Passes a packet, and the ACK of an earlier one.
    fn exchange(&mut self) -> [Verdict; 2] {
        let mobile = Ipv4Addr::from_bits(0x0a80_0000 + self.next_connection);
        self.now += Duration::from_micros(1);
        let sent = Seq32(self.round * LEN);
        let data = Segment {
            src_port: 80,
            dst_port: 9,
            seq: sent,
            flags: Flags::ACK,
            payload: Length(LEN.into()),
            ..Segment::default()
        };
        let ip = header(FIXED, mobile);
        let passed = self.snoop.handle_packet_to_mobile(self.now, Packet::new(&ip, &data), || self.round);
        let arrived = self.round.saturating_sub(WINDOW);
        let mut ack = Segment {
            src_port: 9,
            dst_port: 80,
            seq: Seq32(1),
            ack: Seq32(arrived * LEN),
            flags: Flags::ACK,
            window: 60_000,
            ..Segment::default()
        };
        if self.loss_interval > 0 && arrived % self.loss_interval < self.loss_interval / 2 {
            // The first packet of each period is missing until the middle of it.
            let missing = arrived / self.loss_interval * self.loss_interval;
            ack.ack = Seq32(missing * LEN);
            let block = SackBlock { left: ack.ack + LEN, right: Seq32(arrived * LEN) };
            if block.right.after(block.left) {
                ack.options.sack.push(block);
            }
        }
        let ip = header(mobile, FIXED);
        let back: Verdict = self.snoop.handle_packet_from_mobile::<Length>(self.now, Packet::new(&ip, &ack));
        while let Some(transmit) = self.snoop.poll_transmit() {
            black_box(transmit);
        }
        self.next_connection += 1;
        if self.next_connection == self.connections {
            (self.next_connection, self.round) = (0, self.round + 1);
        }
        [passed, back]
    }
}

fn packets(c: &mut Criterion) {
    for (name, lossy) in [("none lost", 0), ("one in ten lost", 10)] {
        let mut group = c.benchmark_group(format!("snoop, {name}"));
        group.throughput(Throughput::Elements(2));
        for (rules, config) in [("published", Config::published()), ("modern", Config::modern())] {
            for connections in [1, 1000, 100_000] {
                let mut station = Station::new(config, connections, lossy);
                let id = BenchmarkId::new(rules, format!("{connections} connections"));
                group.bench_function(id, |bencher| bencher.iter(|| black_box(station.exchange())));
            }
        }
        group.finish();
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);
