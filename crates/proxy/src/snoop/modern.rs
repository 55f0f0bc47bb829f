//! Rules for today's senders: SACK, RACK, tail loss probes, timestamps, D-SACK.
//!
//! * A hole that is being repaired is hidden: duplicate ACKs for it are absorbed, and SACK blocks above it
//!   are removed, since they would reveal the hole. The blocks that pass are a true prefix of those of the
//!   mobile host.
//! * An ACK for a retransmission of the sender is withheld while earlier data of the sender are being
//!   repaired: RACK would take these for lost.
//! * All holes of a window are repaired at once. The last hop is first in, first out, and retransmissions go
//!   first. A packet sent before one that has arrived, and not arrived itself, is therefore lost. On a hop
//!   that has delivered packets late, the repair waits as long as they were late.
//! * The tail of a window is retransmitted when it is overdue on the last hop, long before the sender's
//!   probe.
//! * Drops of the last hop's queue are congestion: they are shown and left to the sender. So are packets that
//!   were retransmitted too often.
//! * Reports of duplicates that were made here (D-SACK) are removed: the sender would undo a reduction that
//!   it never made.
//! * A packet is retransmitted with its original timestamp, unless the mobile host would take that for old,
//!   because the sender has retransmitted earlier data. Then it has the latest TSval that the host has
//!   accepted.
//! * A mobile host that was silent for long while data were in flight was gone. Data sent before its return
//!   are lost, and retransmitted at once; the time this took is no round-trip sample. While the host is gone,
//!   its first packet serves as a probe, and is not given up.
//! * The sender learns what the mobile host has acknowledged within [`MAX_ACK_WITHHOLDING`], whatever is being
//!   repaired: it waits for it after a timeout of its own.
//! * ECN and timestamps pass unchanged, and no ACK is made up while a hole is open: the sender measures the
//!   real round trip of its data.

use super::cache::{Cache, CachedPacket, Origin, State as Of, TimestampSource};
use super::config::{LossDetection, ModernRules, OldData};
use super::nack_host::NackHost;
use super::reordering::{LatestArrivals, LossCause, ReorderingEstimator, is_before};
use super::{Ack, AckKind, ConnectionState, Context, DataSegment, RulesState, Stats};
use crate::packet::{AckContent, Verdict};
use crate::rtt::{RttEstimator, WindowedMaxDuration};
use hopline_core::{Duration, Instant, Seq32};
use hopline_wire::tcp::{SackBlock, SackBlocks};

/// Number of local retransmissions after which the timeout doubles. Losses in a row are rare, and the
/// sender's timeout is near.
const RETRANSMISSIONS_BEFORE_BACKOFF: u8 = 5;
/// Maximum number of doublings.
const MAX_DOUBLINGS: u8 = 5;
/// Minimum time for which a round trip counts in the recent maximum; at most twice as long.
const RTT_WINDOW: Duration = Duration::from_secs(1);
/// Maximum timeout, unless round trips take longer or the mobile host is gone.
const MAX_TIMEOUT: Duration = Duration::from_millis(500);
/// Silence of a mobile host, while data are in flight, after which it counts as gone, if two round trips are
/// not longer. Radios keep packets that they send in bursts for less time.
const ABSENCE_THRESHOLD: Duration = Duration::from_millis(500);
/// Divisor of the time for which a mobile host has been gone that yields the interval of probes: its return
/// is noticed at most that late.
const PROBE_INTERVAL_DIVISOR: u64 = 16;
/// Maximum time for which an acknowledgment is withheld from the sender: the minimum timeout of today's
/// senders.
const MAX_ACK_WITHHOLDING: Duration = Duration::from_millis(200);

