//! Dialogues: packets to and from the mobile host, and the actions of Snoop.

#![expect(unused_must_use, reason = "a dialogue says of most packets only that they pass by")]

use super::*;
use crate::packet::AckContent;
use hopline_core::{Duration, Length};
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::{Options, SackBlock, SackBlocks, Segment};
use std::iter;
use std::net::Ipv4Addr;

const FIXED: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
const MOBILE: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 9);
const LEN: u32 = 1000;
/// Sequence number before packet 0. Numbers wrap around with packet 2.
const START: Seq32 = Seq32(u32::MAX - 2 * LEN);

/// A station, and the time in milliseconds.
struct Station {
    snoop: Snoop<u32>,
    now_ms: u64,
}

fn header(src: IpAddr, dst: IpAddr) -> Header {
    Header::new(src, dst, Protocol::Tcp)
}

/// Returns the sequence number of packet `n`.
fn seq(n: u32) -> Seq32 {
    START + n * LEN
}

/// Returns the block of packets `from` up to, not including, `to`.
fn block((from, to): (u32, u32)) -> SackBlock {
    SackBlock { left: seq(from), right: seq(to) }
}

fn blocks(of: &[(u32, u32)]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for &range in of {
        assert!(blocks.push(block(range)));
    }
    blocks
}

fn data(n: u32) -> Segment<Length> {
    Segment {
        src_port: FIXED.1,
        dst_port: MOBILE.1,
        seq: seq(n),
        flags: Flags::ACK,
        payload: Length(LEN.into()),
        ..Segment::default()
    }
}

fn ack(n: u32, sack: &[(u32, u32)]) -> Segment<Length> {
    let mut segment = Segment {
        src_port: MOBILE.1,
        dst_port: FIXED.1,
        seq: Seq32(77),
        ack: seq(n),
        flags: Flags::ACK,
        window: 500,
        ..Segment::default()
    };
    segment.options.sack = blocks(sack);
    segment
}

impl Station {
    fn new(config: Config) -> Self {
        Self { snoop: Snoop::new(config), now_ms: 0 }
    }

    /// Creates a station that has sent packets 0 to `sent` of a connection with SACK; the mobile host has
    /// acknowledged packet 0 after 4 ms.
    fn after(config: Config, sent: u32) -> Self {
        let mut station = Self::new(config);
        station.open_connection(true);
        for n in 0..=sent {
            assert_eq!(station.data(n), Verdict::Forward);
        }
        station.now_ms = 4;
        assert_eq!(station.ack(1, &[]), Verdict::Forward);
        station
    }

    /// Opens a connection from the fixed host.
    fn open_connection(&mut self, sack_permitted: bool) {
        let options = Options { sack_permitted, ..Options::default() };
        let syn = Segment { flags: Flags::SYN, seq: START - 1, payload: Length(0), options, ..data(0) };
        assert_eq!(self.pass_on(&syn, 0), Verdict::Forward);
        let answer = Segment { flags: Flags::SYN | Flags::ACK, seq: Seq32(76), options, ..ack(0, &[]) };
        assert_eq!(self.pass_back(&answer), Verdict::Forward);
    }

    fn now(&self) -> Instant {
        Instant::from_millis(self.now_ms)
    }

    fn data(&mut self, n: u32) -> Verdict {
        self.pass_on(&data(n), n)
    }

    fn pass_on(&mut self, segment: &Segment<Length>, kept: u32) -> Verdict {
        let ip = header(FIXED.0, MOBILE.0);
        self.snoop.handle_packet_to_mobile(self.now(), Packet::new(&ip, segment), || kept)
    }

    fn ack(&mut self, n: u32, sack: &[(u32, u32)]) -> Verdict {
        self.pass_back(&ack(n, sack))
    }

    fn pass_back(&mut self, segment: &Segment<Length>) -> Verdict {
        let ip = header(MOBILE.0, FIXED.0);
        self.snoop.handle_packet_from_mobile(self.now(), Packet::new(&ip, segment))
    }

    fn queue_drops(&mut self, n: u32) {
        self.notify(n, LastHopProgress::Dropped);
    }

    fn notify(&mut self, n: u32, way: LastHopProgress) {
        let ip = header(FIXED.0, MOBILE.0);
        let data = data(n);
        let connection = Connection::to_mobile(Packet::new(&ip, &data));
        self.snoop.handle_progress(self.now(), connection, data.seq, way);
    }

    /// Returns the retransmitted packets, in order.
    fn retransmitted(&mut self) -> Vec<u32> {
        let mut again = Vec::new();
        while let Some(transmit) = self.snoop.poll_transmit() {
            match transmit {
                Transmit::Retransmission { packet: kept, .. } => again.push(kept),
                other => panic!("{other:?}"),
            }
        }
        again
    }

    /// As `again`, with their new timestamps.
    fn retransmitted_with_timestamps(&mut self) -> Vec<(u32, Option<u32>)> {
        let sent = core::iter::from_fn(|| self.snoop.poll_transmit());
        sent.map(|transmit| match transmit {
            Transmit::Retransmission { packet: kept, tsval: clock, .. } => (kept, clock),
            other => panic!("{other:?}"),
        })
        .collect()
    }

