use super::*;
use crate::packet_access::testing::{Owner, Packet, data, routing};
use crate::{DropTail, EcnCapability, EnqueueResult, InterfaceQueue, Service, SignalAction};
use core::num::NonZeroU16;
use hopline_core::Purpose;

const RFC: PieConfig = PieConfig::RFC8033;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn for_ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn stream() -> RandomStream {
    RandomStream::keyed(1, 0, 0, Purpose::Queue)
}

/// A controller of a long queue, with given delays at its updates.
struct TestControl {
    pie: Pie,
    now: Instant,
}

impl TestControl {
    /// Bytes of the long queue.
    const BYTES: u64 = 100_000;

    fn new(config: PieConfig) -> Self {
        Self { pie: Pie::new(config, stream()), now: Instant::ZERO }
    }

    fn at_probability(config: PieConfig, drop_probability: f64, last_delay: Duration) -> Self {
        let mut test = Self::new(config);
        test.pie.control = Control { drop_probability, last_delay, burst_allowance: Duration::ZERO };
        test
    }

    /// Makes the next update, with the queueing delay `delay`; returns the drop probability.
    fn update(&mut self, delay: Duration) -> f64 {
        self.pie.on_departure(self.now, 1000, delay, Self::BYTES);
        self.now += self.pie.config.update_interval;
        self.pie.advance(self.now, Self::BYTES);
        self.pie.drop_probability()
    }

    fn arrive(&mut self) -> PieDecision {
        self.pie.on_arrival(self.now, Self::BYTES, 0.9)
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 + 1e-9 * b.abs()
}

/// A queue under PIE, and a record of its drops and marks.
struct TestQueue {
    queue: InterfaceQueue<Packet>,
    owner: Owner,
}

impl TestQueue {
    fn new(config: PieConfig, capacity: u16) -> Self {
        let packets = DropTail::new(NonZeroU16::new(capacity).unwrap(), Service::Fifo);
        let queue = InterfaceQueue::pie(packets, Pie::new(config, stream()));
        Self { queue, owner: Owner::default() }
    }

    fn pie(&mut self) -> &mut Pie {
        match &mut self.queue {
            InterfaceQueue::Pie(queue) => &mut queue.pie,
            _ => unreachable!("the queue has PIE"),
        }
    }

    fn offer(&mut self, at: Instant, packet: Packet) -> EnqueueResult<Packet> {
        self.queue.enqueue(at, packet, &mut self.owner)
    }

    fn serve(&mut self, at: Instant) -> Option<Packet> {
        self.queue.dequeue(at, &mut self.owner)
    }

