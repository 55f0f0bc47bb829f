//! Rules of the paper: `snoop_data` (§3.1.1) and `snoop_ack` (§3.1.2) case by case, and the timers of §4.

use super::cache::{Cache, Origin};
use super::config::{
    ClassicRules, Config, ExpectedDuplicates, LocalTimer, NextHole, PassPolicy, QueueDropHandling,
    RepeatedDuplicates, Rules, Sampling, SenderRetransmissionMarks,
};
use super::{Ack, AckKind, ConnectionState, Context, DataSegment, RulesState, Stats};
use crate::packet::Verdict;
use crate::rtt::RttEstimator;
use hopline_core::{Duration, Instant, Seq32};

/// State of a connection under these rules.
#[derive(Debug)]
pub(super) struct ClassicState {
    /// Unexpected duplicate ACKs since the last repair.
    duplicates: u32,
    /// Expected duplicate ACKs: the echo of the loss that is being repaired. Below zero where ns-2's agent
    /// has miscounted.
    expected_duplicates: i32,
    /// `true` if the packet that the mobile host waits for was retransmitted since the last new ACK.
    repairing: bool,
    /// Packet that samples the round trip of the last hop: its end, and the time it was sent.
    rtt_sample: Option<(Seq32, Instant)>,
    rtt: RttEstimator,
    /// Time at which the first packet is retransmitted without a duplicate ACK.
    local_timer: Option<Instant>,
    /// Time at which the persist timer last fired.
    last_persist: Instant,
}

impl ClassicState {
    pub(super) fn new(rules: &ClassicRules) -> Self {
        let rtt = match rules.timer {
            LocalTimer::Smoothed { gain, initial, .. } => RttEstimator::with_initial_mean(initial, gain),
            LocalTimer::Deviation { gains, initial, initial_deviation, .. } => {
                RttEstimator::ns2(initial, initial_deviation, gains)
            }
        };
        Self {
            duplicates: 0,
            expected_duplicates: 0,
            repairing: false,
            rtt_sample: None,
            rtt,
            local_timer: None,
            last_persist: Instant::ZERO,
        }
    }

    /// Returns the local retransmission timeout.
    fn local_timeout(&self, timer: &LocalTimer) -> Duration {
        match *timer {
            LocalTimer::Smoothed { factor, min, .. } => {
                min.max(Duration::from_nanos((factor * self.rtt.srtt().as_nanos() as f64) as u64))
            }
            LocalTimer::Deviation { min, .. } => min.max(self.rtt.with_deviations(4)),
        }
    }

