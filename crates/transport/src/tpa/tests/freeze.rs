//! TPA §3.3: route failures, with notifications, with notifications of both kinds, and by silence alone.

use super::script::{Script, ack, plain};
use crate::Signal;
use crate::tpa::{CloseReason, Config, Event, FreezeExit, Notification, PathState};
use hopline_core::{Instant, StateMachine};

fn sending(notification: Notification, change: impl FnOnce(&mut Config)) -> Script {
    let mut config = plain();
    config.failures.notification = notification;
    change(&mut config);
    let mut s = Script::sending(config, 4000);
    assert_eq!(s.transmits(), "0:0 (1000) tx 0; 0:1 (1000) tx 1; 0:2 (1000) tx 2");
    s
}

fn send_signal(s: &mut Script, signal: Signal) {
    s.endpoint.handle_signal(s.now, signal);
}

#[test]
fn with_elfn_the_sender_probes_with_one_segment_at_doubling_intervals() {
    let mut s = sending(Notification::Elfn, |_| {});
    send_signal(&mut s, Signal::RouteLost);
    assert_eq!((s.path(), s.endpoint.cwnd()), (PathState::Frozen, 1));
    assert_eq!(
        s.run_until(3000),
        "400: 0:3. (1000) tx 3 !; 700: 0:0 (1000) tx 4 !; 1300: 0:1 (1000) tx 5 !; 2500: 0:2 (1000) tx 6 !",
        "main stream first, then the retransmission stream; the first three left before the route was lost"
    );
    assert_eq!(
        (s.endpoint.backoff(), s.endpoint.stats().freezes, s.endpoint.stats().congested_periods),
        (8, 1, 0)
    );
}

#[test]
fn the_ack_of_the_latest_segment_ends_the_freeze() {
    let mut s = sending(Notification::Elfn, |_| {});
    send_signal(&mut s, Signal::RouteLost);
    s.run_until(800);
    assert_eq!(s.exchange(ack(0, &[3], 3)), "", "B5: of an earlier transmission");
    assert_eq!((s.path(), s.endpoint.backoff()), (PathState::Frozen, 2));
    assert_eq!(s.exchange(ack(0, &[0, 3], 4)), "0:1 (1000) tx 5; 0:2 (1000) tx 6");
    assert_eq!((s.path(), s.endpoint.cwnd(), s.endpoint.backoff()), (PathState::Normal, 3, 1));
    assert_eq!(s.endpoint.stats().route_changes, 1);
}

#[test]
fn any_new_ack_may_end_the_freeze() {
    let mut s = sending(Notification::Elfn, |c| c.failures.freeze_exit = FreezeExit::AnyNewAck);
    send_signal(&mut s, Signal::RouteLost);
    s.run_until(800);
    assert_eq!(s.exchange(ack(0, &[3], 3)), "0:1 (1000) tx 5; 0:2 (1000) tx 6");
    assert_eq!(s.path(), PathState::Normal);
}

#[test]
fn an_ack_without_new_data_does_not_end_the_freeze() {
    let mut s = sending(Notification::Elfn, |_| {});
    s.receive(ack(0, &[0], 0));
    s.transmits();
    send_signal(&mut s, Signal::RouteLost);
    assert_eq!(s.exchange(ack(0, &[0], 3)), "");
    assert_eq!(s.path(), PathState::Frozen);
}

#[test]
fn with_recovery_notifications_the_sender_is_silent() {
    let mut s = sending(Notification::ElfnAndRecovery, |_| {});
    send_signal(&mut s, Signal::RouteLost);
    assert_eq!(s.run_until(60_000), "");
    send_signal(&mut s, Signal::RouteFound);
    assert_eq!(s.transmits(), "0:3. (1000) tx 3; 0:0 (1000) tx 4; 0:1 (1000) tx 5");
    assert_eq!((s.path(), s.endpoint.backoff(), s.endpoint.stats().route_changes), (PathState::Normal, 1, 1));
}

#[test]
fn the_silence_limit_ends_a_frozen_connection() {
    let mut s = sending(Notification::ElfnAndRecovery, |_| {});
    send_signal(&mut s, Signal::RouteLost);
    assert_eq!(s.run_until(200_000), "");
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn timeouts_freeze_without_a_notification() {
    let mut s = sending(Notification::Elfn, |c| c.failures.th_route = Some(4));
    assert_eq!(s.run_until(400), "400: 0:3. (1000) tx 3 !");
    assert_eq!(s.path(), PathState::Congested);
    assert_eq!(s.run_until(1300), "700: 0:0 (1000) tx 4 !; 1000: 0:1 (1000) tx 5 !");
    assert_eq!((s.path(), s.endpoint.stats().freezes), (PathState::Frozen, 1));
    assert_eq!(s.run_until(1700), "1600: 0:2 (1000) tx 6 !", "and doubles from there on");
}

#[test]
fn a_sender_frozen_by_timeouts_does_not_wait_for_a_notification() {
    let mut s = sending(Notification::ElfnAndRecovery, |c| c.failures.th_route = Some(3));
    assert_eq!(s.run_until(800), "400: 0:3. (1000) tx 3 !; 700: 0:0 (1000) tx 4 !");
    assert_eq!((s.path(), s.endpoint.cwnd()), (PathState::Frozen, 1));
    // Now the network layer knows too.
    send_signal(&mut s, Signal::RouteLost);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.stats().freezes), (0, 1));
    assert_eq!(s.run_until(60_000), "");
    send_signal(&mut s, Signal::RouteFound);
    assert_eq!(s.transmits().split("; ").count(), 3);
}

#[test]
fn without_notifications_signals_are_ignored() {
    let mut s = sending(Notification::None, |_| {});
    let before = s.snapshot();
    send_signal(&mut s, Signal::RouteLost);
    send_signal(&mut s, Signal::RouteFound);
    send_signal(&mut s, Signal::PathLength { hops: 3 });
    assert_eq!(s.snapshot(), before);
}

#[test]
fn a_route_failure_while_idle_does_not_freeze() {
    let mut config = plain();
    config.failures.notification = Notification::Elfn;
    let mut s = Script::connected(config);
    send_signal(&mut s, Signal::RouteLost);
    assert_eq!((s.path(), s.endpoint.cwnd()), (PathState::Normal, 3));
    send_signal(&mut s, Signal::RouteFound);
    assert_eq!(s.path(), PathState::Normal);
}

#[test]
fn signals_are_harmless_in_every_other_state() {
    for signal in [Signal::RouteLost, Signal::RouteFound] {
        let mut s = Script::new(plain());
        send_signal(&mut s, signal);
        s.endpoint.listen().unwrap();
        send_signal(&mut s, signal);
        s.endpoint.abort(Instant::ZERO);
        send_signal(&mut s, signal);
        assert_eq!((s.run_until(1000), s.path()), (String::new(), PathState::Normal));
    }
}
