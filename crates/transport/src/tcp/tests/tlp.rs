//! RFC 8985 §7: the tail of a flight is probed before the retransmission timer expires.

use super::script::{Script, mss_1000_sack, plain, segment};
use crate::tcp::{Config, LossDetection, RackConfig, RecoveryPhase, TailProbe, Timer};
use hopline_core::{Instant, Length, StateMachine};

fn rack() -> Config {
    plain().with_rack()
}

/// Sends `bytes` bytes at 100 ms. The round trip is 100 ms, and the retransmission timer expires at 400 ms.
fn sending(config: Config, bytes: u64) -> Script {
    let mut s = Script::connected_with(config, mss_1000_sack());
    s.endpoint.send(s.now, Length(bytes)).unwrap();
    s.transmits();
    s
}

#[test]
fn a_lost_tail_is_recovered_by_a_probe_and_rack() {
    // RFC 8985 §3.4.
    let mut s = sending(rack(), 4000);
    s.receive_at(200, segment(1).ack(1001));
    assert_eq!(s.run_until(450), "400: . 3001:4001 ack 1", "two round trips after the last ACK");
    s.receive_at(500, segment(1).ack(1001).sack(3001, 4001));
    // Half of three segments, but two at least.
    assert_eq!(s.transmits(), ". 1001:2001 ack 1; . 2001:3001 ack 1");
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Recovery);
    s.receive_at(600, segment(1).ack(4001));
    assert_eq!(s.run_until(5000), "");
    let stats = s.endpoint.stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.retransmissions), (1, 0, 3));
}

#[test]
fn the_probe_sends_new_data_even_beyond_cwnd() {
    let mut config = rack();
    config.initial_window = crate::tcp::InitialWindow::Segments(2);
    let mut s = sending(config, 10_000);
    assert_eq!(s.run_until(350), "300: . 2001:3001 ack 1");
    // RFC 8985 §7.3: the retransmission timer starts again.
    assert_eq!(s.endpoint.poll_timeout(), Some((Instant::from_millis(600), Timer::Retransmit)));
    s.receive_at(400, segment(1).ack(3001));
    assert_eq!(s.endpoint.stats().tail_losses, 0);
    assert_eq!(s.endpoint.stats().retransmissions, 0);
}

#[test]
fn the_probe_timeout_includes_the_max_ack_delay() {
    // RFC 8985 §7.2; 2·100 + 50 ms.
    let mut config = rack();
    let delay = hopline_core::Duration::from_millis(50);
    config.loss_detection = LossDetection::Rack(RackConfig {
        tail_probe: TailProbe::On { max_ack_delay: delay },
        ..RackConfig::RFC8985
    });
    let s = sending(config, 1000);
    assert_eq!(s.endpoint.poll_timeout(), Some((Instant::from_millis(350), Timer::TailProbe)));
}

#[test]
fn the_probe_timeout_is_at_most_the_rto() {
    let mut s = sending(rack(), 1000);
    assert_eq!(s.endpoint.poll_timeout(), Some((Instant::from_millis(400), Timer::TailProbe)));
    assert_eq!(s.run_until(450), "400: . 1:1001 ack 1");
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.cwnd()), (0, 10_000));
    assert_eq!(s.run_until(750), "700: . 1:1001 ack 1", "one probe, then the timer");
    assert_eq!((s.endpoint.stats().timeouts, s.endpoint.phase()), (1, RecoveryPhase::Loss));
}

#[test]
fn a_loss_repaired_by_the_probe_halves_the_window() {
    // RFC 8985 §7.4.2: the ACK beyond the probe without a report of a duplicate.
    let mut s = sending(rack(), 8000);
    s.receive_at(200, segment(1).ack(7001));
    assert_eq!(
        s.run_until(500),
        "450: . 7001:8001 ack 1",
        "at the retransmission timer, 250 ms after the ACK"
    );
    s.receive_at(550, segment(1).ack(8001));
    assert_eq!(s.endpoint.stats().tail_losses, 0, "the original may have arrived");
    s.endpoint.send(s.now, Length(1000)).unwrap();
    s.transmits();
    s.receive_at(650, segment(1).ack(9001));
    assert_eq!(s.endpoint.stats().tail_losses, 1);
    assert_eq!((s.endpoint.ssthresh(), s.endpoint.cwnd()), (2000, 2000), "half of one segment, two at least");
    assert_eq!(s.endpoint.phase(), RecoveryPhase::Open);
}

#[test]
fn a_dsack_shows_that_the_probe_was_unnecessary() {
    // RFC 8985 §7.4.2, case 1.
    let mut s = sending(rack(), 2000);
    assert_eq!(s.run_until(320), "300: . 1001:2001 ack 1");
    s.receive_at(330, segment(1).ack(2001));
    s.receive_at(400, segment(1).ack(2001).sack(1001, 2001));
    s.endpoint.send(s.now, Length(1000)).unwrap();
    s.transmits();
    s.receive_at(500, segment(1).ack(3001));
    assert_eq!(s.endpoint.stats().tail_losses, 0);
}

#[test]
fn a_bare_duplicate_ack_shows_that_the_probe_was_unnecessary() {
    // RFC 8985 §7.4.2, case 2.
    let mut s = sending(rack(), 2000);
    s.run_until(320);
    s.receive_at(330, segment(1).ack(2001));
    s.receive_at(400, segment(1).ack(2001));
    s.endpoint.send(s.now, Length(1000)).unwrap();
    s.transmits();
    s.receive_at(500, segment(1).ack(3001));
    assert_eq!(s.endpoint.stats().tail_losses, 0);
}

#[test]
fn no_probe_is_sent_with_sacked_data_or_in_recovery() {
    // RFC 8985 §7.2.
    let mut s = sending(rack(), 5000);
    s.receive_at(200, segment(1).ack(1001).sack(2001, 3001));
    assert_eq!(s.endpoint.poll_timeout(), Some((Instant::from_millis(225), Timer::Reordering)));
    assert_eq!(s.run_until(230), "225: . 1001:2001 ack 1");
    let (_, timer) = s.endpoint.poll_timeout().unwrap();
    assert_eq!(timer, Timer::Retransmit);
}

#[test]
fn a_fin_alone_is_probed_too() {
    let mut s = sending(rack(), 1000);
    s.receive_at(200, segment(1).ack(1001));
    s.endpoint.close(s.now).unwrap();
    assert_eq!(s.transmits(), "F 1001 ack 1");
    assert_eq!(s.run_until(460), "450: F 1001 ack 1");
    assert_eq!(s.endpoint.stats().timeouts, 0);
}

#[test]
fn without_probes_the_tail_waits_for_the_timer() {
    let mut config = rack();
    config.loss_detection =
        LossDetection::Rack(RackConfig { tail_probe: TailProbe::Off, ..RackConfig::RFC8985 });
    let mut s = sending(config, 2000);
    assert_eq!(s.run_until(450), "400: . 1:1001 ack 1");
    assert_eq!(s.endpoint.stats().timeouts, 1);
}
