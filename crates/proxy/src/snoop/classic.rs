//! Rules of the paper: `snoop_data` (§3.1.1) and `snoop_ack` (§3.1.2) case by case, and the timers of §4.

use super::cache::{Cache, Origin};
use super::config::{
    Classic, Config, Expected, LocalTimer, Marks, NextHole, Overflow, Passing, Repeats, Rules, Sampling,
};
use super::{Ack, Data, Followed, Hand, Kind, Stats, Tracked};
use crate::packet::Verdict;
use crate::rtt::Rtt;
use hopline_core::{Duration, Instant, Seq32};

/// State of a connection under these rules.
#[derive(Debug)]
pub(super) struct State {
    /// Unexpected duplicate ACKs since the last repair.
    duplicates: u32,
    /// Expected duplicate ACKs: the echo of the loss that is being repaired. Below zero where ns-2's agent
    /// has miscounted.
    expected: i32,
    /// `true` if the packet that the mobile host waits for was retransmitted since the last new ACK.
    repairing: bool,
    /// Packet that samples the round trip of the last hop: its end, and the time it was sent.
    timed: Option<(Seq32, Instant)>,
    rtt: Rtt,
    /// Time at which the first packet is retransmitted without a duplicate ACK.
    round_trip: Option<Instant>,
    /// Time at which the persist timer last fired.
    persisted: Instant,
}

impl State {
    pub(super) fn new(rules: &Classic) -> Self {
        let rtt = match rules.timer {
            LocalTimer::Smoothed { gain, initial, .. } => Rtt::starting(initial, gain),
            LocalTimer::Deviation { gains, initial, initial_deviation, .. } => {
                Rtt::ns2(initial, initial_deviation, gains)
            }
        };
        Self {
            duplicates: 0,
            expected: 0,
            repairing: false,
            timed: None,
            rtt,
            round_trip: None,
            persisted: Instant::ZERO,
        }
    }

    /// Returns the local retransmission timeout.
    fn patience(&self, timer: &LocalTimer) -> Duration {
        match *timer {
            LocalTimer::Smoothed { factor, min, .. } => {
                min.max(Duration::from_nanos((factor * self.rtt.srtt().as_nanos() as f64) as u64))
            }
            LocalTimer::Deviation { min, .. } => min.max(self.rtt.with_deviations(4)),
        }
    }

    /// Returns the time of the next timer. `heard`: time of the last packet of the connection.
    pub(super) fn next_wake<K>(&self, rules: &Rules, cache: &Cache<K>, heard: Instant) -> Option<Instant> {
        let rules = rules.classic();
        let persist =
            rules.persist.filter(|_| !cache.is_empty()).map(|time| heard.max(self.persisted) + time);
        match (self.round_trip, persist) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// The rules, and their state.
macro_rules! classic {
    ($tracked:expr, $hand:expr) => {{
        let Followed::Classic(state) = &mut $tracked.rules else { unreachable!("asked for these rules") };
        ($hand.config.rules.classic(), state)
    }};
}

/// Handles data as `snoop_data` (§3.1.1).
pub(super) fn take_data<K: Clone>(
    tracked: &mut Tracked<K>,
    hand: &mut Hand<'_, K>,
    data: Data,
    keep: impl FnOnce() -> K,
) -> Verdict {
    if data.seq.at_or_after(tracked.seen) {
        let is_beyond_gap = data.seq.after(tracked.seen);
        tracked.seen = data.end;
        if tracked.cache.len() >= usize::from(hand.config.high_water.get()) {
            hand.stats.not_kept += 1;
            return Verdict::Forward;
        }
        hand.stats.kept += 1;
        let (rules, state) = classic!(tracked, hand);
        state.timed.get_or_insert((data.end, hand.now));
        if let LocalTimer::Deviation { .. } = rules.timer {
            let patience = state.patience(&rules.timer);
            state.round_trip.get_or_insert(hand.now + patience);
        }
        let is_marked = is_beyond_gap && rules.marks == Marks::Uncached;
        tracked.keep(hand.now, data, if is_marked { Origin::Sender } else { Origin::First }, keep());
        return Verdict::Forward;
    }
    let (rules, _) = classic!(tracked, hand);
    if tracked.has_acked(data.end) && tracked.answers_old(hand.now, rules.old_data) {
        hand.acknowledge(tracked);
        return Verdict::Absorb;
    }
    tracked.seen = tracked.seen.max(data.end);
    hand.stats.sender_retransmissions += 1;
    if tracked.has_acked(data.end) {
        return Verdict::Forward;
    }
    let (rules, state) = classic!(tracked, hand);
    state.timed = None; // Karn: its ACK may be that of either transmission (§3.1.2).
    // A cached packet starts anew with its local retransmissions, and keeps its mark (§3.1.1).
    let known = tracked.cache.at(data.seq).filter(|known| known.end == data.end).map(|known| known.by);
    if known.is_none() && tracked.cache.len() >= 2 * usize::from(hand.config.high_water.get()) {
        return Verdict::Forward;
    }
    let by = known.filter(|_| rules.marks != Marks::Retransmissions).unwrap_or(Origin::Sender);
    tracked.keep(hand.now, data, by, keep());
    Verdict::Forward
}

/// Handles an ACK as `snoop_ack` (§3.1.2).
pub(super) fn take_ack<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>, ack: Ack) -> Verdict {
    let (rules, state) = classic!(tracked, hand);
    match ack.kind {
        Kind::Old if rules.spurious_acks == Passing::Absorbed => Verdict::Absorb,
        Kind::Old | Kind::Other => Verdict::Forward,
        Kind::New => {
            let (mut last_sent, mut was_repair) = (None, false);
            tracked.cache.acknowledge(ack.number, |cached| {
                (last_sent, was_repair) = (Some(cached.sent), cached.local > 0);
            });
            (state.expected, state.repairing) = (0, false);
            let timed = state.timed.take_if(|(end, _)| !end.after(ack.number)).map(|(_, sent)| sent);
            let measured = match rules.sampling {
                Sampling::OncePerWindow => timed,
                Sampling::EachAck => last_sent,
            };
            if let Some(sent) = measured.filter(|sent| *sent < hand.now) {
                state.rtt.sample(hand.now.since(sent));
            }
            state.round_trip = match rules.timer {
                LocalTimer::Deviation { .. } if !tracked.cache.is_empty() => {
                    Some(hand.now + state.patience(&rules.timer))
                }
                _ => None,
            };
            if was_repair && rules.next_hole == NextHole::ByAge {
                repair_by_age(tracked, hand, ack.number);
            }
            Verdict::Forward
        }
        Kind::Duplicate => take_duplicate(tracked, hand, ack.number),
    }
}

/// Handles the ACK of a repair that stops at `number`. The packet that begins there is lost if it is overdue;
/// otherwise a timer is set.
fn repair_by_age<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>, number: Seq32) {
    let (rules, state) = classic!(tracked, hand);
    let patience = state.patience(&rules.timer);
    let after = tracked.cache.len().saturating_sub(1);
    let limit = hand.config.local_limit;
    let Some(first) = tracked.cache.at(number).filter(|first| first.local < limit) else { return };
    let overdue = first.sent + patience;
    if overdue > hand.now {
        state.round_trip = Some(overdue);
        return;
    }
    hand.send_again(first, &mut tracked.sent);
    (state.repairing, state.expected, state.timed) = (true, after as i32, None);
    state.round_trip = Some(hand.now + patience);
}

