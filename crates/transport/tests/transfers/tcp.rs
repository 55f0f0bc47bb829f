//! TCP.

use crate::any_link;
use bytes::Bytes;
use hopline_core::{Duration, Instant, Seq32, StateMachine};
use hopline_testkit::transfer::Transfer;
use hopline_testkit::{Emulation, Pair, Recording};
use hopline_transport::pacing;
use hopline_transport::tcp::{
    AckOrder, AckPolicy, BbrConfig, Config, CongestionControl, DataOrder, Detection, DisabledRetransmissions,
    DoorConfig, DsackReports, EcnMode, Endpoint, Frto, HeldTimerBackoff, HeldVariables, InitialWindow,
    LateRule, LossDetection, Nagle, OptionOffer, Ports, RecoveryPhase, RepeatedEvent, SpuriousDetection,
    SpuriousDetector, State, UndoReach,
};
use proptest::prelude::*;

type End = Endpoint<Bytes>;

pub(crate) fn transfer(
    config: [Config; 2],
    iss: [u32; 2],
    totals: [u64; 2],
    link: &Emulation,
    seed: u64,
) -> Transfer<End> {
    let ports = |local, remote| Ports { local, remote };
    let a = End::new(config[0], ports(1, 2), Seq32(iss[0])).unwrap();
    let b = End::new(config[1], ports(2, 1), Seq32(iss[1])).unwrap();
    Transfer::new(a, b, totals, link, seed, invariants)
}

fn invariants(end: &End) {
    if end.flight_size() > 0 && end.state() != State::Closed {
        assert!(end.poll_timeout().is_some(), "data in flight and no timer in {:?}", end.state());
    }
    assert!(end.received_unread() <= u64::from(end.config().receive_buffer()) + (1 << 14));
    if let (Some(clamp), true) = (end.config().window_clamp(), end.phase() != RecoveryPhase::Recovery) {
        assert!(end.cwnd() <= clamp * end.config().mss(), "cwnd {} beyond the clamp", end.cwnd());
    }
    assert!(end.cwnd() >= end.effective_mss().min(end.config().mss()) || end.state() != State::Established);
    assert!(end.cwnd() <= 1 << 31);
}

/// Mostly none, and any setting of the study, with any choice where the paper leaves one.
pub(crate) fn any_door() -> impl Strategy<Value = Option<DoorConfig>> {
    let choices = any::<[bool; 7]>();
    let late =
        prop_oneof![Just(LateRule::OncePerRouteChange), Just(LateRule::Each), Just(LateRule::AfterPrevious)];
    let door = (0..56usize, choices, late, 1..5u8).prop_map(|(n, choices, late, feedback_acks)| {
        let [constant, stamped, restart, first, numbers, timer, alone] = choices;
        let mut door = DoorConfig::study_settings().nth(n).unwrap();
        door = door
            .with_detection(match door.detection() {
                Detection::Sender(_) if numbers => Detection::Sender(AckOrder::Numbers),
                Detection::Receiver(_) if stamped => Detection::Receiver(DataOrder::Timestamps),
                other => other,
            })
            .with_late(late)
            .with_feedback_acks(feedback_acks)
            .with_held(if constant { HeldVariables::Everything } else { HeldVariables::Reductions })
            .with_held_timer(if timer { HeldTimerBackoff::Constant } else { HeldTimerBackoff::Exponential })
            .with_retransmissions(if alone {
                DisabledRetransmissions::FirstSegment
            } else {
                DisabledRetransmissions::Normal
            });
        door =
            door.with_repeated_event(if restart { RepeatedEvent::Restart } else { RepeatedEvent::Continue });
        door.with_reach(if first { UndoReach::All } else { UndoReach::Latest })
    });
    prop_oneof![2 => Just(None), 1 => door.prop_map(Some)]
}