/// State of a connection under these rules.
#[derive(Debug)]
pub(super) struct ModernState {
    pub(super) loss_detection: LossDetection,
    /// Fields for repairs by negative acknowledgments.
    pub(super) announces_cache: bool,
    pub(super) nack_host: NackHost,
    min_timer: Duration,
    /// Round trips of first transmissions, from the queue to the ACK; of retransmissions, which go first.
    rtt_first: RttEstimator,
    rtt_retransmission: RttEstimator,
    /// Shortest round trip of first transmissions.
    min_rtt: Duration,
    /// Longest recent round trip of each. A mean over samples of one burst says little about the next one.
    max_rtt_first: WindowedMaxDuration,
    max_rtt_retransmission: WindowedMaxDuration,
    /// Latest transmission known to have arrived: of first ones, of retransmissions.
    latest_arrived_first: LatestArrivals,
    latest_arrived_retransmission: LatestArrivals,
    /// Latest retransmission of the sender known to have arrived.
    latest_arrived_sender_retransmission: Option<u32>,
    /// Time of the last acknowledged arrival.
    last_progress: Instant,
    /// Number of packets that the mobile host has acknowledged selectively.
    sacked: u32,
    reordering: ReorderingEstimator,
    /// Time since which data are in flight without a packet from the mobile host.
    unanswered_since: Option<Instant>,
    /// Time since which ACKs of the mobile host are withheld from the sender.
    withholding_since: Option<Instant>,
    /// Highest acknowledgment sent to the sender.
    announced_ack: Option<Seq32>,
}

/// Presence of the mobile host before an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MobilePresence {
    /// The mobile host was present.
    Present,
    /// The mobile host was gone.
    Returned,
}

impl ModernState {
    pub(super) fn new(rules: &ModernRules) -> Self {
        Self {
            loss_detection: rules.loss_detection,
            announces_cache: rules.announces_cache,
            nack_host: NackHost::default(),
            min_timer: rules.min_timer,
            rtt_first: RttEstimator::with_initial_until_sampled(rules.initial_timer),
            rtt_retransmission: RttEstimator::with_initial_until_sampled(rules.initial_timer),
            min_rtt: Duration::MAX,
            max_rtt_first: WindowedMaxDuration::new(RTT_WINDOW),
            max_rtt_retransmission: WindowedMaxDuration::new(RTT_WINDOW),
            latest_arrived_first: LatestArrivals::default(),
            latest_arrived_retransmission: LatestArrivals::default(),
            latest_arrived_sender_retransmission: None,
            last_progress: Instant::ZERO,
            sacked: 0,
            reordering: ReorderingEstimator::new(),
            unanswered_since: None,
            withholding_since: None,
            announced_ack: None,
        }
    }

    /// Returns the time of the next timer: the first packet that may be in flight is overdue, an overtaken
    /// one is lost, or an acknowledgment can no longer be withheld.
    pub(super) fn poll_timeout<K>(&self, cache: &Cache<K>, acked: Option<Seq32>) -> Option<Instant> {
        let overdue =
            cache.iter().find(|cached| self.has_timer(cached)).map(|cached| self.overdue_at(cached));
        let tell = self
            .withholding_since
            .filter(|_| self.has_withheld_ack(acked))
            .map(|since| since + MAX_ACK_WITHHOLDING);
        overdue.into_iter().chain(tell).chain(self.next_overtaken_loss(cache)).min()
    }

    /// Returns the time from which on the first overtaken packet is lost, on a hop that reorders.
    fn next_overtaken_loss<K>(&self, cache: &Cache<K>) -> Option<Instant> {
        if self.loss_detection == LossDetection::ByNack
            || self.sacked == 0
            || self.reordering.tolerance().is_zero()
        {
            return None;
        }
        let missing = cache.iter().filter(|cached| cached.state == Of::Sent);
        missing
            .filter_map(|cached| self.overtaken_at(cached))
            .min()
            .map(|at| at + self.reordering.tolerance())
    }

    /// Returns the usual maximum of the round trip of a first transmission.
    pub(super) fn round_trip(&self) -> Duration {
        self.rtt_first.with_deviations(4)
    }

    /// Returns whether the mobile host has acknowledged more than the sender knows.
    fn has_withheld_ack(&self, acked: Option<Seq32>) -> bool {
        acked.is_some_and(|acked| self.announced_ack.is_none_or(|told| acked.after(told)))
    }

    /// Returns whether the mobile host is gone: it has not answered for long.
    fn is_gone(&self, now: Instant) -> bool {
        let patience = ABSENCE_THRESHOLD.max(self.rtt_first.with_deviations(4) * 2);
        self.loss_detection == LossDetection::Inferred
            && self.unanswered_since.is_some_and(|since| now.since(since) >= patience)
    }

