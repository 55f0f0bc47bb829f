//! Bulk transfer over a scripted bottleneck: a FIFO queue with random loss, jitter, ECN marks, cross traffic and an
//! outage.

use crate::wide::{Config, Controller, Endpoint, RateController};
use hopline_core::{Duration, Instant, Length, LinkId, Purpose, RandomStream, StateMachine};
use hopline_wire::ipv4::Ecn;
use hopline_wire::wide::Packet;
use std::collections::BTreeMap;
use std::ops::Range;

/// Time in which the competing queue varies.
const CYCLE: Duration = Duration::from_millis(100);

/// Bottleneck between two endpoints. Acknowledgments are only delayed, and lost during the outage.
#[derive(Clone, Debug)]
pub(in crate::wide) struct Bottleneck {
    /// Rate, bits per second, from each of these times on.
    pub(in crate::wide) rates: Vec<(Instant, f64)>,
    /// Delay of each direction.
    pub(in crate::wide) delay: Duration,
    /// Longest queueing delay; further packets are dropped.
    pub(in crate::wide) queue: Duration,
    /// Share of the packets lost behind the queue.
    pub(in crate::wide) loss: f64,
    /// Largest additional delay of a packet behind the queue. The order is kept.
    pub(in crate::wide) jitter: Duration,
    /// Queueing delay above which packets are marked (RFC 3168).
    pub(in crate::wide) marks_above: Option<Duration>,
    /// Competing traffic that keeps a queue of this length or a tenth less, in this time.
    pub(in crate::wide) competing: Option<(Range<Instant>, Duration)>,
    /// Time in which neither direction carries a packet.
    pub(in crate::wide) outage: Option<Range<Instant>>,
    /// Seed of losses and jitter.
    pub(in crate::wide) seed: u64,
}

impl Bottleneck {
    /// 20 Mb/s, 25 ms each way, 40 ms of queue, and nothing else.
    pub(in crate::wide) fn new() -> Self {
        Self {
            rates: vec![(Instant::ZERO, 20e6)],
            delay: Duration::from_millis(25),
            queue: Duration::from_millis(40),
            loss: 0.0,
            jitter: Duration::ZERO,
            marks_above: None,
            competing: None,
            outage: None,
            seed: 1,
        }
    }

    fn rate(&self, now: Instant) -> f64 {
        self.rates.iter().rev().find(|(from, _)| *from <= now).expect("a rate from the beginning").1
    }

    fn is_in_outage(&self, now: Instant) -> bool {
        self.outage.as_ref().is_some_and(|outage| outage.contains(&now))
    }
}

/// State of the queue and of the link behind it.
struct BottleneckState<'a> {
    bottleneck: &'a Bottleneck,
    random: RandomStream,
    /// Time at which the queue will be empty, and arrival of the last packet.
    busy_until: Instant,
    last_arrival: Instant,
}

impl BottleneckState<'_> {
    /// Passes a packet. Returns its time of arrival; `None`: dropped.
    fn transmit(&mut self, now: Instant, packet: &mut Packet<Length>) -> Option<Instant> {
        let of = self.bottleneck;
        let lost = self.random.uniform(0.0, 1.0) < of.loss;
        let jitter = of.jitter.as_secs_f64() * self.random.uniform(0.0, 1.0);
        if let Some((time, queue)) = &of.competing
            && time.contains(&now)
        {
            // Packets of others come and go. Without that, it would be a path of another delay.
            let less = (*queue / 10).as_nanos() * (now.as_nanos() % CYCLE.as_nanos()) / CYCLE.as_nanos();
            self.busy_until = self.busy_until.max(now + *queue - Duration::from_nanos(less));
        }
        let waits = self.busy_until.max(now).since(now);
        if waits > of.queue {
            return None;
        }
        if of.marks_above.is_some_and(|bound| waits > bound) {
            packet.ecn = Ecn::CongestionExperienced;
        }
        let lasts = Duration::from_secs_f64((packet.sealed_len() + 28) as f64 * 8.0 / of.rate(now));
        self.busy_until = self.busy_until.max(now) + lasts;
        let arrives = (self.busy_until + of.delay + Duration::from_secs_f64(jitter)).max(self.last_arrival);
        self.last_arrival = arrives;
        (!lost && !of.is_in_outage(now)).then_some(arrives)
    }
}

/// Transfers without end over `bottleneck` until `until`. Calls `each` after each event with the sender. Returns the
/// sender, and a digest of the times and numbers of all its packets.
pub(in crate::wide) fn bulk(
    config: Config,
    bottleneck: &Bottleneck,
    until: Instant,
    each: impl FnMut(Instant, &mut Endpoint<Length>),
) -> (Endpoint<Length>, u64) {
    bulk_with(config, |packet| RateController::new(config.control, packet), bottleneck, until, each)
}

/// As [`bulk`], with the congestion control that `controller` makes.
pub(in crate::wide) fn bulk_with<C: Controller>(
    config: Config,
    controller: impl Fn(u32) -> C,
    bottleneck: &Bottleneck,
    until: Instant,
    mut each: impl FnMut(Instant, &mut Endpoint<Length, C>),
) -> (Endpoint<Length, C>, u64) {
    let mut ends = [(); 2].map(|()| Endpoint::with_controller(config, &controller).expect("valid"));
    ends[1].listen().expect("new");
    ends[0].connect(Instant::ZERO).expect("new");
    ends[0].send(Instant::ZERO, Length(1 << 40)).expect("no limit");
    let random = RandomStream::global(bottleneck.seed, 0, Purpose::Emulation);
    let mut link =
        BottleneckState { bottleneck, random, busy_until: Instant::ZERO, last_arrival: Instant::ZERO };
    let mut in_flight: BTreeMap<(Instant, u64), (usize, Packet<Length>)> = BTreeMap::new();
    let (mut now, mut count, mut digest) = (Instant::ZERO, 0, 0xcbf2_9ce4_8422_2325_u64);
    while now < until {
        for from in [0, 1] {
            while let Some(mut packet) = ends[from].poll_transmit(now) {
                if from == 0 {
                    for value in [now.as_nanos(), packet.number, packet.data_len()] {
                        digest = (digest ^ value).wrapping_mul(0x0100_0000_01b3);
                    }
                }
                let arrives = match from {
                    0 => link.transmit(now, &mut packet),
                    _ => (!bottleneck.is_in_outage(now)).then_some(now + bottleneck.delay),
                };
                if let Some(arrives) = arrives {
                    in_flight.insert((arrives, count), (1 - from, packet));
                    count += 1;
                }
            }
            while ends[from].recv().is_some() {}
        }
        each(now, &mut ends[0]);
        let timers = ends.iter().filter_map(|end| end.poll_timeout()).map(|(at, _)| at);
        let arrival = in_flight.first_key_value().map(|((at, _), _)| *at);
        now = timers.chain(arrival).min().expect("something is due").max(now);
        match in_flight.first_entry() {
            Some(first) if first.key().0 <= now => {
                let (to, packet) = first.remove();
                ends[to].handle_packet(now, LinkId::ONLY, packet);
            }
            _ => ends.iter_mut().for_each(|end| end.handle_timeout(now)),
        }
    }
    let [sender, _] = ends;
    (sender, digest)
}
