//! Timed dialogues with a window around a middlebox that forwards everything.

use super::*;
use crate::packet::{AckContent, Side};
use hopline_core::Length;
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::{SackBlock, SackBlocks, Segment};

const FIXED: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// Data bytes of a packet: 1,500 bytes with headers.
const FULL_DATA_LEN: u32 = 1460;
/// Initial window, packets.
const INITIAL_WINDOW: u32 = 10;

/// Middlebox that forwards everything, and records notifications.
#[derive(Debug, Default)]
struct RecordingMiddlebox {
    notifications: Vec<(u32, LastHopProgress)>,
    out: VecDeque<Transmit<StoredPacket<u32>>>,
    kept: Vec<StoredPacket<u32>>,
}

impl Pep<StoredPacket<u32>> for RecordingMiddlebox {
    type Stats = ();

    fn handle_packet_to_mobile<P: Payload>(
        &mut self,
        _: Instant,
        _: Packet<'_, P>,
        keep: impl FnOnce() -> StoredPacket<u32>,
    ) -> Verdict {
        self.kept.push(keep());
        Verdict::Forward
    }

    fn handle_packet_from_mobile<P: Payload>(&mut self, _: Instant, _: Packet<'_, P>) -> Verdict {
        Verdict::Forward
    }

    fn handle_progress(&mut self, _: Instant, _: Connection, seq: Seq32, way: LastHopProgress) {
        self.notifications.push((seq.0 / FULL_DATA_LEN, way));
    }

    fn handle_departure(&mut self, _: IpAddr) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self) -> Option<Transmit<StoredPacket<u32>>> {
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
    window: HopWindow<RecordingMiddlebox, u32>,
    now: Instant,
}

impl Station {
    fn new() -> Self {
        let window =
            HopWindow::new(Some(Config::DEFAULT), TableLimits::default(), RecordingMiddlebox::default());
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
        self.window.handle_packet_to_mobile(self.now, Packet::new(&ip, &segment), || kept)
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
        let verdict = self.window.handle_packet_from_mobile(self.now, Packet::new(&ip, &segment));
        assert_eq!(verdict, Verdict::Forward);
        assert_eq!(AckContent::from_segment(&segment).ack, seq(n));
    }