    /// Records that a packet leaves for the mobile host.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.unanswered_since.get_or_insert(now);
    }

    /// Records that the packet which has just passed waits before the last hop: no answer is due.
    pub(super) fn on_queued(&mut self, now: Instant) {
        self.unanswered_since = self.unanswered_since.filter(|since| *since < now);
    }

    /// Records a packet from the mobile host.
    fn on_mobile_packet(&mut self, now: Instant) -> MobilePresence {
        let presence = if self.is_gone(now) { MobilePresence::Returned } else { MobilePresence::Present };
        self.unanswered_since = None;
        presence
    }

    /// Returns whether an ACK may still be withheld from the sender.
    fn may_withhold_ack(&mut self, now: Instant) -> bool {
        now.since(*self.withholding_since.get_or_insert(now)) < MAX_ACK_WITHHOLDING
    }

    /// Records that the sender learns this acknowledgment.
    fn record_announced_ack(&mut self, ack: Seq32) {
        self.withholding_since = None;
        self.announced_ack = Some(self.announced_ack.map_or(ack, |told| told.max(ack)));
    }

    /// Returns whether a timer runs for a packet.
    fn has_timer<K>(&self, cached: &CachedPacket<K>) -> bool {
        cached.state == Of::Sent
            && (self.loss_detection == LossDetection::Inferred || cached.local_retransmissions > 0)
    }

    /// Returns the time by which a packet should have been acknowledged.
    fn overdue_at<K>(&self, cached: &CachedPacket<K>) -> Instant {
        if self.loss_detection == LossDetection::ByNack {
            return cached.sent_at + self.rtt_first.with_deviations(4).max(self.min_timer) * 2;
        }
        let (since, rtt, longest) = match cached.local_retransmissions {
            // While other packets arrive, the timer is pushed back.
            0 => (cached.sent_at.max(self.last_progress), &self.rtt_first, &self.max_rtt_first),
            _ => (cached.sent_at, &self.rtt_retransmission, &self.max_rtt_retransmission),
        };
        let doublings =
            cached.local_retransmissions.saturating_sub(RETRANSMISSIONS_BEFORE_BACKOFF).min(MAX_DOUBLINGS);
        let least = rtt.with_deviations(4).max(longest.get()).max(self.min_timer);
        let doubled = least.saturating_mul(1 << doublings).min(least.max(MAX_TIMEOUT));
        let gone = self.unanswered_since.map_or(Duration::ZERO, |since| cached.sent_at.since(since));
        since + doubled.max(gone / PROBE_INTERVAL_DIVISOR)
    }

    /// Returns the time at which a packet should have arrived, if one that was sent later has.
    fn overtaken_at<K>(&self, cached: &CachedPacket<K>) -> Option<Instant> {
        let first = self.latest_arrived_first.overtaken_at(cached.last_transmission, cached.sent_at);
        let again = self
            .latest_arrived_retransmission
            .overtaken_at(cached.last_transmission, cached.sent_at)
            .filter(|_| cached.local_retransmissions > 0);
        first.into_iter().chain(again).min()
    }

    /// Records the arrival of a packet.
    fn record_arrival<K>(&mut self, now: Instant, presence: MobilePresence, cached: &CachedPacket<K>) {
        let took = now.since(cached.sent_at);
        self.last_progress = now;
        if cached.origin == Origin::Retransmission {
            self.latest_arrived_sender_retransmission = later_transmission(
                self.latest_arrived_sender_retransmission,
                cached.last_sender_transmission,
            );
        }
        if presence == MobilePresence::Returned {
            return;
        }
        if cached.local_retransmissions == 0 {
            if cached.state == Of::Sent && cached.origin == Origin::First {
                self.reordering.record_arrival(
                    now,
                    &self.latest_arrived_first,
                    cached.last_transmission,
                    cached.sent_at,
                );
            }
            self.rtt_first.sample(took);
            self.max_rtt_first.sample(now, took);
            self.min_rtt = self.min_rtt.min(took);
            self.latest_arrived_first.record(now, cached.last_transmission, took);
            return;
        }
        if cached.local_retransmissions == 1 && cached.origin == Origin::First {
            self.reordering.record_retransmitted_arrival(now, cached.seq);
        }
        if took >= self.min_rtt {
            // An ACK that comes sooner than this is for the transmission before.
            self.rtt_retransmission.sample(took);
            self.max_rtt_retransmission.sample(now, took);
            self.latest_arrived_retransmission.record(now, cached.last_transmission, took);
        }
    }

    /// Returns the cause of the loss of a packet, if it is lost.
    fn loss_cause<K>(&self, now: Instant, cached: &CachedPacket<K>) -> Option<LossCause> {
        if self.loss_detection == LossDetection::ByNack || cached.state != Of::Sent {
            return None;
        }
        let passed = self.overtaken_at(cached).filter(|at| *at + self.reordering.tolerance() <= now);
        let cause = match passed {
            Some(expected) => LossCause::Overtaken(expected),
            None if self.overdue_at(cached) <= now => LossCause::Overdue(cached.sent_at),
            None => return None,
        };
        Some(if cached.local_retransmissions == 0 { cause } else { LossCause::Repeated })
    }

    /// Returns whether a duplicate of the data at `seq` was made here.
    fn is_local_duplicate(&mut self, now: Instant, seq: Seq32) -> bool {
        let Some(took) = self.reordering.handle_dsack(now, seq) else { return false };
        if let Some(took) = took {
            self.max_rtt_first.sample(now, took);
        }
        true
    }
}