    fn probability(&mut self) -> f64 {
        self.pie().drop_probability()
    }
}

#[test]
fn updates_follow_the_formula_of_the_rfc() {
    // alpha (delay - target) + beta (delay - old), divided by 2048 below 0.000001, by hand:
    // 0.125 * 0.005 + 1.25 * 0.020 = 0.025625; / 2048 = 0.000012512...
    let mut test = TestControl::new(RFC);
    assert!(close(test.update(for_ms(20)), 0.025625 / 2048.0));
    // The probability is between 0.00001 and 0.0001 now: / 128. The delay is unchanged: 0.125 * 0.005 = 0.000625.
    assert!(close(test.update(for_ms(20)), 0.025625 / 2048.0 + 0.000625 / 128.0));
    // From 20 to 10 ms: 0.125 * -0.005 + 1.25 * -0.010 = -0.013125; / 128 exceeds the probability, which stops at 0.
    assert_eq!(test.update(for_ms(10)), 0.0);
    // Without the division, from 0.1 on: 0.125 * 0.025 + 1.25 * 0.010 = 0.015625.
    let mut high = TestControl::at_probability(RFC, 0.5, for_ms(30));
    assert!(close(high.update(for_ms(40)), 0.515625));
    assert!(close(high.update(for_ms(15)), 0.515625 - 1.25 * 0.025), "only the trend acts at the target");
    let mut top = TestControl::at_probability(RFC, 0.9, for_ms(30));
    assert_eq!(top.update(Duration::from_secs(2)), 1.0, "never above 1");
}

#[test]
fn auto_tuning_has_the_seven_steps_of_the_rfc() {
    // The delay stands 8 ms above the target: 0.125 * 0.008 = 0.001, divided by the step's number.
    for (probability, divisor) in [
        (0.0, 2048.0),
        (0.000_001, 512.0),
        (0.000_009, 512.0),
        (0.000_01, 128.0),
        (0.000_1, 32.0),
        (0.001, 8.0),
        (0.01, 2.0),
        (0.099, 2.0),
        (0.1, 1.0),
        (0.7, 1.0),
    ] {
        let mut test = TestControl::at_probability(RFC, probability, for_ms(23));
        assert!(close(test.update(for_ms(23)), probability + 0.001 / divisor), "{probability}");
    }
}

#[test]
fn a_burst_of_150_ms_enters_without_drops() {
    let mut test = TestControl::at_probability(RFC, 0.9, for_ms(100));
    test.pie.control.burst_allowance = for_ms(150);
    for update in 0..10 {
        assert_eq!(test.pie.burst_allowance(), for_ms(150 - 15 * update));
        assert!((0..50).all(|_| test.arrive() == PieDecision::Enqueue), "update {update}");
        test.update(for_ms(100));
    }
    assert!((0..50).any(|_| test.arrive() != PieDecision::Enqueue), "ten updates later it is used up");
    // It returns as a packet arrives with a probability of 0, and both the latest delay and that of the last update below
    // half the target (RFC 8033 §4.4).
    let allowance = |drop_probability, last_delay, latest| {
        let mut test = TestControl::at_probability(RFC, drop_probability, last_delay);
        test.pie.on_departure(test.now, 1000, latest, TestControl::BYTES);
        test.arrive();
        test.pie.burst_allowance()
    };
    assert_eq!(allowance(0.0, for_ms(7), for_ms(7)), for_ms(150));
    for (probability, last, latest) in [(0.001, 7, 7), (0.0, 8, 7), (0.0, 7, 8)] {
        assert!(allowance(probability, for_ms(last), for_ms(latest)).is_zero(), "{last} and {latest} ms");
    }
    // An update takes its interval from the allowance in any case.
    let mut test = TestControl::new(RFC);
    test.update(for_ms(1));
    assert_eq!(test.pie.burst_allowance(), for_ms(135));
    test.arrive();
    assert_eq!(test.pie.burst_allowance(), for_ms(150));
}

#[test]
fn the_drop_probability_decays_to_zero_while_the_queue_is_empty() {
    let mut queue = TestQueue::new(RFC, 100);
    queue.pie().control =
        Control { drop_probability: 0.4, last_delay: Duration::ZERO, burst_allowance: Duration::ZERO };
    // 0.4 - 0.125 * 0.015 at the first update, and 2 % less.
    queue.pie().advance(ms(15), 0);
    assert!(close(queue.probability(), (0.4 - 0.001875) * 0.98));
    let _ = queue.offer(ms(300), data(0));
    let later = queue.probability();
    assert!((0.2..0.3).contains(&later), "20 updates: {later}");
    let _ = queue.offer(Instant::from_secs(40), data(1));
    assert_eq!(queue.probability(), 0.0);
    assert_eq!(queue.pie().burst_allowance(), for_ms(150), "it starts afresh");
}

#[test]
fn capable_packets_are_marked_below_the_ecn_threshold() {
    let capable = |n| Packet { capability: EcnCapability::Capable, ..data(n) };
    let results = |action, probability: f64, packet: &dyn Fn(u32) -> Packet| {
        let mut queue = TestQueue::new(PieConfig { action, ..RFC }, 1000);
        for n in 0..10 {
            let _ = queue.offer(ms(0), data(n));
        }
        let control = Control {
            drop_probability: probability,
            last_delay: for_ms(20),
            burst_allowance: Duration::ZERO,
        };
        let mut drops = 0;
        for n in 10..410 {
            queue.pie().control = control;
            drops += u32::from(queue.offer(ms(1), packet(n)) != EnqueueResult::Accepted);
        }
        (drops, queue.owner.marked.len())
    };
    let (drops, marks) = results(SignalAction::Mark, 0.099, &capable);
    assert!(drops == 0 && (20..60).contains(&marks), "{drops} drops, {marks} marks of 400 at 9.9 %");
    let (drops, marks) = results(SignalAction::Mark, 0.1, &capable);
    assert!((20..60).contains(&drops) && marks == 0, "{drops} drops, {marks} marks at 10 %");
    let (drops, marks) = results(SignalAction::Mark, 0.09, &data);
    assert!((15..60).contains(&drops) && marks == 0, "{drops} drops, {marks} marks of packets without ECN");
    let (drops, marks) = results(SignalAction::Drop, 0.09, &capable);
    assert!((15..60).contains(&drops) && marks == 0, "{drops} drops, {marks} marks without action mark");
}

#[test]
fn a_short_queue_or_a_low_delay_drops_nothing() {
    let mut test = TestControl::at_probability(RFC, 0.9, for_ms(20));
    assert!((0..50).all(|_| test.pie.on_arrival(ms(0), 2048, 0.0) == PieDecision::Enqueue), "two packets");
    assert!((0..50).any(|_| test.pie.on_arrival(ms(0), 2049, 0.0) == PieDecision::Drop));
    let mut low = TestControl::at_probability(RFC, 0.19, for_ms(7));
    assert!((0..50).all(|_| low.arrive() == PieDecision::Enqueue), "below half the target and below 20 %");
    low.pie.control.drop_probability = 0.2;
    assert!((0..50).any(|_| low.arrive() == PieDecision::Drop));
}

#[test]
fn derandomization_spaces_the_drops() {
    let gaps = |derandomization| {
        let mut test = TestControl::at_probability(PieConfig { derandomization, ..RFC }, 0.05, for_ms(20));
        let chosen: Vec<u32> = (0..20_000).filter(|_| test.arrive() != PieDecision::Enqueue).collect();
        let gaps: Vec<u32> = chosen.windows(2).map(|pair| pair[1] - pair[0]).collect();
        (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap())
    };
    let (least, most) = gaps(Derandomization::On);
    // 0.85 / 0.05 = 17 packets at least, 8.5 / 0.05 = 170 at most.
    assert!((16..=18).contains(&least) && most <= 171, "{least} to {most}");
    assert!(gaps(Derandomization::Off).0 < 4);
    let on = PieConfig { derandomization: Derandomization::On, ..RFC };
    for _ in 0..50 {
        let mut test = TestControl::at_probability(on, 0.001, for_ms(20));
        test.pie.accumulated = 8.4995;
        assert_eq!(test.arrive(), PieDecision::Signal, "for certain");
        assert_eq!(test.arrive(), PieDecision::Enqueue, "it starts afresh");
    }
}

#[test]
fn without_a_drop_probability_no_probability_is_saved_up() {
    let on = PieConfig { derandomization: Derandomization::On, ..RFC };
    let mut test = TestControl::at_probability(on, 0.0, for_ms(20));
    test.pie.accumulated = 8.4;
    assert_eq!(test.arrive(), PieDecision::Enqueue);
    assert_eq!(test.pie.accumulated, 0.0);
}

#[test]
fn the_delay_is_that_of_the_last_data_packet_until_the_queue_is_empty() {
    let mut queue = TestQueue::new(RFC, 100);
    for n in 0..2 {
        let _ = queue.offer(ms(0), data(n));
    }
    let _ = queue.offer(ms(1), routing(2));
    let _ = queue.offer(ms(90), data(3));
    let mut delay_after = |at| {
        queue.serve(ms(at));
        queue.pie().delay.current(0)
    };
    assert_eq!([5, 6, 100, 101].map(&mut delay_after), [5, 6, 6, 0].map(for_ms));
}

#[test]
fn cap_drop_adjustment_limits_growth_to_two_percent() {
    let cap = PieConfig { cap_drop_adjustment: CapDropAdjustment::On, ..RFC };
    // 0.125 * 0.985 + 1.25 * 0.98 = 1.348125.
    let grown = |config, from| {
        TestControl::at_probability(config, from, for_ms(20)).update(Duration::from_secs(1)) - from
    };
    assert!(close(grown(cap, 0.1), 0.02));
    assert!(close(grown(cap, 0.09), 1.348125 / 2.0), "below 0.1 there is no cap");
    assert!(close(grown(RFC, 0.1), 0.9), "up to 1");
    let mut falling = TestControl::at_probability(cap, 0.5, for_ms(100));
    assert!(close(falling.update(for_ms(15)), 0.5 - 1.25 * 0.085), "only growth is capped");
}

#[test]
fn the_dequeue_rate_gives_the_delay_of_the_backlog() {
    let estimate = DelayEstimate::DequeueRate { threshold_bytes: 16_384 };
    let config = PieConfig { delay_estimate: estimate, ..RFC };
    let mut pie = Pie::new(config, stream());
    // 1000 bytes leave each ms. The measurement ends after 17 packets.
    for n in 0..=17 {
        assert!(pie.delay.current(50_000).is_zero(), "no measurement yet");
        pie.on_departure(ms(n), 1000, Duration::from_secs(9), 50_000);
    }
    let delay = pie.delay.current(50_000).as_secs_f64();
    assert!(close((delay * 1e6).round(), 50_000.0), "{delay}");
    // At half the rate, the average moves by a weight of 1/4: 1.25 ms a packet.
    for n in 1..=17 {
        pie.on_departure(ms(17 + 2 * n), 1000, Duration::ZERO, 50_000);
    }
    let delay = pie.delay.current(20_000).as_secs_f64();
    assert!(close((delay * 1e6).round(), 25_000.0), "{delay}");
    for n in 0..40 {
        pie.on_departure(ms(60 + 9 * n), 1000, Duration::ZERO, 16_000);
    }
    // The measurement that had begun ends with 17 packets in 153 ms: 9 / 4 + 1.25 * 3 / 4 = 3.1875 ms a packet. Below the
    // threshold none begins.
    let delay = pie.delay.current(16_000).as_secs_f64();
    assert!(close((delay * 1e6).round(), 51_000.0), "{delay}");
}

#[test]
fn pie_sleeps_below_a_third_of_the_capacity() {
    let activation = Activation::AboveOccupancy { share: 1.0 / 3.0 };
    let mut queue = TestQueue::new(PieConfig { activation, ..RFC }, 30);
    // Nine packets leave after 100 ms, which is far above the target.
    for n in 0..9 {
        assert_eq!(queue.offer(ms(0), data(n)), EnqueueResult::Accepted);
    }
    queue.serve(ms(100));
    assert_eq!(queue.offer(ms(500), data(9)), EnqueueResult::Accepted);
    assert_eq!((queue.probability(), queue.pie().state), (0.0, State::Inactive));
    for n in 10..13 {
        assert_eq!(queue.offer(ms(510), data(n)), EnqueueResult::Accepted);
    }
    assert_eq!(queue.pie().state, State::Active);
    assert_eq!(queue.pie().burst_allowance(), for_ms(150));
    queue.serve(ms(600));
    let _ = queue.offer(ms(700), data(13));
    assert!(queue.probability() > 0.0);
    while queue.serve(ms(701)).is_some() {}
    let _ = queue.offer(ms(20_000), data(14));
    assert_eq!((queue.probability(), queue.pie().state), (0.0, State::Inactive));
}

#[test]
fn pie_sleeps_again_when_the_delays_are_below_half_the_target() {
    // RFC 8033 §5.3: packets that wait 7 ms end the congestion, although the queue is not empty.
    let activation = Activation::AboveOccupancy { share: 1.0 / 3.0 };
    let state_after = |probability, last, latest, occupancy| {
        let config = PieConfig { activation, ..RFC };
        let mut test = TestControl::at_probability(config, probability, for_ms(last));
        test.pie.state = State::Active;
        test.pie.on_departure(ms(1), 1000, for_ms(latest), TestControl::BYTES);
        test.pie.on_arrival(ms(1), TestControl::BYTES, occupancy);
        test.pie.state
    };
    assert_eq!(state_after(0.0, 7, 7, 0.3), State::Inactive);
    assert_eq!(state_after(0.001, 7, 7, 0.3), State::Active, "while packets are dropped");
    assert_eq!(state_after(0.0, 8, 7, 0.3), State::Active, "previous delay");
    assert_eq!(state_after(0.0, 7, 8, 0.3), State::Active, "latest delay");
    assert_eq!(state_after(0.0, 7, 7, 0.4), State::Active, "the queue is long");
}

#[test]
fn activation_starts_the_updates_and_a_measurement_of_the_rate() {
    // RFC 8033 appendix B: the first update is an interval later, and the bytes that leave count at once.
    let activation = Activation::AboveOccupancy { share: 0.5 };
    let delay_estimate = DelayEstimate::DequeueRate { threshold_bytes: 2000 };
    let mut pie = Pie::new(PieConfig { activation, delay_estimate, ..RFC }, stream());
    let measure = |pie: &mut Pie, at: u64, millis_each: u64| {
        for n in 1..=2 {
            pie.on_departure(ms(at + n * millis_each), 1000, Duration::ZERO, 10_000);
        }
        pie.delay.current(10_000)
    };
    pie.on_arrival(ms(10), 100_000, 0.5);
    assert_eq!((pie.state, pie.next_update), (State::Active, ms(25)));
    assert_eq!(measure(&mut pie, 10, 1), for_ms(10));
    // It sleeps, and what it had measured is forgotten.
    pie.control = Control { drop_probability: 0.0, last_delay: for_ms(7), burst_allowance: for_ms(15) };
    pie.on_arrival(ms(20), 5000, 0.4);
    assert_eq!(pie.state, State::Inactive);
    assert!(matches!(pie.delay, DelayMeasurement::Rate(DequeueRate { measurement: None, .. })));
    pie.control.burst_allowance = Duration::ZERO;
    pie.on_arrival(ms(30), 10_000, 0.5);
    assert_eq!(pie.control, Control::reset(&RFC));
    assert!(pie.delay.current(10_000).is_zero());
    assert_eq!(measure(&mut pie, 30, 3), for_ms(30));
}

#[test]
fn removed_packets_and_full_queues_are_noted() {
    let mut queue = TestQueue::new(RFC, 3);
    for n in 0..3 {
        let _ = queue.offer(ms(0), data(n));
    }
    queue.serve(ms(10));
    queue.pie().accumulated = 0.5;
    assert_eq!(queue.offer(ms(10), data(3)), EnqueueResult::Accepted);
    assert_eq!(
        (queue.offer(ms(10), data(4)), queue.pie().accumulated),
        (EnqueueResult::Refused(data(4)), 0.0)
    );
    let removes = |queue: &mut TestQueue, at, below| {
        queue.queue.remove_matching(at, |packet| packet.number < below, |_| (), |packet| packet.len_bytes);
    };
    removes(&mut queue, ms(14), 3);
    queue.pie().advance(ms(15), 0);
    assert_eq!(queue.pie().control.last_delay, for_ms(10));
    removes(&mut queue, ms(16), 4);
    queue.pie().advance(ms(30), 0);
    assert!(queue.pie().control.last_delay.is_zero(), "the queue is empty");
}

#[test]
fn updates_that_change_nothing_are_skipped() {
    let mut queue = TestQueue::new(PieConfig { update_interval: Duration::from_nanos(1), ..RFC }, 3);
    // 10^18 updates are due.
    let _ = queue.offer(Instant::from_secs(1_000_000_000), data(0));
    assert!(queue.pie().next_update > Instant::from_secs(1_000_000_000));
}

#[test]
fn routing_messages_are_never_dropped_early() {
    let mut queue = TestQueue::new(RFC, 2000);
    let mut drops = 0;
    for n in 0..1000 {
        let control =
            Control { drop_probability: 1.0, last_delay: for_ms(20), burst_allowance: Duration::ZERO };
        queue.pie().control = control;
        assert_eq!(queue.offer(ms(1), routing(n)), EnqueueResult::Accepted);
        drops += u32::from(queue.offer(ms(1), data(n)) == EnqueueResult::EarlyDrop(data(n)));
    }
    assert!(drops > 990, "{drops}");
}

#[test]
fn a_queue_with_constant_overload_settles_at_the_target() {
    // 25 % too much: a packet each 0.8 ms, served each 1 ms.
    let mut queue = TestQueue::new(RFC, 1000);
    let (mut next, mut drops, mut sojourns) = (0, 0, Vec::new());
    for tick in 0..300_000_u64 {
        let now = Instant::from_nanos(tick * 200_000);
        if tick % 4 == 0 {
            let dropped = queue.offer(now, data(next)) != EnqueueResult::Accepted;
            next += 1;
            drops += u32::from(dropped && tick > 100_000);
        }
        if tick % 5 == 0 && queue.serve(now).is_some() && tick > 100_000 {
            sojourns.push(queue.queue.len() as f64);
        }
    }
    let mean = sojourns.iter().sum::<f64>() / sojourns.len() as f64;
    assert!((13.0..17.0).contains(&mean), "{mean} packets of 1 ms");
    let share = f64::from(drops) / 50_000.0;
    assert!((0.19..0.21).contains(&share), "{share}");
}

#[test]
fn invalid_configurations_are_refused() {
    assert_eq!(RFC.validate(), Ok(()));
    assert_eq!(PieConfig::LINUX.validate(), Ok(()));
    let zero = Duration::ZERO;
    for (config, must) in [
        (PieConfig { target: zero, ..RFC }, "a target above 0"),
        (PieConfig { update_interval: zero, ..RFC }, "an update interval above 0"),
        (PieConfig { alpha_hz: -1.0, ..RFC }, "alpha of at least 0"),
        (PieConfig { beta_hz: f64::NAN, ..RFC }, "beta of at least 0"),
        (PieConfig { mark_threshold: 1.1, ..RFC }, "a mark threshold from 0 to 1"),
        (
            PieConfig { activation: Activation::AboveOccupancy { share: 0.0 }, ..RFC },
            "an activation share above 0 and at most 1",
        ),
        (
            PieConfig { delay_estimate: DelayEstimate::DequeueRate { threshold_bytes: 0 }, ..RFC },
            "a dequeue threshold of at least 1 byte",
        ),
    ] {
        assert_eq!(config.validate(), Err(must));
    }
}