    /// Waits for the next timer, if it is due by `until_ms`. Returns its time.
    fn wait_for_timer(&mut self, until_ms: u64) -> Option<u64> {
        while let Some(at) = self.snoop.poll_timeout().filter(|at| *at <= Instant::from_millis(until_ms)) {
            self.now_ms = at.as_nanos().div_ceil(1_000_000);
            self.snoop.handle_timeout(self.now());
            if !self.snoop.outgoing.is_empty() {
                return Some(self.now_ms);
            }
        }
        self.now_ms = until_ms;
        None
    }

    /// Returns the times at which timers send something until then.
    fn timer_sends(&mut self, until_ms: u64) -> Vec<u64> {
        let asked = iter::from_fn(|| self.wait_for_timer(until_ms).inspect(|_| drop(self.retransmitted())));
        asked.collect()
    }
}

/// Verdict that an ACK of this number is forwarded without SACK blocks.
fn forward_without_sack(number: u32) -> Verdict {
    Verdict::ForwardWith(ack_content(number, &[]))
}

/// Returns the acknowledgment of an ACK.
fn ack_content(number: u32, sack: &[(u32, u32)]) -> AckContent {
    AckContent::from_segment(&ack(number, sack))
}

#[test]
fn first_duplicate_ack_retransmits_and_expected_ones_are_absorbed() {
    let mut station = Station::after(Config::published(), 4);
    // Packet 1 is lost; 2, 3 and 4 cause a duplicate ACK each, the first of which indicates the loss.
    assert_eq!(station.ack(1, &[]), Verdict::Absorb);
    assert_eq!(station.retransmitted(), [1]);
    assert_eq!(
        (station.ack(1, &[]), station.ack(1, &[]), station.retransmitted()),
        (Verdict::Absorb, Verdict::Absorb, vec![])
    );
    assert_eq!(station.ack(5, &[]), Verdict::Forward);
    assert_eq!(station.snoop.stats().acks_absorbed, 3);
}

#[test]
fn new_config_of_the_same_rules_keeps_the_cache() {
    let mut station = Station::after(Config::modern(), 3);
    let given_up = Config { max_local_retransmissions: 0, ..Config::modern() };
    let kept = station.snoop.cached_bytes();
    assert!(!station.snoop.set_config(Config::published()), "its rules need another state");
    assert!(station.snoop.set_config(Config { max_local_retransmissions: 3, ..Config::modern() }));
    assert_eq!((station.snoop.connections(), station.snoop.cached_bytes()), (1, kept));
    let _ = station.ack(1, &[(2, 4)]);
    assert_eq!(station.retransmitted(), [1], "a packet that was kept before repairs the loss");
    assert!(station.snoop.set_config(given_up));
    assert_eq!(station.wait_for_timer(60_000), None, "no packet goes again by the new limit");
}

#[test]
fn unexpected_duplicates_retransmit_up_to_the_limit() {
    let mut station = Station::after(Config { max_local_retransmissions: 2, ..Config::published() }, 2);
    // S3: one packet after the lost one, so one expected duplicate.
    for sent in [vec![1], vec![], vec![1], vec![]] {
        assert_eq!((station.ack(1, &[]), station.retransmitted()), (Verdict::Absorb, sent));
    }
    assert_eq!((station.ack(1, &[]), station.retransmitted()), (Verdict::Forward, vec![]));
    assert_eq!(station.snoop.stats().left_to_sender, 1);
    // The sender retransmits the packet, which resets the limit of local retransmissions.
    station.data(1);
    for sent in [vec![], vec![1]] {
        assert_eq!(
            (station.ack(1, &[]), station.retransmitted()),
            (Verdict::Absorb, sent),
            "one echo is left"
        );
    }
}

fn with_marks(marks: SenderRetransmissionMarks) -> Config {
    let rules = Rules::Classic(ClassicRules { sender_retransmissions: marks, ..ClassicRules::PUBLISHED });
    Config { rules, ..Config::published() }
}

#[test]
fn uncached_packet_is_left_to_the_sender() {
    for marks in [
        SenderRetransmissionMarks::Uncached,
        SenderRetransmissionMarks::UncachedRetransmissions,
        SenderRetransmissionMarks::Retransmissions,
    ] {
        let mut station = Station::after(with_marks(marks), 1);
        station.data(3); // 2 was lost in the wired network
        station.ack(2, &[]);
        assert_eq!((station.ack(2, &[]), station.retransmitted()), (Verdict::Forward, vec![]));
        // The packet arrives, and the last hop loses it.
        (2..=3).for_each(|_| assert_eq!(station.data(2), Verdict::Forward));
        assert_eq!((station.ack(2, &[]), station.retransmitted()), (Verdict::Forward, vec![]), "{marks:?}");
    }
}

/// After a timeout the sender retransmits its window, all of which is cached.
#[test]
fn repeated_cached_packets_are_repaired_except_under_ns2() {
    for (config, repairs) in [
        (with_marks(SenderRetransmissionMarks::Uncached), vec![1]),
        (with_marks(SenderRetransmissionMarks::UncachedRetransmissions), vec![1]),
        (with_marks(SenderRetransmissionMarks::Retransmissions), vec![]),
        (Config { rules: Rules::Classic(ModernRules::DEFAULT.without_sack), ..Config::published() }, vec![1]),
    ] {
        let mut station = Station::after(config, 4);
        (1..=4).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
        assert_eq!(station.snoop.stats().sender_retransmissions, 4);
        let verdict = if repairs.is_empty() { Verdict::Forward } else { Verdict::Absorb };
        assert_eq!((station.ack(1, &[]), station.retransmitted()), (verdict, repairs));
    }
}

