//! Dialogues: packets to and from the mobile host, and the actions of Snoop.

#![expect(unused_must_use, reason = "a dialogue says of most packets only that they pass by")]

use super::*;
use crate::packet::Says;
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
    Header::between(src, dst, Protocol::Tcp)
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
        station.call(true);
        for n in 0..=sent {
            assert_eq!(station.data(n), Verdict::Forward);
        }
        station.now_ms = 4;
        assert_eq!(station.ack(1, &[]), Verdict::Forward);
        station
    }

    /// Opens a connection from the fixed host.
    fn call(&mut self, sack_permitted: bool) {
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
        self.snoop.pass_to_mobile(self.now(), Packet::new(&ip, segment), || kept)
    }

    fn ack(&mut self, n: u32, sack: &[(u32, u32)]) -> Verdict {
        self.pass_back(&ack(n, sack))
    }

    fn pass_back(&mut self, segment: &Segment<Length>) -> Verdict {
        let ip = header(MOBILE.0, FIXED.0);
        self.snoop.pass_from_mobile(self.now(), Packet::new(&ip, segment))
    }

    fn refused(&mut self, n: u32) {
        self.note(n, OnTheWay::Refused);
    }

    fn note(&mut self, n: u32, way: OnTheWay) {
        let ip = header(FIXED.0, MOBILE.0);
        let data = data(n);
        let connection = Connection::to_mobile(Packet::new(&ip, &data));
        self.snoop.note(self.now(), connection, data.seq, way);
    }

    /// Returns the retransmitted packets, in order.
    fn again(&mut self) -> Vec<u32> {
        let mut again = Vec::new();
        while let Some(transmit) = self.snoop.poll_transmit() {
            match transmit {
                Transmit::Again { kept, .. } => again.push(kept),
                other => panic!("{other:?}"),
            }
        }
        again
    }

    /// As `again`, with their new timestamps.
    fn dated(&mut self) -> Vec<(u32, Option<u32>)> {
        let sent = core::iter::from_fn(|| self.snoop.poll_transmit());
        sent.map(|transmit| match transmit {
            Transmit::Again { kept, clock, .. } => (kept, clock),
            other => panic!("{other:?}"),
        })
        .collect()
    }

    /// Waits for the next timer, if it is due by `until_ms`. Returns its time.
    fn wait(&mut self, until_ms: u64) -> Option<u64> {
        while let Some(at) = self.snoop.poll_timeout().filter(|at| *at <= Instant::from_millis(until_ms)) {
            self.now_ms = at.as_nanos().div_ceil(1_000_000);
            self.snoop.handle_timeout(self.now());
            if !self.snoop.out.is_empty() {
                return Some(self.now_ms);
            }
        }
        self.now_ms = until_ms;
        None
    }

    /// Returns the times at which timers send something until then.
    fn asks(&mut self, until_ms: u64) -> Vec<u64> {
        let asked = iter::from_fn(|| self.wait(until_ms).inspect(|_| drop(self.again())));
        asked.collect()
    }
}

/// Verdict that an ACK of this number is forwarded without SACK blocks.
fn without_blocks(number: u32) -> Verdict {
    Verdict::ForwardWith(saying(number, &[]))
}

/// Returns the acknowledgment of an ACK.
fn saying(number: u32, sack: &[(u32, u32)]) -> Says {
    Says::of(&ack(number, sack))
}

#[test]
fn the_first_duplicate_sends_the_lost_packet_again_and_its_echoes_are_absorbed() {
    let mut station = Station::after(Config::published(), 4);
    // Packet 1 is lost; 2, 3 and 4 cause a duplicate ACK each, the first of which indicates the loss.
    assert_eq!(station.ack(1, &[]), Verdict::Absorb);
    assert_eq!(station.again(), [1]);
    assert_eq!(
        (station.ack(1, &[]), station.ack(1, &[]), station.again()),
        (Verdict::Absorb, Verdict::Absorb, vec![])
    );
    assert_eq!(station.ack(5, &[]), Verdict::Forward);
    assert_eq!(station.snoop.stats().acks_absorbed, 3);
}

