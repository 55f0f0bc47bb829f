//! RFC 9768: negotiation, the ACE field, the AccECN option, and what triggers ACKs.

use super::script::{Script, SegmentBuilder, mss_1000, mss_1000_sack, plain, segment};
use crate::tcp::{Config, EcnMode, InitialWindow, OptionOffer, State};
use hopline_core::{Instant, Length, StateMachine};
use hopline_wire::ip::Ecn;
use hopline_wire::tcp::{AccEcnCounters, AccEcnOption, AccEcnOrder, Flags};

const CODEPOINTS: [(Ecn, u8); 4] = [
    (Ecn::NotCapable, 0b010),
    (Ecn::Capable1, 0b011),
    (Ecn::Capable0, 0b100),
    (Ecn::CongestionExperienced, 0b110),
];

fn accurate() -> Config {
    plain().with_ecn(EcnMode::AccEcn)
}

fn syn_ack() -> SegmentBuilder {
    segment(0).syn().ack(1).options(mss_1000())
}

/// A client that has got this SYN-ACK at 100 ms.
fn client(config: Config, syn_ack: SegmentBuilder) -> Script {
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.transmits(), "SEWA 0", "§3.1.1");
    s.now = Instant::from_millis(100);
    s.receive(syn_ack);
    s
}

/// A client with ten segments in flight since 100 ms.
fn in_flight(config: Config) -> Script {
    let mut s = client(config, segment(0).syn().ack(1).options(mss_1000_sack()).ace(0b010));
    assert_eq!(s.transmits(), "W 1 ack 1 e1b 1 ceb 0 e0b 1");
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    assert!(s.transmits().starts_with("ECT EA 1:989 ack 1 e1b 1 ceb 0 e0b 1; ECT EA 989:1989 ack 1; "));
    s
}

/// A server that has got this SYN.
fn server(config: Config, syn: SegmentBuilder) -> Script {
    let mut s = Script::new(config);
    s.endpoint.listen().unwrap();
    s.receive(syn.options(mss_1000()));
    s
}

/// A server that has sent ten segments, after a handshake in which the ACK had these flags.
fn serving(ace: u8) -> Script {
    let mut s = server(accurate(), segment(0).syn().ace(0b111));
    assert_eq!(s.transmits(), "SW 0 ack 1 e1b 1 ceb 0 e0b 1");
    s.receive(segment(1).ack(1).ace(ace));
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s
}

fn marks(s: &Script) -> u64 {
    s.endpoint.stats().marks_reported
}

