//! The machine: samples, notices, and DNPD, the drops (§5.3).

use super::channel::Congestion;
use super::config::{Config, Delivery, Guard, Incoming, Suffering};
use super::guard::{Believed, Trust};
use super::neighbours::Neighbours;
use super::notices::{Held, Notices};
use super::types::{Coming, Event, Ignored, Outgoing, Received, Signal, Stats, Timer, To};
use crate::red::{Spacing, Verdict};
use hopline_core::{Instant, LinkId, Machine, Stream, TimerTable};
use hopline_wire::ncn::{About, NormalizedPb, Notice};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Neighborhood RED at one node; see the [module](super).
#[derive(Clone, Debug)]
pub struct NeighborhoodRed {
    config: Arc<Config>,
    address: Ipv4Addr,
    random: Stream,
    congestion: Congestion,
    neighbours: Neighbours,
    notices: Notices,
    trust: Trust,
    /// Largest drop share in a notice since this node last checked whether to send one.
    told: NormalizedPb,
    /// Arrival time of the latest packet of a flow.
    carried: Option<Instant>,
    outgoing: Spacing,
    incoming: Spacing,
    timers: TimerTable<Timer, 3>,
    /// `true` if the check whether to send a notice is due, but waits for a sample that was due before it.
    looks_after_sample: bool,
    transmits: VecDeque<Outgoing>,
    /// Relayed notices that wait for their jitter to pass, in order of departure.
    later: VecDeque<(Instant, Outgoing)>,
    events: VecDeque<Event>,
    stats: Stats,
}

impl NeighborhoodRed {
    /// Creates a node that starts at `now`. It first checks whether to send a notice at a random moment of the first TNCN,
    /// so that neighbours do not all check at once.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>, address: Ipv4Addr, now: Instant, mut stream: Stream) -> Self {
        let config = config.into();
        let mut timers = TimerTable::new();
        timers.set(Timer::Sample, now + config.sampling);
        timers.set(Timer::Notice, now + stream.duration_below(config.notice_interval));
        Self {
            neighbours: Neighbours::new(config.neighbours.get().into(), config.neighbour_memory),
            config,
            address,
            random: stream,
            congestion: Congestion::default(),
            notices: Notices::default(),
            trust: Trust::default(),
            told: NormalizedPb::ZERO,
            carried: None,
            outgoing: Spacing::default(),
            incoming: Spacing::default(),
            timers,
            looks_after_sample: false,
            transmits: VecDeque::new(),
            later: VecDeque::new(),
            events: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Decides on an arriving packet of a flow. [`Verdict::Notify`] means to drop it, or to mark it with that
    /// [action](Config::action). Routing messages and notices are not offered.
    pub fn admit(&mut self, now: Instant, coming: Coming) -> Verdict {
        self.carried = Some(now);
        self.stats.packets += 1;
        let verdict = match coming {
            Coming::Down { next_hop } => {
                let share = self.notices.normalized_pb_to(now, next_hop);
                judge(share, self.congestion.outgoing, &mut self.outgoing, &mut self.random)
            }
            Coming::Up if self.config.incoming == Incoming::Relayed => Verdict::Enter,
            Coming::Up => {
                let share = self.notices.normalized_pb(now);
                judge(share, self.congestion.incoming, &mut self.incoming, &mut self.random)
            }
        };
        let chosen = u64::from(verdict != Verdict::Enter);
        match coming {
            Coming::Down { .. } => self.stats.chosen_outgoing += chosen,
            Coming::Up => self.stats.chosen_incoming += chosen,
        }
        verdict
    }

    /// Parameters.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// `avg`, the estimate of the neighbourhood's queue, packets.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.congestion.all
    }

    /// Returns `q`, the latest input of that average: the estimate from the latest interval alone, in packets.
    #[must_use]
    pub fn latest(&self) -> f64 {
        self.congestion.latest
    }

    /// `avgtx` and `avgrx`, the estimates of this node's outgoing and incoming queues, packets.
    #[must_use]
    pub fn own_averages(&self) -> [f64; 2] {
        [self.congestion.outgoing, self.congestion.incoming]
    }

