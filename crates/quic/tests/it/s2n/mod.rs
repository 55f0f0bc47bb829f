//! Controllers of s2n-quic, and what they are told.

mod metronome;
mod recorder;

use crate::support::{OUTAGE, WIRED, scenario, spec, transfer};
use hopline_core::{Duration, Instant};
use hopline_lab::evaluation::{Law, Selection, Verdict, open};
use hopline_lab::experiment::RunOptions;
use hopline_lab::plan::Effort;
use hopline_lab::run::NoObserver;
use hopline_link::Emulation;
use hopline_quic::Controllers;
use hopline_quic::s2n_quic_core::recovery::congestion_controller::Endpoint;
use hopline_quic::s2n_quic_core::recovery::{bbr, cubic};
use hopline_scenario::CustomAlgorithms;
use hopline_sim::simulate;
use hopline_transport::quic::{Config, CongestionControl};
use metronome::Metronomes;
use recorder::{Call, Log, Recorders, recorded};

fn sum(calls: &[Call], of: impl Fn(&Call) -> Option<u64>) -> u64 {
    calls.iter().filter_map(of).sum()
}

/// Losses in both directions.
const LOSSY: [&str; 3] = ["link.0.errors.model=packet", "link.0.errors.packet_loss=0.02", "duration_s=4"];

#[test]
fn controllers_of_s2n_quic_fill_the_link() {
    for algorithm in ["s2n-cubic", "s2n-bbr"] {
        let outcome = simulate(&spec(&[&format!("quic.congestion_control={algorithm}"), "warmup_s=1"]), 1);
        let mbps = outcome.flows[0].goodput_bps() * 1e-6;
        assert!((8.5..=10.0).contains(&mbps), "{algorithm}: {mbps} Mb/s");
    }
}

#[test]
fn their_fingerprints_repeat_and_depend_on_the_run() {
    for algorithm in ["s2n-cubic", "s2n-bbr"] {
        let spec = spec(&[&[&*format!("quic.congestion_control={algorithm}")], &LOSSY[..]].concat());
        let first = simulate(&spec, 1).fingerprint;
        let again = std::thread::scope(|scope| {
            scope.spawn(|| simulate(&spec, 1).fingerprint).join().expect("it does not panic")
        });
        assert_eq!(first, again, "{algorithm}");
        assert_ne!(first, simulate(&spec, 2).fingerprint, "{algorithm}");
    }
}

/// The fingerprints of an earlier process.
#[test]
fn their_fingerprints_are_those_of_earlier_processes() {
    let fingerprints = ["s2n-cubic", "s2n-bbr"].map(|algorithm| {
        let spec = spec(&[&[&*format!("quic.congestion_control={algorithm}")], &LOSSY[..]].concat());
        format!("{:016x}", simulate(&spec, 1).fingerprint)
    });
    assert_eq!(fingerprints, PINNED);
}

/// They hold for the versions of quinn-proto and s2n-quic-core in Cargo.lock.
const PINNED: [&str; 2] = ["26e12eb5084edf8d", "d2302b4bedcfa584"];

#[test]
fn random_numbers_are_those_of_the_run() {
    let drawn = || {
        let (_, [source, _]) = recorded(WIRED, &["duration_s=1"], cubic::Endpoint::default);
        let random = |call: &Call| if let Call::Ack { random, .. } = call { Some(*random) } else { None };
        source.iter().filter_map(random).collect::<Vec<_>>()
    };
    let first = drawn();
    assert!(first.len() > 50 && first.windows(2).all(|two| two[0] != two[1]), "{}", first.len());
    assert_eq!(first, drawn());
}

#[test]
fn bytes_in_flight_agree_with_quinns_after_every_ack() {
    for settings in [
        &LOSSY[..],
        &["duration_s=4", "link.0.reordering.fraction=0.05", "link.0.reordering.extra_delay_ms=20"],
    ] {
        let (outcome, ends) = recorded(WIRED, settings, bbr::Endpoint::default);
        assert!(outcome.flows[0].bytes_received > 500_000, "{:?}", outcome.flows[0]);
        for calls in &ends {
            let (mut quinns, mut checked) = (0, 0);
            for call in calls {
                match *call {
                    Call::QuinnEndAcks(in_flight) => quinns = in_flight,
                    Call::QuinnLost { bytes, .. } => quinns -= bytes,
                    Call::Sent { bytes, .. } => quinns += bytes,
                    Call::Ack { in_flight, .. } => {
                        assert_eq!(in_flight, quinns, "after {checked} acknowledgments");
                        checked += 1;
                    }
                    Call::RttUpdate { .. } | Call::Lost { .. } | Call::Marks(_) | Call::Discarded(_) => {}
                }
            }
            assert!(checked > 1, "{checked} acknowledgments");
        }
    }
}