#[test]
fn new_packet_beyond_a_gap_is_marked_under_uncached() {
    for (marks, repairs) in [
        (SenderRetransmissionMarks::Uncached, vec![]),
        (SenderRetransmissionMarks::UncachedRetransmissions, vec![3]),
        (SenderRetransmissionMarks::Retransmissions, vec![3]),
    ] {
        let mut station = Station::after(with_marks(marks), 1);
        [3, 4, 2].map(|n| assert_eq!(station.data(n), Verdict::Forward)); // 2 was lost in the wired network
        station.ack(3, &[]);
        let verdict = if repairs.is_empty() { Verdict::Forward } else { Verdict::Absorb };
        assert_eq!((station.ack(3, &[]), station.retransmitted()), (verdict, repairs), "{marks:?}");
        station.ack(4, &[]);
        assert_eq!(
            (station.ack(4, &[]), station.retransmitted()),
            (Verdict::Absorb, vec![4]),
            "it follows 3"
        );
    }
}

#[test]
fn window_with_sender_retransmission_is_no_rtt_sample() {
    let mut station = Station::new(Config::published());
    station.open_connection(false);
    (0..=2).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
    station.now_ms = 50;
    station.data(0);
    station.now_ms = 60;
    station.ack(1, &[]);
    station.ack(1, &[]);
    assert_eq!(station.retransmitted(), [1]);
    // Two round trips of 100 ms, as before any sample. One of 60 ms would make it 180.
    assert_eq!(station.wait_for_timer(1000), Some(60 + 200));
}

/// The receiver's window shrinks by unread data, and is restored with the next ACK.
#[test]
fn duplicate_ack_with_another_window_counts_under_same_number() {
    let same_window = ClassicRules { duplicate_acks: DuplicateAcks::SameWindow, ..ClassicRules::PUBLISHED };
    let rfc = Config { rules: Rules::Classic(same_window), ..Config::published() };
    for (config, sack, repairs) in [
        (Config::published(), false, vec![1]),
        (Config { rules: while_alive(), ..Config::published() }, false, vec![1]),
        (rfc, false, vec![]),
        (Config::modern(), false, vec![]),
        (Config::modern(), true, vec![]),
    ] {
        let mut station = Station::new(config);
        station.open_connection(sack);
        (0..=4).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
        station.now_ms = 4;
        station.ack(1, &[]);
        let other = Segment { window: 600, ..ack(1, &[]) };
        let verdict = if repairs.is_empty() { Verdict::Forward } else { Verdict::Absorb };
        assert_eq!((station.pass_back(&other), station.retransmitted()), (verdict, repairs));
    }
    // ns-2 acts on the second duplicate.
    let mut ns2 = Station::after(Config::ns2(), 4);
    let [first, second] = [600, 700].map(|window| Segment { window, ..ack(1, &[]) });
    let verdicts = [ns2.pass_back(&first), ns2.pass_back(&second)];
    assert_eq!((verdicts, ns2.retransmitted()), ([Verdict::Forward, Verdict::Absorb], vec![1]));
}

#[test]
fn data_of_the_mobile_host_are_no_duplicate_ack() {
    let mut station = Station::after(Config::published(), 4);
    let with_data = Segment { payload: Length(10), ..ack(1, &[]) };
    assert_eq!((station.pass_back(&with_data), station.retransmitted()), (Verdict::Forward, vec![]));
}

#[test]
fn window_update_without_data_in_flight_passes() {
    let mut station = Station::after(Config::published(), 0);
    let update = Segment { window: 400, ..ack(1, &[]) };
    assert_eq!((station.pass_back(&update), station.retransmitted()), (Verdict::Forward, vec![]), "S1");
}

#[test]
fn an_ack_below_the_last_one_is_absorbed() {
    let mut station = Station::after(Config::published(), 4);
    station.ack(3, &[]);
    assert_eq!(station.ack(2, &[]), Verdict::Absorb);
    let mut ns2 = Station::after(Config::ns2(), 4);
    ns2.ack(3, &[]);
    assert_eq!(ns2.ack(2, &[]), Verdict::Forward, "S2");
}

#[test]
fn old_data_are_acknowledged_on_behalf_of_the_mobile_host() {
    for config in [Config::published(), Config::modern()] {
        let mut station = Station::after(config, 4);
        station.ack(3, &[]);
        assert_eq!(station.data(1), Verdict::Absorb);
        let Some(Transmit::Ack(made)) = station.snoop.poll_transmit() else { panic!("an ACK is made") };
        assert_eq!((made.connection.fixed, made.connection.mobile), (FIXED, MOBILE));
        let segment: Segment<Length> = made.segment();
        assert_eq!((segment.ack, segment.seq, segment.window), (seq(3), Seq32(77), 500));
        assert_eq!((segment.src_port, segment.dst_port), (MOBILE.1, FIXED.1));
    }
    assert_eq!(
        {
            let mut ns2 = Station::after(Config::ns2(), 4);
            ns2.ack(3, &[]);
            ns2.data(1)
        },
        Verdict::Forward
    );
}

