//! TCP with a feedback scheme, told anything at any time.

use crate::any_link;
use crate::tcp::transfer;
use hopline_core::{Duration, Instant, StateMachine};
use hopline_testkit::{Emulation, Recording, Side};
use hopline_transport::Signal;
use hopline_transport::tcp::{
    AtcpConfig, BusConfig, Config, CwndAfterFreeze, ElfnConfig, FixedRtoConfig, InFlightAfterFreeze,
    ProbeSchedule, RouteFeedback, RouteReturn, RtoAfterFreeze, TcpFConfig,
};
use proptest::prelude::*;

fn any_probing() -> impl Strategy<Value = ProbeSchedule> {
    prop_oneof![
        (100u64..5000).prop_map(|ms| ProbeSchedule::Every(Duration::from_millis(ms))),
        Just(ProbeSchedule::PersistTimer)
    ]
}

fn any_returns() -> impl Strategy<Value = RouteReturn> {
    prop_oneof![Just(RouteReturn::ByProbe), Just(RouteReturn::ByNotification)]
}

fn any_elfn() -> impl Strategy<Value = ElfnConfig> {
    let cwnd = prop_oneof![
        Just(CwndAfterFreeze::Restored),
        Just(CwndAfterFreeze::Initial),
        Just(CwndAfterFreeze::OneSegment)
    ];
    let rto = prop_oneof![Just(RtoAfterFreeze::Restored), Just(RtoAfterFreeze::Initial)];
    let in_flight = prop_oneof![
        Just(InFlightAfterFreeze::Retransmitted),
        Just(InFlightAfterFreeze::Queried),
        Just(InFlightAfterFreeze::Awaited)
    ];
    (any_probing(), any_returns(), cwnd, rto, in_flight).prop_map(
        |(probing, returns, cwnd, rto, in_flight)| {
            ElfnConfig::PAPER
                .with_probing(probing)
                .with_route_return(returns)
                .with_cwnd(cwnd)
                .with_rto(rto)
                .with_in_flight(in_flight)
        },
    )
}

fn any_feedback() -> impl Strategy<Value = RouteFeedback> {
    prop_oneof![
        (1u32..5).prop_map(|timeouts| RouteFeedback::FixedRto(FixedRtoConfig::PAPER.with_timeouts(timeouts))),
        (1u64..20_000).prop_map(|ms| {
            RouteFeedback::TcpF(TcpFConfig::PAPER.with_failure_timer(Duration::from_millis(ms)))
        }),
        any_elfn().prop_map(RouteFeedback::Elfn),
        (any_probing(), any_returns()).prop_map(|(probing, returns)| RouteFeedback::Atcp(
            AtcpConfig::PAPER.with_probing(probing).with_route_return(returns)
        )),
        any_probing().prop_map(|probing| RouteFeedback::Bus(BusConfig::PAPER.with_probing(probing))),
    ]
}

fn any_config() -> impl Strategy<Value = Config> {
    let base = prop_oneof![
        Just(Config::modern()),
        Just(Config::modern().with_newreno()),
        Just(Config::modern().with_reno()),
        Just(Config::ns2_235().with_sack()),
        Just(Config::ns2_2001()),
    ];
    (base, any_feedback(), 200u32..1461).prop_map(|(base, feedback, mss)| {
        let config = base
            .with_feedback(feedback)
            .with_mss(mss)
            .with_send_buffer(Some(30_000))
            .with_syn_retries(None)
            .with_data_retries(None)
            .with_time_wait(Duration::from_secs(240));
        config.with_rto(config.rto().with_max(Duration::from_secs(10)))
    })
}

/// Generates signals: milliseconds since the one before, the receiving end, and the signal.
fn any_signals() -> impl Strategy<Value = Vec<(u64, Side, Signal)>> {
    let side = prop_oneof![Just(Side::A), Just(Side::B)];
    let signal = prop_oneof![Just(Signal::RouteLost), Just(Signal::RouteFound)];
    proptest::collection::vec((0u64..3000, side, signal), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever it is told, and whether or not that is true; after each step there is a timer while data is in flight.
    #[test]
    fn every_byte_arrives_once_and_in_order(
        a in any_config(), b in any_config(), link in any_link(), seed in any::<u64>(), words in any_signals(),
        there in 0u64..40_000, back in prop_oneof![Just(0u64), 0u64..20_000],
    ) {
        let mut t = transfer([a, b], [7, 9], [there, back], &link, seed);
        let mut at = Instant::ZERO;
        for (ms, side, signal) in words {
            at += Duration::from_millis(ms);
            t.run(at);
            t.pair.side(side).handle_signal(at, signal);
            t.run_users();
        }
        t.run(Instant::from_secs(100_000));
        t.assert_complete();
    }
}

/// A link that is dead from 0.3 to 15 s; both ends know at once of both.
fn over_an_outage(feedback: RouteFeedback) -> (hopline_transport::tcp::Stats, String) {
    let config = Config::ns2_235().with_sack().with_feedback(feedback);
    let link = Emulation::delay(Duration::from_millis(20))
        .with_rate(Some(1_000_000))
        .with_blackouts(vec![(Instant::from_millis(300), Instant::from_secs(15))]);
    let mut t = transfer([config; 2], [7, 9], [300_000, 0], &link, 3);
    t.pair.record(Recording::On);
    for (at, signal) in [(300, Signal::RouteLost), (15_000, Signal::RouteFound)] {
        t.run(Instant::from_millis(at));
        for side in [Side::A, Side::B] {
            t.pair.side(side).handle_signal(Instant::from_millis(at), signal);
        }
        t.run_users();
    }
    t.run(Instant::from_secs(1000));
    t.assert_complete();
    (*t.pair.a.stats(), t.pair.dialogue())
}

#[test]
fn notified_senders_have_no_timeout_in_an_outage() {
    let plain = over_an_outage(RouteFeedback::None).0;
    assert!(plain.timeouts >= 5, "{plain:?}");
    for feedback in [
        RouteFeedback::TcpF(TcpFConfig::PAPER.with_failure_timer(Duration::from_secs(60))),
        RouteFeedback::Elfn(ElfnConfig::PAPER),
        RouteFeedback::Bus(BusConfig::PAPER),
    ] {
        let (told, dialogue) = over_an_outage(feedback);
        assert_eq!(told.feedback.freezes, 1, "{feedback:?}");
        assert!(told.timeouts <= 1, "{feedback:?}: {told:?}");
        assert!(told.feedback.frozen >= Duration::from_millis(14_700), "{told:?}");
        assert_eq!(over_an_outage(feedback).1, dialogue, "the same again");
    }
}