    /// Returns the numbers of known neighbours and of notices that they relayed: at most [`neighbours`](Config::neighbours)
    /// each.
    #[must_use]
    pub fn entries(&self) -> [usize; 2] {
        [self.neighbours.len(), self.notices.relayed_len()]
    }

    /// Returns the `normalizedPb` in force at `now`.
    #[must_use]
    pub fn normalized_pb(&self, now: Instant) -> NormalizedPb {
        self.notices.normalized_pb(now)
    }

    /// Algorithm 5.1: sends a notice if all four conditions hold.
    fn look_for_congestion(&mut self, now: Instant) {
        let normalized_pb = NormalizedPb::of(self.congestion.normalized_pb(&self.config));
        let told = core::mem::take(&mut self.told);
        let on_a_path = self.carried.is_some_and(|at| now.since(at) <= self.config.flow_memory);
        if normalized_pb == NormalizedPb::ZERO || !on_a_path || !self.suffers(now) {
            self.trust.is_heard();
        } else if told <= normalized_pb || !self.trust.keeps_quiet(now, &self.config) {
            self.trust.is_heard();
            let notice = Notice { normalized_pb, lifetime: self.config.lifetime, about: About::Sender };
            self.stats.notices_sent += self.announce(now, notice);
        }
    }

    fn suffers(&self, now: Instant) -> bool {
        let own = self.congestion.outgoing + self.congestion.incoming;
        let share = match self.config.suffering {
            Suffering::BelowShare(share) => share,
            Suffering::BelowFairShare => 1.0 / (self.neighbours.active(now).count() as f64 + 1.0),
        };
        own < share * self.congestion.all
    }

    /// Sends a notice, if the configuration sends notices. Returns the number sent.
    fn announce(&mut self, now: Instant, notice: Notice) -> u64 {
        let neighbour = match self.config.delivery {
            Delivery::Unicast => self.neighbours.draw(now, &mut self.random),
            Delivery::Broadcast => None,
            Delivery::None => return 0,
        };
        self.transmits.push_back(Outgoing { to: neighbour.map_or(To::Everyone, To::Neighbour), notice });
        1
    }

    /// Handles a frame of `neighbour`. An address that cannot belong to another host is no neighbour.
    fn hear(&mut self, now: Instant, neighbour: Ipv4Addr) {
        let group = neighbour.is_broadcast() || neighbour.is_multicast() || neighbour.is_unspecified();
        if !group && neighbour != self.address {
            self.neighbours.hear(now, neighbour);
        }
    }

    /// Handles a notice, and relays it if required.
    fn heed(&mut self, now: Instant, Received { from, notice }: Received) -> Result<(), Ignored> {
        if from == self.address || notice.about == About::Neighbour(self.address) {
            return Err(Ignored::AboutUs);
        }
        if let About::Neighbour(sufferer) = notice.about
            && (self.config.incoming == Incoming::Dropped || self.neighbours.is_active(now, sufferer))
        {
            return Err(Ignored::NotForUs);
        }
        match self.config.guard {
            Guard::Off => self.hear(now, from),
            Guard::On(_) if !self.neighbours.knows(from) => return Err(Ignored::Stranger),
            Guard::On(limits) if !self.neighbours.count_notice(now, from, limits.spacing) => {
                return Err(Ignored::TooSoon);
            }
            Guard::On(_) => {}
        }
        let said = Believed { normalized_pb: notice.normalized_pb, lifetime: notice.lifetime };
        let believed = self.trust.believe(now, said, &self.config);
        self.stats.capped += u64::from(believed != said);
        let Believed { normalized_pb, lifetime } = believed;
        let held = |from| Held { from, normalized_pb, until: now + lifetime };
        match notice.about {
            About::Neighbour(sufferer) => {
                let limit = self.config.neighbours.get().into();
                self.notices.take_relayed(now, from, held(sufferer), limit)
            }
            About::Sender => {
                // A notice too short to cause drops is no claim to be more starved: honest notices hold for two intervals.
                if lifetime >= self.config.notice_interval {
                    self.told = self.told.max(normalized_pb);
                }
                self.notices.take(now, held(from))?;
                self.relay(now, from, believed);
                Ok(())
            }
        }
    }