pub(super) fn state_and_cache<K>(tracked: &mut ConnectionState<K>) -> (&mut ModernState, &mut Cache<K>) {
    let RulesState::Modern(state) = &mut tracked.rules else { unreachable!("asked for these rules") };
    (state, &mut tracked.cache)
}

/// Handles a packet with data to the mobile host.
pub(super) fn handle_data<K: Clone>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    data: DataSegment,
    keep: impl FnOnce() -> K,
) -> Verdict {
    if tracked.has_acked(data.end) {
        // On the sending host, data are passed on unchanged.
        let is_told = state_and_cache(tracked).0.loss_detection == LossDetection::ByNack;
        if is_told || !tracked.should_answer_old_data(hand.now, OldData::AcknowledgedWhileAlive) {
            return Verdict::Forward;
        }
        hand.send_ack(tracked);
        return Verdict::Absorb;
    }
    let is_new = data.seq.at_or_after(tracked.highest_sent);
    tracked.highest_sent = tracked.highest_sent.max(data.end);
    state_and_cache(tracked).0.on_sent(hand.now);
    let most = usize::from(hand.config.high_water.get()) * if is_new { 1 } else { 2 };
    if tracked.cache.len() >= most {
        hand.stats.not_cached += 1;
        return Verdict::Forward;
    }
    let by = if is_new { Origin::First } else { Origin::Retransmission };
    match by {
        Origin::First => hand.stats.cached += 1,
        Origin::Retransmission => hand.stats.sender_retransmissions += 1,
    }
    // Selective acknowledgments may be revoked (RFC 2018 §8): the packet passes, and no state changes.
    if is_new || tracked.cache.get_mut(data.seq).is_none_or(|known| known.state != Of::Sacked) {
        tracked.cache_packet(hand.now, data, by, keep());
    }
    Verdict::Forward
}

/// Handles an ACK from the mobile host.
pub(super) fn handle_ack<K: Clone>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    ack: Ack,
) -> Verdict {
    if ack.kind == AckKind::Old {
        return Verdict::Absorb;
    }
    let seen = tracked.highest_sent;
    let (state, cache) = state_and_cache(tracked);
    let presence = state.on_mobile_packet(hand.now);
    cache.acknowledge(ack.number, |cached| match cached.state {
        Of::Sacked => state.sacked -= 1,
        Of::Sent | Of::LeftToSender => state.record_arrival(hand.now, presence, cached),
        // An earlier transmission arrived; a retransmission waits.
        Of::Waiting => {}
    });
    let blocks = without_local_dsack(hand.now, state, &ack);
    for block in blocks.as_slice().iter().filter(|block| is_within_window(block, ack.number, seen)) {
        let first = cache.position(block.left);
        let covered = cache.range_mut(first).take_while(|cached| !cached.end.after(block.right));
        for cached in covered.filter(|cached| [Of::Sent, Of::LeftToSender].contains(&cached.state)) {
            state.record_arrival(hand.now, presence, cached);
            state.sacked += 1;
            cached.state = Of::Sacked;
        }
    }
    match presence {
        MobilePresence::Present => retransmit_lost(tracked, hand),
        MobilePresence::Returned => retransmit_all(tracked, hand),
    }
    let (state, cache) = state_and_cache(tracked);
    state.unanswered_since = cache.first().map(|_| hand.now);
    // The sender tracks its own retransmissions, and expects to hear what arrives meanwhile.
    let hole = cache.iter().find(|cached| cached.origin == Origin::First && state.has_timer(cached));
    let under_repair = hole.map(|hole| hole.seq);
    let is_overtaken = |hole: &CachedPacket<K>| {
        state
            .latest_arrived_sender_retransmission
            .is_some_and(|order| is_before(hole.last_sender_transmission, order))
    };
    let repeats_hole = ack.kind == AckKind::Duplicate && under_repair == Some(ack.number);
    let is_hidden = repeats_hole || ack.kind != AckKind::Other && hole.is_some_and(is_overtaken);
    if is_hidden && state.may_withhold_ack(hand.now) {
        return Verdict::Absorb;
    }
    state.record_announced_ack(ack.number);
    let shown = blocks_below_hole(cache, &ack, &blocks, under_repair);
    if shown == ack.sack {
        Verdict::Forward
    } else {
        Verdict::ForwardWith(AckContent { ack: ack.number, sack: shown })
    }
}