fn take_duplicate<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>, number: Seq32) -> Verdict {
    let (rules, state) = classic!(tracked, hand);
    let after = tracked.cache.len().saturating_sub(tracked.cache.position(number) + 1);
    let Some(missing) = tracked.cache.at(number).filter(|missing| missing.by == Origin::First) else {
        return Verdict::Forward;
    };
    if state.repairing && state.expected > 0 {
        state.expected -= 1;
        return Verdict::Absorb;
    }
    let miscounted = state.repairing && state.expected < 0;
    if miscounted && (state.expected < -1 || missing.local >= 2) {
        return Verdict::Forward;
    }
    state.duplicates += u32::from(!miscounted);
    if state.duplicates < u32::from(rules.dup_ack_threshold) && !miscounted {
        return Verdict::Forward;
    }
    state.duplicates = 0;
    let again = missing.local > 0;
    state.expected = match rules.expected {
        _ if miscounted => state.expected,
        Expected::SentAfter => after as i32,
        Expected::Ns2 => after as i32 - if again { 2 } else { 1 },
    };
    if again && !miscounted && rules.repeats == Repeats::ByTimerAlone {
        return Verdict::Forward;
    }
    if missing.local >= hand.config.local_limit {
        hand.stats.left_to_sender += u64::from(missing.local == hand.config.local_limit);
        missing.local = missing.local.saturating_add(1);
        return Verdict::Forward;
    }
    hand.send_again(missing, &mut tracked.sent);
    state.repairing = true;
    state.timed = None; // Karn: nothing is measured by a window in which something was sent again (§3.1.2).
    state.round_trip = Some(hand.now + state.patience(&rules.timer));
    Verdict::Absorb
}

/// Handles timers (§4). `heard`: time of the last packet of the connection.
pub(super) fn handle_timeout<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>, heard: Instant) {
    let (rules, state) = classic!(tracked, hand);
    if state.round_trip.take_if(|at| *at <= hand.now).is_some() && send_first(tracked, hand) {
        let (rules, state) = classic!(tracked, hand);
        state.round_trip = Some(hand.now + state.patience(&rules.timer));
        return;
    }
    let (_, state) = classic!(tracked, hand);
    let silent = rules.persist.is_some_and(|time| heard.max(state.persisted) + time <= hand.now);
    if silent && !tracked.cache.is_empty() {
        (state.expected, state.repairing, state.persisted) = (0, false, hand.now);
        send_first(tracked, hand);
    }
}

/// Records that the queue of the last hop has no room for the packet that begins at `seq`.
pub(super) fn refused<K>(tracked: &mut Tracked<K>, config: &Config, stats: &mut Stats, seq: Seq32) {
    if config.rules.classic().overflow == Overflow::LeftToSender {
        stats.left_to_sender += u64::from(tracked.cache.remove(seq));
    }
}

/// Retransmits the packet that the mobile host waits for. Returns whether there is one that may be.
fn send_first<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>) -> bool {
    let (_, state) = classic!(tracked, hand);
    let limit = hand.config.local_limit;
    let first = tracked.acked.or_else(|| tracked.cache.first().map(|first| first.seq));
    let missing = first.and_then(|seq| tracked.cache.at(seq)).filter(|missing| missing.local < limit);
    let Some(missing) = missing else { return false };
    hand.send_again(missing, &mut tracked.sent);
    hand.stats.timeouts += 1;
    state.timed = None;
    true
}
