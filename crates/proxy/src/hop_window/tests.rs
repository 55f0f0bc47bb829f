//! Timed dialogues with a window around a middlebox that forwards everything.

use super::*;
use crate::packet::{Says, Side};
use hopline_core::Length;
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::{SackBlock, SackBlocks, Segment};

const FIXED: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// Data bytes of a packet: 1,500 bytes with headers.
const FULL: u32 = 1460;
/// Initial window, packets.
const LEAST: u32 = 10;

/// Middlebox that forwards everything, and records notifications.
#[derive(Debug, Default)]
struct Listener {
    notes: Vec<(u32, OnTheWay)>,
    out: VecDeque<Transmit<Spanned<u32>>>,
    kept: Vec<Spanned<u32>>,
}

impl Filter<Spanned<u32>> for Listener {
    type Stats = ();

    fn pass_to_mobile<P: Payload>(
        &mut self,
        _: Instant,
        _: Packet<'_, P>,
        keep: impl FnOnce() -> Spanned<u32>,
    ) -> Verdict {
        self.kept.push(keep());
        Verdict::Forward
    }

    fn pass_from_mobile<P: Payload>(&mut self, _: Instant, _: Packet<'_, P>) -> Verdict {
        Verdict::Forward
    }

    fn note(&mut self, _: Instant, _: Connection, seq: Seq32, way: OnTheWay) {
        self.notes.push((seq.0 / FULL, way));
    }

    fn forget_mobile(&mut self, _: IpAddr) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self) -> Option<Transmit<Spanned<u32>>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn stats(&self) {}

    fn connections(&self) -> usize {
        0
    }
}

struct Station {
    window: HopWindow<Listener, u32>,
    now: Instant,
}

impl Station {
    fn new() -> Self {
        let window = HopWindow::new(Some(Config::DEFAULT), Bounds::default(), Listener::default());
        Self { window, now: Instant::ZERO }
    }

    fn at(&mut self, micros: u64) {
        self.now = Instant::from_nanos(micros * 1000);
        while self.window.poll_timeout().is_some_and(|due| due <= self.now) {
            self.window.handle_timeout(self.now);
        }
    }

    fn pass(&mut self, port: u16, segment: Segment<Length>, kept: u32) -> Verdict {
        let segment = Segment { src_port: port, dst_port: 80, ..segment };
        let ip = header(Side::Fixed);
        self.window.pass_to_mobile(self.now, Packet::new(&ip, &segment), || kept)
    }

    /// Sends full packet `n` of a connection. Returns whether it is forwarded at once.
    fn data_of(&mut self, port: u16, n: u32) -> bool {
        self.pass(port, data(n), n) == Verdict::Forward
    }

    fn data(&mut self, n: u32) -> bool {
        self.data_of(9, n)
    }

    /// Sends packets, which may have to wait.
    fn offer(&mut self, packets: core::ops::Range<u32>) {
        packets.for_each(|n| {
            self.data(n);
        });
    }

    /// Sends an ACK of the mobile host for everything before packet `n`, and for these blocks.
    fn ack(&mut self, n: u32, sacked: &[(u32, u32)]) {
        let mut segment = Segment { src_port: 80, dst_port: 9, ack: seq(n), flags: Flags::ACK, ..data(0) };
        segment.payload = Length(0);
        segment.options.sack = SackBlocks::default();
        for &(left, right) in sacked {
            segment.options.sack.push(SackBlock { left: seq(left), right: seq(right) });
        }
        let ip = header(Side::Mobile);
        let verdict = self.window.pass_from_mobile(self.now, Packet::new(&ip, &segment));
        assert_eq!(verdict, Verdict::Forward);
        assert_eq!(Says::of(&segment).ack, seq(n));
    }