    /// Returns the time of the next timer. `heard`: time of the last packet of the connection.
    pub(super) fn poll_timeout<K>(&self, rules: &Rules, cache: &Cache<K>, heard: Instant) -> Option<Instant> {
        let rules = rules.classic();
        let persist = rules
            .persist_timeout
            .filter(|_| !cache.is_empty())
            .map(|time| heard.max(self.last_persist) + time);
        match (self.local_timer, persist) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// The rules, and their state.
macro_rules! classic {
    ($tracked:expr, $hand:expr) => {{
        let RulesState::Classic(state) = &mut $tracked.rules else { unreachable!("asked for these rules") };
        ($hand.config.rules.classic(), state)
    }};
}

/// Handles data as `snoop_data` (§3.1.1).
pub(super) fn handle_data<K: Clone>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    data: DataSegment,
    keep: impl FnOnce() -> K,
) -> Verdict {
    if data.seq.at_or_after(tracked.highest_sent) {
        let is_beyond_gap = data.seq.after(tracked.highest_sent);
        tracked.highest_sent = data.end;
        if tracked.cache.len() >= usize::from(hand.config.high_water.get()) {
            hand.stats.not_cached += 1;
            return Verdict::Forward;
        }
        hand.stats.cached += 1;
        let (rules, state) = classic!(tracked, hand);
        state.rtt_sample.get_or_insert((data.end, hand.now));
        if let LocalTimer::Deviation { .. } = rules.timer {
            let patience = state.local_timeout(&rules.timer);
            state.local_timer.get_or_insert(hand.now + patience);
        }
        let is_marked = is_beyond_gap && rules.sender_retransmissions == SenderRetransmissionMarks::Uncached;
        tracked.cache_packet(
            hand.now,
            data,
            if is_marked { Origin::Retransmission } else { Origin::First },
            keep(),
        );
        return Verdict::Forward;
    }
    let (rules, _) = classic!(tracked, hand);
    if tracked.has_acked(data.end) && tracked.should_answer_old_data(hand.now, rules.old_data) {
        hand.send_ack(tracked);
        return Verdict::Absorb;
    }
    tracked.highest_sent = tracked.highest_sent.max(data.end);
    hand.stats.sender_retransmissions += 1;
    if tracked.has_acked(data.end) {
        return Verdict::Forward;
    }
    let (rules, state) = classic!(tracked, hand);
    state.rtt_sample = None; // Karn: its ACK may be that of either transmission (§3.1.2).
    // A cached packet starts anew with its local retransmissions, and keeps its mark (§3.1.1).
    let known =
        tracked.cache.get_mut(data.seq).filter(|known| known.end == data.end).map(|known| known.origin);
    if known.is_none() && tracked.cache.len() >= 2 * usize::from(hand.config.high_water.get()) {
        return Verdict::Forward;
    }
    let by = known
        .filter(|_| rules.sender_retransmissions != SenderRetransmissionMarks::Retransmissions)
        .unwrap_or(Origin::Retransmission);
    tracked.cache_packet(hand.now, data, by, keep());
    Verdict::Forward
}

/// Handles an ACK as `snoop_ack` (§3.1.2).
pub(super) fn handle_ack<K: Clone>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    ack: Ack,
) -> Verdict {
    let (rules, state) = classic!(tracked, hand);
    match ack.kind {
        AckKind::Old if rules.spurious_acks == PassPolicy::Absorb => Verdict::Absorb,
        AckKind::Old | AckKind::Other => Verdict::Forward,
        AckKind::New => {
            let (mut last_sent, mut was_repair) = (None, false);
            tracked.cache.acknowledge(ack.number, |cached| {
                (last_sent, was_repair) = (Some(cached.sent_at), cached.local_retransmissions > 0);
            });
            (state.expected_duplicates, state.repairing) = (0, false);
            let timed = state.rtt_sample.take_if(|(end, _)| !end.after(ack.number)).map(|(_, sent)| sent);
            let measured = match rules.sampling {
                Sampling::OncePerWindow => timed,
                Sampling::EachAck => last_sent,
            };
            if let Some(sent) = measured.filter(|sent| *sent < hand.now) {
                state.rtt.sample(hand.now.since(sent));
            }
            state.local_timer = match rules.timer {
                LocalTimer::Deviation { .. } if !tracked.cache.is_empty() => {
                    Some(hand.now + state.local_timeout(&rules.timer))
                }
                _ => None,
            };
            if was_repair && rules.next_hole == NextHole::ByAge {
                repair_next_hole_by_age(tracked, hand, ack.number);
            }
            Verdict::Forward
        }
        AckKind::Duplicate => handle_duplicate(tracked, hand, ack.number),
    }
}

/// Handles the ACK of a repair that stops at `number`. The packet that begins there is lost if it is overdue;
/// otherwise a timer is set.
fn repair_next_hole_by_age<K: Clone>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    number: Seq32,
) {
    let (rules, state) = classic!(tracked, hand);
    let patience = state.local_timeout(&rules.timer);
    let after = tracked.cache.len().saturating_sub(1);
    let limit = hand.config.max_local_retransmissions;
    let Some(first) = tracked.cache.get_mut(number).filter(|first| first.local_retransmissions < limit)
    else {
        return;
    };
    let overdue = first.sent_at + patience;
    if overdue > hand.now {
        state.local_timer = Some(overdue);
        return;
    }
    hand.retransmit(first, &mut tracked.transmissions);
    (state.repairing, state.expected_duplicates, state.rtt_sample) = (true, after as i32, None);
    state.local_timer = Some(hand.now + patience);
}

