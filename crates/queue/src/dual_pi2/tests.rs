use super::*;
use crate::packet_access::testing::{Owner, Packet, data, routing};
use proptest::prelude::*;

const RFC: DualPi2Config = DualPi2Config::RFC9332;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn us(micros: u64) -> Instant {
    Instant::from_nanos(1000 * micros)
}

fn queue(config: DualPi2Config) -> DualPi2<Packet> {
    DualPi2::new(config, NonZeroU16::new(10_000).unwrap())
}

/// A queue with a constant base probability.
fn held_at(base_probability: f64) -> DualPi2<Packet> {
    let mut q = queue(DualPi2Config { alpha_hz: 0.0, beta_hz: 0.0, ..RFC });
    q.controller.base_probability = base_probability;
    q
}

/// A packet with ECT(1).
fn l4s(number: u32) -> Packet {
    Packet { capability: EcnCapability::L4s, ..data(number) }
}

/// A packet with ECT(0).
fn ect0(number: u32) -> Packet {
    Packet { capability: EcnCapability::Capable, ..data(number) }
}

fn fill(q: &mut DualPi2<Packet>, at: Instant, packets: impl IntoIterator<Item = Packet>) {
    for packet in packets {
        assert_eq!(q.enqueue(at, packet, &Owner::default()), EnqueueResult::Accepted);
    }
}

/// Serves up to `most` packets at once; returns them, and what the queue reported.
fn serve(q: &mut DualPi2<Packet>, at: Instant, most: usize) -> (Vec<Packet>, Owner) {
    let mut owner = Owner::default();
    let served = core::iter::from_fn(|| q.dequeue(at, &mut owner)).take(most).collect();
    (served, owner)
}