/// A keep-alive: one byte, or none, before what comes next (RFC 9293 §3.8.4).
fn keep_alive(n: u32) -> Segment<Length> {
    Segment { seq: seq(n) - 1, payload: Length(1), ..data(0) }
}

#[test]
fn keep_alives_to_an_absent_host_are_not_answered() {
    for config in [Config::modern(), Config { rules: while_alive(), ..Config::published() }] {
        for sack in [true, false] {
            let mut station = Station::new(config);
            station.open_connection(sack);
            station.data(0);
            station.now_ms = 4;
            station.ack(1, &[]);
            let answers: Vec<_> = [1_000, 2_004, 2_005, 60_000, 7_200_000]
                .map(|ms| {
                    station.now_ms = ms;
                    station.pass_on(&keep_alive(1), 9)
                })
                .into();
            let [absorbed, forwarded] = [Verdict::Absorb, Verdict::Forward];
            assert_eq!(answers, [absorbed, absorbed, forwarded, forwarded, forwarded]);
            station.ack(1, &[]);
            assert_eq!(station.pass_on(&keep_alive(1), 9), absorbed, "it is there again");
        }
    }
    // With the paper's rule the sender finds out later (§3.1.1).
    let mut paper = Station::after(Config::published(), 0);
    let answers = [1_000, 100_004, 100_005, 7_200_000].map(|ms| {
        paper.now_ms = ms;
        paper.pass_on(&keep_alive(1), 9)
    });
    assert_eq!(answers, [Verdict::Absorb, Verdict::Absorb, Verdict::Forward, Verdict::Forward]);
}

#[test]
fn keep_alives_do_not_prevent_expiry() {
    for config in [Config::published(), Config::ns2(), Config::modern()] {
        for sack in [true, false] {
            let mut station = Station::new(config);
            station.open_connection(sack);
            station.data(0);
            station.now_ms = 4;
            station.ack(1, &[]);
            let idle_ms = config.limits.idle_timeout.as_nanos() / 1_000_000;
            for probe in 1..10 {
                station.now_ms = probe * idle_ms / 8;
                station.snoop.handle_timeout(station.now());
                if station.snoop.connections() == 1 {
                    station.pass_on(&keep_alive(1), 9);
                }
            }
            assert_eq!((station.snoop.connections(), station.snoop.stats().expired), (0, 1));
        }
    }
}

fn while_alive() -> Rules {
    Rules::Classic(ClassicRules { old_data: OldData::AcknowledgedWhileAlive, ..ClassicRules::PUBLISHED })
}

#[test]
fn made_ack_has_the_latest_timestamp() {
    let mut station = Station::after(Config::published(), 4);
    let stamped = |n: u32, at: u32, value: u32| {
        let mut segment = Segment { seq: Seq32(at), ..ack(n, &[]) };
        segment.options.timestamps = Some(Timestamps { value, echo: 1 });
        segment
    };
    station.pass_back(&stamped(3, 90, 20));
    // An earlier packet of the mobile host, with data, arrives late.
    station.pass_back(&Segment { payload: Length(3), ..stamped(3, 80, 10) });
    station.data(1);
    let Some(Transmit::Ack(made)) = station.snoop.poll_transmit() else { panic!("an ACK is made") };
    assert_eq!((made.seq, made.timestamps), (Seq32(90), Some(Timestamps { value: 20, echo: 1 })));
}

#[test]
fn lost_local_retransmission_is_repeated_after_two_rtts_and_at_least_40_ms() {
    let mut station = Station::after(Config::published(), 2);
    station.ack(1, &[]);
    assert_eq!(station.retransmitted(), [1]);
    // The first sample was 4 ms, mixed into 100 ms with weight 1/4: 76 ms, twice that.
    assert_eq!((station.wait_for_timer(1000), station.retransmitted()), (Some(4 + 152), vec![1]));
}

#[test]
fn persist_timer_retransmits_the_first_packet_after_200_ms() {
    let mut station = Station::after(Config::published(), 3);
    station.now_ms = 10;
    station.ack(2, &[]);
    assert_eq!((station.wait_for_timer(1000), station.retransmitted()), (Some(210), vec![2]));
    assert_eq!((station.wait_for_timer(1000), station.retransmitted()), (Some(410), vec![2]));
    let mut ns2 = Station::after(Config { max_local_retransmissions: 0, ..Config::ns2() }, 3);
    assert_eq!(ns2.wait_for_timer(5000), None, "no such timer there");
}

#[test]
fn ns2_retransmits_once_on_every_second_unexpected_duplicate() {
    let mut station = Station::after(Config::ns2(), 5);
    let said: Vec<_> = (0..7).map(|_| (station.ack(1, &[]), station.retransmitted())).collect();
    // Four packets after the lost one: 4 - 1 expected duplicates after the second. Then one passes, and so
    // does the next one, which counts again: the packet has been retransmitted already.
    let (pass, keep) = (|| (Verdict::Forward, vec![]), || (Verdict::Absorb, vec![]));
    assert_eq!(said, [pass(), (Verdict::Absorb, vec![1]), keep(), keep(), keep(), pass(), pass()]);
}