#[test]
fn lost_packets_reach_the_controller() {
    let (_, [source, _]) = recorded(WIRED, &LOSSY, cubic::Endpoint::default);
    let lost = sum(&source, |call| if let Call::Lost { bytes, .. } = call { Some(*bytes) } else { None });
    let quinns =
        sum(&source, |call| if let Call::QuinnLost { bytes, .. } = call { Some(*bytes) } else { None });
    assert!(lost > 10_000, "{lost} bytes");
    assert_eq!(lost, quinns);
    assert!(source.iter().all(|call| !matches!(call, Call::Lost { persistent: true, .. })));
    assert!(source.iter().any(|call| matches!(call, Call::Lost { starts_burst: true, .. })));
}

#[test]
fn a_burst_of_losses_is_reported_as_one() {
    // The queue overflows at the end of slow start.
    let (_, [source, _]) =
        recorded(WIRED, &["link.0.queue.capacity_packets=5", "duration_s=3"], cubic::Endpoint::default);
    let of = |first| {
        move |call: &Call| match call {
            Call::Lost { starts_burst, .. } if *starts_burst == first => Some(1),
            _ => None,
        }
    };
    assert!(sum(&source, of(true)) > 1 && sum(&source, of(false)) > 1);
}

#[test]
fn persistent_congestion_reaches_the_controller() {
    let (outcome, [source, _]) = recorded(OUTAGE, &["duration_s=12"], cubic::Endpoint::default);
    let told = |call: &Call| matches!(call, Call::QuinnLost { persistent: true, .. });
    assert!(source.iter().any(told), "quinn finds it");
    let windows = source.iter().filter_map(|call| match call {
        Call::Lost { persistent: true, window, .. } => Some(*window),
        _ => None,
    });
    let windows: Vec<_> = windows.collect();
    // RFC 9002 §7.6.2: the window is the least, two datagrams.
    assert!(!windows.is_empty() && windows.iter().all(|&window| window == 2 * 1472), "{windows:?}");
    assert!(outcome.flows[0].bytes_received > 1_000_000, "it recovers: {:?}", outcome.flows[0]);
}

#[test]
fn marks_reach_the_controller_with_their_number() {
    let marking =
        ["link.0.queue.discipline=codel", "link.0.queue.capacity_packets=1000", "link.0.queue.action=mark"];
    let (outcome, [source, _]) = recorded(WIRED, &marking, cubic::Endpoint::default);
    let told = sum(&source, |call| if let Call::Marks(marks) = call { Some(*marks) } else { None });
    let marked = outcome.nodes[0].marks;
    let lost = sum(&source, |call| if let Call::Lost { .. } = call { Some(1) } else { None });
    assert!(marked > 3, "{marked} marks");
    // Marks of the last round trip are not reported yet.
    assert!(told <= marked && told + 20 >= marked && told > 3, "{told} of {marked}");
    assert_eq!(lost, 0);
}

#[test]
fn packets_of_discarded_keys_leave_the_flight() {
    let (_, ends) = recorded(WIRED, &["duration_s=1"], cubic::Endpoint::default);
    let discarded = ends
        .map(|calls| sum(&calls, |call| if let Call::Discarded(bytes) = call { Some(*bytes) } else { None }));
    // The client's acknowledgment of the server's Initial packet is padded to a full datagram, and is not acknowledged.
    assert!(discarded[0] >= 1_000, "{discarded:?}");
}

#[test]
fn no_packet_leaves_before_the_departure_time() {
    fn early<E: Endpoint>(inner: fn() -> E) -> [u64; 3] {
        let (_, [source, _]) = recorded(WIRED, &["duration_s=3"], inner);
        let sent = |at_once: bool| {
            move |call: &Call| match call {
                Call::Sent { bytes: 1.., early, .. } if early.is_zero() == at_once => Some(1),
                _ => None,
            }
        };
        let not_limited =
            |call: &Call| matches!(call, Call::Sent { app_limited: Some(false), .. }).then_some(1);
        [sum(&source, sent(true)), sum(&source, sent(false)), sum(&source, not_limited)]
    }
    for [on_time, early, not_limited] in [early(cubic::Endpoint::default), early(bbr::Endpoint::default)] {
        assert!(on_time > 1_000 && early == 0, "{on_time} on time, {early} early");
        assert!(not_limited * 10 > on_time * 9, "{not_limited} of {on_time} with more data to come");
    }
}

#[test]
fn a_controller_without_a_window_sends_at_its_own_pace() {
    let machines = CustomAlgorithms::default().with_s2n_quic_controller("metronome", "1", |_seed| Metronomes);
    let settings = ["quic.congestion_control=own:metronome", "warmup_s=1"];
    let spec = scenario(WIRED, &settings, machines).spec(1).unwrap_or_else(|e| panic!("{e}"));
    let outcome = simulate(&spec, 1);
    // 1438 bytes each 10 ms.
    let kbps = outcome.flows[0].goodput_bps() * 1e-3;
    assert!((1_140.0..=1_160.0).contains(&kbps), "{kbps} kb/s");
}