    /// Returns the packets that leave now.
    fn sent_packets(&mut self) -> Vec<u32> {
        core::iter::from_fn(|| self.window.poll_transmit())
            .map(|transmit| match transmit {
                Transmit::Retransmission { packet: kept, .. } => kept,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn window_bytes(&mut self) -> u64 {
        let host = self.window.hosts.find(&host_key(MOBILE)).expect("it has been sent something");
        self.window.hosts.state_mut(host).window(&Config::DEFAULT)
    }

    fn dropped_packets(&mut self) -> Vec<u32> {
        let notes = self.window.middlebox.notifications.iter();
        notes.filter(|(_, way)| *way == LastHopProgress::Dropped).map(|(n, _)| *n).collect()
    }
}

fn header(from: Side) -> Header {
    let (src, dst) = if from == Side::Fixed { (FIXED, MOBILE) } else { (MOBILE, FIXED) };
    Header::new(src, dst, Protocol::Tcp)
}

fn seq(n: u32) -> Seq32 {
    Seq32(n * FULL_DATA_LEN)
}

fn data(n: u32) -> Segment<Length> {
    Segment {
        seq: seq(n),
        flags: Flags::ACK,
        payload: Length(u64::from(FULL_DATA_LEN)),
        ..Segment::default()
    }
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
        for n in station.sent_packets().into_iter().chain(goes) {
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
            for n in station.sent_packets().into_iter().chain(goes) {
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
fn min_and_max(course: &[(u64, usize)], seconds: core::ops::Range<u64>) -> [usize; 2] {
    let then = course.iter().filter(|(at, _)| seconds.contains(&(at / 1_000_000))).map(|(_, many)| *many);
    [then.clone().min(), then.max()].map(|many| many.expect("something was served then"))
}

#[test]
fn initial_window_is_sent_and_acks_release_more() {
    let mut station = Station::new();
    let left: Vec<bool> = (0..14).map(|n| station.data(n)).collect();
    assert_eq!(left.iter().filter(|goes| **goes).count(), INITIAL_WINDOW as usize);
    assert_eq!(station.window.waiting_bytes(), 4 * 1500);
    assert_eq!(station.sent_packets(), []);
    station.at(5000);
    station.ack(1, &[]);
    assert_eq!(station.sent_packets(), [10]);
    // An acknowledgment of a later packet covers earlier ones: they have arrived or are lost.
    station.ack(1, &[(3, 4)]);
    assert_eq!(station.sent_packets(), [11, 12, 13]);
    assert_eq!(station.window.waiting_bytes(), 0);
    let ways: Vec<_> = station.window.middlebox.notifications.iter().filter(|(n, _)| *n == 12).collect();
    assert_eq!(ways, [&(12, LastHopProgress::Queued), &(12, LastHopProgress::Sent)]);
}

#[test]
fn pure_acks_and_retransmissions_bypass_the_queue() {
    let mut station = Station::new();
    station.offer(0..12);
    let bare = Segment { payload: Length(0), ..data(12) };
    assert_eq!(station.pass(9, bare, 12), Verdict::Forward);
    let again = station.window.middlebox.kept[3].clone();
    let connection = again.info.connection;
    let again = Transmit::Retransmission {
        queue_position: QueuePosition::Front,
        connection,
        packet: again,
        tsval: Some(7),
    };
    station.window.middlebox.out.push_back(again);
    station.at(5000);
    station.ack(2, &[]);
    let sent: Vec<_> = core::iter::from_fn(|| station.window.poll_transmit()).collect();
    let again = Transmit::Retransmission {
        queue_position: QueuePosition::Front,
        connection,
        packet: 3,
        tsval: Some(7),
    };
    assert_eq!(sent[0], again);
    // It is in flight too: one of the two waiting packets leaves.
    assert_eq!(sent.len(), 2, "{sent:?}");
}

#[test]
fn ack_of_a_retransmitted_packet_is_no_sample() {
    let mut station = Station::new();
    (0..INITIAL_WINDOW).for_each(|n| assert!(station.data(n)));
    station.at(6000);
    // The sender retransmits the first packet just before its ACK arrives: this is no sample.
    assert!(!station.data(0));
    station.ack(1, &[]);
    assert_eq!(station.sent_packets(), [0]);
    station.at(6001);
    station.ack(1, &[]);
    assert_eq!(station.window_bytes(), 15_000);
}

#[test]
fn packets_before_a_retransmission_stay_in_flight() {
    let mut station = Station::new();
    (0..3).for_each(|n| assert!(station.data(n)));
    station.at(6000);
    // The first packet again, while its ACK is on its way. Packets between are not acknowledged.
    assert!(station.data(0));
    station.ack(1, &[]);
    let goes = (3..20).filter(|&n| station.data(n)).count();
    assert_eq!(goes, INITIAL_WINDOW as usize - 3);
}

#[test]
fn compressed_acks_do_not_raise_the_rate() {
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
    let [least, most] = min_and_max(&course, 1..3);
    // One and a half of 5.2 ms, and 4 ms, at one packet per 1.2 ms.
    assert!((9..=14).contains(&most), "{most} packets");
    assert!(least >= 9, "{least} packets");
    assert_eq!((station.dropped_packets(), station.window.stats.unacknowledged), (vec![], 0));
}

#[test]
fn a_hop_that_delivers_in_bursts_is_kept_busy() {
    for slot_ms in [5, 7, 10, 20, 40] {
        let served = serve_in_slots(&mut Station::new(), slot_ms);
        assert!(served >= 1583, "{slot_ms} ms: {served}");
    }
}

#[test]
fn sender_retransmissions_leave_flight_on_possible_ack() {
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
    assert_eq!(station.sent_packets(), []);
    station.at(30_000);
    station.ack(11, &[(1, 2)]);
    assert_eq!(station.sent_packets(), [1]);
}

#[test]
fn drops_further_on_do_not_raise_the_rate() {
    let mut station = Station::new();
    let (mut n, mut now) = (0, 0);
    // Every second packet is dropped further on; the host has the remaining ones.
    for _ in 0..500 {
        station.offer(n..n + 20);
        station.sent_packets();
        for m in (n..n + 20).step_by(2) {
            now += 1200;
            station.at(now);
            station.ack(n, &[(m, m + 1)]);
            station.sent_packets();
        }
        n += 20;
        station.ack(n, &[]);
    }
    // One packet per 1.2 ms, and not two, for one and a quarter of 24 ms and 4 ms.
    assert!(station.window_bytes() < 50_000, "{}", station.window_bytes());
}

#[test]
fn min_rtt_is_probed_every_ten_seconds() {
    let mut station = Station::new();
    let course = serve(&mut station, 1200, 0..11_000, 60);
    assert!(min_and_max(&course, 1..9)[0] >= 9);
    let [least, most] = min_and_max(&course, 9..13);
    assert!((1..=4).contains(&least) && (9..=14).contains(&most), "{least} to {most} packets");
    // Otherwise the queue on the hop would count as propagation delay, and grow further.
    let window = station.window_bytes();
    assert!((15_000..18_000).contains(&window), "{window}");
}

#[test]
fn codel_drops_at_the_head_are_reported() {
    let mut station = Station::new();
    // Some 140 of these wait: 168 ms.
    serve(&mut station, 1200, 0..1500, 150);
    let refused = station.dropped_packets();
    assert!((3..60).contains(&refused.len()), "{refused:?}");
    assert_eq!(station.window.stats.dropped as usize, refused.len());
    assert!(refused[0] > 150, "not before it has been so for a while");
}

#[test]
fn fast_hop_has_no_window() {
    let mut station = Station::new();
    // 500 Mb/s.
    serve(&mut station, 24, 0..40_000, 400);
    let held = station.window.stats.delayed;
    assert!(held > 0, "at first it is not known to be fast");
    serve(&mut station, 24, 40_400..60_000, 400);
    assert_eq!(station.window.stats.delayed, held);
    // 10 Mb/s: packets in flight from before do not count.
    serve(&mut station, 1200, 60_400..62_000, 400);
    let held = station.window.stats.delayed;
    serve(&mut station, 1200, 62_400..63_000, 400);
    assert!(station.window.stats.delayed > held + 500);
}

#[test]
fn waiting_connections_share_fairly() {
    let mut station = Station::new();
    station.offer(0..40);
    (0..3).for_each(|n| assert!(!station.data_of(10, n + 1000)));
    station.at(5000);
    station.ack(4, &[]);
    // The connection that has sent little goes first.
    assert_eq!(station.sent_packets()[..4], [10, 11, 1000, 1001]);
}

#[test]
fn full_queue_drops_from_the_longest_flow() {
    let mut station = Station::new();
    let most = u32::from(Config::DEFAULT.max_waiting_packets.get());
    station.offer(0..INITIAL_WINDOW + most);
    assert_eq!(station.dropped_packets(), []);
    assert!(!station.data_of(10, 5000));
    assert_eq!(station.dropped_packets(), [INITIAL_WINDOW]);
    assert_eq!(station.window.waiting_bytes(), u64::from(most) * 1500);
}

#[test]
fn unacknowledged_host_loses_its_window() {
    let mut station = Station::new();
    station.offer(0..200);
    station.at(250_000);
    let first = station.sent_packets().len();
    assert!((1..=INITIAL_WINDOW as usize).contains(&first), "{first}");
    for step in 3..40 {
        station.at(step * 100_000);
    }
    station.sent_packets();
    assert_eq!(station.window.waiting_bytes(), 0);
    assert!((200..500).all(|n| station.data(n)), "it may answer another way");
    station.ack(500, &[]);
    station.offer(500..530);
    assert!(station.window.waiting_bytes() > 0, "it does not");
}

#[test]
fn waiting_packets_continue_after_queue_drops() {
    let mut station = Station::new();
    station.offer(0..14);
    let connection = station.window.middlebox.kept[0].info.connection;
    for n in 0..INITIAL_WINDOW {
        station.window.handle_progress(station.now, connection, seq(n), LastHopProgress::Dropped);
    }
    assert_eq!(station.sent_packets(), [], "not at once: the queue is full");
    station.at(1_000_000);
    assert_eq!(station.sent_packets(), [10, 11, 12, 13]);
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
fn reset_and_new_connection_remove_waiting_packets() {
    for flag in [Flags::RST, Flags::SYN] {
        let mut station = Station::new();
        station.offer(0..14);
        let end = Segment { flags: flag, payload: Length(0), ..data(14) };
        assert_eq!(station.pass(9, end, 14), Verdict::Forward);
        assert_eq!(station.window.waiting_bytes(), 0);
        station.at(1_000_000);
        assert_eq!(station.sent_packets(), []);
    }
}

#[test]
fn departed_host_leaves_no_state() {
    let mut station = Station::new();
    station.offer(0..14);
    station.window.handle_departure(MOBILE);
    assert_eq!((station.window.waiting_bytes(), station.sent_packets()), (0, vec![]));
    assert!(station.data(14));
}

#[test]
fn all_packets_pass_without_window() {
    let mut station = Station::new();
    station.window.config = None;
    assert!((0..1000).all(|n| station.data(n)));
    assert_eq!(station.window.hosts.len(), 0);
}
