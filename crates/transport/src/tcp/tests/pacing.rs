//! TCP-AP: when segments leave, and what a loss does to that.

use super::script::{Script, SegmentBuilder, mss_1000, plain, segment};
use crate::Signal;
use crate::pacing;
use crate::pacing::{DuplicateAcks, Pacing};
use crate::tcp::{Config, InitialWindow, OptionOffer, Timer, TimestampEcho};
use hopline_core::{Duration, Instant, Length, StateMachine};
use hopline_wire::tcp::{Options, Timestamps};

/// Segments of 988 bytes beside the timestamps; a spacing of 50 ms before the first sample.
fn config() -> Config {
    Config { limited_transmit: crate::tcp::LimitedTransmit::Off, ..plain() }
        .with_adaptive_pacing(pacing::Config::AUTHORS)
}

const WITHOUT_DUPLICATES: pacing::Config =
    pacing::Config { duplicate_acks: DuplicateAcks::Ignored, ..pacing::Config::AUTHORS };

/// Connected at 100 ms over a path of `hops`, with so many bytes to send.
fn sending(config: Config, hops: u8, bytes: u64) -> Script {
    let mut s = Script::new(config);
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    let ts = Some(Timestamps { value: 5000, echo: s.peer.iss.0 });
    s.now = Instant::from_millis(100);
    s.endpoint.handle_signal(s.now, Signal::PathLength { hops });
    s.receive(segment(0).syn().ack(1).options(Options { timestamps: ts, ..mss_1000() }));
    s.endpoint.send(s.now, Length(bytes)).unwrap();
    s
}

/// The peer acknowledges up to `ack` and echoes what was sent at `sent_ms`.
fn ack_of(s: &Script, ack: i64, sent_ms: u32) -> SegmentBuilder {
    segment(1).ack(ack).ts(5000 + (s.now.as_nanos() / 1_000_000) as u32, s.peer.iss.0.wrapping_add(sent_ms))
}

fn interval_us(s: &Script) -> u64 {
    s.endpoint.pacing().unwrap().interval().as_micros()
}

#[test]
fn without_pacing_there_is_no_state_and_no_timer() {
    let mut s = Script::sending(plain(), 5000);
    assert!(s.endpoint.pacing().is_none());
    s.endpoint.handle_signal(s.now, Signal::PathLength { hops: 4 });
    assert_eq!(s.transmits().matches(';').count(), 4, "five segments at once");
    assert_eq!(s.endpoint.poll_timeout().map(|(_, timer)| timer), Some(Timer::Retransmit));
}

#[test]
fn the_window_is_paced_segment_by_segment() {
    let mut s = sending(config(), 4, 3000);
    assert_eq!(
        s.run_until(400),
        "100: . 1:989 ack 1; 150: . 989:1977 ack 1; 200: . 1977:2965 ack 1; 250: . 2965:3001 ack 1; 400: . 1:989 ack 1"
    );
}

#[test]
fn the_window_still_limits() {
    let config = Config { initial_window: InitialWindow::Segments(2), ..config() };
    let mut s = sending(config, 4, 5000);
    assert_eq!(s.run_until(290), "100: . 1:989 ack 1; 150: . 989:1977 ack 1");
    // A round trip of 190 ms: more than the spacing has passed, and slow start opens for two.
    let ack = ack_of(&s, 989, 100);
    s.receive(ack);
    assert_eq!(s.transmits(), ". 1977:2965 ack 1");
    assert_eq!(s.endpoint.poll_timeout().map(|(_, timer)| timer), Some(Timer::PacingRelease));
}

#[test]
fn each_ack_gives_a_round_trip_and_the_spacing_follows() {
    let mut s = sending(config(), 4, 50_000);
    assert_eq!(interval_us(&s), 50_000, "the handshake is no sample");
    s.run_until(200);
    let ack = ack_of(&s, 989, 100);
    s.receive(ack);
    // 100 ms over 4 hops; s = (988 + 112)·8/2 = 4.4 ms, a = 0.448 ms: tq = ½·(25 − 4.848) = 10.076; 4·14.476
    assert_eq!(interval_us(&s), 57_904);
    s.run_until(260);
    let ack = ack_of(&s, 1977, 150);
    s.receive(ack);
    // 110 ms: tq 11.326, FHD 62.904, average 59.404; mean 60.404, deviation 2.5: 59.404·(1 + 5/60.404)
    assert_eq!(interval_us(&s), 64_321);
}

#[test]
fn a_round_trip_over_a_path_of_unknown_length_is_no_sample() {
    let mut s = sending(config(), 0, 50_000);
    s.run_until(200);
    let ack = ack_of(&s, 989, 100);
    s.receive(ack);
    assert_eq!(interval_us(&s), 50_000);
}

#[test]
fn the_third_duplicate_stops_pacing_and_the_lost_segment_leaves_at_once() {
    let mut s = sending(config(), 4, 50_000);
    s.run_until(260);
    for _ in 0..2 {
        let dup = ack_of(&s, 1, 100);
        s.receive(dup);
        assert_eq!(s.transmits(), "", "the next one is due at 300 ms");
    }
    let dup = ack_of(&s, 1, 100);
    s.receive(dup);
    assert_eq!(s.transmits(), ". 1:989 ack 1");
    assert_eq!(s.endpoint.stats().fast_retransmits, 1);
    // Half of the 4 in flight and 3 for the duplicates: the window has room for one more, and it waits.
    assert_eq!((s.endpoint.cwnd(), s.endpoint.flight_size()), (5 * 988, 4 * 988));
    assert_eq!(s.endpoint.poll_timeout().map(|(_, timer)| timer), Some(Timer::Retransmit));
}