#[test]
fn ns2_samples_each_ack_with_the_last_packet() {
    let mut station = Station::after(Config::ns2(), 2);
    // 7/8 of 4 ms and 1/8 of 100 ms are 16 ms; the deviation is 7/8 of 250 ms and 1/8 of 12 ms, from that mean.
    let timer = 16.0 + 4.0 * (0.875 * 250.0 + 0.125 * 12.0);
    assert_eq!((station.wait_for_timer(5000), station.retransmitted()), (Some(4 + timer as u64), vec![1]));
}

#[test]
fn queue_drops_are_left_to_the_sender_except_under_the_paper() {
    for (config, sent) in [(Config::published(), vec![1]), (Config::ns2(), vec![])] {
        let mut station = Station::after(config, 4);
        station.queue_drops(1);
        let verdicts = [station.ack(1, &[]), station.ack(1, &[])];
        assert_eq!(station.retransmitted(), sent);
        assert_eq!(verdicts[1] == Verdict::Forward, sent.is_empty());
    }
    let mut station = Station::after(Config::modern(), 4);
    station.queue_drops(1);
    assert_eq!(
        (station.ack(1, &[(2, 3)]), station.retransmitted()),
        (Verdict::Forward, vec![]),
        "with its SACK block"
    );
}

#[test]
fn above_the_high_water_mark_only_gap_closing_packets_are_cached() {
    let config = Config { high_water: 2.try_into().unwrap(), ..Config::published() };
    let mut station = Station::new(config);
    for n in [0, 1, 3, 4] {
        assert_eq!(station.data(n), Verdict::Forward);
    }
    assert_eq!((station.snoop.stats().cached, station.snoop.stats().not_cached), (2, 2));
    station.data(2); // lost earlier, on the wire: now it comes
    station.ack(2, &[]);
    assert_eq!(station.wait_for_timer(1000).map(|_| station.retransmitted()), Some(vec![2]), "kept");
}

#[test]
fn modern_all_holes_of_a_window_are_repaired_and_hidden() {
    let mut station = Station::after(Config::modern(), 9);
    // Packets 1, 4 and 5 are lost.
    assert_eq!((station.ack(1, &[(2, 4)]), station.retransmitted()), (Verdict::Absorb, vec![1]));
    assert_eq!((station.ack(1, &[(6, 7), (2, 4)]), station.retransmitted()), (Verdict::Absorb, vec![4, 5]));
    // Packet 1 arrives; 4 is under repair, and blocks above it are removed.
    assert_eq!(station.ack(4, &[(6, 8)]), forward_without_sack(4));
    assert_eq!(station.ack(8, &[]), Verdict::Forward);
}

#[test]
fn modern_lost_retransmission_is_detected_by_a_later_arrival() {
    let mut station = Station::after(Config::modern(), 3);
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.retransmitted(), [1]);
    station.now_ms = 5;
    station.data(4);
    station.now_ms = 6;
    station.ack(1, &[(2, 4)]);
    assert_eq!(station.retransmitted(), [], "3 was sent before the repair");
    station.now_ms = 9;
    station.ack(1, &[(2, 5)]);
    assert_eq!(station.retransmitted(), [1], "4 after it");
}

#[test]
fn modern_overdue_tail_is_retransmitted() {
    let mut station = Station::after(Config::modern(), 2);
    // One round-trip sample of 4 ms, deviation 2 ms: 12 ms after the last arrival.
    assert_eq!((station.wait_for_timer(1000), station.retransmitted()), (Some(4 + 12), vec![1]));
}

#[test]
fn modern_connection_without_sack_uses_classic_rules() {
    let mut station = Station::new(Config::modern());
    station.open_connection(false);
    for n in 0..=4 {
        station.data(n);
    }
    station.queue_drops(2);
    station.ack(1, &[]);
    assert_eq!((station.ack(1, &[]), station.retransmitted()), (Verdict::Absorb, vec![1]));
    // Packet 2 was refused: its duplicate ACKs pass, and no other ACK is withheld.
    assert_eq!(
        (station.ack(2, &[]), station.ack(2, &[]), station.retransmitted()),
        (Verdict::Forward, Verdict::Forward, vec![])
    );
    station.data(2);
    assert_eq!(station.ack(5, &[]), Verdict::Forward);
}

#[test]
fn modern_without_sack_next_hole_is_repaired_by_age() {
    let repaired = |config: Config| {
        let mut station = Station::new(config);
        station.open_connection(false);
        for n in 0..=4 {
            station.data(n);
        }
        station.now_ms = 4;
        station.ack(1, &[]);
        // All other packets are lost. Nothing comes back until the persist timer has retransmitted the first.
        let first = (station.wait_for_timer(300), station.retransmitted());
        station.now_ms += 4;
        station.ack(2, &[]);
        (first, station.retransmitted())
    };
    assert_eq!(repaired(Config::modern()), ((Some(204), vec![1]), vec![2]));
    assert_eq!(repaired(Config::published()), ((Some(204), vec![1]), vec![]), "by its own duplicates (S7)");
}

/// Returns the segment with this TSval and TSecr.
fn with_timestamps(segment: Segment<Length>, value: u32, echo: u32) -> Segment<Length> {
    let options = Options { timestamps: Some(Timestamps { value, echo }), ..segment.options };
    Segment { options, ..segment }
}