#[test]
fn other_parameters_of_the_same_rules_leave_what_is_kept_in_place() {
    let mut station = Station::after(Config::modern(), 3);
    let given_up = Config { local_limit: 0, ..Config::modern() };
    let kept = station.snoop.kept_bytes();
    assert!(!station.snoop.set_config(Config::published()), "its rules need another state");
    assert!(station.snoop.set_config(Config { local_limit: 3, ..Config::modern() }));
    assert_eq!((station.snoop.connections(), station.snoop.kept_bytes()), (1, kept));
    let _ = station.ack(1, &[(2, 4)]);
    assert_eq!(station.again(), [1], "a packet that was kept before repairs the loss");
    assert!(station.snoop.set_config(given_up));
    assert_eq!(station.wait(60_000), None, "no packet goes again by the new limit");
}

#[test]
fn duplicates_beyond_those_expected_send_it_again_up_to_the_limit_and_then_pass() {
    let mut station = Station::after(Config { local_limit: 2, ..Config::published() }, 2);
    // S3: one packet after the lost one, so one expected duplicate.
    for sent in [vec![1], vec![], vec![1], vec![]] {
        assert_eq!((station.ack(1, &[]), station.again()), (Verdict::Absorb, sent));
    }
    assert_eq!((station.ack(1, &[]), station.again()), (Verdict::Forward, vec![]));
    assert_eq!(station.snoop.stats().left_to_sender, 1);
    // The sender retransmits the packet, which resets the limit of local retransmissions.
    station.data(1);
    for sent in [vec![], vec![1]] {
        assert_eq!((station.ack(1, &[]), station.again()), (Verdict::Absorb, sent), "one echo is left");
    }
}

fn marking(marks: Marks) -> Config {
    let rules = Rules::Classic(Classic { marks, ..Classic::PUBLISHED });
    Config { rules, ..Config::published() }
}

#[test]
fn a_packet_that_did_not_pass_here_is_the_senders_until_it_is_acknowledged() {
    for marks in [Marks::Uncached, Marks::UncachedRetransmissions, Marks::Retransmissions] {
        let mut station = Station::after(marking(marks), 1);
        station.data(3); // 2 was lost in the wired network
        station.ack(2, &[]);
        assert_eq!((station.ack(2, &[]), station.again()), (Verdict::Forward, vec![]));
        // The packet arrives, and the last hop loses it.
        (2..=3).for_each(|_| assert_eq!(station.data(2), Verdict::Forward));
        assert_eq!((station.ack(2, &[]), station.again()), (Verdict::Forward, vec![]), "{marks:?}");
    }
}

/// After a timeout the sender retransmits its window, all of which is cached.
#[test]
fn what_is_kept_and_comes_again_is_repaired_unless_ns_2_has_it_otherwise() {
    for (config, repairs) in [
        (marking(Marks::Uncached), vec![1]),
        (marking(Marks::UncachedRetransmissions), vec![1]),
        (marking(Marks::Retransmissions), vec![]),
        (Config { rules: Rules::Classic(Modern::DEFAULT.without_sack), ..Config::published() }, vec![1]),
    ] {
        let mut station = Station::after(config, 4);
        (1..=4).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
        assert_eq!(station.snoop.stats().sender_retransmissions, 4);
        let verdict = if repairs.is_empty() { Verdict::Forward } else { Verdict::Absorb };
        assert_eq!((station.ack(1, &[]), station.again()), (verdict, repairs));
    }
}

#[test]
fn a_new_packet_beyond_a_gap_is_marked_where_the_flowchart_has_it() {
    for (marks, repairs) in [
        (Marks::Uncached, vec![]),
        (Marks::UncachedRetransmissions, vec![3]),
        (Marks::Retransmissions, vec![3]),
    ] {
        let mut station = Station::after(marking(marks), 1);
        [3, 4, 2].map(|n| assert_eq!(station.data(n), Verdict::Forward)); // 2 was lost in the wired network
        station.ack(3, &[]);
        let verdict = if repairs.is_empty() { Verdict::Forward } else { Verdict::Absorb };
        assert_eq!((station.ack(3, &[]), station.again()), (verdict, repairs), "{marks:?}");
        station.ack(4, &[]);
        assert_eq!((station.ack(4, &[]), station.again()), (Verdict::Absorb, vec![4]), "it follows 3");
    }
}