#[test]
fn acknowledgment_delays_are_not_part_of_the_smoothed_round_trip() {
    // Single packets: their acknowledgments wait for 25 ms.
    let machines = |log: Log| {
        CustomAlgorithms::default().with_quic_controllers("recorder", "1", move |seed| {
            Controllers::of_s2n_quic(Recorders::new(Metronomes, log.clone()), seed)
        })
    };
    let log = Log::default();
    let settings = ["quic.congestion_control=own:recorder", "duration_s=2", "flow.0.bytes=200000"];
    let spec = scenario(WIRED, &settings, machines(log.clone())).spec(1).unwrap_or_else(|e| panic!("{e}"));
    let outcome = simulate(&spec, 1);
    assert_eq!(outcome.flows[0].bytes_received, 200_000);
    let calls = log.lock().expect("no test panics with it");
    let samples = calls.iter().filter_map(|call| match call {
        Call::RttUpdate { latest, smoothed } => Some((latest.as_secs_f64(), smoothed.as_secs_f64())),
        _ => None,
    });
    let samples: Vec<_> = samples.collect();
    let (latest, smoothed) = samples[samples.len() * 3 / 4];
    // Each second packet is acknowledged at once, so that the delay of the first is not in the samples.
    assert!((0.040..0.045).contains(&latest), "{latest} s");
    assert!((0.040..0.045).contains(&smoothed), "{smoothed} s");
}

#[test]
fn an_evaluation_runs_them() {
    let machines = CustomAlgorithms::default().with_s2n_quic_controller("metronome", "1", |_seed| Metronomes);
    let laws = ["quic-s2n-bbr", "quic-own:metronome"].map(|law| Law::parse(law).expect("an algorithm"));
    let only = ["bloat".to_owned()];
    let selection = Selection { only: &only, effort: Effort::Quick, ..Selection::default() };
    let file = open(None).unwrap_or_else(|e| panic!("{e}"));
    let plan = file.load(&laws, selection, &machines).unwrap_or_else(|e| panic!("{e}"));
    let made =
        plan.run(RunOptions { jobs: None, command: &[], watch: &NoObserver }).expect("no interruption");
    let verdicts = &plan.judge(&made)[0].verdicts;
    // Behind the three references. The metronome does not use the link.
    assert_ne!(verdicts[3], Verdict::NoValue);
    assert_eq!(verdicts[4], Verdict::Misses);
}

fn path() -> Emulation {
    Emulation::delay(Duration::from_millis(10)).with_rate(Some(20_000_000)).with_queue(Some(100))
}

#[test]
fn they_transfer_every_byte_over_impaired_links() {
    for (seed, link) in [
        (1, path()),
        (2, path().with_loss(0.05).with_burst(Some(4.0))),
        (3, path().with_reorder(0.2).with_extra_delay(Duration::from_millis(30))),
        (4, path().with_duplicate(0.2).with_corrupt(0.05)),
        (5, path().with_loss(0.3)),
    ] {
        for algorithm in [CongestionControl::S2nCubic, CongestionControl::S2nBbr] {
            let config = Config::DEFAULT.with_congestion_control(algorithm);
            let mut transfer = transfer(config, [200_000, 20_000], &link, seed);
            transfer.run(Instant::from_secs(600));
            assert_eq!(transfer.received(), [200_000, 20_000], "{algorithm:?} over {link:?}");
        }
    }
}

#[test]
fn requests_are_answered_with_them() {
    for algorithm in ["s2n-cubic", "s2n-bbr"] {
        let outcome = simulate(
            &spec(&[
                &format!("quic.congestion_control={algorithm}"),
                "flow.0.kind=request-response",
                "flow.0.request_bytes=200",
                "flow.0.response_bytes=20000",
                "flow.0.transactions=5",
            ]),
            1,
        );
        let flow = &outcome.flows[0];
        assert_eq!((flow.bytes_received, flow.requests), (100_000, 5), "{algorithm}");
    }
}

/// A client that has sent many acknowledgments is not held back by them.
#[test]
fn acknowledgments_do_not_fill_the_window() {
    let (outcome, ends) = recorded(
        WIRED,
        &[
            "flow.0.kind=request-response",
            "flow.0.request_bytes=200",
            "flow.0.response_bytes=2000000",
            "flow.0.transactions=2",
        ],
        cubic::Endpoint::default,
    );
    assert_eq!(outcome.flows[0].requests, 2);
    let acknowledgments = sum(&ends[0], |call| matches!(call, Call::Sent { bytes: 0, .. }).then_some(1))
        + sum(&ends[1], |call| matches!(call, Call::Sent { bytes: 0, .. }).then_some(1));
    assert!(acknowledgments > 500, "{acknowledgments}");
}
