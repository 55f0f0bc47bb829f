//! Packet drops while a neighbour is congested.

use crate::neighborhood::place::{ComplainingNeighbour, RADIO, RunningNode, Switch, address};
use hopline_core::Duration;
use hopline_linux::frames::{FrameSocket, HEADER_LEN};
use hopline_queue::SignalAction;
use hopline_testkit::namespace::host::ip;
use hopline_wire::checksum;
use socket2::SockRef;
use std::net::UdpSocket;
use std::thread::{self, sleep};

/// Destination port of datagrams.
const PORT: u16 = 4000;
/// Requested drop share of a neighbour; for a node with avgtx 98 it is a pb of 4.9 %.
const SHARE: f64 = 0.0005;
/// Datagrams of a measurement.
const COUNT: u32 = 2000;

/// Returns a node that occupies the channel for 40 % of the time, and the notices of its neighbour about it.
fn throttled(place: &Switch, action: SignalAction) -> (RunningNode, ComplainingNeighbour) {
    let node = place.member(0, |config| {
        config.machine.action = action;
        config.machine.notice_interval = Duration::from_secs(1);
        config.machine.lifetime = Duration::from_secs(2);
    });
    node.set_load([60, 0, 40]);
    let complaint = ComplainingNeighbour::new(place, 1, SHARE);
    node.await_metric("drop_probability_out_ppm", |ppm| (48_000..50_000).contains(&ppm));
    (node, complaint)
}

/// Returns the expected number of drops. Intervals between selected packets are uniform from 1 to 1/pb, with the mean
/// (1/pb + 1)/2. The range is four standard deviations of a binomial distribution to either side, which is wider than
/// that.
fn expected_of(count: u32) -> std::ops::Range<u64> {
    let pb = SHARE * 0.4 * 2e6 / 8192.0;
    let each = 2.0 * pb / (1.0 + pb);
    let mean = f64::from(count) * each;
    let deviation = (mean * (1.0 - each)).sqrt();
    (mean - 4.0 * deviation) as u64..(mean + 4.0 * deviation) as u64
}

/// Sends datagrams to host 2, at a rate below that of the shortest queue on the path.
fn send(from: &UdpSocket, count: u32) {
    for number in 0..count {
        from.send_to(&number.to_be_bytes(), (address(2), PORT)).unwrap();
        if number % 20 == 0 {
            sleep(std::time::Duration::from_millis(2));
        }
    }
}

pub(crate) fn packets_are_dropped_in_proportion() {
    let place = Switch::new(3);
    let (node, complaint) = throttled(&place, SignalAction::Drop);
    let sink = place.host(2).run(|| UdpSocket::bind((address(2), PORT))).unwrap().unwrap();
    sink.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    SockRef::from(&sink).set_recv_buffer_size(1 << 20).unwrap();
    let before = node.metric("packets_dropped");
    send(&place.datagrams(0), COUNT);
    let mut arrived = 0;
    while sink.recv(&mut [0; 16]).is_ok() {
        arrived += 1;
    }
    let lost = u64::from(COUNT) - arrived;
    node.await_metric("packets_dropped", |dropped| dropped == before + lost);
    assert!(expected_of(COUNT).contains(&lost), "{lost} of {COUNT}, not {:?}", expected_of(COUNT));
    // The notice expires when its sender stops renewing it.
    drop(complaint);
    node.await_metric("drop_probability_out_ppm", |ppm| ppm == 0);
    send(&place.datagrams(0), 200);
    let after = (0..200).filter(|_| sink.recv(&mut [0; 16]).is_ok()).count();
    assert_eq!((after, node.end().metric("packets_marked")), (200, 0));
}

pub(crate) fn ecn_capable_packets_are_marked() {
    let place = Switch::new(3);
    let (node, _complaint) = throttled(&place, SignalAction::Mark);
    let _sink = place.host(2).run(|| UdpSocket::bind((address(2), PORT))).unwrap().unwrap();
    let mut wire = place.frames(2);
    let capable = place.datagrams(0);
    SockRef::from(&capable).set_tos_v4(0b10).unwrap();
    let [arrived, marked] = sent(&capable, &mut wire);
    assert_eq!(arrived, u64::from(COUNT), "none is lost");
    assert!(expected_of(COUNT).contains(&marked), "{marked} of {COUNT}, not {:?}", expected_of(COUNT));
    node.await_metric("packets_marked", |counted| counted == marked);
    assert_eq!(node.metric("packets_dropped"), 0);
    // Packets that are not ECN-capable are dropped.
    let [arrived, marked] = sent(&place.datagrams(0), &mut wire);
    assert!(expected_of(COUNT).contains(&(u64::from(COUNT) - arrived)), "{arrived}");
    assert_eq!(marked, 0);
    node.end();
}

/// Sends datagrams. Returns the number received meanwhile, and the number of those with a mark.
fn sent(from: &UdpSocket, wire: &mut FrameSocket) -> [u64; 2] {
    thread::scope(|scope| {
        let receiver = scope.spawn(|| received(wire));
        send(from, COUNT);
        receiver.join().unwrap()
    })
}

/// Receives datagrams until none arrives for 300 ms. Returns their number, and the number of those with a mark. Checks
/// their checksums.
fn received(wire: &mut FrameSocket) -> [u64; 2] {
    let [mut arrived, mut marked] = [0; 2];
    let mut quiet = 0;
    while quiet < 300 {
        sleep(std::time::Duration::from_millis(1));
        quiet += 1;
        let mut take = |frame: &[u8]| {
            let packet = &frame[HEADER_LEN..];
            if packet[0] == 0x45 && packet[22..24] == PORT.to_be_bytes() {
                assert_eq!(checksum::internet(&packet[..20]), 0);
                arrived += 1;
                marked += u64::from(packet[1] == 0b11);
                quiet = 0;
            }
        };
        while wire.receive(&mut take).unwrap() > 0 {}
    }
    [arrived, marked]
}

pub(crate) fn packets_pass_while_no_process_reads_the_queue() {
    let place = Switch::new(3);
    let sink = place.host(2).run(|| UdpSocket::bind((address(2), PORT))).unwrap().unwrap();
    sink.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    // When the queue is closed, the packets waiting in it are dropped, whether ARP requests or datagrams: send more.
    let pass = || {
        let comes = |_| {
            place.datagrams(0).send_to(b"data", (address(2), PORT)).unwrap();
            sink.recv(&mut [0; 16]).is_ok()
        };
        assert!((0..20).any(comes), "nothing passes");
    };
    let node = place.member(0, |_| {});
    pass();
    node.await_metric("packets", |packets| packets > 0);
    node.end();
    pass();
    let node = place.member_without_rules(0, |_| {});
    pass();
    node.await_metric("packets", |packets| packets > 0);
    node.end();
}

pub(crate) fn a_vanished_interface_ends_the_service() {
    let place = Switch::new(2);
    let node = place.member(0, |_| {});
    ip(place.host(0), &format!("link set {RADIO} down"));
    ip(place.host(0), &format!("link set {RADIO} up"));
    let missing = node.await_metric("samples", |samples| samples > 0);
    node.await_metric("samples", |samples| samples > missing);
    ip(place.host(0), &format!("link del {RADIO}"));
    let error = node.wait().unwrap_err().to_string();
    assert_eq!(error, "the interface wlan0 has gone");
}
