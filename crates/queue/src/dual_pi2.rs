//! DualPI2, a dual-queue coupled AQM (RFC 9332): a queue for low-latency (L4S) traffic and one for Classic traffic share a
//! link and its capacity.
//!
//! A PI controller of the queueing delay yields a base probability `p'`. Classic packets are dropped or marked with
//! `p_C = p'²`, L4S packets are marked with at least `p_CL = k p'`. So flows of both kinds get about the same rate, although
//! L4S senders respond less to each mark. The periodic update needs no timer: updates that have become due are made as a
//! packet arrives or leaves, each with the delays of its own time.

mod config;
mod scheduler;

pub use config::{DualPi2Config, Scheduler};

use crate::codel::Queued;
use crate::drop_tail::{Class, EnqueueResult};
use crate::packet_access::{EcnCapability, PacketAccess};
use core::num::NonZeroU16;
use hopline_core::{Duration, Instant};
use scheduler::{Backlogs, Subqueue, WrrCredit};
use std::collections::VecDeque;

/// Dual queue with a limit on all packets together. Routing messages and urgent packets are served first and never dropped
/// early or marked.
#[derive(Clone, Debug)]
pub struct DualPi2<T> {
    config: DualPi2Config,
    capacity: NonZeroU16,
    routing: VecDeque<T>,
    /// L queue: packets with ECT(1) or CE.
    l4s: VecDeque<Queued<T>>,
    /// C queue.
    classic: VecDeque<Queued<T>>,
    controller: Controller,
    wrr: WrrCredit,
    /// Counters of `recur` for L4S marks, L4S drops and Classic signals.
    l4s_marks: Recur,
    l4s_drops: Recur,
    classic_signals: Recur,
}

/// Verdict on a packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Serve,
    Mark,
    Drop,
}

/// PI controller of the base probability (RFC 9332 appendix A.1).
#[derive(Clone, Copy, Debug)]
struct Controller {
    /// `p'`, 0 to 1.
    base_probability: f64,
    /// `prevq`: queueing delay at the last update.
    last_delay: Duration,
    next_update: Instant,
}

/// Choice of evenly spaced packets (`recur` of RFC 9332 appendix A.1).
#[derive(Clone, Copy, Debug, Default)]
struct Recur {
    count: f64,
}

impl<T: Copy> DualPi2<T> {
    /// Creates an empty queue for at most `capacity` packets of both kinds.
    #[must_use]
    pub fn new(config: DualPi2Config, capacity: NonZeroU16) -> Self {
        Self {
            config,
            capacity,
            routing: VecDeque::new(),
            l4s: VecDeque::new(),
            classic: VecDeque::new(),
            controller: Controller {
                base_probability: 0.0,
                last_delay: Duration::ZERO,
                next_update: Instant::ZERO + config.update_interval,
            },
            wrr: WrrCredit::default(),
            l4s_marks: Recur::default(),
            l4s_drops: Recur::default(),
            classic_signals: Recur::default(),
        }
    }

    /// Parameters.
    #[must_use]
    pub fn config(&self) -> &DualPi2Config {
        &self.config
    }

    /// Base probability `p'`, 0 to 1.
    #[must_use]
    pub fn base_probability(&self) -> f64 {
        self.controller.base_probability
    }

    /// Coupled probability `p_CL = k p'` with which L4S packets are marked at least. Overload is saturated from 1 on.
    #[must_use]
    pub fn coupled_probability(&self) -> f64 {
        self.config.coupling * self.controller.base_probability
    }

    /// Probability `p_C = p'²` with which Classic packets are dropped or marked.
    #[must_use]
    pub fn classic_probability(&self) -> f64 {
        self.controller.base_probability * self.controller.base_probability
    }

