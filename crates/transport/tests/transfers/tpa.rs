//! TPA.

use crate::any_link;
use bytes::Bytes;
use core::num::NonZeroU64;
use hopline_core::{Duration, Instant, LinkId, StateMachine};
use hopline_testkit::transfer::Transfer;
use hopline_testkit::{Emulation, Pair, Recording};
use hopline_transport::tpa::{
    AckEvery, BlockNumbers, CompleteBlock, Config, CongestedBackoff, CountReset, EchoRule, Endpoint,
    FreezeExit, Identity, Listener, Notification, RoundStart, Secret, SimultaneousTimeouts, State, Verdict,
};
use hopline_wire::tpa::Tag;
use proptest::prelude::*;

type End = Endpoint<Bytes>;

fn identity(n: u8) -> Identity {
    Identity { tag: Tag(NonZeroU64::new(n.into()).unwrap()), secret: Secret([n; 16]) }
}

fn transfer(config: [Config; 2], totals: [u64; 2], link: &Emulation, seed: u64) -> Transfer<End> {
    let [a, b] = config.map(|config| End::new(config).unwrap());
    Transfer::new(a, b, totals, link, seed, invariants)
}

fn invariants(end: &End) {
    if end.in_flight() > 0 {
        assert!(end.poll_timeout().is_some(), "data in flight and no timer in {:?}", end.state());
    }
    assert!(end.in_flight() <= end.config().cwnd_max());
    assert!(end.received_unread() <= u64::from(end.config().receive_buffer()));
}

/// Never gives up; ends soon.
fn never_gives_up(config: Config) -> Config {
    config
        .with_syn_retries(None)
        .with_silence_limit(None)
        .with_time_wait(Duration::from_secs(240))
        .with_rto(config.rto().with_max(Duration::from_secs(10)))
}

fn any_config() -> impl Strategy<Value = Config> {
    let sizes = (20u16..1461, 1u8..=12, 1u8..=12, prop_oneof![Just(1u32), Just(3)]);
    (sizes, any::<[bool; 9]>(), 0..3u8, 1..4u8, 1..4u8).prop_map(
        |((mss, k, cwnd, room), b, elfn, cong, ack_threshold)| {
            let c = never_gives_up(Config::tpa(cwnd));
            let pick = |i: usize| b[i];
            let complete = if pick(1) { CompleteBlock::AckAtOnce } else { CompleteBlock::AckAsUsual };
            let ack = c
                .ack()
                .with_every(if pick(0) { AckEvery::Other } else { AckEvery::Window })
                .with_complete_block(complete)
                .with_echo(if pick(2) { EchoRule::Last } else { EchoRule::First });
            let exit = if pick(6) { FreezeExit::LatestTransmission } else { FreezeExit::AnyNewAck };
            let backoff = if pick(7) { CongestedBackoff::Always } else { CongestedBackoff::WhenMerged };
            let failures = c
                .failures()
                .with_count_reset(if pick(4) {
                    CountReset::AnyNewAck
                } else {
                    CountReset::LatestTransmission
                })
                .with_simultaneous(if pick(5) {
                    SimultaneousTimeouts::Each
                } else {
                    SimultaneousTimeouts::Once
                })
                .with_freeze_exit(exit)
                .with_congested_backoff(backoff)
                .with_th_cong(cong)
                .with_th_ack(ack_threshold)
                // No recovery is reported here, so no endpoint may wait for one.
                .with_notification(if elfn == 0 { Notification::None } else { Notification::Elfn })
                .with_th_route((elfn == 2).then_some(5));
            c.with_mss(mss)
                .with_block_segments(k)
                .with_receive_buffer(u32::from(mss) * u32::from(k) * room)
                .with_send_buffer(Some(30_000))
                .with_ack(ack)
                .with_failures(failures)
                .with_rounds(if pick(3) { RoundStart::AllSent } else { RoundStart::AllResolved })
                .with_block_numbers(if pick(8) { BlockNumbers::Bits16 } else { BlockNumbers::Bits8 })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        a in any_config(), mut b in any_config(), link in any_link(), seed in any::<u64>(),
        there in 0u64..40_000, back in prop_oneof![Just(0u64), 0u64..20_000],
    ) {
        b = b.with_block_numbers(a.block_numbers());
        let mut t = transfer([a, b], [there, back], &link, seed);
        t.run(Instant::from_secs(100_000));
        t.assert_complete();
    }
}

#[test]
fn block_numbers_wrap_around() {
    let narrow = never_gives_up(Config::tpa(2))
        .with_block_numbers(BlockNumbers::Bits8)
        .with_mss(100)
        .with_block_segments(1);
    let link = Emulation::delay(Duration::from_millis(2)).with_loss(0.05).with_duplicate(0.05);
    let mut t = transfer([narrow; 2], [100_000, 100_000], &link, 5);
    t.run(Instant::from_secs(100_000));
    t.assert_complete();
    assert!(t.pair.a.stats().blocks > 3 * 256);
}

#[test]
fn after_a_blackout_no_delivered_segment_is_retransmitted() {
    let link = Emulation::delay(Duration::from_millis(20))
        .with_rate(Some(1_000_000))
        .with_blackouts(vec![(Instant::from_millis(200), Instant::from_secs(40))]);
    let mut t = transfer([Config::tpa(3); 2], [200_000, 0], &link, 5);
    t.run(Instant::from_secs(1000));
    t.assert_complete();
    assert!(t.pair.a.stats().timeouts >= 5);
    assert_eq!(t.pair.b.stats().duplicates_received, 0);
}

#[test]
fn same_seed_same_dialogue() {
    let run = |seed| {
        let link = Emulation::delay(Duration::from_millis(20)).with_loss(0.1).with_reorder(0.1);
        let mut t = transfer([Config::tpa(3); 2], [50_000, 0], &link, seed);
        t.pair.record(Recording::On);
        t.run(Instant::from_secs(1000));
        t.pair.dialogue()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn both_may_open_and_close_at_once_with_and_without_tags() {
    let config = Config::tpa(3).with_time_wait(Duration::from_secs(1));
    let plain = || End::new(config).unwrap();
    let tagged = |n| End::tagged(config, identity(n)).unwrap();
    for (mut a, mut b) in [(plain(), plain()), (tagged(1), tagged(2))] {
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
}

#[test]
fn a_connection_of_a_stateless_listener_works_both_ways() {
    let listener = Listener::new(never_gives_up(Config::tpa(3)), Secret([7; 16])).unwrap();
    for seed in 0..40 {
        let link = Emulation::delay(Duration::from_millis(20)).with_loss(0.2).with_duplicate(0.1);
        let mut a = End::tagged(never_gives_up(Config::tpa(2)), identity(99)).unwrap();
        a.connect(Instant::ZERO).unwrap();
        let syn = a.poll_transmit(Instant::ZERO).unwrap();
        let Verdict::Reply(answer) = listener.handle(Instant::ZERO, b"address", syn) else {
            panic!("no answer")
        };
        a.handle_packet(Instant::ZERO, LinkId::ONLY, answer);
        let first = a.poll_transmit(Instant::ZERO).unwrap();
        let Verdict::Accepted(b) = listener.handle(Instant::from_secs(20), b"address", first) else {
            panic!("refused")
        };
        let mut t = Transfer::of(Pair::new(a, b, &link, seed), [60_000, 30_000], invariants);
        t.run(Instant::from_secs(10_000));
        t.assert_complete();
    }
}