fn numbers(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(|packet| packet.number).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn updates_follow_the_formula_of_the_rfc() {
    let mut q = queue(RFC);
    fill(&mut q, ms(0), [data(0)]);
    // At 15 ms the head has waited 15 ms: 0.15 * 0 + 3 * 0.015 = 0.045. At 30 ms: 0.15 * 0.015 + 3 * 0.015 = 0.04725.
    q.advance(ms(15));
    assert!(close(q.base_probability(), 0.045), "{}", q.base_probability());
    q.advance(ms(30));
    assert!(close(q.base_probability(), 0.045 + 0.04725), "{}", q.base_probability());
    assert_eq!(numbers(&serve(&mut q, ms(30), 9).0), [0]);
    // Empty: 0.15 * -0.015 + 3 * -0.030 = -0.09225; the result is 0.00000, and stays there.
    q.advance(ms(45));
    assert!(close(q.base_probability(), 0.0), "{}", q.base_probability());
    let mut late = queue(RFC);
    fill(&mut late, ms(0), [data(0)]);
    let mut at_once = late.clone();
    for at in 0..200 {
        late.advance(ms(at));
    }
    at_once.advance(ms(199));
    assert_eq!(late.base_probability(), at_once.base_probability(), "updates can be made late");
    // Also those that a saturated controller skips.
    for at in 200..20_000 {
        late.advance(ms(at));
    }
    at_once.advance(ms(19_999));
    let state =
        |q: &DualPi2<Packet>| (q.base_probability(), q.controller.last_delay, q.controller.next_update);
    assert_eq!((state(&late), at_once.base_probability()), (state(&at_once), 1.0));
    at_once.advance(Instant::from_secs(4_000_000));
    assert_eq!(at_once.base_probability(), 1.0, "never above 1");
    let mut idle = queue(DualPi2Config { update_interval: Duration::from_nanos(1), ..RFC });
    idle.advance(Instant::from_secs(1_000_000_000));
    assert!(idle.controller.next_update > Instant::from_secs(1_000_000_000));
}

#[test]
fn the_greater_delay_of_both_queues_counts() {
    let mut q = queue(RFC);
    fill(&mut q, ms(0), [l4s(0)]);
    fill(&mut q, ms(10), [data(0)]);
    q.advance(ms(15));
    assert!(close(q.base_probability(), 0.045), "15 ms of the L queue: {}", q.base_probability());
}

#[test]
fn classic_signals_are_squared_and_l4s_marks_are_doubled() {
    // p' = 0.1: p_C = 0.01 and p_CL = 0.2.
    let mut q = held_at(0.1);
    assert!(close(q.classic_probability(), 0.01) && close(q.coupled_probability(), 0.2));
    fill(&mut q, ms(0), (0..2000).map(data));
    let (served, owner) = serve(&mut q, ms(0), 2000);
    assert_eq!((owner.dropped.len(), owner.marked.len(), served.len()), (20, 0, 1980));
    assert_eq!(owner.dropped[..2], [99, 199], "evenly spaced");
    fill(&mut q, ms(0), (0..2000).map(ect0));
    let (served, owner) = serve(&mut q, ms(0), 2000);
    assert_eq!((owner.dropped.len(), owner.marked.len(), served.len()), (0, 20, 2000), "ECT(0) is marked");
    fill(&mut q, ms(0), (0..2000).map(l4s));
    let (served, owner) = serve(&mut q, ms(0), 2000);
    assert_eq!((owner.dropped.len(), owner.marked.len(), served.len()), (0, 400, 2000));
    assert!(served.iter().all(|packet| packet.mark == owner.marked.contains(&packet.number)));
    let mut k3 = held_at(0.1);
    k3.config.coupling = 3.0;
    fill(&mut k3, ms(0), (0..2000).map(l4s));
    assert_eq!(serve(&mut k3, ms(0), 2000).1.marked.len(), 600);
}

#[test]
fn l4s_packets_are_marked_above_a_step_or_ramp_of_their_own_delay() {
    let marks = |config, waited| {
        let mut q = queue(config);
        fill(&mut q, ms(0), (0..1001).map(l4s));
        let (served, owner) = serve(&mut q, us(waited), 1000);
        assert_eq!((served.len(), owner.dropped.len()), (1000, 0));
        owner.marked.len()
    };
    for (waited, marked) in [(800, 0), (900, 250), (1000, 500), (1100, 750), (1200, 1000), (9000, 1000)] {
        assert!(marks(RFC, waited).abs_diff(marked) <= 1, "{waited} us: {}", marks(RFC, waited));
    }
    let step = DualPi2Config { l4s_threshold: Duration::from_millis(1), l4s_ramp: Duration::ZERO, ..RFC };
    // RFC 9332 figure 5: from maxTh on.
    assert_eq!([999, 1000, 1001].map(|waited| marks(step, waited)), [0, 1000, 1000]);
    assert_eq!([999, 1000].map(|waited| marks(DualPi2Config::LINUX, waited)), [0, 1000]);
    // Classic packets have no such threshold.
    let mut q = queue(RFC);
    fill(&mut q, ms(0), (0..100).map(ect0));
    assert!(serve(&mut q, ms(9), 100).1.marked.is_empty());
}

#[test]
fn the_last_l4s_packet_is_not_marked_for_its_delay() {
    let last = |config| {
        let mut q = queue(config);
        fill(&mut q, ms(0), (0..3).map(l4s));
        serve(&mut q, ms(5), 3).1.marked
    };
    assert_eq!(last(RFC), [0, 1]);
    assert_eq!(last(DualPi2Config { l4s_min_backlog_packets: 0, ..RFC }), [0, 1, 2]);
}

#[test]
fn the_greater_of_native_and_coupled_probability_counts() {
    let mut q = held_at(0.15);
    fill(&mut q, ms(0), (0..1001).map(l4s));
    // 900 us: 0.25 natively, 0.3 coupled.
    assert!(serve(&mut q, us(900), 1000).1.marked.len().abs_diff(300) <= 1);
}

#[test]
fn overload_disables_ecn_in_both_queues() {
    // p' = 0.49: p_CL = 0.98 is not saturated, and p_C = 0.24 is below p_Cmax = 1/4.
    let signals = |base, packet: fn(u32) -> Packet| {
        let mut q = held_at(base);
        fill(&mut q, ms(0), (0..1000).map(packet));
        let owner = serve(&mut q, ms(0), 1000).1;
        (owner.dropped.len(), owner.marked.len())
    };
    assert_eq!(signals(0.49, ect0), (0, 240));
    let (drops, marks) = signals(0.49, l4s);
    assert!(drops == 0 && marks.abs_diff(980) <= 1, "{drops} drops, {marks} marks");
    // p' = 0.5: both are dropped with p_C = 0.25, and all other L4S packets are marked.
    assert_eq!(signals(0.5, ect0), (250, 0));
    assert_eq!(signals(0.5, l4s), (250, 750));
    assert_eq!(signals(0.5, data), (250, 0));
    assert_eq!(signals(1.0, l4s), (1000, 0));
}

#[test]
fn saturated_overload_by_l4s_traffic_ends_in_drops_at_the_target() {
    // L4S packets that ignore marks arrive at 150 % of the rate: a packet each 2/3 ms, served each 1 ms.
    let mut q = queue(RFC);
    let mut owner = Owner::default();
    let (mut next, mut delays) = (0_u32, Vec::new());
    for tick in 0..300_000_u64 {
        let now = Instant::from_nanos(333_333 * tick);
        if tick % 2 == 0 {
            let _ = q.enqueue(now, l4s(next), &owner);
            next += 1;
        }
        if tick % 3 == 0
            && let Some(packet) = q.dequeue(now, &mut owner)
        {
            let arrived = Instant::from_nanos(666_666 * u64::from(packet.number));
            delays.push(1e3 * now.since(arrived).as_secs_f64());
        }
    }
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let share = owner.dropped.len() as f64 / f64::from(next);
    assert!((13.0..17.0).contains(&mean), "{mean} ms");
    assert!(
        delays.len() > 99_000 && (0.32..0.35).contains(&share),
        "{} served, {share} dropped",
        delays.len()
    );
}

#[test]
fn weighted_round_robin_gives_classic_traffic_its_share() {
    let mut q = held_at(0.0);
    fill(&mut q, ms(0), (0..2000).map(l4s).chain((5000..5200).map(data)));
    let (served, _) = serve(&mut q, ms(0), 1600);
    let classic = served.iter().filter(|packet| packet.number >= 5000).count();
    assert_eq!(classic, 100, "1/16");
    let gaps = served.windows(16).all(|packets| packets.iter().any(|packet| packet.number >= 5000));
    assert!(gaps, "at least one of 16 packets");
    // By bytes: Classic packets of a quarter of the length are four times as many.
    let mut q = held_at(0.0);
    let short = |number| Packet { len_bytes: 250, ..data(number) };
    fill(&mut q, ms(0), (0..2000).map(l4s).chain((5000..5900).map(short)));
    let (served, _) = serve(&mut q, ms(0), 1900);
    let classic = served.iter().filter(|packet| packet.number >= 5000).count();
    assert!(classic.abs_diff(400) <= 4, "{classic}");
    // L4S packets of a quarter of the length: 60 of them for each Classic packet.
    let mut q = held_at(0.0);
    let short = |number| Packet { len_bytes: 250, ..l4s(number) };
    fill(&mut q, ms(0), (0..2000).map(short).chain((5000..5200).map(data)));
    let (served, _) = serve(&mut q, ms(0), 1220);
    let classic = served.iter().filter(|packet| packet.number >= 5000).count();
    assert!(classic.abs_diff(20) <= 1, "{classic}");
}

#[test]
fn credit_changes_only_while_both_queues_have_packets() {
    // RFC 9332 appendix A.1. Traffic of one kind alone neither earns credit for the other nor uses its own.
    for alone in [l4s, data] {
        let mut q = held_at(0.0);
        fill(&mut q, ms(0), (0..40).map(alone));
        serve(&mut q, ms(0), 39);
        assert_eq!(q.wrr.classic_bytes, 0.0);
    }
    // Both at once give the Classic queue credit, and an idle link resets it.
    let mut q = held_at(0.0);
    fill(&mut q, ms(0), [l4s(0), l4s(1), data(2)]);
    serve(&mut q, ms(0), 1);
    assert!(q.wrr.classic_bytes > 0.0);
    serve(&mut q, ms(0), 1);
    assert!(q.wrr.classic_bytes < 0.0, "it was used");
    serve(&mut q, ms(0), 1);
    assert_eq!(q.wrr.classic_bytes, 0.0);
}

#[test]
fn l4s_packets_have_priority_within_their_share() {
    let mut q = held_at(0.0);
    fill(&mut q, ms(0), (0..5).map(data));
    fill(&mut q, ms(1), (10..12).map(l4s));
    assert_eq!(numbers(&serve(&mut q, ms(1), 9).0), [10, 0, 11, 1, 2, 3, 4]);
}

#[test]
fn a_time_shifted_fifo_serves_the_packet_that_waited_longest() {
    let scheduler = Scheduler::TimeShiftedFifo { shift: Duration::from_millis(50) };
    let mut q = held_at(0.0);
    q.config.scheduler = scheduler;
    fill(&mut q, ms(0), (0..3).map(data));
    fill(&mut q, ms(50), [l4s(10)]);
    fill(&mut q, ms(51), [l4s(11)]);
    fill(&mut q, ms(52), [data(3)]);
    assert_eq!(numbers(&serve(&mut q, ms(60), 9).0), [10, 0, 1, 2, 11, 3], "ties go to L4S packets");
    // L4S traffic that takes the whole link starves Classic traffic no longer than the shift.
    let mut q = held_at(0.0);
    q.config.scheduler = scheduler;
    fill(&mut q, ms(0), [data(0)]);
    let mut owner = Owner::default();
    let mut waited = None;
    for now in 0..200 {
        fill(&mut q, ms(now), [l4s(now as u32 + 1), l4s(now as u32 + 1000)]);
        if q.dequeue(ms(now), &mut owner).expect("has packets").number == 0 {
            waited = waited.or(Some(now));
        }
    }
    assert!(waited.is_some_and(|now| (50..=110).contains(&now)), "{waited:?}");
}

#[test]
fn routing_messages_are_served_first_and_displace_data() {
    let mut q = DualPi2::new(RFC, NonZeroU16::new(3).unwrap());
    fill(&mut q, ms(0), [l4s(0), data(1), data(2)]);
    let mut offer = |packet| q.enqueue(ms(0), packet, &Owner::default());
    assert_eq!(offer(data(3)), EnqueueResult::Refused(data(3)));
    assert_eq!(offer(l4s(4)), EnqueueResult::Refused(l4s(4)));
    assert_eq!(offer(routing(10)), EnqueueResult::Displaced(data(2)));
    assert_eq!(offer(routing(11)), EnqueueResult::Displaced(data(1)));
    assert_eq!(offer(routing(12)), EnqueueResult::Displaced(l4s(0)));
    assert_eq!(offer(routing(13)), EnqueueResult::Refused(routing(13)));
    q.controller.base_probability = 1.0;
    assert_eq!(numbers(&serve(&mut q, ms(1), 9).0), [10, 11, 12]);
}

#[test]
fn packets_for_a_lost_neighbour_are_removed() {
    let mut q = queue(RFC);
    fill(&mut q, ms(0), (0..4).map(data).chain((4..8).map(l4s)).chain([routing(9)]));
    let mut gone = Vec::new();
    q.remove_matching(ms(1), |packet| packet.number % 3 == 0, |packet| gone.push(packet.number));
    gone.sort_unstable();
    assert_eq!((gone.as_slice(), q.len(), q.iter().count()), (&[0, 3, 6, 9][..], 5, 5));
}

#[test]
fn invalid_configurations_are_refused() {
    assert_eq!(RFC.validate(), Ok(()));
    assert_eq!(DualPi2Config::LINUX.validate(), Ok(()));
    let zero = Duration::ZERO;
    let weight = |classic_weight| Scheduler::WeightedRoundRobin { classic_weight };
    for (config, must) in [
        (DualPi2Config { target: zero, ..RFC }, "a target above 0"),
        (DualPi2Config { update_interval: zero, ..RFC }, "an update interval above 0"),
        (DualPi2Config { alpha_hz: f64::INFINITY, ..RFC }, "alpha of at least 0"),
        (DualPi2Config { beta_hz: -0.1, ..RFC }, "beta of at least 0"),
        (DualPi2Config { coupling: 0.9, ..RFC }, "a coupling factor of at least 1"),
        (DualPi2Config { scheduler: weight(0.0), ..RFC }, "a Classic weight above 0 and below 1"),
        (DualPi2Config { scheduler: weight(1.0), ..RFC }, "a Classic weight above 0 and below 1"),
    ] {
        assert_eq!(config.validate(), Err(must));
    }
}

proptest! {
    #[test]
    fn every_packet_that_enters_leaves_once(steps in proptest::collection::vec((0..4_u8, 0..4_u8, 1..2000_u32), 1..300)) {
        let mut q = DualPi2::new(RFC, NonZeroU16::new(10).unwrap());
        let mut owner = Owner::default();
        let (mut entered, mut left) = (0_u32, 0_u32);
        for (number, (kind, action, len_bytes)) in steps.into_iter().enumerate() {
            let now = ms(7 * number as u64);
            if action > 0 {
                let of = [data, ect0, l4s, routing][usize::from(kind)];
                let packet = Packet { len_bytes, ..of(number as u32) };
                entered += 1;
                left += u32::from(q.enqueue(now, packet, &owner) != EnqueueResult::Accepted);
            } else {
                left += u32::from(q.dequeue(now, &mut owner).is_some());
            }
            prop_assert!((0.0..=1.0).contains(&q.base_probability()));
            prop_assert_eq!(entered, left + owner.dropped.len() as u32 + q.len() as u32);
        }
        while q.dequeue(Instant::from_secs(10_000), &mut owner).is_some() {
            left += 1;
        }
        prop_assert_eq!(entered, left + owner.dropped.len() as u32);
        prop_assert!(q.is_empty());
    }
}