    /// Offers a packet (RFC 9332 appendix A.1). A full queue refuses it; a routing message displaces the last packet of data.
    pub fn enqueue(&mut self, now: Instant, packet: T, contents: &impl PacketAccess<T>) -> EnqueueResult<T> {
        self.advance(now);
        let full = self.len() >= usize::from(self.capacity.get());
        if contents.class(&packet) != Class::Data {
            let displaced = if full { self.classic.pop_back().or_else(|| self.l4s.pop_back()) } else { None };
            if full && displaced.is_none() {
                return EnqueueResult::Refused(packet);
            }
            self.routing.push_back(packet);
            return displaced.map_or(EnqueueResult::Accepted, |last| EnqueueResult::Displaced(last.packet));
        }
        if full {
            return EnqueueResult::Refused(packet);
        }
        let queued = Queued { packet, enqueued_at: now };
        match contents.capability(&packet) {
            EcnCapability::L4s => self.l4s.push_back(queued),
            EcnCapability::Capable | EcnCapability::NotCapable => self.classic.push_back(queued),
        }
        EnqueueResult::Accepted
    }

    /// Removes and returns the next packet to serve (appendix A.2). Reports drops and marks to `contents`.
    pub fn dequeue(&mut self, now: Instant, contents: &mut impl PacketAccess<T>) -> Option<T> {
        self.advance(now);
        if let Some(packet) = self.routing.pop_front() {
            return Some(packet);
        }
        while let Some(subqueue) = self.next_subqueue(now) {
            let (mut packet, verdict) = match subqueue {
                Subqueue::L4s => self.pop_l4s(now, contents),
                Subqueue::Classic => self.pop_classic(contents),
            };
            match verdict {
                Verdict::Serve => {}
                Verdict::Mark => contents.mark(&mut packet),
                Verdict::Drop => {
                    contents.dropped(packet);
                    continue;
                }
            }
            self.charge(subqueue, contents.len_bytes(&packet));
            return Some(packet);
        }
        None
    }

    /// Removes every packet for which `matches` holds and hands it to `sink`.
    pub fn remove_matching(
        &mut self,
        now: Instant,
        mut matches: impl FnMut(&T) -> bool,
        mut sink: impl FnMut(T),
    ) {
        self.advance(now);
        let mut stays = |packet: &T| {
            let take = matches(packet);
            if take {
                sink(*packet);
            }
            !take
        };
        self.routing.retain(&mut stays);
        self.l4s.retain(|held| stays(&held.packet));
        self.classic.retain(|held| stays(&held.packet));
    }