#[test]
fn a_window_in_which_the_sender_sent_something_again_measures_nothing() {
    let mut station = Station::new(Config::published());
    station.call(false);
    (0..=2).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
    station.now_ms = 50;
    station.data(0);
    station.now_ms = 60;
    station.ack(1, &[]);
    station.ack(1, &[]);
    assert_eq!(station.again(), [1]);
    // Two round trips of 100 ms, as before any sample. One of 60 ms would make it 180.
    assert_eq!(station.wait(1000), Some(60 + 200));
}

/// The receiver's window shrinks by unread data, and is restored with the next ACK.
#[test]
fn a_duplicate_is_one_whatever_window_it_announces_where_the_paper_has_it() {
    let same_window = Classic { duplicate_acks: DuplicateAcks::SameWindow, ..Classic::PUBLISHED };
    let rfc = Config { rules: Rules::Classic(same_window), ..Config::published() };
    for (config, sack, repairs) in [
        (Config::published(), false, vec![1]),
        (Config { rules: while_alive(), ..Config::published() }, false, vec![1]),
        (rfc, false, vec![]),
        (Config::modern(), false, vec![]),
        (Config::modern(), true, vec![]),
    ] {
        let mut station = Station::new(config);
        station.call(sack);
        (0..=4).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
        station.now_ms = 4;
        station.ack(1, &[]);
        let other = Segment { window: 600, ..ack(1, &[]) };
        let verdict = if repairs.is_empty() { Verdict::Forward } else { Verdict::Absorb };
        assert_eq!((station.pass_back(&other), station.again()), (verdict, repairs));
    }
    // ns-2 acts on the second duplicate.
    let mut ns2 = Station::after(Config::ns2(), 4);
    let [first, second] = [600, 700].map(|window| Segment { window, ..ack(1, &[]) });
    let verdicts = [ns2.pass_back(&first), ns2.pass_back(&second)];
    assert_eq!((verdicts, ns2.again()), ([Verdict::Forward, Verdict::Absorb], vec![1]));
}

#[test]
fn data_of_the_mobile_host_are_no_duplicate_ack() {
    let mut station = Station::after(Config::published(), 4);
    let with_data = Segment { payload: Length(10), ..ack(1, &[]) };
    assert_eq!((station.pass_back(&with_data), station.again()), (Verdict::Forward, vec![]));
}