fn handle_duplicate<K: Clone>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    number: Seq32,
) -> Verdict {
    let (rules, state) = classic!(tracked, hand);
    let after = tracked.cache.len().saturating_sub(tracked.cache.position(number) + 1);
    let Some(missing) = tracked.cache.get_mut(number).filter(|missing| missing.origin == Origin::First)
    else {
        return Verdict::Forward;
    };
    if state.repairing && state.expected_duplicates > 0 {
        state.expected_duplicates -= 1;
        return Verdict::Absorb;
    }
    let miscounted = state.repairing && state.expected_duplicates < 0;
    if miscounted && (state.expected_duplicates < -1 || missing.local_retransmissions >= 2) {
        return Verdict::Forward;
    }
    state.duplicates += u32::from(!miscounted);
    if state.duplicates < u32::from(rules.dup_ack_threshold) && !miscounted {
        return Verdict::Forward;
    }
    state.duplicates = 0;
    let again = missing.local_retransmissions > 0;
    state.expected_duplicates = match rules.expected_duplicates {
        _ if miscounted => state.expected_duplicates,
        ExpectedDuplicates::SentAfter => after as i32,
        ExpectedDuplicates::Ns2 => after as i32 - if again { 2 } else { 1 },
    };
    if again && !miscounted && rules.repeated_duplicates == RepeatedDuplicates::TimerOnly {
        return Verdict::Forward;
    }
    if missing.local_retransmissions >= hand.config.max_local_retransmissions {
        hand.stats.left_to_sender +=
            u64::from(missing.local_retransmissions == hand.config.max_local_retransmissions);
        missing.local_retransmissions = missing.local_retransmissions.saturating_add(1);
        return Verdict::Forward;
    }
    hand.retransmit(missing, &mut tracked.transmissions);
    state.repairing = true;
    state.rtt_sample = None; // Karn: nothing is measured by a window in which something was sent again (§3.1.2).
    state.local_timer = Some(hand.now + state.local_timeout(&rules.timer));
    Verdict::Absorb
}

/// Handles timers (§4). `heard`: time of the last packet of the connection.
pub(super) fn handle_timeout<K: Clone>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    heard: Instant,
) {
    let (rules, state) = classic!(tracked, hand);
    if state.local_timer.take_if(|at| *at <= hand.now).is_some() && retransmit_first(tracked, hand) {
        let (rules, state) = classic!(tracked, hand);
        state.local_timer = Some(hand.now + state.local_timeout(&rules.timer));
        return;
    }
    let (_, state) = classic!(tracked, hand);
    let silent = rules.persist_timeout.is_some_and(|time| heard.max(state.last_persist) + time <= hand.now);
    if silent && !tracked.cache.is_empty() {
        (state.expected_duplicates, state.repairing, state.last_persist) = (0, false, hand.now);
        retransmit_first(tracked, hand);
    }
}

/// Records that the queue of the last hop has no room for the packet that begins at `seq`.
pub(super) fn on_queue_drop<K>(
    tracked: &mut ConnectionState<K>,
    config: &Config,
    stats: &mut Stats,
    seq: Seq32,
) {
    if config.rules.classic().overflow == QueueDropHandling::LeftToSender {
        stats.left_to_sender += u64::from(tracked.cache.remove(seq));
    }
}

/// Retransmits the packet that the mobile host waits for. Returns whether there is one that may be.
fn retransmit_first<K: Clone>(tracked: &mut ConnectionState<K>, hand: &mut Context<'_, K>) -> bool {
    let (_, state) = classic!(tracked, hand);
    let limit = hand.config.max_local_retransmissions;
    let first = tracked.acked.or_else(|| tracked.cache.first().map(|first| first.seq));
    let missing = first
        .and_then(|seq| tracked.cache.get_mut(seq))
        .filter(|missing| missing.local_retransmissions < limit);
    let Some(missing) = missing else { return false };
    hand.retransmit(missing, &mut tracked.transmissions);
    hand.stats.timeouts += 1;
    state.rtt_sample = None;
    true
}