#[test]
fn modern_retransmission_with_old_tsval_gets_ts_recent() {
    let mut station = Station::new(Config::modern());
    station.open_connection(true);
    for n in 0..=5 {
        station.pass_on(&with_timestamps(data(n), 100, 1), n);
    }
    station.pass_back(&with_timestamps(ack(1, &[]), 1, 100));
    // The sender has timed out, and retransmits packet 1. It arrives, with a later timestamp than those
    // behind it.
    station.pass_on(&with_timestamps(data(1), 900, 1), 1);
    let verdict = station.pass_back(&with_timestamps(ack(2, &[(4, 5)]), 2, 900));
    assert_eq!(
        (verdict, station.retransmitted_with_timestamps()),
        (Verdict::Absorb, vec![(2, Some(900)), (3, Some(900)), (5, Some(900))])
    );
    // A packet that is young enough keeps its timestamp.
    station.pass_on(&with_timestamps(data(6), 902, 1), 6);
    station.pass_on(&with_timestamps(data(7), 902, 1), 7);
    station.pass_back(&with_timestamps(ack(6, &[(7, 8)]), 3, 900));
    assert_eq!(station.retransmitted_with_timestamps(), [(6, None)]);
    // Further retransmissions keep the new timestamp.
    station.pass_on(&with_timestamps(data(8), 903, 1), 8);
    station.pass_back(&with_timestamps(ack(6, &[(7, 9)]), 3, 902));
    assert_eq!(station.retransmitted_with_timestamps(), [(6, None)]);
}

#[test]
fn modern_withheld_acks_are_sent_when_repair_fails() {
    let mut station = Station::after(Config::modern(), 9);
    // The queue has dropped packet 1, which is shown; the link has lost packet 3.
    station.queue_drops(1);
    assert_eq!(station.ack(1, &[(2, 3)]), Verdict::Forward);
    assert_eq!(station.ack(1, &[(4, 6), (2, 3)]), Verdict::ForwardWith(ack_content(1, &[(2, 3)])));
    assert_eq!(station.retransmitted(), [3]);
    // Packet 3 has arrived, and the host reports it without its earlier blocks.
    assert_eq!(station.ack(1, &[(3, 4)]), Verdict::ForwardWith(ack_content(1, &[(2, 6)])));
    assert_eq!(
        station.ack(1, &[(8, 9), (3, 4)]),
        Verdict::ForwardWith(ack_content(1, &[(2, 6)])),
        "7 is repaired"
    );
}

#[test]
fn modern_queued_packets_are_not_overdue_and_timed_from_departure() {
    let mut station = Station::after(Config::modern(), 0);
    station.now_ms += 10;
    station.ack(1, &[]);
    station.data(1);
    station.notify(1, LastHopProgress::Queued);
    let waiting_since = station.now_ms;
    assert_eq!(station.wait_for_timer(waiting_since + 5000), None);
    station.notify(1, LastHopProgress::Sent);
    let left = station.now_ms;
    let again = station.wait_for_timer(left + 1000).unwrap();
    assert_eq!(station.retransmitted(), [1]);
    assert!((left + 5..left + 100).contains(&again), "{again} after {left}");
}

#[test]
fn modern_retransmission_is_lost_when_a_later_departure_has_arrived() {
    let mut station = Station::after(Config::modern(), 3);
    station.data(4);
    station.notify(4, LastHopProgress::Queued);
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.retransmitted(), [1]);
    station.notify(4, LastHopProgress::Sent);
    station.ack(1, &[(4, 5), (2, 4)]);
    assert_eq!(station.retransmitted(), [1]);
}

#[test]
fn modern_reordering_hop_delays_loss_detection() {
    let mut station = Station::after(Config::modern(), 3);
    station.now_ms = 5;
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.retransmitted(), [1], "nothing has been late so far");
    station.now_ms = 7;
    station.ack(3, &[]);
    station.now_ms = 8;
    station.ack(4, &[(1, 2)]);
    // The packet was 2 ms late, and its retransmission needless.
    station.now_ms = 10;
    (4..=5).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
    station.now_ms = 15;
    assert_eq!((station.ack(4, &[(5, 6)]), station.retransmitted()), (Verdict::Absorb, vec![]));
    station.now_ms = 16;
    assert_eq!((station.ack(6, &[]), station.retransmitted()), (Verdict::Forward, vec![]));
    station.now_ms = 20;
    (6..=7).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
    station.now_ms = 25;
    assert_eq!((station.ack(6, &[(7, 8)]), station.retransmitted()), (Verdict::Absorb, vec![]));
    station.now_ms = 26;
    station.wait_for_timer(26);
    assert_eq!(station.retransmitted(), []);
    station.wait_for_timer(27);
    assert_eq!(station.retransmitted(), [6]);
}

#[test]
fn modern_tail_timeout_is_the_recent_max_rtt() {
    let mut station = Station::after(Config::modern(), 0);
    // One round trip in twenty takes 60 ms.
    for n in 1..60 {
        station.data(n);
        station.now_ms += if n == 30 { 60 } else { 4 };
        assert_eq!(station.ack(n + 1, &[]), Verdict::Forward);
        station.retransmitted();
    }
    station.data(60);
    let sent = station.now_ms;
    let again = station.wait_for_timer(sent + 1000);
    assert!(again.is_some_and(|at| at >= sent + 60), "{again:?}");
}