    /// Relays a notice of `sufferer` to the nodes that send to this node.
    fn relay(&mut self, now: Instant, sufferer: Ipv4Addr, believed: Believed) {
        // Half the renewal interval of notices: an early renewal is relayed, a flood is not.
        let spacing = self.config.notice_interval / 2;
        if self.config.incoming == Incoming::Relayed
            && self.neighbours.count_relayed(now, sufferer, spacing)
            && self.trust.passes_on(now, &self.config)
        {
            let Believed { normalized_pb, lifetime } = believed;
            let notice = Notice { normalized_pb, lifetime, about: About::Neighbour(sufferer) };
            self.stats.notices_relayed += match self.config.delivery {
                Delivery::Broadcast => self.announce_later(now, notice),
                Delivery::Unicast | Delivery::None => self.announce(now, notice),
            };
        }
    }

    /// Broadcasts a notice after a random delay. Returns the number queued. At most as many notices wait as there are
    /// neighbours.
    fn announce_later(&mut self, now: Instant, notice: Notice) -> u64 {
        if self.config.relay_jitter.is_zero() {
            return self.announce(now, notice);
        }
        if self.later.len() >= usize::from(self.config.neighbours.get()) {
            return 0;
        }
        let due = now + self.random.duration_below(self.config.relay_jitter);
        let at = self.later.partition_point(|(other, _)| *other <= due);
        self.later.insert(at, (due, Outgoing { to: To::Everyone, notice }));
        self.set_relay_timer();
        1
    }

    /// Sends the relayed notices with an expired jitter.
    fn relay_due(&mut self, now: Instant) {
        while let Some((_, outgoing)) = self.later.pop_front_if(|(due, _)| *due <= now) {
            self.transmits.push_back(outgoing);
        }
        self.set_relay_timer();
    }

    fn set_relay_timer(&mut self) {
        self.timers.set(Timer::Relay, self.later.front().map_or(Instant::FAR_FUTURE, |(due, _)| *due));
    }
}

/// Returns the verdict on a packet for a given drop share and average queue (algorithm 5.2).
fn judge(share: NormalizedPb, average: f64, spacing: &mut Spacing, random: &mut Stream) -> Verdict {
    if share == NormalizedPb::ZERO {
        spacing.reset();
        Verdict::Enter
    } else if share == NormalizedPb::ONE {
        spacing.note_chosen();
        Verdict::Drop
    } else {
        spacing.choose((share.get() * average).min(1.0), random)
    }
}

impl Machine for NeighborhoodRed {
    type Packet = Received;
    type Transmit = Outgoing;
    type Signal = Signal;
    type Event = Event;
    type Timer = Timer;

    fn handle_packet(&mut self, now: Instant, _link: LinkId, received: Received) {
        self.stats.notices_received += 1;
        if let Err(why) = self.heed(now, received) {
            self.stats.ignore(why);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_expired(now) {
            match timer {
                Timer::Sample => {
                    self.timers.set(Timer::Sample, now + self.config.sampling);
                    self.events.push_back(Event::Sample);
                }
                Timer::Notice => {
                    self.timers.set(Timer::Notice, now + self.config.notice_interval);
                    // The current average includes the interval that ends now (§5.1), which must be sampled first.
                    if self.events.contains(&Event::Sample) {
                        self.looks_after_sample = true;
                    } else {
                        self.look_for_congestion(now);
                    }
                }
                Timer::Relay => self.relay_due(now),
            }
        }
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        match signal {
            Signal::Channel(total) => {
                self.congestion.sample(total, &self.config);
                if core::mem::take(&mut self.looks_after_sample) {
                    self.look_for_congestion(now);
                }
            }
            Signal::Heard(neighbour) => self.hear(now, neighbour),
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.transmits.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        self.timers.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