fn any_config() -> impl Strategy<Value = Config> {
    let preset = prop_oneof![
        Just(Config::modern()),
        Just(Config::modern().with_rack()),
        Just(Config::modern().with_rack().with_dsack(DsackReports::On).with_spurious(SpuriousDetection::ALL)),
        Just(Config::modern().with_dsack(DsackReports::On).with_spurious(SpuriousDetection::ALL)),
        Just(Config::modern().with_spurious(SpuriousDetection::ALL).with_newreno()),
        Just(Config::modern().with_linux_recovery()),
        Just(Config::modern().with_rack().with_adaptive_pacing(pacing::Config::AUTHORS)),
        Just(Config::modern().with_newreno()),
        Just(Config::modern().with_reno()),
        Just(Config::linux()),
        Just(Config::linux().with_ecn(EcnMode::Request)),
        Just(Config::linux().with_bbr(BbrConfig::V1)),
        Just(Config::linux().with_bbr(BbrConfig::V3)),
        Just(Config::ns2_235().with_bbr(BbrConfig::V1)),
        Just(Config::modern().with_newreno().with_ecn(EcnMode::Request)),
        Just(Config::linux().with_reno()),
        Just(Config::ns2_235().with_newreno().with_cubic()),
        Just(Config::ns2_235()),
        Just(Config::ns2_235().with_reno()),
        Just(Config::ns2_235().with_sack()),
        Just(Config::ns2_2001()),
        Just(Config::modern().with_adaptive_pacing(pacing::Config::AUTHORS)),
        Just(Config::ns2_2006().with_adaptive_pacing(pacing::Config::AUTHORS)),
    ];
    (
        preset,
        any_door(),
        60u32..1461,
        prop_oneof![Just(3000u32), Just(20_000), Just(200_000)],
        any::<[bool; 4]>(),
    )
        .prop_map(|(mut c, door, mss, buffer, [delay, nagle, small, scale])| {
            let door = door.filter(|_| !matches!(c.congestion_control(), CongestionControl::Bbr(_)));
            c = c.with_door(door.map(|door| match c.loss_detection() {
                LossDetection::DupAcks => door,
                LossDetection::Rack(_) => door.with_retransmissions(DisabledRetransmissions::Normal),
            }));
            if door.is_some_and(|door| door.detection().data() == Some(DataOrder::Timestamps)) {
                c = c.with_timestamps(OptionOffer::Offered);
            }
            c = c
                .with_mss(mss)
                .with_receive_buffer(buffer)
                .with_send_buffer(Some(30_000))
                .with_ack_policy(if delay {
                    AckPolicy::Delayed { timer: Duration::from_millis(100) }
                } else {
                    AckPolicy::EverySegment
                })
                .with_nagle(if nagle { Nagle::On } else { Nagle::Off })
                .with_window_scale(if scale { OptionOffer::Offered } else { OptionOffer::NotOffered });
            if small {
                c = c.with_initial_window(InitialWindow::Segments(1));
            }
            c = c.with_syn_retries(None).with_data_retries(None).with_time_wait(Duration::from_secs(240));
            c.with_rto(c.rto().with_max(Duration::from_secs(10)))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        a in any_config(), b in any_config(), link in any_link(), mark in 0.0..0.3f64, seed in any::<u64>(),
        iss in any::<[u32; 2]>(), there in 0u64..40_000, back in prop_oneof![Just(0u64), 0u64..20_000],
    ) {
        let link = link.with_mark((mark - 0.1).max(0.0));
        let mut t = transfer([a, b], iss, [there, back], &link, seed);
        t.run(Instant::from_secs(100_000));
        t.assert_complete();
    }
}

#[test]
fn sequence_numbers_may_wrap_around() {
    for before in [1u32, 2, 1000, 30_000] {
        let link = Emulation::delay(Duration::from_millis(20)).with_loss(0.05);
        let iss = [0u32.wrapping_sub(before), 0u32.wrapping_sub(before + 7)];
        let mut t = transfer([Config::modern(); 2], iss, [60_000, 60_000], &link, 5);
        t.run(Instant::from_secs(10_000));
        t.assert_complete();
    }
}

#[test]
fn marks_slow_a_sender_without_retransmissions() {
    // A third of all data marked: the window stays at a segment or two, with pauses of a timeout (RFC 3168 §6.1.2).
    let link = Emulation::delay(Duration::from_millis(20)).with_mark(0.33);
    let mut t = transfer([Config::linux().with_ecn(EcnMode::Request); 2], [1, 2], [200_000, 0], &link, 5);
    t.run(Instant::from_secs(1000));
    t.assert_complete();
    let (a, b) = (t.pair.a.stats(), t.pair.b.stats());
    assert!(b.marks_received > 20 && a.mark_reactions > 10, "{b:?} {a:?}");
    assert_eq!((a.retransmissions, a.timeouts), (0, 0));
}

#[test]
fn a_blackout_is_survived() {
    let link = Emulation::delay(Duration::from_millis(20))
        .with_rate(Some(1_000_000))
        .with_blackouts(vec![(Instant::from_millis(200), Instant::from_secs(40))]);
    let mut t = transfer([Config::modern(); 2], [1, 2], [200_000, 0], &link, 5);
    t.run(Instant::from_secs(1000));
    t.assert_complete();
    assert!(t.pair.a.stats().timeouts >= 5);
}

/// Totals of ten transfers of 500 kB over 10 Mb/s.
#[derive(Debug, Default)]
struct TenTransfers {
    millis: u64,
    /// Segments that arrived twice.
    duplicates: u64,
    /// Time-outs, or series of them, that were undone.
    undone: u64,
}

/// Over `link` for 300 ms, then over `later`.
fn ten_transfers(config: Config, link: &Emulation, later: &Emulation) -> TenTransfers {
    let [link, later] = [link, later].map(|l| l.clone().with_rate(Some(10_000_000)).with_queue(Some(50)));
    let mut ten = TenTransfers::default();
    for seed in 0..10 {
        let mut t = transfer([config; 2], [1, 2], [500_000, 0], &link, seed);
        t.run(Instant::from_millis(300));
        t.pair.change_link([later.clone(), later.clone()]);
        while t.received()[0] < 500_000 && t.pair.step(Instant::from_secs(1000)) {
            t.run_users();
        }
        ten.millis += t.pair.now().as_nanos() / 1_000_000;
        ten.duplicates += t.pair.b.stats().duplicates_received;
        ten.undone += t.pair.a.stats().spurious_timeouts;
    }
    ten
}

fn delay(ms: u64) -> Emulation {
    Emulation::delay(Duration::from_millis(ms))
}

#[test]
fn rack_is_as_fast_as_duplicates_where_one_segment_in_a_hundred_is_lost() {
    let link = delay(20).with_loss(0.01);
    let sack = ten_transfers(Config::modern(), &link, &link);
    let rack = ten_transfers(Config::modern().with_rack(), &link, &link);
    assert!(rack.millis * 100 <= sack.millis * 105, "RACK {rack:?}, duplicates {sack:?}");
}

#[test]
fn rack_is_faster_with_fewer_spurious_retransmissions_under_reordering() {
    let link = delay(20).with_reorder(0.05).with_extra_delay(Duration::from_millis(15));
    let sack = ten_transfers(Config::modern(), &link, &link);
    let rack = Config::modern().with_rack().with_dsack(DsackReports::On);
    let rack = ten_transfers(rack, &link, &link);
    assert!(
        3 * rack.millis <= 2 * sack.millis && 2 * rack.duplicates <= sack.duplicates,
        "{rack:?}, {sack:?}"
    );
}

#[test]
fn spurious_timeout_detection_reduces_the_cost_of_a_longer_path() {
    // Nothing is lost: the window fits into the queue.
    let config = Config::modern().with_window_clamp(Some(30));
    let plain = ten_transfers(config, &delay(20), &delay(300));
    assert_eq!(plain.undone, 0);
    let frto = SpuriousDetection::NONE.with_frto(Frto::FirstTimeout);
    let eifel = SpuriousDetection::NONE.with_eifel(SpuriousDetector::On);
    for spurious in [frto, eifel] {
        let found = ten_transfers(config.with_spurious(spurious), &delay(20), &delay(300));
        assert!(
            found.undone >= 10 && found.duplicates < plain.duplicates,
            "{spurious:?}: {found:?}, {plain:?}"
        );
        assert!(found.millis < plain.millis, "{spurious:?}: {found:?}, {plain:?}");
    }
}

#[test]
fn same_seed_same_dialogue() {
    let run = |seed| {
        let link = Emulation::delay(Duration::from_millis(20)).with_loss(0.1).with_reorder(0.1);
        let mut t = transfer([Config::modern(); 2], [1, 2], [50_000, 0], &link, seed);
        t.pair.record(Recording::On);
        t.run(Instant::from_secs(1000));
        t.pair.dialogue()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert!(run(1).lines().next().unwrap().contains("A ->   S 1 win 65535 mss 1460"));
}

#[test]
fn both_may_open_at_once() {
    let ports = |local, remote| Ports { local, remote };
    let config = Config::modern().with_time_wait(Duration::from_secs(1));
    let mut a = End::new(config, ports(1, 2), Seq32(5)).unwrap();
    let mut b = End::new(config, ports(2, 1), Seq32(9)).unwrap();
    a.connect(Instant::ZERO).unwrap();
    b.connect(Instant::ZERO).unwrap();
    let mut pair = Pair::new(a, b, &Emulation::delay(Duration::from_millis(30)), 1);
    pair.run_until(Instant::from_millis(200));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Established, State::Established));
    pair.a.close(pair.now()).unwrap();
    pair.b.close(pair.now()).unwrap();
    pair.run_until(Instant::from_secs(3));
    assert_eq!((pair.a.state(), pair.b.state()), (State::Closed, State::Closed));
}