#[test]
fn the_next_ack_resumes_pacing_with_a_segment_at_once() {
    let mut s = sending(config().with_adaptive_pacing(WITHOUT_DUPLICATES), 4, 50_000);
    s.run_until(260); // 4 in flight
    for _ in 0..3 {
        let dup = ack_of(&s, 1, 100);
        s.receive(dup);
    }
    assert_eq!(s.run_until(280), "260: . 1:989 ack 1");
    for _ in 0..2 {
        let dup = ack_of(&s, 1, 100);
        s.receive(dup);
    }
    assert_eq!(s.run_until(385), "280: . 3953:4941 ack 1; 330: . 4941:5929 ack 1; 380: . 5929:6917 ack 1");
}

#[test]
fn a_timeout_stops_pacing_and_does_not_back_off() {
    let mut s = sending(config(), 4, 50_000);
    let said = s.run_until(1100);
    // srtt 100, rttvar 50: RTO 300 ms. At 400 the first segment leaves at once, and again every 300 ms.
    assert!(said.ends_with("400: . 1:989 ack 1; 700: . 1:989 ack 1; 1000: . 1:989 ack 1"), "{said}");
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.backoff()), (3, 1));
    assert_eq!(s.endpoint.cwnd(), 988);
}

#[test]
fn back_off_is_a_parameter() {
    let mut config = config();
    config.rto.backoff_limit = None;
    let mut s = sending(config, 4, 50_000);
    let said = s.run_until(1100);
    assert!(said.ends_with("400: . 1:989 ack 1; 1000: . 1:989 ack 1"), "{said}");
    assert_eq!(s.endpoint.backoff(), 4);
}

#[test]
fn without_timestamps_rtt_samples_come_from_timed_segments() {
    let mut s = Script::connected(config());
    s.endpoint.handle_signal(s.now, Signal::PathLength { hops: 4 });
    s.endpoint.send(s.now, Length(50_000)).unwrap();
    s.run_until(200);
    s.receive(segment(1).ack(1001));
    // segments of 1000 bytes: s = 4.448, a = 0.448; tq = ½·(25 − 4.896) = 10.052; 4·14.5
    assert_eq!(interval_us(&s), 58_000);
    s.receive(segment(1).ack(2001));
    assert_eq!(interval_us(&s), 58_000, "one segment at a time");
}

#[test]
fn acknowledgments_are_not_paced() {
    let mut s = sending(config(), 4, 50_000);
    assert_eq!(s.transmits(), ". 1:989 ack 1");
    for n in 0..3 {
        s.receive(segment(1 + 10 * n).ack(1).data(10).ts(5100, 0));
        assert_eq!(s.transmits(), format!(". 989 ack {}", 11 + 10 * n));
    }
}

#[test]
fn a_close_waits_for_the_data_before_it() {
    let mut s = sending(config(), 4, 1500);
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.run_until(160), "100: . 1:989 ack 1; 150: F 989:1501 ack 1");
}

#[test]
fn pacing_without_timestamps_is_refused_and_so_are_its_own_parameters() {
    let config = Config { timestamps: OptionOffer::NotOffered, ..config() };
    assert_eq!(
        config.validate().unwrap_err().to_string(),
        "timestamps must be offered where pacing is adaptive: it takes a round trip from each ACK"
    );
    let pacing = pacing::Config { history: 0, ..pacing::Config::AUTHORS };
    let config = plain().with_adaptive_pacing(pacing);
    assert_eq!(config.validate().unwrap_err().field, "pacing.history");
    assert_eq!(config.pacing, Pacing::Adaptive(pacing));
}

#[test]
fn a_duplicate_ack_is_a_sample_by_default() {
    for (duplicate_acks, expected) in [(DuplicateAcks::Sampled, 57_904), (DuplicateAcks::Ignored, 50_000)] {
        let pacing = pacing::Config { duplicate_acks, ..pacing::Config::AUTHORS };
        let mut s = sending(config().with_adaptive_pacing(pacing), 4, 50_000);
        s.run_until(250);
        let dup = ack_of(&s, 1, 150);
        s.receive(dup);
        assert_eq!(interval_us(&s), expected, "{duplicate_acks:?}");
    }
}

#[test]
fn a_duplicate_that_echoes_the_last_segment_in_order_is_a_longer_round_trip() {
    let mut s = sending(config(), 4, 50_000);
    s.run_until(200);
    let ack = ack_of(&s, 989, 100);
    s.receive(ack);
    assert_eq!(interval_us(&s), 57_904, "a round trip of 100 ms");
    s.run_until(300);
    // The segment of 150 ms is lost, and that of 200 ms answered: the echo is still that of 100 ms.
    let dup = ack_of(&s, 989, 100);
    s.receive(dup);
    // 200 ms: tq 22.576, FHD 107.904, average 72.904; mean 82.904, deviation 25: 72.904·(1 + 50/82.904)
    assert_eq!(interval_us(&s), 116_872);
}

#[test]
fn a_delayed_ack_echoes_the_first_segment_or_the_last() {
    for (echo, expected) in [(TimestampEcho::Earliest, 5010), (TimestampEcho::Latest, 5060)] {
        let config = Config {
            ack_policy: crate::tcp::AckPolicy::Delayed { timer: Duration::from_millis(100) },
            timestamp_echo: echo,
            ..config()
        };
        let mut s = sending(config, 4, 0);
        s.transmits();
        s.receive(segment(1).ack(1).data(10).ts(5010, 0));
        assert_eq!(s.transmits(), "");
        s.receive(segment(11).ack(1).data(10).ts(5060, 0));
        assert_eq!(s.transmits(), ". 1 ack 21");
        assert_eq!(s.last.unwrap().options.timestamps.unwrap().echo, expected, "{echo:?}");
    }
}
