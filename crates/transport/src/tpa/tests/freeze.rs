//! TPA §3.3: route failures, with notifications, with notifications of both kinds, and by silence alone.

use super::script::{Script, ack, plain};
use crate::Signal;
use crate::tpa::{CloseReason, Config, Event, FreezeExit, Notification, Path};
use hopline_core::{Instant, Machine};

fn sending(notification: Notification, change: impl FnOnce(&mut Config)) -> Script {
    let mut config = plain();
    config.failures.notification = notification;
    change(&mut config);
    let mut s = Script::sending(config, 4000);
    assert_eq!(s.says(), "0:0 (1000) tx 0; 0:1 (1000) tx 1; 0:2 (1000) tx 2");
    s
}

fn told(s: &mut Script, signal: Signal) {
    s.endpoint.handle_signal(s.now, signal);
}

#[test]
fn with_elfn_the_sender_probes_with_one_segment_at_doubling_intervals() {
    let mut s = sending(Notification::Elfn, |_| {});
    told(&mut s, Signal::RouteLost);
    assert_eq!((s.path(), s.endpoint.cwnd()), (Path::Frozen, 1));
    assert_eq!(
        s.runs_to(3000),
        "400: 0:3. (1000) tx 3 !; 700: 0:0 (1000) tx 4 !; 1300: 0:1 (1000) tx 5 !; 2500: 0:2 (1000) tx 6 !",
        "main stream first, then the retransmission stream; the first three left before the route was lost"
    );
    assert_eq!((s.endpoint.backoff(), s.endpoint.stats().freezes, s.endpoint.stats().congestions), (8, 1, 0));
}

#[test]
fn the_ack_of_the_latest_segment_ends_the_freeze() {
    let mut s = sending(Notification::Elfn, |_| {});
    told(&mut s, Signal::RouteLost);
    s.runs_to(800);
    assert_eq!(s.answers(ack(0, &[3], 3)), "", "B5: of an earlier transmission");
    assert_eq!((s.path(), s.endpoint.backoff()), (Path::Frozen, 2));
    assert_eq!(s.answers(ack(0, &[0, 3], 4)), "0:1 (1000) tx 5; 0:2 (1000) tx 6");
    assert_eq!((s.path(), s.endpoint.cwnd(), s.endpoint.backoff()), (Path::Normal, 3, 1));
    assert_eq!(s.endpoint.stats().route_changes, 1);
}

#[test]
fn any_news_may_end_the_freeze() {
    let mut s = sending(Notification::Elfn, |c| c.failures.freeze_exit = FreezeExit::AnyNews);
    told(&mut s, Signal::RouteLost);
    s.runs_to(800);
    assert_eq!(s.answers(ack(0, &[3], 3)), "0:1 (1000) tx 5; 0:2 (1000) tx 6");
    assert_eq!(s.path(), Path::Normal);
}

#[test]
fn an_ack_without_news_ends_nothing() {
    let mut s = sending(Notification::Elfn, |_| {});
    s.hears(ack(0, &[0], 0));
    s.says();
    told(&mut s, Signal::RouteLost);
    assert_eq!(s.answers(ack(0, &[0], 3)), "");
    assert_eq!(s.path(), Path::Frozen);
}

#[test]
fn with_recovery_messages_the_sender_waits_in_silence() {
    let mut s = sending(Notification::ElfnAndRecovery, |_| {});
    told(&mut s, Signal::RouteLost);
    assert_eq!(s.runs_to(60_000), "");
    told(&mut s, Signal::RouteFound);
    assert_eq!(s.says(), "0:3. (1000) tx 3; 0:0 (1000) tx 4; 0:1 (1000) tx 5");
    assert_eq!((s.path(), s.endpoint.backoff(), s.endpoint.stats().route_changes), (Path::Normal, 1, 1));
}

#[test]
fn silence_without_end_is_ended_by_the_silence_limit() {
    let mut s = sending(Notification::ElfnAndRecovery, |_| {});
    told(&mut s, Signal::RouteLost);
    assert_eq!(s.runs_to(200_000), "");
    assert_eq!(s.events(), [Event::Closed(CloseReason::TimedOut)]);
}

#[test]
fn timeouts_freeze_where_no_notification_came() {
    let mut s = sending(Notification::Elfn, |c| c.failures.th_route = Some(4));
    assert_eq!(s.runs_to(400), "400: 0:3. (1000) tx 3 !");
    assert_eq!(s.path(), Path::Congested);
    assert_eq!(s.runs_to(1300), "700: 0:0 (1000) tx 4 !; 1000: 0:1 (1000) tx 5 !");
    assert_eq!((s.path(), s.endpoint.stats().freezes), (Path::Frozen, 1));
    assert_eq!(s.runs_to(1700), "1600: 0:2 (1000) tx 6 !", "and doubles from there on");
}

#[test]
fn whoever_froze_by_timeouts_waits_for_no_message_that_nobody_will_send() {
    let mut s = sending(Notification::ElfnAndRecovery, |c| c.failures.th_route = Some(3));
    assert_eq!(s.runs_to(800), "400: 0:3. (1000) tx 3 !; 700: 0:0 (1000) tx 4 !");
    assert_eq!((s.path(), s.endpoint.cwnd()), (Path::Frozen, 1));
    // Now the network layer knows too.
    told(&mut s, Signal::RouteLost);
    assert_eq!((s.endpoint.cwnd(), s.endpoint.stats().freezes), (0, 1));
    assert_eq!(s.runs_to(60_000), "");
    told(&mut s, Signal::RouteFound);
    assert_eq!(s.says().split("; ").count(), 3);
}

#[test]
fn without_notifications_signals_mean_nothing() {
    let mut s = sending(Notification::None, |_| {});
    let before = s.snapshot();
    told(&mut s, Signal::RouteLost);
    told(&mut s, Signal::RouteFound);
    told(&mut s, Signal::PathLength { hops: 3 });
    assert_eq!(s.snapshot(), before);
}

#[test]
fn a_route_lost_while_nothing_is_sent_is_no_failure() {
    let mut config = plain();
    config.failures.notification = Notification::Elfn;
    let mut s = Script::connected(config);
    told(&mut s, Signal::RouteLost);
    assert_eq!((s.path(), s.endpoint.cwnd()), (Path::Normal, 3));
    told(&mut s, Signal::RouteFound);
    assert_eq!(s.path(), Path::Normal);
}

#[test]
fn signals_are_harmless_in_every_other_state() {
    for signal in [Signal::RouteLost, Signal::RouteFound] {
        let mut s = Script::new(plain());
        told(&mut s, signal);
        s.endpoint.listen().unwrap();
        told(&mut s, signal);
        s.endpoint.abort(Instant::ZERO);
        told(&mut s, signal);
        assert_eq!((s.runs_to(1000), s.path()), (String::new(), Path::Normal));
    }
}
