//! Middleboxes on bytes, in the path of a fake.

use bytes::Bytes;
use hopline_core::Instant;
use hopline_proxy::driver::{Driver, PumpResult};
use hopline_proxy::mtcp::{self, Mtcp};
use hopline_proxy::snoop::{self, Snoop};

use hopline_proxy::{InjectResult, Pep, Side, TableLimits};
use hopline_testkit::middlebox::{
    Broken, CASES, FakeMiddleboxPath, FakePath, HOSTS, HOSTS_V6, ack, ack_between, connecting,
    connecting_between, data, data_between,
};
use hopline_wire::{ipv4, ipv6, tcp};
use proptest::prelude::*;
use std::net::Ipv4Addr;

#[test]
fn all_testkit_cases_pass() {
    for hosts in [HOSTS, HOSTS_V6] {
        for (name, body) in CASES {
            println!("{name} between {hosts:?}");
            body(&mut FakeMiddleboxPath::between(hosts));
        }
    }
}

fn driver() -> Driver<Snoop<Bytes>> {
    Driver::new(Snoop::new(snoop::Config::modern()))
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[test]
fn timers_run_during_a_flood() {
    let (mut driver, mut io) = (driver(), FakePath::default());
    for _ in 0..100 {
        io.offer(Side::Fixed, vec![0; 40]);
    }
    assert_eq!(driver.pump(Instant::ZERO, &mut io), Ok(PumpResult::BatchFull));
    assert_eq!((io.waiting(), io.arrived.mobile.len()), (36, 64));
    assert_eq!(driver.pump(Instant::ZERO, &mut io), Ok(PumpResult::Drained));
    assert_eq!((io.waiting(), io.arrived.mobile.len()), (0, 100));
}

/// Loses packet 1 of four; the mobile host reports it.
fn lose_one(io: &mut FakePath) {
    for (side, packet) in connecting() {
        io.offer(side, packet);
    }
    for n in 0..4 {
        io.offer(Side::Fixed, data(n));
    }
    io.offer(Side::Mobile, ack(1, &[]));
    io.offer(Side::Mobile, ack(1, &[(2, 4)]));
}

#[test]
fn packet_without_route_is_counted() {
    let (mut driver, mut io) = (driver(), FakePath::default());
    io.injected = Some(InjectResult::NoRoute);
    lose_one(&mut io);
    assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
    assert_eq!((driver.counts().no_route, driver.counts().sent_to_mobile), (1, 0));
    assert_eq!((io.arrived.mobile.len(), io.arrived.fixed.len()), (5, 2));
}

/// A queue drops packet 1 of packets 0 to 3, and reports it; the mobile host has the remaining ones.
#[test]
fn queue_drop_is_left_to_the_sender() {
    let (mut driver, mut io) = (driver(), FakePath::default());
    for (side, packet) in connecting() {
        io.offer(side, packet);
    }
    (0..4).for_each(|n| io.offer(Side::Fixed, data(n)));
    io.dropped.push_back(data(1).into());
    assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
    let acks = [ack(1, &[]), ack(1, &[(2, 3)]), ack(1, &[(2, 4)])];
    acks.iter().for_each(|ack| io.offer(Side::Mobile, ack.clone()));
    assert_eq!(driver.pump(at(15), &mut io), Ok(PumpResult::Drained));
    assert_eq!((driver.counts().dropped, driver.counts().sent_to_mobile), (1, 0));
    assert_eq!(io.arrived.fixed[1..], acks, "SYN-ACK, then every word of the mobile host");
}

#[test]
fn retransmission_into_a_full_queue_is_left_to_the_sender() {
    let (mut driver, mut io) = (driver(), FakePath::default());
    io.injected = Some(InjectResult::QueueFull);
    lose_one(&mut io);
    assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
    let counts = driver.counts();
    assert_eq!((counts.dropped, counts.no_route, counts.sent_to_mobile), (1, 0, 0));
    io.offer(Side::Mobile, ack(1, &[(2, 4)]));
    assert_eq!(driver.pump(at(12), &mut io), Ok(PumpResult::Drained));
    assert_eq!(io.arrived.fixed.last(), Some(&ack(1, &[(2, 4)])));
}

#[test]
fn new_middlebox_picks_the_connection_up() {
    let (mut driver, mut io) = (driver(), FakePath::default());
    lose_one(&mut io);
    assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
    let old = core::mem::replace(driver.middlebox_mut(), Snoop::new(snoop::Config::published()));
    assert_eq!((old.stats().cached, old.connections(), driver.middlebox().connections()), (4, 1, 0));
    (4..6).for_each(|n| io.offer(Side::Fixed, data(n)));
    assert_eq!(driver.pump(at(20), &mut io), Ok(PumpResult::Drained));
    assert_eq!((driver.middlebox().connections(), driver.middlebox().stats().cached), (1, 2));
    assert_eq!(driver.counts().to_mobile, 7, "what was counted stays counted");
}

#[test]
fn a_hundred_thousand_forged_flows_keep_memory_bounded() {
    let bounds = TableLimits { max_connections: 1000, ..TableLimits::default() };
    let config = snoop::Config { limits: bounds, ..snoop::Config::modern() };
    let (mut driver, mut io) = (Driver::new(Snoop::new(config)), FakePath::default());
    for n in 0..100_000 {
        io.offer(Side::Fixed, forged(n));
        assert_eq!(driver.pump(at(1), &mut io), Ok(PumpResult::Drained));
        io.arrived.mobile.clear();
    }
    let machine = driver.middlebox();
    assert_eq!((machine.connections(), machine.stats().cached), (1000, 100_000));
    assert_eq!(machine.stats().evicted, 99_000);
}

#[test]
fn a_hundred_thousand_forged_flows_keep_no_more_bytes_than_are_allowed() {
    let config = snoop::Config { max_cached_bytes: 1_000_000, ..snoop::Config::modern() };
    let (mut driver, mut io) = (Driver::new(Snoop::new(config)), FakePath::default());
    for n in 0..100_000 {
        io.offer(Side::Fixed, forged(n));
        assert_eq!(driver.pump(at(1), &mut io), Ok(PumpResult::Drained));
        io.arrived.mobile.clear();
        assert!(driver.middlebox().cached_bytes() <= 1_000_000);
    }
    let machine = driver.middlebox();
    // A packet of 1040 bytes and its state.
    assert!((500..1000).contains(&machine.connections()), "{}", machine.connections());
    assert_eq!(machine.stats().evicted_for_bytes, 100_000 - machine.connections() as u64);
}

/// Returns packet 0 as if from another host and port.
fn forged(n: u32) -> Vec<u8> {
    let (header, segment) = ipv4::Header::parse(&data(0).into()).expect("it is one");
    let mut segment = tcp::Segment::parse(&header, &segment).expect("it is one");
    let src = Ipv4Addr::from_bits(0x0a00_0000 + n / 60_000);
    segment.src_port = (n % 60_000) as u16 + 1;
    let header = ipv4::Header { src, ..header };
    let mut packet = Vec::new();
    header.emit(segment.wire_len(), &mut packet);
    segment.emit(&header, &mut packet);
    packet
}

#[test]
fn link_padding_is_not_retransmitted() {
    for hosts in [HOSTS, HOSTS_V6] {
        let (mut driver, mut io) = (driver(), FakePath::default());
        for (side, packet) in connecting_between(hosts) {
            io.offer(side, packet);
        }
        for n in 0..4 {
            let mut padded = data_between(hosts, n);
            padded.extend([0xee; 9]);
            io.offer(Side::Fixed, padded);
        }
        io.offer(Side::Mobile, ack_between(hosts, 1, &[]));
        io.offer(Side::Mobile, ack_between(hosts, 1, &[(2, 4)]));
        assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
        assert_eq!(io.arrived.mobile.last(), Some(&data_between(hosts, 1)));
    }
}

/// Returns the packet with this extension header between its IPv6 header and its segment.
fn extended(packet: &[u8], next: u8, extension: &[u8]) -> Vec<u8> {
    let (header, segment) = packet.split_at(ipv6::HEADER_LEN);
    let mut extended = [header, extension, segment].concat();
    let len = (extension.len() + segment.len()) as u16;
    extended[4..6].copy_from_slice(&len.to_be_bytes());
    (extended[6], extended[ipv6::HEADER_LEN]) = (next, 6);
    extended
}

#[test]
fn retransmission_keeps_extension_headers() {
    let (mut driver, mut io) = (driver(), FakePath::default());
    for (side, packet) in connecting_between(HOSTS_V6) {
        io.offer(side, packet);
    }
    let padding = [0, 0, 1, 4, 0, 0, 0, 0];
    let data = |n| extended(&data_between(HOSTS_V6, n), 60, &padding);
    (0..4).for_each(|n| io.offer(Side::Fixed, data(n)));
    io.offer(Side::Mobile, ack_between(HOSTS_V6, 1, &[]));
    let reports = extended(&ack_between(HOSTS_V6, 1, &[(2, 4)]), 0, &padding);
    io.offer(Side::Mobile, reports);
    assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
    assert_eq!((io.arrived.mobile.last(), driver.counts().to_mobile), (Some(&data(1)), 5));
}

#[test]
fn packets_with_further_routing_destinations_bypass() {
    let (mut driver, mut io) = (driver(), FakePath::default());
    // Type 4 (RFC 8754) with one segment left.
    let mut routing = vec![0, 2, 4, 1, 0, 0, 0, 0];
    routing.extend([0xfd; 16]);
    let packet = extended(&data_between(HOSTS_V6, 0), 43, &routing);
    io.offer(Side::Fixed, packet.clone());
    assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
    assert_eq!((driver.counts().to_mobile, driver.counts().bypassed.other_protocols), (0, 1));
    assert_eq!(io.arrived.mobile, [packet]);
}

#[test]
fn ecn_marks_survive_rewriting() {
    for hosts in [HOSTS, HOSTS_V6] {
        let (mut driver, mut io) = (driver(), FakePath::default());
        for (side, packet) in connecting_between(hosts) {
            io.offer(side, packet);
        }
        (0..6).for_each(|n| io.offer(Side::Fixed, data_between(hosts, n)));
        io.offer(Side::Mobile, ack_between(hosts, 1, &[]));
        let mut marked = ack_between(hosts, 2, &[(3, 6)]);
        if hosts == HOSTS {
            marked[1] |= 3;
            marked[10..12].fill(0);
            let sum = hopline_wire::checksum::internet(&marked[..20]);
            marked[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            marked[1] |= 3 << 4;
        }
        io.offer(Side::Mobile, marked.clone());
        assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
        assert_eq!(driver.counts().rewritten, 1);
        let header = if hosts == HOSTS { 20 } else { ipv6::HEADER_LEN };
        assert_eq!(io.arrived.fixed.last().map(|shown| &shown[..header]), Some(&marked[..header]));
    }
}

#[test]
fn packet_io_error_is_returned() {
    let (mut driver, mut io) = (driver(), FakePath::default());
    lose_one(&mut io);
    io.error = Some(Broken);
    assert_eq!(driver.pump(at(10), &mut io), Err(Broken));
    io.error = None;
    assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
}

#[test]
fn driver_runs_other_middleboxes() {
    let mut driver = Driver::new(Mtcp::<Bytes>::new(mtcp::Config::default()));
    let mut io = FakePath::default();
    lose_one(&mut io);
    assert_eq!(driver.pump(at(10), &mut io), Ok(PumpResult::Drained));
    assert_eq!((driver.counts().to_mobile, driver.counts().from_mobile), (5, 3));
    // It withholds the last acknowledged byte.
    assert!(driver.counts().rewritten > 0, "{:?}", driver.counts());
}

/// Generates a packet of the dialogue with some bytes changed.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let of = |hosts| {
        let data = [0, 1].map(|n| data_between(hosts, n));
        let connecting = connecting_between(hosts).into_iter().map(|(_, packet)| packet);
        connecting.chain(data).chain([ack_between(hosts, 1, &[(2, 4)])])
    };
    let extended = extended(&data_between(HOSTS_V6, 0), 60, &[0, 0, 1, 4, 0, 0, 0, 0]);
    let packets: Vec<Vec<u8>> = of(HOSTS).chain(of(HOSTS_V6)).chain([extended]).collect();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (prop::sample::select(packets), changes, any::<prop::sample::Index>()).prop_map(
        |(mut packet, changes, cut)| {
            for (at, byte) in changes {
                let at = at.index(packet.len());
                packet[at] = byte;
            }
            packet.truncate(packet.len() - cut.index(packet.len()) / 16);
            packet
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// For any input nothing panics, and every packet is forwarded, changed or absorbed. Equal inputs have
    /// equal outputs.
    #[test]
    fn arbitrary_packets_do_not_panic(
        packets in prop::collection::vec((any::<bool>(), prop_oneof![mutated(), prop::collection::vec(any::<u8>(), 0..80)]), 0..60),
    ) {
        let outcome = || {
            let (mut driver, mut io) = (driver(), FakePath::default());
            for (n, (forth, packet)) in packets.iter().enumerate() {
                io.offer(if *forth { Side::Fixed } else { Side::Mobile }, packet.clone());
                let _ = driver.pump(at(n as u64), &mut io);
            }
            (*driver.counts(), io.arrived)
        };
        let (counts, arrived) = outcome();
        let taken = counts.to_mobile + counts.from_mobile + counts.bypassed.total();
        prop_assert_eq!(taken, packets.len() as u64);
        let sent = counts.sent_to_mobile + counts.sent_to_fixed;
        let came = (arrived.fixed.len() + arrived.mobile.len()) as u64;
        prop_assert_eq!(came, taken - counts.absorbed + sent);
        prop_assert_eq!((counts, arrived), outcome());
    }
}