#[test]
fn modern_sack_is_detected_mid_connection() {
    let mut station = Station::new(Config::modern());
    for n in 0..=5 {
        station.data(n);
    }
    station.ack(1, &[]);
    // Packets 1 and 3 are lost.
    assert_eq!((station.ack(1, &[(4, 5), (2, 3)]), station.retransmitted()), (Verdict::Absorb, vec![1, 3]));
}

#[test]
fn modern_packet_retransmitted_too_often_is_left_to_the_sender() {
    let mut station = Station::after(Config { max_local_retransmissions: 1, ..Config::modern() }, 3);
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.retransmitted(), [1]);
    station.data(4);
    station.now_ms = 9;
    assert_eq!((station.ack(1, &[(2, 5)]), station.retransmitted()), (Verdict::Forward, vec![]));
    assert_eq!(station.snoop.stats().left_to_sender, 1);
}

#[test]
fn modern_ack_of_sender_retransmission_is_withheld_during_repair() {
    let mut station = Station::after(Config::modern(), 3);
    station.queue_drops(1);
    assert_eq!(station.ack(1, &[(2, 3)]), Verdict::Forward);
    station.now_ms = 8;
    // The sender retransmits packet 1, and then 4. Packet 3 is lost.
    station.data(1);
    station.data(4);
    station.now_ms = 12;
    assert_eq!(station.ack(3, &[]), Verdict::Absorb, "RACK would take 3 for lost");
    assert_eq!(station.ack(3, &[(4, 5)]), Verdict::Absorb);
    assert_eq!(station.retransmitted(), [3]);
    station.now_ms = 16;
    assert_eq!(station.ack(5, &[]), Verdict::Forward);
}

#[test]
fn modern_dsack_of_local_duplicates_is_removed() {
    let mut station = Station::after(Config::modern(), 3);
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.retransmitted(), [1]);
    assert_eq!(station.ack(3, &[]), Verdict::Forward, "it came after all");
    assert_eq!(station.ack(4, &[(1, 2)]), forward_without_sack(4), "and then again");
    station.data(4);
    assert_eq!(station.ack(5, &[(2, 3)]), Verdict::Forward, "not ours");
}

#[test]
fn implausible_sequence_numbers_pass_without_effect() {
    for config in [Config::published(), Config::ns2(), Config::modern()] {
        let mut station = Station::after(config, 4);
        assert_eq!(station.ack(900, &[]), Verdict::Forward);
        assert_eq!(station.snoop.stats().acks_of_unsent_data, 1);
        // Blocks outside the window, reversed, and empty.
        let verdict = station.ack(2, &[(900, 901), (3, 2), (2, 2)]);
        assert!(matches!(verdict, Verdict::Forward | Verdict::ForwardWith(_)));
        assert_eq!(station.retransmitted(), []);
        assert_eq!(station.ack(5, &[]), Verdict::Forward);
    }
}

#[test]
fn flood_of_duplicate_acks_respects_the_limit() {
    for config in [Config::published(), Config::ns2(), Config::modern()] {
        let mut station = Station::after(config, 4);
        for _ in 0..10_000 {
            let _ = station.ack(1, &[(2, 3)]);
        }
        let again = station.retransmitted();
        assert!((1..=10).contains(&again.len()), "{again:?}");
    }
}

#[test]
fn connection_is_picked_up_midway_and_removed_at_its_end() {
    let mut station = Station::new(Config::published());
    assert_eq!(station.ack(3, &[]), Verdict::Forward, "of nothing known");
    station.data(3);
    station.data(4);
    station.ack(3, &[]);
    assert_eq!((station.ack(3, &[]), station.retransmitted()), (Verdict::Absorb, vec![3]));
    let reset = Segment { flags: Flags::RST, ..data(5) };
    assert_eq!(station.pass_on(&reset, 0), Verdict::Forward);
    assert_eq!((station.snoop.connections(), station.snoop.poll_timeout().is_some()), (0, true));
    station.wait_for_timer(2_000_000);
    assert_eq!(station.snoop.poll_timeout(), None);
}

#[test]
fn reused_ports_start_with_new_state() {
    let mut station = Station::after(Config::published(), 4);
    let syn = Segment { flags: Flags::SYN, seq: Seq32(5), payload: Length(0), ..data(0) };
    assert_eq!(station.pass_on(&syn, 0), Verdict::Forward);
    let first = Segment { seq: Seq32(6), ..data(0) };
    station.pass_on(&first, 9);
    let answer = |n: u32| Segment { ack: Seq32(n), ..ack(0, &[]) };
    assert_eq!(station.pass_back(&answer(6)), Verdict::Forward);
    assert_eq!((station.pass_back(&answer(6)), station.retransmitted()), (Verdict::Absorb, vec![9]));
}

