//! RFC 7323: round-trip measurement and PAWS.

use super::script::{Script, mss_1000, plain, segment};
use crate::tcp::{AckPolicy, Config, DropReason, OptionOffer, State};
use hopline_core::{Duration, Length};
use hopline_wire::tcp::{Options, Timestamps};

/// Connected with timestamps; the peer's clock stood at 5000 in the SYN. The endpoint's stands at `iss` plus ms.
fn with_timestamps() -> Script {
    with_timestamps_and_config(plain())
}

/// Dialogue of `config`.
fn with_timestamps_and_config(config: Config) -> Script {
    let mut s = Script::new(Config { timestamps: OptionOffer::Offered, ..config });
    s.endpoint.connect(s.now).unwrap();
    s.transmits();
    let ts = Some(Timestamps { value: 5000, echo: s.peer.iss.0 });
    s.now = hopline_core::Instant::from_millis(100);
    s.receive(segment(0).syn().ack(1).options(Options { timestamps: ts, ..mss_1000() }));
    s.transmits();
    assert_eq!(s.state(), State::Established);
    s
}

#[test]
fn every_segment_echoes_the_latest_timestamp() {
    let mut s = with_timestamps();
    assert_eq!(s.last.unwrap().options.timestamps.unwrap().echo, 5000);
    s.receive(segment(1).ack(1).data(10).ts(5100, 0));
    s.transmits();
    let ts = s.last.unwrap().options.timestamps.unwrap();
    assert_eq!(ts.echo, 5100);
    assert_eq!(ts.value, s.peer.iss.0.wrapping_add(100));
}

#[test]
fn a_segment_beyond_a_gap_does_not_change_the_echo() {
    // RFC 7323 §4.3: the echo measures what was acknowledged last.
    let mut s = with_timestamps();
    s.receive(segment(1001).ack(1).data(10).ts(5100, 0));
    s.transmits();
    assert_eq!(s.last.unwrap().options.timestamps.unwrap().echo, 5000);
}

#[test]
fn repeated_data_change_the_echo_so_that_lost_acks_do_not_count_as_a_round_trip() {
    let mut s = with_timestamps();
    s.receive(segment(1).ack(1).data(1000).ts(5100, 0));
    s.receive(segment(1001).ack(1).data(1000).ts(5100, 0));
    s.transmits();
    s.receive(segment(1).ack(1).data(1000).ts(68_100, 0));
    assert_eq!(s.transmits(), ". 1 ack 2001");
    assert_eq!(s.last.unwrap().options.timestamps.unwrap().echo, 68_100);
}

#[test]
fn forged_repeats_do_not_change_the_echo() {
    let mut s = with_timestamps();
    s.receive(segment(1).ack(1).data(1000).ts(5100, 0));
    s.transmits();
    let window = i64::from(s.endpoint.config().receive_buffer);
    for (position, ack) in [(1000 - window, 1), (1, 2), (1, -1_000_000)] {
        s.receive(segment(position).ack(ack).data(10).ts(1_000_000, 0));
        s.transmits();
        assert_eq!(s.last.unwrap().options.timestamps.unwrap().echo, 5100, "{position} {ack}");
    }
}

#[test]
fn an_old_timestamp_is_dropped_and_answered() {
    let mut s = with_timestamps();
    s.receive(segment(1).ack(1).data(10).ts(5100, 0));
    s.transmits();
    s.receive(segment(11).ack(1).data(10).ts(5099, 0));
    assert_eq!(s.transmits(), ". 1 ack 11");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::OldTimestamp), 1);
    assert_eq!(s.read_all(), 10);
}

#[test]
fn paws_survives_wrap_around_of_the_clock() {
    let mut s = with_timestamps();
    for value in [0x7000_0000u32, 0xe000_0000, 0x1000_0000] {
        let at = i64::from(s.endpoint.stats().bytes_received as u32) + 1;
        s.receive(segment(at).ack(1).data(10).ts(value, 0));
        s.transmits();
    }
    assert_eq!(s.read_all(), 30);
}

#[test]
fn after_24_idle_days_any_timestamp_is_accepted() {
    let mut s = with_timestamps();
    s.receive_at(25 * 24 * 3600 * 1000, segment(1).ack(1).data(10).ts(1, 0));
    assert_eq!(s.read_all(), 10);
}