/// Returns the SACK blocks of an ACK without the report of a duplicate that was made here (RFC 2883 §4: it
/// comes first).
fn without_local_dsack(now: Instant, state: &mut ModernState, ack: &Ack) -> SackBlocks {
    let mut blocks = ack.sack;
    let Some((first, others)) = ack.sack.as_slice().split_first() else { return blocks };
    if is_dsack(ack, &ack.sack) && state.is_local_duplicate(now, first.left) {
        blocks = SackBlocks::default();
        for block in others {
            blocks.push(*block);
        }
    }
    blocks
}

/// Returns the blocks below the first hole under repair, each extended by adjacent selectively acknowledged
/// packets. The mobile host may have reported these while a lower hole was under repair, when the sender was
/// not told. It need not repeat them, since an ACK has room for few blocks, and the sender would take
/// unreported packets for lost.
fn blocks_below_hole<K>(cache: &Cache<K>, ack: &Ack, blocks: &SackBlocks, hole: Option<Seq32>) -> SackBlocks {
    let (report, said) = blocks.as_slice().split_at(usize::from(is_dsack(ack, blocks)));
    let below = |block: &SackBlock| hole.is_none_or(|hole| !block.right.after(hole));
    let mut shown = SackBlocks::default();
    for block in report.iter().filter(|block| below(block)) {
        shown.push(*block);
    }
    let reported = shown.len();
    for whole in said.iter().copied().filter(below).map(|block| cache.sacked_around(block)) {
        if !shown.as_slice()[reported..].contains(&whole) {
            shown.push(whole);
        }
    }
    shown
}

/// Returns whether the first block reports a duplicate (RFC 2883 §4).
fn is_dsack(ack: &Ack, blocks: &SackBlocks) -> bool {
    let Some((first, others)) = blocks.as_slice().split_first() else { return false };
    let within = |outer: &SackBlock| first.left.at_or_after(outer.left) && !first.right.after(outer.right);
    !first.right.after(ack.number) || others.first().is_some_and(within)
}

/// Returns whether a block lies within the data that the sender has sent and the mobile host has not
/// acknowledged. Any other block is hostile, or a report of a duplicate.
fn is_within_window(block: &SackBlock, acked: Seq32, seen: Seq32) -> bool {
    block.left.at_or_after(acked) && block.right.after(block.left) && !block.right.after(seen)
}

/// Retransmits all lost packets, or leaves them to the sender.
fn retransmit_lost<K: Clone>(tracked: &mut ConnectionState<K>, hand: &mut Context<'_, K>) {
    let (mut sent, echo) = (tracked.transmissions, tracked.ts_recent());
    let (state, cache) = state_and_cache(tracked);
    // There is no hole.
    if state.sacked == 0 && cache.first().is_none_or(|first| state.loss_cause(hand.now, first).is_none()) {
        return;
    }
    for cached in cache.iter_mut() {
        if let Some(cause) = state.loss_cause(hand.now, cached) {
            retransmit_or_give_up(state, hand, cached, &mut sent, (echo, cause));
        }
    }
    tracked.transmissions = sent;
}

/// Retransmits all packets that were sent to a mobile host while it was gone. Packets that the last hop's
/// queue refused remain left to the sender.
fn retransmit_all<K: Clone>(tracked: &mut ConnectionState<K>, hand: &mut Context<'_, K>) {
    let (mut sent, echo) = (tracked.transmissions, tracked.ts_recent());
    let (state, cache) = state_and_cache(tracked);
    let limit = hand.config.max_local_retransmissions;
    let is_given_up =
        |cached: &CachedPacket<K>| cached.state == Of::LeftToSender && cached.local_retransmissions >= limit;
    for cached in cache.iter_mut().filter(|cached| cached.state == Of::Sent || is_given_up(cached)) {
        (cached.local_retransmissions, cached.state) = (0, Of::Sent);
        retransmit_or_give_up(state, hand, cached, &mut sent, (echo, LossCause::Repeated));
    }
    tracked.transmissions = sent;
}