#[test]
fn silent_connections_expire_and_the_table_is_bounded() {
    let bounds = crate::TableLimits {
        max_connections: 2,
        idle_timeout: Duration::from_secs(1),
        ..crate::TableLimits::default()
    };
    let mut station = Station::new(Config { limits: bounds, ..Config::modern() });
    for port in 1..=3 {
        station.pass_on(&Segment { src_port: port, ..data(0) }, 0);
    }
    assert_eq!((station.snoop.connections(), station.snoop.stats().evicted), (2, 1));
    while station.wait_for_timer(5000).is_some() {
        station.retransmitted();
    }
    assert_eq!((station.snoop.connections(), station.snoop.stats().expired), (0, 2));
}

/// Passes packet `n` of the connection from port `port`, at `ms` milliseconds.
fn pass_data(snoop: &mut Snoop<u32>, ms: u64, port: u16, n: u32) {
    let segment = Segment { src_port: port, ..data(n) };
    let packet = Packet::new(&header(FIXED.0, MOBILE.0), &segment);
    snoop.handle_packet_to_mobile(Instant::from_millis(ms), packet, || n);
}

#[test]
fn least_recent_connection_is_evicted_for_bytes() {
    let mut snoop = Snoop::new(Config { max_cached_bytes: 20_000, ..Config::modern() });
    let counted = |snoop: &Snoop<u32>| snoop.table.iter().map(|tracked| tracked.cache.bytes()).sum::<u64>();
    for (port, ms) in [(1, 0), (2, 1), (1, 2000)] {
        (0..4).for_each(|n| pass_data(&mut snoop, ms, port, n));
    }
    assert_eq!((snoop.connections(), snoop.stats().evicted), (2, 0));
    assert_eq!(snoop.cached_bytes(), counted(&snoop));
    (0..10).for_each(|n| pass_data(&mut snoop, 2001, 3, n));
    assert!(snoop.cached_bytes() <= 20_000);
    assert_eq!(snoop.cached_bytes(), counted(&snoop));
    let knows = |port| snoop.table.find(&Connection { fixed: (FIXED.0, port), mobile: MOBILE }).is_some();
    assert_eq!([1, 2, 3].map(knows), [true, false, true]);
    assert_eq!(snoop.stats().evicted_for_bytes, 1);
    snoop.handle_departure(MOBILE.0);
    assert_eq!((snoop.cached_bytes(), snoop.connections()), (0, 0));
}

/// Creates a station with a host that was last heard at 4 ms: packets 1 to 10 are in flight, and the sender
/// has retransmitted packet 1 after 10 s.
fn station_with_absent_host() -> Station {
    let mut station = Station::after(Config::modern(), 10);
    station.timer_sends(10_000);
    station.data(1);
    station.timer_sends(10_020);
    station
}

#[test]
fn modern_returning_host_gets_all_packets_at_once() {
    let mut station = station_with_absent_host();
    station.now_ms = 10_025;
    station.ack(2, &[]);
    assert_eq!(station.retransmitted(), (2..=10).collect::<Vec<_>>());
    station.now_ms = 10_030;
    assert_eq!(station.ack(11, &[]), Verdict::Forward);
}

#[test]
fn modern_absent_host_is_probed_with_backoff() {
    let mut station = Station::after(Config::modern(), 10);
    for from_ms in [1_000, 10_000, 100_000] {
        station.timer_sends(from_ms);
        let asked = station.timer_sends(2 * from_ms);
        let longest = asked.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(longest.is_some_and(|longest| longest <= 600.max(from_ms / 8)), "{longest:?} from {from_ms}");
        assert!(asked.len() <= 20, "{} from {from_ms}", asked.len());
    }
    assert!(station.snoop.stats().left_to_sender <= 2, "before it was known to be gone");
}

#[test]
fn modern_absence_is_no_rtt_sample() {
    let mut station = station_with_absent_host();
    station.now_ms = 10_025;
    station.ack(6, &[]);
    station.retransmitted();
    station.now_ms = 10_030;
    station.ack(11, &[]);
    station.data(11);
    assert!(station.wait_for_timer(10_080).is_some(), "sent again as soon as before");
}

/// The host is back with ACKs that were queued on the way, and all retransmissions are lost.
#[test]
fn modern_withheld_ack_is_sent_while_repair_fails() {
    let mut station = station_with_absent_host();
    station.now_ms = 10_025;
    assert_eq!(station.ack(6, &[]), Verdict::Absorb, "the repairs may come at once");
    let made = iter::from_fn(|| {
        station.now_ms = station.snoop.poll_timeout()?.as_nanos().div_ceil(1_000_000);
        station.snoop.handle_timeout(station.now());
        Some(iter::from_fn(|| station.snoop.poll_transmit()).find_map(|transmit| match transmit {
            Transmit::Ack(ack) => Some((station.now_ms, ack.ack)),
            _ => None,
        }))
    });
    let made = made.take(50).flatten().next().expect("an ACK is made");
    assert_eq!(made, (10_225, seq(6)));
}

/// The sender missed the host's acknowledgments, and retransmits old data.
#[test]
fn modern_sender_retransmission_is_answered_during_repair() {
    let mut station = station_with_absent_host();
    station.now_ms = 10_025;
    station.ack(6, &[]);
    station.now_ms = 16_000;
    assert_eq!(station.data(1), Verdict::Forward);
    station.now_ms = 16_005;
    assert_ne!(station.ack(6, &[]), Verdict::Absorb);
}