#[test]
fn a_window_that_changes_while_nothing_is_under_way_passes() {
    let mut station = Station::after(Config::published(), 0);
    let update = Segment { window: 400, ..ack(1, &[]) };
    assert_eq!((station.pass_back(&update), station.again()), (Verdict::Forward, vec![]), "S1");
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
fn old_data_are_answered_with_the_last_ack_in_the_name_of_the_mobile_host() {
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
fn a_mobile_host_that_is_gone_does_not_answer_keep_alives_by_its_station() {
    for config in [Config::modern(), Config { rules: while_alive(), ..Config::published() }] {
        for sack in [true, false] {
            let mut station = Station::new(config);
            station.call(sack);
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
fn keep_alives_do_not_keep_a_connection_from_being_forgotten() {
    for config in [Config::published(), Config::ns2(), Config::modern()] {
        for sack in [true, false] {
            let mut station = Station::new(config);
            station.call(sack);
            station.data(0);
            station.now_ms = 4;
            station.ack(1, &[]);
            let idle_ms = config.bounds.idle.as_nanos() / 1_000_000;
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
    Rules::Classic(Classic { old_data: OldData::AcknowledgedWhileAlive, ..Classic::PUBLISHED })
}

#[test]
fn an_ack_that_is_made_does_not_look_older_than_what_has_passed() {
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
fn a_local_retransmission_that_is_lost_is_sent_again_after_two_round_trips_and_at_least_40_ms() {
    let mut station = Station::after(Config::published(), 2);
    station.ack(1, &[]);
    assert_eq!(station.again(), [1]);
    // The first sample was 4 ms, mixed into 100 ms with weight 1/4: 76 ms, twice that.
    assert_eq!((station.wait(1000), station.again()), (Some(4 + 152), vec![1]));
}

#[test]
fn silence_of_200_ms_sends_the_first_packet_again() {
    let mut station = Station::after(Config::published(), 3);
    station.now_ms = 10;
    station.ack(2, &[]);
    assert_eq!((station.wait(1000), station.again()), (Some(210), vec![2]));
    assert_eq!((station.wait(1000), station.again()), (Some(410), vec![2]));
    let mut ns2 = Station::after(Config { local_limit: 0, ..Config::ns2() }, 3);
    assert_eq!(ns2.wait(5000), None, "no such timer there");
}

#[test]
fn ns2_acts_on_each_second_unexpected_duplicate_and_sends_again_once() {
    let mut station = Station::after(Config::ns2(), 5);
    let said: Vec<_> = (0..7).map(|_| (station.ack(1, &[]), station.again())).collect();
    // Four packets after the lost one: 4 - 1 expected duplicates after the second. Then one passes, and so
    // does the next one, which counts again: the packet has been retransmitted already.
    let (pass, keep) = (|| (Verdict::Forward, vec![]), || (Verdict::Absorb, vec![]));
    assert_eq!(said, [pass(), (Verdict::Absorb, vec![1]), keep(), keep(), keep(), pass(), pass()]);
}

#[test]
fn ns2_measures_each_ack_and_trusts_the_last_sample() {
    let mut station = Station::after(Config::ns2(), 2);
    // 7/8 of 4 ms and 1/8 of 100 ms are 16 ms; the deviation is 7/8 of 250 ms and 1/8 of 12 ms, from that mean.
    let timer = 16.0 + 4.0 * (0.875 * 250.0 + 0.125 * 12.0);
    assert_eq!((station.wait(5000), station.again()), (Some(4 + timer as u64), vec![1]));
}

#[test]
fn what_the_queue_refuses_is_left_to_the_sender_unless_the_paper_has_it_otherwise() {
    for (config, sent) in [(Config::published(), vec![1]), (Config::ns2(), vec![])] {
        let mut station = Station::after(config, 4);
        station.refused(1);
        let verdicts = [station.ack(1, &[]), station.ack(1, &[])];
        assert_eq!(station.again(), sent);
        assert_eq!(verdicts[1] == Verdict::Forward, sent.is_empty());
    }
    let mut station = Station::after(Config::modern(), 4);
    station.refused(1);
    assert_eq!(
        (station.ack(1, &[(2, 3)]), station.again()),
        (Verdict::Forward, vec![]),
        "with its SACK block"
    );
}

#[test]
fn beyond_the_high_water_mark_new_packets_pass_and_are_not_kept_but_those_that_close_gaps_are() {
    let config = Config { high_water: 2.try_into().unwrap(), ..Config::published() };
    let mut station = Station::new(config);
    for n in [0, 1, 3, 4] {
        assert_eq!(station.data(n), Verdict::Forward);
    }
    assert_eq!((station.snoop.stats().kept, station.snoop.stats().not_kept), (2, 2));
    station.data(2); // lost earlier, on the wire: now it comes
    station.ack(2, &[]);
    assert_eq!(station.wait(1000).map(|_| station.again()), Some(vec![2]), "kept");
}

#[test]
fn modern_all_holes_of_a_window_are_repaired_at_once_and_none_shows() {
    let mut station = Station::after(Config::modern(), 9);
    // Packets 1, 4 and 5 are lost.
    assert_eq!((station.ack(1, &[(2, 4)]), station.again()), (Verdict::Absorb, vec![1]));
    assert_eq!((station.ack(1, &[(6, 7), (2, 4)]), station.again()), (Verdict::Absorb, vec![4, 5]));
    // Packet 1 arrives; 4 is under repair, and blocks above it are removed.
    assert_eq!(station.ack(4, &[(6, 8)]), without_blocks(4));
    assert_eq!(station.ack(8, &[]), Verdict::Forward);
}

#[test]
fn modern_a_repair_that_is_lost_is_told_by_what_was_sent_after_it() {
    let mut station = Station::after(Config::modern(), 3);
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.again(), [1]);
    station.now_ms = 5;
    station.data(4);
    station.now_ms = 6;
    station.ack(1, &[(2, 4)]);
    assert_eq!(station.again(), [], "3 was sent before the repair");
    station.now_ms = 9;
    station.ack(1, &[(2, 5)]);
    assert_eq!(station.again(), [1], "4 after it");
}

#[test]
fn modern_a_tail_is_sent_again_when_it_is_overdue_on_the_last_hop() {
    let mut station = Station::after(Config::modern(), 2);
    // One round-trip sample of 4 ms, deviation 2 ms: 12 ms after the last arrival.
    assert_eq!((station.wait(1000), station.again()), (Some(4 + 12), vec![1]));
}

#[test]
fn modern_a_connection_without_sack_has_the_papers_rules() {
    let mut station = Station::new(Config::modern());
    station.call(false);
    for n in 0..=4 {
        station.data(n);
    }
    station.refused(2);
    station.ack(1, &[]);
    assert_eq!((station.ack(1, &[]), station.again()), (Verdict::Absorb, vec![1]));
    // Packet 2 was refused: its duplicate ACKs pass, and no other ACK is withheld.
    assert_eq!(
        (station.ack(2, &[]), station.ack(2, &[]), station.again()),
        (Verdict::Forward, Verdict::Forward, vec![])
    );
    station.data(2);
    assert_eq!(station.ack(5, &[]), Verdict::Forward);
}

#[test]
fn modern_without_sack_the_next_hole_is_repaired_as_soon_as_it_is_known_to_be_overdue() {
    let repaired = |config: Config| {
        let mut station = Station::new(config);
        station.call(false);
        for n in 0..=4 {
            station.data(n);
        }
        station.now_ms = 4;
        station.ack(1, &[]);
        // All other packets are lost. Nothing comes back until the persist timer has retransmitted the first.
        let first = (station.wait(300), station.again());
        station.now_ms += 4;
        station.ack(2, &[]);
        (first, station.again())
    };
    assert_eq!(repaired(Config::modern()), ((Some(204), vec![1]), vec![2]));
    assert_eq!(repaired(Config::published()), ((Some(204), vec![1]), vec![]), "by its own duplicates (S7)");
}

/// Returns the segment with this TSval and TSecr.
fn clocked(segment: Segment<Length>, value: u32, echo: u32) -> Segment<Length> {
    let options = Options { timestamps: Some(Timestamps { value, echo }), ..segment.options };
    Segment { options, ..segment }
}

#[test]
fn modern_what_the_mobile_host_would_take_for_old_shows_the_clock_that_it_has_taken_last() {
    let mut station = Station::new(Config::modern());
    station.call(true);
    for n in 0..=5 {
        station.pass_on(&clocked(data(n), 100, 1), n);
    }
    station.pass_back(&clocked(ack(1, &[]), 1, 100));
    // The sender has timed out, and retransmits packet 1. It arrives, with a later timestamp than those
    // behind it.
    station.pass_on(&clocked(data(1), 900, 1), 1);
    let verdict = station.pass_back(&clocked(ack(2, &[(4, 5)]), 2, 900));
    assert_eq!(
        (verdict, station.dated()),
        (Verdict::Absorb, vec![(2, Some(900)), (3, Some(900)), (5, Some(900))])
    );
    // A packet that is young enough keeps its timestamp.
    station.pass_on(&clocked(data(6), 902, 1), 6);
    station.pass_on(&clocked(data(7), 902, 1), 7);
    station.pass_back(&clocked(ack(6, &[(7, 8)]), 3, 900));
    assert_eq!(station.dated(), [(6, None)]);
    // Further retransmissions keep the new timestamp.
    station.pass_on(&clocked(data(8), 903, 1), 8);
    station.pass_back(&clocked(ack(6, &[(7, 9)]), 3, 902));
    assert_eq!(station.dated(), [(6, None)]);
}

#[test]
fn modern_what_was_hidden_while_a_hole_was_repaired_is_said_when_it_is_not() {
    let mut station = Station::after(Config::modern(), 9);
    // The queue has dropped packet 1, which is shown; the link has lost packet 3.
    station.refused(1);
    assert_eq!(station.ack(1, &[(2, 3)]), Verdict::Forward);
    assert_eq!(station.ack(1, &[(4, 6), (2, 3)]), Verdict::ForwardWith(saying(1, &[(2, 3)])));
    assert_eq!(station.again(), [3]);
    // Packet 3 has arrived, and the host reports it without its earlier blocks.
    assert_eq!(station.ack(1, &[(3, 4)]), Verdict::ForwardWith(saying(1, &[(2, 6)])));
    assert_eq!(
        station.ack(1, &[(8, 9), (3, 4)]),
        Verdict::ForwardWith(saying(1, &[(2, 6)])),
        "7 is repaired"
    );
}

#[test]
fn modern_what_waits_before_the_last_hop_is_neither_overdue_nor_lost_and_its_time_counts_from_there() {
    let mut station = Station::after(Config::modern(), 0);
    station.now_ms += 10;
    station.ack(1, &[]);
    station.data(1);
    station.note(1, OnTheWay::Waits);
    let waiting_since = station.now_ms;
    assert_eq!(station.wait(waiting_since + 5000), None);
    station.note(1, OnTheWay::Leaves);
    let left = station.now_ms;
    let again = station.wait(left + 1000).unwrap();
    assert_eq!(station.again(), [1]);
    assert!((left + 5..left + 100).contains(&again), "{again} after {left}");
}

#[test]
fn modern_a_repair_is_lost_when_what_left_after_it_has_come_though_that_was_there_before() {
    let mut station = Station::after(Config::modern(), 3);
    station.data(4);
    station.note(4, OnTheWay::Waits);
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.again(), [1]);
    station.note(4, OnTheWay::Leaves);
    station.ack(1, &[(4, 5), (2, 4)]);
    assert_eq!(station.again(), [1]);
}

#[test]
fn modern_on_a_hop_that_reorders_what_is_missing_is_lost_when_it_is_later_than_packets_were() {
    let mut station = Station::after(Config::modern(), 3);
    station.now_ms = 5;
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.again(), [1], "nothing has been late so far");
    station.now_ms = 7;
    station.ack(3, &[]);
    station.now_ms = 8;
    station.ack(4, &[(1, 2)]);
    // The packet was 2 ms late, and its retransmission needless.
    station.now_ms = 10;
    (4..=5).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
    station.now_ms = 15;
    assert_eq!((station.ack(4, &[(5, 6)]), station.again()), (Verdict::Absorb, vec![]));
    station.now_ms = 16;
    assert_eq!((station.ack(6, &[]), station.again()), (Verdict::Forward, vec![]));
    station.now_ms = 20;
    (6..=7).for_each(|n| assert_eq!(station.data(n), Verdict::Forward));
    station.now_ms = 25;
    assert_eq!((station.ack(6, &[(7, 8)]), station.again()), (Verdict::Absorb, vec![]));
    station.now_ms = 26;
    station.wait(26);
    assert_eq!(station.again(), []);
    station.wait(27);
    assert_eq!(station.again(), [6]);
}

#[test]
fn modern_a_tail_is_waited_for_as_long_as_the_longest_round_trip_of_late() {
    let mut station = Station::after(Config::modern(), 0);
    // One round trip in twenty takes 60 ms.
    for n in 1..60 {
        station.data(n);
        station.now_ms += if n == 30 { 60 } else { 4 };
        assert_eq!(station.ack(n + 1, &[]), Verdict::Forward);
        station.again();
    }
    station.data(60);
    let sent = station.now_ms;
    let again = station.wait(sent + 1000);
    assert!(again.is_some_and(|at| at >= sent + 60), "{again:?}");
}

#[test]
fn modern_sack_is_learnt_in_the_middle() {
    let mut station = Station::new(Config::modern());
    for n in 0..=5 {
        station.data(n);
    }
    station.ack(1, &[]);
    // Packets 1 and 3 are lost.
    assert_eq!((station.ack(1, &[(4, 5), (2, 3)]), station.again()), (Verdict::Absorb, vec![1, 3]));
}

#[test]
fn modern_what_was_sent_again_too_often_shows() {
    let mut station = Station::after(Config { local_limit: 1, ..Config::modern() }, 3);
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.again(), [1]);
    station.data(4);
    station.now_ms = 9;
    assert_eq!((station.ack(1, &[(2, 5)]), station.again()), (Verdict::Forward, vec![]));
    assert_eq!(station.snoop.stats().left_to_sender, 1);
}

#[test]
fn modern_an_ack_of_the_senders_retransmission_waits_while_something_older_is_repaired() {
    let mut station = Station::after(Config::modern(), 3);
    station.refused(1);
    assert_eq!(station.ack(1, &[(2, 3)]), Verdict::Forward);
    station.now_ms = 8;
    // The sender retransmits packet 1, and then 4. Packet 3 is lost.
    station.data(1);
    station.data(4);
    station.now_ms = 12;
    assert_eq!(station.ack(3, &[]), Verdict::Absorb, "RACK would take 3 for lost");
    assert_eq!(station.ack(3, &[(4, 5)]), Verdict::Absorb);
    assert_eq!(station.again(), [3]);
    station.now_ms = 16;
    assert_eq!(station.ack(5, &[]), Verdict::Forward);
}

#[test]
fn modern_a_report_of_a_duplicate_made_here_is_taken_out_and_others_pass() {
    let mut station = Station::after(Config::modern(), 3);
    station.ack(1, &[(2, 3)]);
    assert_eq!(station.again(), [1]);
    assert_eq!(station.ack(3, &[]), Verdict::Forward, "it came after all");
    assert_eq!(station.ack(4, &[(1, 2)]), without_blocks(4), "and then again");
    station.data(4);
    assert_eq!(station.ack(5, &[(2, 3)]), Verdict::Forward, "not ours");
}

#[test]
fn hostile_numbers_pass_and_change_nothing() {
    for config in [Config::published(), Config::ns2(), Config::modern()] {
        let mut station = Station::after(config, 4);
        assert_eq!(station.ack(900, &[]), Verdict::Forward);
        assert_eq!(station.snoop.stats().acks_beyond, 1);
        // Blocks outside the window, reversed, and empty.
        let verdict = station.ack(2, &[(900, 901), (3, 2), (2, 2)]);
        assert!(matches!(verdict, Verdict::Forward | Verdict::ForwardWith(_)));
        assert_eq!(station.again(), []);
        assert_eq!(station.ack(5, &[]), Verdict::Forward);
    }
}

#[test]
fn a_flood_of_duplicates_sends_a_packet_no_oftener_than_the_limit() {
    for config in [Config::published(), Config::ns2(), Config::modern()] {
        let mut station = Station::after(config, 4);
        for _ in 0..10_000 {
            let _ = station.ack(1, &[(2, 3)]);
        }
        let again = station.again();
        assert!((1..=10).contains(&again.len()), "{again:?}");
    }
}

#[test]
fn a_connection_is_picked_up_in_the_middle_and_forgotten_with_its_end() {
    let mut station = Station::new(Config::published());
    assert_eq!(station.ack(3, &[]), Verdict::Forward, "of nothing known");
    station.data(3);
    station.data(4);
    station.ack(3, &[]);
    assert_eq!((station.ack(3, &[]), station.again()), (Verdict::Absorb, vec![3]));
    let reset = Segment { flags: Flags::RST, ..data(5) };
    assert_eq!(station.pass_on(&reset, 0), Verdict::Forward);
    assert_eq!((station.snoop.connections(), station.snoop.poll_timeout().is_some()), (0, true));
    station.wait(2_000_000);
    assert_eq!(station.snoop.poll_timeout(), None);
}

#[test]
fn ports_that_are_used_again_begin_anew() {
    let mut station = Station::after(Config::published(), 4);
    let syn = Segment { flags: Flags::SYN, seq: Seq32(5), payload: Length(0), ..data(0) };
    assert_eq!(station.pass_on(&syn, 0), Verdict::Forward);
    let first = Segment { seq: Seq32(6), ..data(0) };
    station.pass_on(&first, 9);
    let answer = |n: u32| Segment { ack: Seq32(n), ..ack(0, &[]) };
    assert_eq!(station.pass_back(&answer(6)), Verdict::Forward);
    assert_eq!((station.pass_back(&answer(6)), station.again()), (Verdict::Absorb, vec![9]));
}

#[test]
fn silent_connections_expire_and_the_table_is_bounded() {
    let bounds = crate::Bounds { connections: 2, idle: Duration::from_secs(1), ..crate::Bounds::default() };
    let mut station = Station::new(Config { bounds, ..Config::modern() });
    for port in 1..=3 {
        station.pass_on(&Segment { src_port: port, ..data(0) }, 0);
    }
    assert_eq!((station.snoop.connections(), station.snoop.stats().evicted), (2, 1));
    while station.wait(5000).is_some() {
        station.again();
    }
    assert_eq!((station.snoop.connections(), station.snoop.stats().expired), (0, 2));
}

/// Passes packet `n` of the connection from port `port`, at `ms` milliseconds.
fn pass_from(snoop: &mut Snoop<u32>, ms: u64, port: u16, n: u32) {
    let segment = Segment { src_port: port, ..data(n) };
    let packet = Packet::new(&header(FIXED.0, MOBILE.0), &segment);
    snoop.pass_to_mobile(Instant::from_millis(ms), packet, || n);
}

#[test]
fn the_connection_silent_for_longest_goes_when_all_keep_too_many_bytes() {
    let mut snoop = Snoop::new(Config { kept_bytes: 20_000, ..Config::modern() });
    let counted = |snoop: &Snoop<u32>| snoop.table.iter().map(|tracked| tracked.cache.bytes()).sum::<u64>();
    for (port, ms) in [(1, 0), (2, 1), (1, 2000)] {
        (0..4).for_each(|n| pass_from(&mut snoop, ms, port, n));
    }
    assert_eq!((snoop.connections(), snoop.stats().evicted), (2, 0));
    assert_eq!(snoop.kept_bytes(), counted(&snoop));
    (0..10).for_each(|n| pass_from(&mut snoop, 2001, 3, n));
    assert!(snoop.kept_bytes() <= 20_000);
    assert_eq!(snoop.kept_bytes(), counted(&snoop));
    let knows = |port| snoop.table.find(&Connection { fixed: (FIXED.0, port), mobile: MOBILE }).is_some();
    assert_eq!([1, 2, 3].map(knows), [true, false, true]);
    assert_eq!(snoop.stats().evicted_for_bytes, 1);
    snoop.forget_mobile(MOBILE.0);
    assert_eq!((snoop.kept_bytes(), snoop.connections()), (0, 0));
}

/// Creates a station with a host that was last heard at 4 ms: packets 1 to 10 are in flight, and the sender
/// has retransmitted packet 1 after 10 s.
fn gone() -> Station {
    let mut station = Station::after(Config::modern(), 10);
    station.asks(10_000);
    station.data(1);
    station.asks(10_020);
    station
}

#[test]
fn modern_a_host_that_is_back_gets_everything_again_at_once() {
    let mut station = gone();
    station.now_ms = 10_025;
    station.ack(2, &[]);
    assert_eq!(station.again(), (2..=10).collect::<Vec<_>>());
    station.now_ms = 10_030;
    assert_eq!(station.ack(11, &[]), Verdict::Forward);
}

#[test]
fn modern_while_a_host_is_gone_a_packet_asks_for_it_more_and_more_seldom_and_none_is_given_up() {
    let mut station = Station::after(Config::modern(), 10);
    for from_ms in [1_000, 10_000, 100_000] {
        station.asks(from_ms);
        let asked = station.asks(2 * from_ms);
        let longest = asked.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(longest.is_some_and(|longest| longest <= 600.max(from_ms / 8)), "{longest:?} from {from_ms}");
        assert!(asked.len() <= 20, "{} from {from_ms}", asked.len());
    }
    assert!(station.snoop.stats().left_to_sender <= 2, "before it was known to be gone");
}

#[test]
fn modern_the_time_that_a_host_was_gone_is_no_round_trip() {
    let mut station = gone();
    station.now_ms = 10_025;
    station.ack(6, &[]);
    station.again();
    station.now_ms = 10_030;
    station.ack(11, &[]);
    station.data(11);
    assert!(station.wait(10_080).is_some(), "sent again as soon as before");
}

/// The host is back with ACKs that were queued on the way, and all retransmissions are lost.
#[test]
fn modern_what_a_host_has_acknowledged_is_said_while_the_rest_is_repaired_in_vain() {
    let mut station = gone();
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
fn modern_a_sender_that_asks_again_is_answered_though_the_next_hole_is_under_repair() {
    let mut station = gone();
    station.now_ms = 10_025;
    station.ack(6, &[]);
    station.now_ms = 16_000;
    assert_eq!(station.data(1), Verdict::Forward);
    station.now_ms = 16_005;
    assert_ne!(station.ack(6, &[]), Verdict::Absorb);
}