#[test]
fn a_segment_without_the_agreed_timestamp_is_dropped_but_a_reset_is_not() {
    let mut s = with_timestamps();
    s.receive(segment(1).ack(1).data(10));
    assert_eq!(s.transmits(), "");
    assert_eq!(s.endpoint.stats().drops.count(DropReason::NoTimestamp), 1);
    s.receive(segment(1).rst());
    assert_eq!(s.state(), State::Closed);
}

#[test]
fn the_echo_measures_the_round_trip_even_of_a_retransmission() {
    let mut s = with_timestamps();
    s.endpoint.send(s.now, Length(100)).unwrap();
    assert_eq!(s.run_until(450), "100: . 1:101 ack 1; 400: . 1:101 ack 1");
    assert_eq!(s.endpoint.backoff(), 2);
    let echo = s.peer.iss.0.wrapping_add(400);
    s.receive_at(460, segment(1).ack(101).ts(5400, echo));
    // srtt 100 → 7/8·100 + 60/8 = 95; rttvar 50 → 3/4·50 + 40/4 = 47.5; 95 + 190 = 285
    assert_eq!(s.endpoint.srtt(), Some(Duration::from_millis(95)));
    assert_eq!(s.endpoint.rto(), Duration::from_millis(285));
    assert_eq!(s.endpoint.backoff(), 1);
}

#[test]
fn an_echo_from_the_future_is_ignored() {
    let mut s = with_timestamps();
    s.endpoint.send(s.now, Length(100)).unwrap();
    s.transmits();
    let echo = s.peer.iss.0.wrapping_add(5000);
    s.receive_at(200, segment(1).ack(101).ts(5400, echo));
    assert_eq!(s.endpoint.srtt(), Some(Duration::from_millis(100)));
}

/// Timestamp that the ACK echoes which answers the `events`: position of a segment of 1000 bytes, and its timestamp.
fn echo_after(preset: Config, events: &[(i64, u32)]) -> Option<u32> {
    let timer = Duration::from_millis(100);
    let mut s = with_timestamps_and_config(Config { ack_policy: AckPolicy::Delayed { timer }, ..preset });
    let mut said = String::new();
    for &(position, value) in events {
        said.clear();
        s.receive(segment(position).ack(1).data(1000).ts(value, 0));
        said = s.transmits();
    }
    (!said.is_empty()).then(|| s.last.unwrap().options.timestamps.unwrap().echo)
}

/// `update_ts` of ns-2's `tcp-sink.cc`: a segment counts up to `last_ack_sent_ + 1`, in segments.
#[test]
fn an_ns2_sink_echoes_the_segment_after_the_last_ack() {
    for preset in [Config::ns2_235(), Config::ns2_2006()] {
        let delayed = &[(1, 5010), (1001, 5060)];
        assert_eq!(echo_after(preset, &delayed[..1]), None, "the first of two waits");
        assert_eq!(echo_after(preset, delayed), Some(5010));
        // The third is the first of the next two.
        assert_eq!(echo_after(preset, &[(1, 5010), (1001, 5060), (2001, 5110), (3001, 5160)]), Some(5110));
        // Beyond a gap: duplicate ACKs echo what they echoed before.
        assert_eq!(echo_after(preset, &[(1, 5010), (1001, 5060), (3001, 5110)]), Some(5010));
        assert_eq!(echo_after(preset, &[(1, 5010), (1001, 5060), (3001, 5110), (4001, 5160)]), Some(5010));
        // What fills the gap is acknowledged at once, and counts.
        assert_eq!(echo_after(preset, &[(1, 5010), (1001, 5060), (3001, 5110), (2001, 5300)]), Some(5300));
        // Repeated data count.
        assert_eq!(echo_after(preset, &[(1, 5010), (1001, 5060), (1, 5400)]), Some(5400));
    }
}

#[test]
fn an_ns2_1b7_sink_echoes_the_latest_segment() {
    let preset = Config::ns2_2001();
    assert_eq!(echo_after(preset, &[(1, 5010), (1001, 5060)]), Some(5060));
    assert_eq!(echo_after(preset, &[(1, 5010), (1001, 5060), (3001, 5110)]), Some(5110));
}