    /// The packets in the queue: routing messages, L4S packets, Classic packets.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let data = self.l4s.iter().chain(&self.classic).map(|held| &held.packet);
        self.routing.iter().chain(data)
    }

    /// Number of packets in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routing.len() + self.l4s.len() + self.classic.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the head of the L queue, which is not empty, and judges it.
    fn pop_l4s(&mut self, now: Instant, contents: &impl PacketAccess<T>) -> (T, Verdict) {
        let head = self.l4s.pop_front().expect("the scheduler selects a queue with a packet");
        debug_assert_eq!(contents.class(&head.packet), Class::Data);
        let coupled = self.coupled_probability();
        // RFC 9332 appendix A.2: p_Lmax is 1.
        if coupled >= 1.0 {
            // Overload saturation: marks alone cannot control the queue, so L4S packets are dropped as Classic ones are.
            if self.l4s_drops.choose(self.classic_probability()) {
                return (head.packet, Verdict::Drop);
            }
            return (head.packet, Verdict::Mark);
        }
        let native = if self.l4s.len() < usize::from(self.config.l4s_min_backlog_packets) {
            0.0
        } else {
            self.config.native_probability(now.since(head.enqueued_at))
        };
        let marks = self.l4s_marks.choose(native.max(coupled));
        (head.packet, if marks { Verdict::Mark } else { Verdict::Serve })
    }

    /// Takes the head of the C queue, which is not empty, and judges it.
    fn pop_classic(&mut self, contents: &impl PacketAccess<T>) -> (T, Verdict) {
        let head = self.classic.pop_front().expect("the scheduler selects a queue with a packet");
        let probability = self.classic_probability();
        if !self.classic_signals.choose(probability) {
            return (head.packet, Verdict::Serve);
        }
        // RFC 9332 appendix A.2: overload disables ECN.
        let overload = probability >= self.config.max_classic_mark_probability();
        let capable = contents.capability(&head.packet) != EcnCapability::NotCapable;
        (head.packet, if capable && !overload { Verdict::Mark } else { Verdict::Drop })
    }

    fn next_subqueue(&self, now: Instant) -> Option<Subqueue> {
        let backlogs = Backlogs { l4s: age(&self.l4s, now), classic: age(&self.classic, now) };
        scheduler::select(&self.config.scheduler, &self.wrr, backlogs)
    }

    /// Accounts for `len_bytes` bytes that `subqueue` sends.
    fn charge(&mut self, subqueue: Subqueue, len_bytes: u32) {
        if let Scheduler::WeightedRoundRobin { classic_weight } = self.config.scheduler {
            let other_is_empty = match subqueue {
                Subqueue::L4s => self.classic.is_empty(),
                Subqueue::Classic => self.l4s.is_empty(),
            };
            self.wrr.charge(subqueue, len_bytes, classic_weight, other_is_empty);
            if self.l4s.is_empty() && self.classic.is_empty() {
                self.wrr = WrrCredit::default();
            }
        }
    }

    /// Makes all updates that are due by `now`.
    fn advance(&mut self, now: Instant) {
        let interval = self.config.update_interval;
        while self.controller.next_update <= now {
            let at = self.controller.next_update;
            self.controller.next_update += interval;
            let delays = [age(&self.l4s, at), age(&self.classic, at)];
            // RFC 9332 appendix A.2: the greater delay counts, so that an overload of either queue is seen.
            let delay = delays.into_iter().flatten().max().unwrap_or(Duration::ZERO);
            let before = (self.controller.base_probability, self.controller.last_delay);
            self.controller.update(&self.config, delay);
            let empty = delays == [None, None] && before == (0.0, Duration::ZERO);
            let saturated = self.controller.base_probability >= 1.0 && delay > self.config.target;
            if empty || saturated {
                // Further updates change nothing: the queue stays empty, or its delay grows until a packet leaves.
                self.controller.skip_updates(now, interval);
            }
        }
    }
}

/// Returns the time that the head of a queue has waited at `at`.
fn age<T>(queue: &VecDeque<Queued<T>>, at: Instant) -> Option<Duration> {
    queue.front().map(|head| at.since(head.enqueued_at))
}

impl Controller {
    fn update(&mut self, config: &DualPi2Config, delay: Duration) {
        let delay_s = delay.as_secs_f64();
        let error = config.alpha_hz * (delay_s - config.target.as_secs_f64());
        let trend = config.beta_hz * (delay_s - self.last_delay.as_secs_f64());
        self.base_probability = (self.base_probability + error + trend).clamp(0.0, 1.0);
        self.last_delay = delay;
    }

    /// Moves the next update beyond `now`, by whole intervals.
    fn skip_updates(&mut self, now: Instant, interval: Duration) {
        if self.next_update <= now {
            let missed = now.since(self.next_update).as_nanos() / interval.as_nanos() + 1;
            let skipped = interval.saturating_mul(missed);
            self.next_update += skipped;
            if !self.last_delay.is_zero() {
                self.last_delay += skipped;
            }
        }
    }
}

impl Recur {
    /// Chooses a packet if the probabilities since the last choice, each at most 1, add up to 1. The pseudocode asks for more
    /// than 1, and so would spare a packet at a probability of 1.
    fn choose(&mut self, probability: f64) -> bool {
        self.count += probability;
        let chosen = self.count >= 1.0;
        if chosen {
            self.count -= 1.0;
        }
        chosen
    }
}

#[cfg(test)]
mod coexistence_tests;
#[cfg(test)]
mod tests;