#[test]
fn a_client_takes_the_feedback_that_the_syn_ack_stands_for() {
    // Table 2: the first, second and fourth blocks, and §3.1.3 for 101. Codepoints that are not that of our SYN are invalid
    // transitions (§3.2.2.3): no capable data follow.
    for (code, ack, data) in [
        (0b010, "W 1 ack 1 e1b 1 ceb 0 e0b 1", "ECT EA 1:989 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b011, "W 1 ack 1 e1b 1 ceb 0 e0b 1", "EA 1:989 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b100, "W 1 ack 1 e1b 1 ceb 0 e0b 1", "EA 1:989 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b110, "W 1 ack 1 e1b 1 ceb 0 e0b 1", "EA 1:989 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b101, "W 1 ack 1 e1b 1 ceb 0 e0b 1", "ECT EA 1:989 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b001, ". 1 ack 1", "ECT . 1:1001 ack 1"),
        (0b000, ". 1 ack 1", ". 1:1001 ack 1"),
        (0b111, ". 1 ack 1", ". 1:1001 ack 1"),
    ] {
        let mut s = client(accurate(), syn_ack().ace(code));
        assert_eq!(s.transmits(), ack, "{code:03b}");
        s.endpoint.send(s.now, Length(988)).unwrap();
        let one = data.replace("1001", "989");
        assert_eq!(s.transmits(), one, "{code:03b}");
    }
}

#[test]
fn a_server_takes_the_feedback_that_the_syn_stands_for() {
    // Table 2, the third block; §3.1.3 for combinations that no client sends.
    for (code, said) in [
        (0b000, "S 0 ack 1"),
        (0b011, "SE 0 ack 1"),
        (0b001, "SW 0 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b010, "SW 0 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b100, "SW 0 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b101, "SW 0 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b110, "SW 0 ack 1 e1b 1 ceb 0 e0b 1"),
        (0b111, "SW 0 ack 1 e1b 1 ceb 0 e0b 1"),
    ] {
        assert_eq!(server(accurate(), segment(0).syn().ace(code)).transmits(), said, "{code:03b}");
    }
}

#[test]
fn the_syn_ack_reports_the_codepoint_of_the_syn() {
    for (codepoint, code) in CODEPOINTS {
        let mut s = server(accurate(), segment(0).syn().ace(0b111).ecn(codepoint));
        s.transmits();
        assert_eq!(s.last.as_ref().unwrap().flags.ace(), code, "table 2");
    }
}

#[test]
fn servers_of_rfc_3168_and_without_ecn_fall_back() {
    for (mode, said) in [(EcnMode::Accept, "SE 0 ack 1"), (EcnMode::Never, "S 0 ack 1")] {
        assert_eq!(server(plain().with_ecn(mode), segment(0).syn().ace(0b111)).transmits(), said);
    }
}

#[test]
fn accurate_ecn_is_offered_twice_and_confirmed_twice() {
    let mut s = Script::new(accurate());
    s.endpoint.connect(s.now).unwrap();
    assert_eq!(s.run_until(3500), "0: SEWA 0; 1000: SEWA 0; 3000: S 0", "§3.1.4.1");
    s.receive(syn_ack().ace(0b010));
    s.transmits();
    s.endpoint.send(s.now, Length(100)).unwrap();
    assert!(s.transmits().starts_with("ECT EA 1:101"), "a client is certain of the server's mode (§3.1.5)");

    let mut s = server(accurate(), segment(0).syn().ace(0b111));
    let said = s.run_until(3500);
    assert_eq!(said, "0: SW 0 ack 1 e1b 1 ceb 0 e0b 1; 1000: SW 0 ack 1; 3000: S 0 ack 1", "§3.2.3.2.2");
    s.receive(segment(1).ack(1).ace(0b010));
    s.endpoint.send(s.now, Length(100)).unwrap();
    assert_eq!(s.transmits(), "EA 1:101 ack 1", "§3.1.5: a server must not send capable data then");
}

#[test]
fn the_ack_of_the_syn_ack_reports_its_codepoint() {
    for (codepoint, code) in CODEPOINTS {
        let mut s = client(accurate(), syn_ack().ace(0b010).ecn(codepoint));
        s.endpoint.send(s.now, Length(100)).unwrap();
        let ack = s.endpoint.poll_transmit(s.now).unwrap();
        assert_eq!((ack.flags.ace(), ack.payload.0), (code, 0), "table 3, before the data (§3.2.2.1)");
        let data = s.endpoint.poll_transmit(s.now).unwrap();
        let cep = if codepoint == Ecn::CongestionExperienced { 6 } else { 5 };
        assert_eq!((data.flags.ace(), data.payload.0), (cep, 100));
    }
}

#[test]
fn the_ack_of_a_repeated_syn_ack_reports_its_codepoint_and_counts_one_mark() {
    let mut s = client(accurate(), syn_ack().ace(0b010));
    s.transmits();
    for (ms, after) in [(1000, 6), (2000, 6)] {
        s.run_until(ms);
        s.receive(syn_ack().ace(0b010).marked());
        s.transmits();
        assert_eq!(s.last.as_ref().unwrap().flags.ace(), 0b110);
        s.receive(segment(1).ack(1).data(10));
        s.transmits();
        assert_eq!(s.last.as_ref().unwrap().flags.ace(), after, "§3.2.2.2: no more than once");
        s.receive(segment(1).ack(1).data(10));
    }
}

#[test]
fn a_server_reads_the_ack_of_its_syn_ack_by_table_4() {
    for (code, capable, reported) in [
        (0b000, "", 0),
        (0b001, "ECT ", 0),
        (0b010, "ECT ", 0),
        (0b011, "", 0),
        (0b100, "", 0),
        (0b101, "ECT ", 0),
        (0b110, "", 1),
        (0b111, "ECT ", 0),
    ] {
        let mut s = serving(code);
        let said = s.transmits();
        assert!(said.starts_with(&format!("{capable}EA 1:1001 ack 1; ")), "{code:03b}: {said}");
        assert_eq!(marks(&s), reported, "{code:03b}");
        // The counter: one more mark is reported.
        let cep = if code == 0b110 { 6 } else { 5 };
        s.receive(segment(1).ack(1001).ace(cep + 1));
        assert_eq!(marks(&s), if code == 0 { 0 } else { reported + 1 }, "{code:03b}: note 1");
    }
}

#[test]
fn data_may_be_the_first_to_arrive_after_the_syn_ack() {
    // §3.2.2.1: only a pure ACK has the handshake encoding.
    let mut s = server(accurate(), segment(0).syn().ace(0b111));
    s.transmits();
    s.receive(segment(1).ack(1).data(10).ace(5));
    assert_eq!((marks(&s), s.transmits().as_str()), (0, "EA 1 ack 11"));
}

#[test]
fn a_simultaneous_open_is_answered_as_by_a_server() {
    for (code, said) in [(0b111, "SW 0 ack 1 e1b 1 ceb 0 e0b 1"), (0b011, "SE 0 ack 1"), (0b000, "S 0 ack 1")]
    {
        let mut s = Script::new(accurate());
        s.endpoint.connect(s.now).unwrap();
        s.transmits();
        s.receive(segment(0).syn().ace(code).options(mss_1000()));
        assert_eq!(s.transmits(), said, "§3.1.2");
    }
}

#[test]
fn a_repeated_syn_changes_the_report_but_never_the_mode() {
    let mut s = server(accurate(), segment(0).syn().ace(0b111));
    s.transmits();
    s.receive(segment(0).syn().ace(0b000).marked().options(mss_1000()));
    assert_eq!(s.transmits(), "SWA 0 ack 1", "§3.1.5: the latest SYN");
    s.receive(segment(1).ack(1).ace(0b010));
    s.endpoint.send(s.now, Length(100)).unwrap();
    assert_eq!(s.transmits(), "EA 1:101 ack 1", "and no capable data");

    let mut s = server(accurate(), segment(0).syn());
    assert_eq!(s.transmits(), "S 0 ack 1");
    s.receive(segment(0).syn().ace(0b111).options(mss_1000()));
    assert_eq!(s.transmits(), "S 0 ack 1");
}

#[test]
fn syns_for_two_kinds_of_feedback_reset_the_connection() {
    for (first, second) in [(0b111, 0b011), (0b011, 0b111)] {
        let mut s = server(accurate(), segment(0).syn().ace(first));
        s.transmits();
        s.receive(segment(0).syn().ace(second).options(mss_1000()));
        assert_eq!((s.transmits().as_str(), s.state()), ("R 1", State::Listen), "§3.1.5");
    }
}

#[test]
fn the_ace_field_counts_marked_packets_and_wraps() {
    let mut s = serving(0b010);
    s.transmits();
    let mut seen = Vec::new();
    for n in 0..10 {
        s.receive(segment(1 + 10 * n).ack(1).data(10).ace(5).marked());
        s.transmits();
        seen.push(s.last.as_ref().unwrap().flags.ace());
    }
    assert_eq!(seen, [6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
    // Pure ACKs count, too; packets outside the window do not.
    s.receive(segment(101).ack(1).ace(5).marked());
    s.receive(segment(200_000).ack(1).data(10).ace(5).marked());
    s.transmits();
    assert_eq!(s.last.as_ref().unwrap().flags.ace(), 0);
    assert_eq!(s.endpoint.stats().marks_received, 10);
}

#[test]
fn the_sender_counts_beyond_the_wrap() {
    let mut s = in_flight(accurate().with_sack().with_initial_window(InitialWindow::Segments(30)));
    let mut ack = 1;
    for n in 1..=20_u64 {
        ack += if n == 1 { 988 } else { 1000 };
        s.receive(segment(1).ack(ack).ace(((5 + n) % 8) as u8));
        assert_eq!(marks(&s), n);
        s.run_until(100 + 10 * n);
    }
}

#[test]
fn lost_acks_count_as_marked_if_the_field_may_have_wrapped() {
    // Appendix A.2.1: ten segments, of which one is reported: nine may have been marked.
    for (ace, option, expected) in [
        (6, None, 9),
        (7, None, 2),
        (5, None, 8),
        // Appendix A.2.2: the option knows.
        (6, Some((9000, 988)), 1),
        (5, Some((9988, 0)), 0),
        (5, Some((1988, 8000)), 8),
    ] {
        let mut s = in_flight(accurate().with_sack());
        let ack = segment(1).ack(9989).ace(ace);
        s.receive(match option {
            Some((e1b, ceb)) => ack.counted(e1b, ceb),
            None => ack,
        });
        assert_eq!(marks(&s), expected, "{ace} {option:?}");
    }
}

#[test]
fn a_superseded_ack_is_not_read() {
    let mut s = in_flight(accurate().with_sack());
    s.receive(segment(1).ack(2989).ace(7));
    s.receive(segment(1).ack(989).ace(6));
    s.receive(segment(1).ack(2989).ace(6));
    assert_eq!(marks(&s), 2, "§3.2.2.2: and the field does not wrap");
    s.receive(segment(1).ack(3989).ace(0));
    assert_eq!(marks(&s), 3);
}

#[test]
fn timestamps_tell_an_ack_without_new_data_from_a_superseded_one() {
    let config = Config { timestamps: OptionOffer::Offered, ..accurate() };
    let options = hopline_wire::tcp::Options {
        timestamps: Some(hopline_wire::tcp::Timestamps { value: 500, echo: 0 }),
        ..mss_1000()
    };
    let mut s = client(config, segment(0).syn().ack(1).options(options).ace(0b010).ts(500, 0));
    s.endpoint.send(s.now, Length(100_000)).unwrap();
    s.transmits();
    let echo = s.last.as_ref().unwrap().options.timestamps.unwrap().value;
    s.receive(segment(1).ack(1).ace(6).ts(510, echo));
    assert_eq!(marks(&s), 1, "appendix A.1");
    s.receive(segment(1).ack(1).ace(7).ts(510, echo));
    assert_eq!(marks(&s), 1);
}

#[test]
fn options_have_the_counters_that_have_changed() {
    // §3.2.3.3, the recommended simple scheme.
    let mut s = serving(0b010);
    s.transmits();
    let mut at = 1;
    let mut said = |s: &mut Script, ecn| {
        s.receive(segment(at).ack(1).data(100).ace(5).ecn(ecn));
        at += 100;
        s.transmits()
    };
    assert_eq!(said(&mut s, Ecn::NotCapable), "EA 10001 ack 101");
    assert_eq!(said(&mut s, Ecn::Capable1), "EA 10001 ack 201 e1b 101");
    assert_eq!(said(&mut s, Ecn::CongestionExperienced), "WA 10001 ack 301 e1b 101 ceb 100");
    assert_eq!(said(&mut s, Ecn::NotCapable), "WA 10001 ack 401", "nothing has changed");
    assert_eq!(said(&mut s, Ecn::Capable1), "WA 10001 ack 501 e1b 201 ceb 100");
    assert_eq!(said(&mut s, Ecn::Capable0), "WA 10001 ack 601 e1b 201 ceb 100 e0b 101");

    let mut s = serving(0b010);
    s.transmits();
    s.receive(segment(1).ack(1).data(100).ace(5).ecn(Ecn::Capable0));
    assert_eq!(s.transmits(), "EA 10001 ack 101 e0b 101", "order 0");
}

#[test]
fn two_sack_blocks_have_precedence_over_the_third() {
    let mut s = in_flight(accurate().with_sack());
    for (at, blocks) in [(2001, 1), (4001, 2), (6001, 2)] {
        s.receive(segment(at).ack(1).data(100).ace(5).ecn(Ecn::Capable1));
        s.transmits();
        let options = &s.last.as_ref().unwrap().options;
        assert_eq!(
            (options.sack.len(), options.acc_ecn.is_some()),
            (blocks.min(2) + usize::from(at > 6000), true)
        );
        assert!(options.len() <= 40 && options.sack.len() <= options.sack_room());
    }
}

#[test]
fn data_leave_room_for_the_option() {
    let mut s = serving(0b010);
    s.transmits();
    s.receive(segment(1).ack(9001).data(100).ace(5).ecn(Ecn::Capable1));
    let said = s.transmits();
    assert!(said.starts_with("ECT EA 10001:10993 ack 101 e1b 101; ECT EA 10993:11993 ack 101; "), "{said}");
}

#[test]
fn a_first_mark_and_every_second_one_trigger_acks() {
    // §3.2.2.5.1, with delayed ACKs of every eighth segment.
    let delayed = crate::tcp::AckPolicy::Delayed { timer: hopline_core::Duration::from_millis(40) };
    let mut s =
        server(Config { ack_policy: delayed, ack_every: 8, ..accurate() }, segment(0).syn().ace(0b111));
    s.transmits();
    s.receive(segment(1).ack(1).ace(0b010));
    let mut at = 1;
    let mut said = |s: &mut Script, marked: bool| {
        let data = segment(at).ack(1).data(10).ace(5);
        s.receive(if marked { data.marked() } else { data });
        at += 10;
        !s.transmits().is_empty()
    };
    let pattern = [false, true, true, true, true, false, false, true, false, true];
    let acks: Vec<bool> = pattern.map(|marked| said(&mut s, marked)).to_vec();
    assert_eq!(acks, [false, true, false, true, false, false, false, true, false, true]);
}

#[test]
fn three_marked_acks_trigger_an_ack() {
    // §3.2.2.5.1: there are no data to acknowledge.
    let mut s = in_flight(accurate());
    let acks: Vec<bool> = (1..=6)
        .map(|n| {
            s.receive(segment(1).ack(1 + 988 + 1000 * (n - 1)).ace(5).marked().win(0));
            !s.transmits().is_empty()
        })
        .collect();
    assert_eq!(acks, [false, false, true, false, false, true]);
}

#[test]
fn a_zeroed_ace_field_ends_capable_data_and_the_response() {
    // §3.2.2.4.
    let mut s = in_flight(accurate());
    s.receive(segment(1).ack(989).ace(0));
    assert_eq!(marks(&s), 0);
    let said = s.transmits();
    assert!(said.starts_with("EA 9989:10989 ack 1"), "{said}");
    s.receive(segment(1).ack(1989).ace(3));
    assert_eq!((marks(&s), s.endpoint.stats().mark_reactions), (0, 0));
    s.receive(segment(1).ack(1989).data(10).ace(3).marked());
    s.transmits();
    assert_eq!(s.last.as_ref().unwrap().flags.ace(), 6, "feedback for the peer goes on");
}

#[test]
fn zeroed_options_are_ignored() {
    // §3.2.3.2.4: on the SYN-ACK. The ACE field is then read conservatively.
    let zeroed = AccEcnOption::new(AccEcnOrder::One, AccEcnCounters::default(), 3);
    let mut answer = syn_ack().ace(0b010);
    answer.options.acc_ecn = Some(zeroed);
    let mut s = client(accurate(), answer);
    s.transmits();
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s.receive(segment(1).ack(9989).ace(6).counted(9000, 988));
    assert_eq!(marks(&s), 9);
}

#[test]
fn erased_codepoints_end_capable_data() {
    // Appendix A.4: the peer sends options, but no byte arrives with a codepoint.
    let mut s = client(accurate(), syn_ack().ace(0b010).counted(0, 0));
    s.transmits();
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    let mut capable = Vec::new();
    for n in 1..=12 {
        s.receive(segment(1).ack(989 + 1000 * (n - 1)).ace(5));
        capable.push(s.transmits().starts_with("ECT"));
    }
    assert_eq!(capable.iter().filter(|&&capable| capable).count(), 10, "{capable:?}");
    assert!(!capable[11]);
}

#[test]
fn marked_bytes_without_marked_packets_end_capable_data() {
    // §3.2.3.2.5.
    let mut s = in_flight(accurate().with_sack());
    s.receive(segment(1).ack(989).ace(5).counted(0, 988));
    let said = s.transmits();
    assert!(said.starts_with("EA 9989:10989 ack 1"), "{said}");
}

#[test]
fn reno_and_cubic_respond_once_per_round_trip_and_never_send_cwr() {
    for (config, left) in [(accurate().with_sack(), 4994), (accurate().with_sack().with_cubic(), 6991)] {
        let mut s = in_flight(config);
        s.receive(segment(1).ack(989).ace(6));
        assert_eq!(s.endpoint.cwnd(), left);
        s.receive(segment(1).ack(1989).ace(7));
        s.receive(segment(1).ack(8989).ace(0));
        assert_eq!((s.endpoint.cwnd(), s.endpoint.stats().mark_reactions), (left, 1));
        let said = s.transmits();
        assert!(said.starts_with("ECT EA 9989:10989"), "the ACE field, not CWR (§3.1.5): {said}");
    }
}

#[test]
fn a_mark_on_the_handshake_reduces_the_initial_window() {
    // §3.2.2.2 for the client.
    let config = Config { initial_window: InitialWindow::Segments(10), ..accurate() };
    let mut s = client(config, syn_ack().ace(0b110));
    s.transmits();
    s.endpoint.send(s.now, Length(1 << 40)).unwrap();
    s.transmits();
    s.receive(segment(1).ack(989).ace(5));
    assert_eq!((marks(&s), s.endpoint.stats().mark_reactions), (1, 1));
}

#[test]
fn hostile_feedback_changes_counters_only() {
    let mut s = in_flight(accurate().with_sack());
    for n in 0..1000_u32 {
        let ace = (n % 8) as u8;
        let mut ack = segment(1)
            .ack(1 + i64::from(n % 12) * 900)
            .ace(ace)
            .counted(n.wrapping_mul(0x0012_3457), n << 13);
        ack.flags |= Flags::ACK;
        s.receive(ack);
        s.transmits();
        assert!(s.endpoint.cwnd() >= 1000);
    }
}