/// Retransmits a lost packet, or leaves it to the sender after the maximum number of times. Returns whether
/// it is sent.
///
/// `echo`: the latest TSval of the sender that the mobile host has accepted. A packet with an earlier one
/// would be discarded (PAWS, RFC 7323 §5.3); it is retransmitted with `echo` instead.
fn retransmit_or_give_up<K: Clone>(
    state: &mut ModernState,
    hand: &mut Context<'_, K>,
    cached: &mut CachedPacket<K>,
    sent: &mut u32,
    (echo, cause): (Option<u32>, LossCause),
) -> bool {
    let goes = cached.local_retransmissions < hand.config.max_local_retransmissions;
    if goes {
        if let Some(echo) = echo.filter(|echo| Seq32(cached.tsval).before(Seq32(*echo))) {
            (cached.tsval, cached.timestamp_source) = (echo, TimestampSource::Rewritten);
        }
        hand.retransmit(cached, sent);
        state.reordering.record_retransmission(cached.seq, cause);
    } else {
        give_up(hand.stats, cached);
    }
    goes
}

/// Retransmits a packet that a base station has requested, as [`retransmit_or_give_up`].
pub(super) fn retransmit_requested<K: Clone>(
    state: &mut ModernState,
    hand: &mut Context<'_, K>,
    cached: &mut CachedPacket<K>,
    sent: &mut u32,
    echo: Option<u32>,
) -> bool {
    retransmit_or_give_up(state, hand, cached, sent, (echo, LossCause::Repeated))
}

fn give_up<K>(stats: &mut Stats, cached: &mut CachedPacket<K>) {
    cached.state = Of::LeftToSender;
    stats.left_to_sender += 1;
}

/// Handles timers: a packet may be overdue.
pub(super) fn handle_timeout<K: Clone>(tracked: &mut ConnectionState<K>, hand: &mut Context<'_, K>) {
    if !state_and_cache(tracked).0.reordering.tolerance().is_zero() {
        retransmit_lost(tracked, hand);
    }
    let (mut sent, echo, acked) = (tracked.transmissions, tracked.ts_recent(), tracked.acked);
    let state = state_and_cache(tracked).0;
    if state.withholding_since.is_some_and(|since| since + MAX_ACK_WITHHOLDING <= hand.now)
        && state.has_withheld_ack(acked)
        && let Some(acked) = acked
    {
        state.record_announced_ack(acked);
        hand.send_ack(tracked);
    }
    let (state, cache) = state_and_cache(tracked);
    // Only the first packet is retransmitted: the result shows the state of later ones.
    let Some(cached) = cache.iter_mut().find(|cached| state.has_timer(cached)) else { return };
    if state.overdue_at(cached) > hand.now {
        return;
    }
    if state.loss_detection == LossDetection::ByNack {
        // It is lost beyond the base station, and that is congestion.
        give_up(hand.stats, cached);
        return;
    }
    if state.is_gone(hand.now) {
        // Losses while the host is gone do not count towards the limit.
        cached.local_retransmissions =
            cached.local_retransmissions.min(hand.config.max_local_retransmissions.saturating_sub(1));
    }
    let cause = if cached.local_retransmissions == 0 {
        LossCause::Overdue(cached.sent_at)
    } else {
        LossCause::Repeated
    };
    let goes = retransmit_or_give_up(state, hand, cached, &mut sent, (echo, cause));
    hand.stats.timeouts += u64::from(goes);
    tracked.transmissions = sent;
}

/// Records that the queue of the last hop has no room for the packet that begins at `seq`.
pub(super) fn on_queue_drop<K>(tracked: &mut ConnectionState<K>, stats: &mut Stats, seq: Seq32) {
    if let Some(cached) = tracked.cache.get_mut(seq)
        && [Of::Sent, Of::Waiting].contains(&cached.state)
    {
        give_up(stats, cached);
    }
}

fn later_transmission(known: Option<u32>, order: u32) -> Option<u32> {
    Some(known.map_or(order, |known| if is_before(known, order) { order } else { known }))
}