    /// Returns the packets that leave now.
    fn left(&mut self) -> Vec<u32> {
        core::iter::from_fn(|| self.window.poll_transmit())
            .map(|transmit| match transmit {
                Transmit::Again { kept, .. } => kept,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn window_bytes(&mut self) -> u64 {
        let host = self.window.hosts.find(&key(MOBILE)).expect("it has been sent something");
        self.window.hosts.at(host).window(&Config::DEFAULT)
    }

    fn refused(&mut self) -> Vec<u32> {
        let notes = self.window.machine.notes.iter();
        notes.filter(|(_, way)| *way == OnTheWay::Refused).map(|(n, _)| *n).collect()
    }
}

fn header(from: Side) -> Header {
    let (src, dst) = if from == Side::Fixed { (FIXED, MOBILE) } else { (MOBILE, FIXED) };
    Header::between(src, dst, Protocol::Tcp)
}

fn seq(n: u32) -> Seq32 {
    Seq32(n * FULL)
}

fn data(n: u32) -> Segment<Length> {
    Segment { seq: seq(n), flags: Flags::ACK, payload: Length(u64::from(FULL)), ..Segment::default() }
}

/// Simulates a hop that serves a packet in this many microseconds; its ACK arrives 4 ms later. `ahead`:
/// number of packets sent before they are acknowledged. Returns the number of packets on the hop over time,
/// µs.
fn serve(
    station: &mut Station,
    micros: u64,
    packets: core::ops::Range<u32>,
    ahead: u32,
) -> Vec<(u64, usize)> {
    let (mut offered, mut acked) = (packets.start, packets.start);
    let mut now = station.now.as_nanos() / 1000;
    let mut free = now;
    let (mut on_the_hop, mut course) = (VecDeque::new(), Vec::new());
    while acked < packets.end {
        station.at(now);
        let until = acked + ahead;
        let goes: Vec<u32> = (offered..until).filter(|&n| station.data(n)).collect();
        offered = offered.max(until);
        for n in station.left().into_iter().chain(goes) {
            free = now.max(free) + micros;
            on_the_hop.push_back((free + 4000, n));
        }
        course.push((now, on_the_hop.len()));
        let (at, n) = on_the_hop.pop_front().expect("a hop that is kept busy");
        station.at(at);
        (now, acked) = (at, n + 1);
        station.ack(acked, &[]);
    }
    course
}

/// Simulates a hop that serves a packet in 1.2 ms; its ACK arrives at the next multiple of `slot_ms`, at
/// least 4 ms later. Returns the number of packets served in the last two of three seconds; 1666 keep it
/// busy.
fn serve_in_slots(station: &mut Station, slot_ms: u64) -> usize {
    let (mut on_the_hop, mut free, mut offered, mut acked, mut counted) = (VecDeque::new(), 0, 0, 0, 0);
    for now in (0..3_000_000).step_by(slot_ms as usize * 1000) {
        station.at(now);
        loop {
            let goes: Vec<u32> = (offered..acked + 200).filter(|&n| station.data(n)).collect();
            offered = offered.max(acked + 200);
            for n in station.left().into_iter().chain(goes) {
                free = now.max(free) + 1200;
                on_the_hop.push_back((free + 4000, n));
            }
            let Some((_, n)) = on_the_hop.pop_front_if(|(at, _)| *at <= now) else { break };
            acked = n + 1;
            counted += usize::from(now >= 1_000_000);
            station.ack(acked, &[]);
        }
    }
    counted
}

/// Returns the minimum and the maximum number of packets on the hop in these seconds.
fn least_and_most(course: &[(u64, usize)], seconds: core::ops::Range<u64>) -> [usize; 2] {
    let then = course.iter().filter(|(at, _)| seconds.contains(&(at / 1_000_000))).map(|(_, many)| *many);
    [then.clone().min(), then.max()].map(|many| many.expect("something was served then"))
}

#[test]
fn ten_packets_leave_at_once_and_others_as_acks_come() {
    let mut station = Station::new();
    let left: Vec<bool> = (0..14).map(|n| station.data(n)).collect();
    assert_eq!(left.iter().filter(|goes| **goes).count(), LEAST as usize);
    assert_eq!(station.window.waiting_bytes(), 4 * 1500);
    assert_eq!(station.left(), []);
    station.at(5000);
    station.ack(1, &[]);
    assert_eq!(station.left(), [10]);
    // An acknowledgment of a later packet covers earlier ones: they have arrived or are lost.
    station.ack(1, &[(3, 4)]);
    assert_eq!(station.left(), [11, 12, 13]);
    assert_eq!(station.window.waiting_bytes(), 0);
    let ways: Vec<_> = station.window.machine.notes.iter().filter(|(n, _)| *n == 12).collect();
    assert_eq!(ways, [&(12, OnTheWay::Waits), &(12, OnTheWay::Leaves)]);
}

#[test]
fn what_is_no_data_and_what_the_machine_sends_again_goes_past_those_that_wait() {
    let mut station = Station::new();
    station.offer(0..12);
    let bare = Segment { payload: Length(0), ..data(12) };
    assert_eq!(station.pass(9, bare, 12), Verdict::Forward);
    let again = station.window.machine.kept[3].clone();
    let connection = again.span.connection;
    let again = Transmit::Again { turn: Turn::First, connection, kept: again, clock: Some(7) };
    station.window.machine.out.push_back(again);
    station.at(5000);
    station.ack(2, &[]);
    let sent: Vec<_> = core::iter::from_fn(|| station.window.poll_transmit()).collect();
    let again = Transmit::Again { turn: Turn::First, connection, kept: 3, clock: Some(7) };
    assert_eq!(sent[0], again);
    // It is in flight too: one of the two waiting packets leaves.
    assert_eq!(sent.len(), 2, "{sent:?}");
}

#[test]
fn the_ack_of_what_was_sent_twice_tells_nothing() {
    let mut station = Station::new();
    (0..LEAST).for_each(|n| assert!(station.data(n)));
    station.at(6000);
    // The sender retransmits the first packet just before its ACK arrives: this is no sample.
    assert!(!station.data(0));
    station.ack(1, &[]);
    assert_eq!(station.left(), [0]);
    station.at(6001);
    station.ack(1, &[]);
    assert_eq!(station.window_bytes(), 15_000);
}

#[test]
fn what_left_before_what_was_sent_twice_stays_under_way() {
    let mut station = Station::new();
    (0..3).for_each(|n| assert!(station.data(n)));
    station.at(6000);
    // The first packet again, while its ACK is on its way. Packets between are not acknowledged.
    assert!(station.data(0));
    station.ack(1, &[]);
    let goes = (3..20).filter(|&n| station.data(n)).count();
    assert_eq!(goes, LEAST as usize - 3);
}

#[test]
fn acks_that_come_together_make_no_hop_fast() {
    let mut station = Station::new();
    assert!(station.data(0));
    station.at(1000);
    station.ack(1, &[]);
    for n in 1..5 {
        station.at(u64::from(n) * 10_000);
        assert!(station.data(n));
    }
    station.at(41_000);
    station.ack(2, &[]);
    station.at(41_500);
    assert!(station.data(5));
    station.at(43_000);
    // Four packets are acknowledged 2 ms after the last ACK; sending them took 31.5 ms.
    station.ack(6, &[]);
    // One packet per millisecond, as at first, for one and a quarter of 30 ms and 4 ms; at the rate of the
    // ACKs it would be 140,000.
    let window = station.window_bytes();
    assert!(window < 70_000, "{window}");
}

#[test]
fn a_hop_is_kept_busy_and_hardly_more_waits_there() {
    let mut station = Station::new();
    let course = serve(&mut station, 1200, 0..2000, 60);
    let [least, most] = least_and_most(&course, 1..3);
    // One and a half of 5.2 ms, and 4 ms, at one packet per 1.2 ms.
    assert!((9..=14).contains(&most), "{most} packets");
    assert!(least >= 9, "{least} packets");
    assert_eq!((station.refused(), station.window.stats.unheard), (vec![], 0));
}

#[test]
fn a_hop_that_delivers_in_bursts_is_kept_busy() {
    for slot_ms in [5, 7, 10, 20, 40] {
        let served = serve_in_slots(&mut Station::new(), slot_ms);
        assert!(served >= 1583, "{slot_ms} ms: {served}");
    }
}

#[test]
fn retransmissions_of_a_sender_are_under_way_no_more_once_they_may_have_been_answered() {
    let mut station = Station::new();
    assert!(station.data(0));
    station.at(10_000);
    station.ack(1, &[]);
    station.offer(1..11);
    station.at(20_000);
    station.ack(11, &[]);
    // After a timeout, duplicates of received packets fill the window. One waits.
    while station.data(1) {}
    station.at(25_000);
    // No round trip is that short: the ACK is for earlier transmissions.
    station.ack(11, &[(1, 2)]);
    assert_eq!(station.left(), []);
    station.at(30_000);
    station.ack(11, &[(1, 2)]);
    assert_eq!(station.left(), [1]);
}

#[test]
fn what_a_full_queue_beyond_drops_makes_no_hop_fast() {
    let mut station = Station::new();
    let (mut n, mut now) = (0, 0);
    // Every second packet is dropped further on; the host has the remaining ones.
    for _ in 0..500 {
        station.offer(n..n + 20);
        station.left();
        for m in (n..n + 20).step_by(2) {
            now += 1200;
            station.at(now);
            station.ack(n, &[(m, m + 1)]);
            station.left();
        }
        n += 20;
        station.ack(n, &[]);
    }
    // One packet per 1.2 ms, and not two, for one and a quarter of 24 ms and 4 ms.
    assert!(station.window_bytes() < 50_000, "{}", station.window_bytes());
}

#[test]
fn the_shortest_round_trip_is_looked_for_every_ten_seconds_with_hardly_anything_on_the_hop() {
    let mut station = Station::new();
    let course = serve(&mut station, 1200, 0..11_000, 60);
    assert!(least_and_most(&course, 1..9)[0] >= 9);
    let [least, most] = least_and_most(&course, 9..13);
    assert!((1..=4).contains(&least) && (9..=14).contains(&most), "{least} to {most} packets");
    // Otherwise the queue on the hop would count as propagation delay, and grow further.
    let window = station.window_bytes();
    assert!((15_000..18_000).contains(&window), "{window}");
}

#[test]
fn who_has_waited_too_long_for_too_long_is_dropped_at_the_head_and_told() {
    let mut station = Station::new();
    // Some 140 of these wait: 168 ms.
    serve(&mut station, 1200, 0..1500, 150);
    let refused = station.refused();
    assert!((3..60).contains(&refused.len()), "{refused:?}");
    assert_eq!(station.window.stats.dropped as usize, refused.len());
    assert!(refused[0] > 150, "not before it has been so for a while");
}

#[test]
fn past_a_fast_hop_everything_goes_until_it_is_fast_no_more() {
    let mut station = Station::new();
    // 500 Mb/s.
    serve(&mut station, 24, 0..40_000, 400);
    let held = station.window.stats.held;
    assert!(held > 0, "at first it is not known to be fast");
    serve(&mut station, 24, 40_400..60_000, 400);
    assert_eq!(station.window.stats.held, held);
    // 10 Mb/s: packets in flight from before do not count.
    serve(&mut station, 1200, 60_400..62_000, 400);
    let held = station.window.stats.held;
    serve(&mut station, 1200, 62_400..63_000, 400);
    assert!(station.window.stats.held > held + 500);
}

#[test]
fn connections_that_wait_take_turns() {
    let mut station = Station::new();
    station.offer(0..40);
    (0..3).for_each(|n| assert!(!station.data_of(10, n + 1000)));
    station.at(5000);
    station.ack(4, &[]);
    // The connection that has sent little goes first.
    assert_eq!(station.left()[..4], [10, 11, 1000, 1001]);
}

#[test]
fn too_many_push_out_the_head_of_who_has_most() {
    let mut station = Station::new();
    let most = u32::from(Config::DEFAULT.waiting_packets.get());
    station.offer(0..LEAST + most);
    assert_eq!(station.refused(), []);
    assert!(!station.data_of(10, 5000));
    assert_eq!(station.refused(), [LEAST]);
    assert_eq!(station.window.waiting_bytes(), u64::from(most) * 1500);
}

#[test]
fn who_is_not_heard_is_given_up_and_after_a_second_nothing_waits_for_it() {
    let mut station = Station::new();
    station.offer(0..200);
    station.at(250_000);
    let first = station.left().len();
    assert!((1..=LEAST as usize).contains(&first), "{first}");
    for step in 3..40 {
        station.at(step * 100_000);
    }
    station.left();
    assert_eq!(station.window.waiting_bytes(), 0);
    assert!((200..500).all(|n| station.data(n)), "it may answer another way");
    station.ack(500, &[]);
    station.offer(500..530);
    assert!(station.window.waiting_bytes() > 0, "it does not");
}

#[test]
fn those_that_wait_go_on_though_a_full_queue_has_refused_all_that_left() {
    let mut station = Station::new();
    station.offer(0..14);
    let connection = station.window.machine.kept[0].span.connection;
    for n in 0..LEAST {
        station.window.note(station.now, connection, seq(n), OnTheWay::Refused);
    }
    assert_eq!(station.left(), [], "not at once: the queue is full");
    station.at(1_000_000);
    assert_eq!(station.left(), [10, 11, 12, 13]);
}

#[test]
fn a_reset_that_carries_data_does_not_wait() {
    let mut station = Station::new();
    station.offer(0..14);
    let reset = Segment { flags: Flags::RST, ..data(14) };
    assert_eq!(station.pass(9, reset, 14), Verdict::Forward);
    assert_eq!(station.window.waiting_bytes(), 0);
}

#[test]
fn a_reset_and_a_new_connection_take_nothing_along() {
    for flag in [Flags::RST, Flags::SYN] {
        let mut station = Station::new();
        station.offer(0..14);
        let end = Segment { flags: flag, payload: Length(0), ..data(14) };
        assert_eq!(station.pass(9, end, 14), Verdict::Forward);
        assert_eq!(station.window.waiting_bytes(), 0);
        station.at(1_000_000);
        assert_eq!(station.left(), []);
    }
}

#[test]
fn a_host_that_has_gone_leaves_nothing() {
    let mut station = Station::new();
    station.offer(0..14);
    station.window.forget_mobile(MOBILE);
    assert_eq!((station.window.waiting_bytes(), station.left()), (0, vec![]));
    assert!(station.data(14));
}

#[test]
fn without_a_window_everything_passes() {
    let mut station = Station::new();
    station.window.config = None;
    assert!((0..1000).all(|n| station.data(n)));
    assert_eq!(station.window.hosts.len(), 0);
}
