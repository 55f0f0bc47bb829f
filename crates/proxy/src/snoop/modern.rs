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
//! * The sender learns what the mobile host has acknowledged within [`LONGEST_HIDDEN`], whatever is being
//!   repaired: it waits for it after a timeout of its own.
//! * ECN and timestamps pass unchanged, and no ACK is made up while a hole is open: the sender measures the
//!   real round trip of its data.

use super::cache::{Cache, Cached, Dated, Origin, State as Of};
use super::config::{Modern, OldData, Repairs};
use super::order::{Cause, Latest, Order, is_before};
use super::told::Host;
use super::{Ack, Data, Followed, Hand, Kind, Stats, Tracked};
use crate::packet::{Says, Verdict};
use crate::rtt::{Longest, Rtt};
use hopline_core::{Duration, Instant, Seq32};
use hopline_wire::tcp::{SackBlock, SackBlocks};

/// Number of local retransmissions after which the timeout doubles. Losses in a row are rare, and the
/// sender's timeout is near.
const UNDOUBLED: u8 = 5;
/// Maximum number of doublings.
const MOST_DOUBLINGS: u8 = 5;
/// Minimum time for which a round trip counts in the recent maximum; at most twice as long.
const LATE: Duration = Duration::from_secs(1);
/// Maximum timeout, unless round trips take longer or the mobile host is gone.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// Silence of a mobile host, while data are in flight, after which it counts as gone, if two round trips are
/// not longer. Radios keep packets that they send in bursts for less time.
const GONE: Duration = Duration::from_millis(500);
/// Divisor of the time for which a mobile host has been gone that yields the interval of probes: its return
/// is noticed at most that late.
const ASKED_SHARE: u64 = 16;
/// Maximum time for which an acknowledgment is withheld from the sender: the minimum timeout of today's
/// senders.
const LONGEST_HIDDEN: Duration = Duration::from_millis(200);

/// State of a connection under these rules.
#[derive(Debug)]
pub(super) struct State {
    pub(super) repairs: Repairs,
    /// Fields for repairs by negative acknowledgments.
    pub(super) announces: bool,
    pub(super) host: Host,
    min_timer: Duration,
    /// Round trips of first transmissions, from the queue to the ACK; of retransmissions, which go first.
    first: Rtt,
    again: Rtt,
    /// Shortest round trip of first transmissions.
    shortest: Duration,
    /// Longest recent round trip of each. A mean over samples of one burst says little about the next one.
    longest_first: Longest,
    longest_again: Longest,
    /// Latest transmission known to have arrived: of first ones, of retransmissions.
    arrived_first: Latest,
    arrived_again: Latest,
    /// Latest retransmission of the sender known to have arrived.
    arrived_resent: Option<u32>,
    /// Time of the last acknowledged arrival.
    progress: Instant,
    /// Number of packets that the mobile host has acknowledged selectively.
    sacked: u32,
    order: Order,
    /// Time since which data are in flight without a packet from the mobile host.
    unanswered: Option<Instant>,
    /// Time since which ACKs of the mobile host are withheld from the sender.
    hidden: Option<Instant>,
    /// Highest acknowledgment sent to the sender.
    told: Option<Seq32>,
}

/// Presence of the mobile host before an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// The mobile host was present.
    There,
    /// The mobile host was gone.
    Back,
}

impl State {
    pub(super) fn new(rules: &Modern) -> Self {
        Self {
            repairs: rules.repairs,
            announces: rules.announces,
            host: Host::default(),
            min_timer: rules.min_timer,
            first: Rtt::until_sampled(rules.initial_timer),
            again: Rtt::until_sampled(rules.initial_timer),
            shortest: Duration::MAX,
            longest_first: Longest::of(LATE),
            longest_again: Longest::of(LATE),
            arrived_first: Latest::default(),
            arrived_again: Latest::default(),
            arrived_resent: None,
            progress: Instant::ZERO,
            sacked: 0,
            order: Order::new(),
            unanswered: None,
            hidden: None,
            told: None,
        }
    }

    /// Returns the time of the next timer: the first packet that may be in flight is overdue, an overtaken
    /// one is lost, or an acknowledgment can no longer be withheld.
    pub(super) fn next_wake<K>(&self, cache: &Cache<K>, acked: Option<Seq32>) -> Option<Instant> {
        let overdue = cache.iter().find(|cached| self.is_watched(cached)).map(|cached| self.overdue(cached));
        let tell = self.hidden.filter(|_| self.owes(acked)).map(|since| since + LONGEST_HIDDEN);
        overdue.into_iter().chain(tell).chain(self.next_passed(cache)).min()
    }

    /// Returns the time from which on the first overtaken packet is lost, on a hop that reorders.
    fn next_passed<K>(&self, cache: &Cache<K>) -> Option<Instant> {
        if self.repairs == Repairs::Told || self.sacked == 0 || self.order.tolerance().is_zero() {
            return None;
        }
        let missing = cache.iter().filter(|cached| cached.state == Of::Sent);
        missing.filter_map(|cached| self.passed(cached)).min().map(|at| at + self.order.tolerance())
    }

    /// Returns the usual maximum of the round trip of a first transmission.
    pub(super) fn round_trip(&self) -> Duration {
        self.first.with_deviations(4)
    }

    /// Returns whether the mobile host has acknowledged more than the sender knows.
    fn owes(&self, acked: Option<Seq32>) -> bool {
        acked.is_some_and(|acked| self.told.is_none_or(|told| acked.after(told)))
    }

    /// Returns whether the mobile host is gone: it has not answered for long.
    fn is_gone(&self, now: Instant) -> bool {
        let patience = GONE.max(self.first.with_deviations(4) * 2);
        self.repairs == Repairs::Inferred && self.unanswered.is_some_and(|since| now.since(since) >= patience)
    }

    /// Records that a packet leaves for the mobile host.
    pub(super) fn leaves(&mut self, now: Instant) {
        self.unanswered.get_or_insert(now);
    }

    /// Records that the packet which has just passed waits before the last hop: no answer is due.
    pub(super) fn waits(&mut self, now: Instant) {
        self.unanswered = self.unanswered.filter(|since| *since < now);
    }

    /// Records a packet from the mobile host.
    fn hear(&mut self, now: Instant) -> Presence {
        let presence = if self.is_gone(now) { Presence::Back } else { Presence::There };
        self.unanswered = None;
        presence
    }

    /// Returns whether an ACK may still be withheld from the sender.
    fn may_hide(&mut self, now: Instant) -> bool {
        now.since(*self.hidden.get_or_insert(now)) < LONGEST_HIDDEN
    }

    /// Records that the sender learns this acknowledgment.
    fn tell(&mut self, ack: Seq32) {
        self.hidden = None;
        self.told = Some(self.told.map_or(ack, |told| told.max(ack)));
    }

    /// Returns whether a timer runs for a packet.
    fn is_watched<K>(&self, cached: &Cached<K>) -> bool {
        cached.state == Of::Sent && (self.repairs == Repairs::Inferred || cached.local > 0)
    }

    /// Returns the time by which a packet should have been acknowledged.
    fn overdue<K>(&self, cached: &Cached<K>) -> Instant {
        if self.repairs == Repairs::Told {
            return cached.sent + self.first.with_deviations(4).max(self.min_timer) * 2;
        }
        let (since, rtt, longest) = match cached.local {
            // While other packets arrive, the timer is pushed back.
            0 => (cached.sent.max(self.progress), &self.first, &self.longest_first),
            _ => (cached.sent, &self.again, &self.longest_again),
        };
        let doublings = cached.local.saturating_sub(UNDOUBLED).min(MOST_DOUBLINGS);
        let least = rtt.with_deviations(4).max(longest.get()).max(self.min_timer);
        let doubled = least.saturating_mul(1 << doublings).min(least.max(LONGEST_WAIT));
        let gone = self.unanswered.map_or(Duration::ZERO, |since| cached.sent.since(since));
        since + doubled.max(gone / ASKED_SHARE)
    }

    /// Returns the time at which a packet should have arrived, if one that was sent later has.
    fn passed<K>(&self, cached: &Cached<K>) -> Option<Instant> {
        let first = self.arrived_first.passed(cached.order, cached.sent);
        let again = self.arrived_again.passed(cached.order, cached.sent).filter(|_| cached.local > 0);
        first.into_iter().chain(again).min()
    }

    /// Records the arrival of a packet.
    fn note_arrival<K>(&mut self, now: Instant, presence: Presence, cached: &Cached<K>) {
        let took = now.since(cached.sent);
        self.progress = now;
        if cached.by == Origin::Sender {
            self.arrived_resent = latest(self.arrived_resent, cached.from_sender);
        }
        if presence == Presence::Back {
            return;
        }
        if cached.local == 0 {
            if cached.state == Of::Sent && cached.by == Origin::First {
                self.order.arrives(now, &self.arrived_first, cached.order, cached.sent);
            }
            self.first.sample(took);
            self.longest_first.sample(now, took);
            self.shortest = self.shortest.min(took);
            self.arrived_first.note(now, cached.order, took);
            return;
        }
        if cached.local == 1 && cached.by == Origin::First {
            self.order.repaired_arrives(now, cached.seq);
        }
        if took >= self.shortest {
            // An ACK that comes sooner than this is for the transmission before.
            self.again.sample(took);
            self.longest_again.sample(now, took);
            self.arrived_again.note(now, cached.order, took);
        }
    }

    /// Returns the cause of the loss of a packet, if it is lost.
    fn lost<K>(&self, now: Instant, cached: &Cached<K>) -> Option<Cause> {
        if self.repairs == Repairs::Told || cached.state != Of::Sent {
            return None;
        }
        let passed = self.passed(cached).filter(|at| *at + self.order.tolerance() <= now);
        let cause = match passed {
            Some(expected) => Cause::Passed(expected),
            None if self.overdue(cached) <= now => Cause::Overdue(cached.sent),
            None => return None,
        };
        Some(if cached.local == 0 { cause } else { Cause::Again })
    }

    /// Returns whether a duplicate of the data at `seq` was made here.
    fn made(&mut self, now: Instant, seq: Seq32) -> bool {
        let Some(took) = self.order.note_duplicate(now, seq) else { return false };
        if let Some(took) = took {
            self.longest_first.sample(now, took);
        }
        true
    }
}

pub(super) fn state_of<K>(tracked: &mut Tracked<K>) -> (&mut State, &mut Cache<K>) {
    let Followed::Modern(state) = &mut tracked.rules else { unreachable!("asked for these rules") };
    (state, &mut tracked.cache)
}

/// Handles a packet with data to the mobile host.
pub(super) fn take_data<K: Clone>(
    tracked: &mut Tracked<K>,
    hand: &mut Hand<'_, K>,
    data: Data,
    keep: impl FnOnce() -> K,
) -> Verdict {
    if tracked.has_acked(data.end) {
        // On the sending host, data are passed on unchanged.
        let is_told = state_of(tracked).0.repairs == Repairs::Told;
        if is_told || !tracked.answers_old(hand.now, OldData::AcknowledgedWhileAlive) {
            return Verdict::Forward;
        }
        hand.acknowledge(tracked);
        return Verdict::Absorb;
    }
    let is_new = data.seq.at_or_after(tracked.seen);
    tracked.seen = tracked.seen.max(data.end);
    state_of(tracked).0.leaves(hand.now);
    let most = usize::from(hand.config.high_water.get()) * if is_new { 1 } else { 2 };
    if tracked.cache.len() >= most {
        hand.stats.not_kept += 1;
        return Verdict::Forward;
    }
    let by = if is_new { Origin::First } else { Origin::Sender };
    match by {
        Origin::First => hand.stats.kept += 1,
        Origin::Sender => hand.stats.sender_retransmissions += 1,
    }
    // Selective acknowledgments may be revoked (RFC 2018 §8): the packet passes, and no state changes.
    if is_new || tracked.cache.at(data.seq).is_none_or(|known| known.state != Of::Sacked) {
        tracked.keep(hand.now, data, by, keep());
    }
    Verdict::Forward
}

/// Handles an ACK from the mobile host.
pub(super) fn take_ack<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>, ack: Ack) -> Verdict {
    if ack.kind == Kind::Old {
        return Verdict::Absorb;
    }
    let seen = tracked.seen;
    let (state, cache) = state_of(tracked);
    let presence = state.hear(hand.now);
    cache.acknowledge(ack.number, |cached| match cached.state {
        Of::Sacked => state.sacked -= 1,
        Of::Sent | Of::LeftToSender => state.note_arrival(hand.now, presence, cached),
        // An earlier transmission arrived; a retransmission waits.
        Of::Waiting => {}
    });
    let blocks = with_known_duplicates(hand.now, state, &ack);
    for block in blocks.as_slice().iter().filter(|block| is_of_window(block, ack.number, seen)) {
        let first = cache.position(block.left);
        let covered = cache.range_mut(first).take_while(|cached| !cached.end.after(block.right));
        for cached in covered.filter(|cached| [Of::Sent, Of::LeftToSender].contains(&cached.state)) {
            state.note_arrival(hand.now, presence, cached);
            state.sacked += 1;
            cached.state = Of::Sacked;
        }
    }
    match presence {
        Presence::There => repair(tracked, hand),
        Presence::Back => repair_all(tracked, hand),
    }
    let (state, cache) = state_of(tracked);
    state.unanswered = cache.first().map(|_| hand.now);
    // The sender tracks its own retransmissions, and expects to hear what arrives meanwhile.
    let hole = cache.iter().find(|cached| cached.by == Origin::First && state.is_watched(cached));
    let under_repair = hole.map(|hole| hole.seq);
    let is_overtaken =
        |hole: &Cached<K>| state.arrived_resent.is_some_and(|order| is_before(hole.from_sender, order));
    let repeats_hole = ack.kind == Kind::Duplicate && under_repair == Some(ack.number);
    let is_hidden = repeats_hole || ack.kind != Kind::Other && hole.is_some_and(is_overtaken);
    if is_hidden && state.may_hide(hand.now) {
        return Verdict::Absorb;
    }
    state.tell(ack.number);
    let shown = restated(cache, &ack, &blocks, under_repair);
    if shown == ack.sack {
        Verdict::Forward
    } else {
        Verdict::ForwardWith(Says { ack: ack.number, sack: shown })
    }
}

/// Returns the SACK blocks of an ACK without the report of a duplicate that was made here (RFC 2883 §4: it
/// comes first).
fn with_known_duplicates(now: Instant, state: &mut State, ack: &Ack) -> SackBlocks {
    let mut blocks = ack.sack;
    let Some((first, others)) = ack.sack.as_slice().split_first() else { return blocks };
    if is_report(ack, &ack.sack) && state.made(now, first.left) {
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
fn restated<K>(cache: &Cache<K>, ack: &Ack, blocks: &SackBlocks, hole: Option<Seq32>) -> SackBlocks {
    let (report, said) = blocks.as_slice().split_at(usize::from(is_report(ack, blocks)));
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
fn is_report(ack: &Ack, blocks: &SackBlocks) -> bool {
    let Some((first, others)) = blocks.as_slice().split_first() else { return false };
    let within = |outer: &SackBlock| first.left.at_or_after(outer.left) && !first.right.after(outer.right);
    !first.right.after(ack.number) || others.first().is_some_and(within)
}

/// Returns whether a block lies within the data that the sender has sent and the mobile host has not
/// acknowledged. Any other block is hostile, or a report of a duplicate.
fn is_of_window(block: &SackBlock, acked: Seq32, seen: Seq32) -> bool {
    block.left.at_or_after(acked) && block.right.after(block.left) && !block.right.after(seen)
}

/// Retransmits all lost packets, or leaves them to the sender.
fn repair<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>) {
    let (mut sent, echo) = (tracked.sent, tracked.echo());
    let (state, cache) = state_of(tracked);
    // There is no hole.
    if state.sacked == 0 && cache.first().is_none_or(|first| state.lost(hand.now, first).is_none()) {
        return;
    }
    for cached in cache.iter_mut() {
        if let Some(cause) = state.lost(hand.now, cached) {
            send_or_leave(state, hand, cached, &mut sent, (echo, cause));
        }
    }
    tracked.sent = sent;
}

/// Retransmits all packets that were sent to a mobile host while it was gone. Packets that the last hop's
/// queue refused remain left to the sender.
fn repair_all<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>) {
    let (mut sent, echo) = (tracked.sent, tracked.echo());
    let (state, cache) = state_of(tracked);
    let limit = hand.config.local_limit;
    let is_given_up = |cached: &Cached<K>| cached.state == Of::LeftToSender && cached.local >= limit;
    for cached in cache.iter_mut().filter(|cached| cached.state == Of::Sent || is_given_up(cached)) {
        (cached.local, cached.state) = (0, Of::Sent);
        send_or_leave(state, hand, cached, &mut sent, (echo, Cause::Again));
    }
    tracked.sent = sent;
}

/// Retransmits a lost packet, or leaves it to the sender after the maximum number of times. Returns whether
/// it is sent.
///
/// `echo`: the latest TSval of the sender that the mobile host has accepted. A packet with an earlier one
/// would be discarded (PAWS, RFC 7323 §5.3); it is retransmitted with `echo` instead.
fn send_or_leave<K: Clone>(
    state: &mut State,
    hand: &mut Hand<'_, K>,
    cached: &mut Cached<K>,
    sent: &mut u32,
    (echo, cause): (Option<u32>, Cause),
) -> bool {
    let goes = cached.local < hand.config.local_limit;
    if goes {
        if let Some(echo) = echo.filter(|echo| Seq32(cached.clock).before(Seq32(*echo))) {
            (cached.clock, cached.dated) = (echo, Dated::Anew);
        }
        hand.send_again(cached, sent);
        state.order.note_repair(cached.seq, cause);
    } else {
        leave(hand.stats, cached);
    }
    goes
}

/// Retransmits a packet that a base station has requested, as [`send_or_leave`].
pub(super) fn send_again<K: Clone>(
    state: &mut State,
    hand: &mut Hand<'_, K>,
    cached: &mut Cached<K>,
    sent: &mut u32,
    echo: Option<u32>,
) -> bool {
    send_or_leave(state, hand, cached, sent, (echo, Cause::Again))
}

fn leave<K>(stats: &mut Stats, cached: &mut Cached<K>) {
    cached.state = Of::LeftToSender;
    stats.left_to_sender += 1;
}

/// Handles timers: a packet may be overdue.
pub(super) fn handle_timeout<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>) {
    if !state_of(tracked).0.order.tolerance().is_zero() {
        repair(tracked, hand);
    }
    let (mut sent, echo, acked) = (tracked.sent, tracked.echo(), tracked.acked);
    let state = state_of(tracked).0;
    if state.hidden.is_some_and(|since| since + LONGEST_HIDDEN <= hand.now)
        && state.owes(acked)
        && let Some(acked) = acked
    {
        state.tell(acked);
        hand.acknowledge(tracked);
    }
    let (state, cache) = state_of(tracked);
    // Only the first packet is retransmitted: the result shows the state of later ones.
    let Some(cached) = cache.iter_mut().find(|cached| state.is_watched(cached)) else { return };
    if state.overdue(cached) > hand.now {
        return;
    }
    if state.repairs == Repairs::Told {
        // It is lost beyond the base station, and that is congestion.
        leave(hand.stats, cached);
        return;
    }
    if state.is_gone(hand.now) {
        // Losses while the host is gone do not count towards the limit.
        cached.local = cached.local.min(hand.config.local_limit.saturating_sub(1));
    }
    let cause = if cached.local == 0 { Cause::Overdue(cached.sent) } else { Cause::Again };
    let goes = send_or_leave(state, hand, cached, &mut sent, (echo, cause));
    hand.stats.timeouts += u64::from(goes);
    tracked.sent = sent;
}

/// Records that the queue of the last hop has no room for the packet that begins at `seq`.
pub(super) fn refused<K>(tracked: &mut Tracked<K>, stats: &mut Stats, seq: Seq32) {
    if let Some(cached) = tracked.cache.at(seq)
        && [Of::Sent, Of::Waiting].contains(&cached.state)
    {
        leave(stats, cached);
    }
}

fn latest(known: Option<u32>, order: u32) -> Option<u32> {
    Some(known.map_or(order, |known| if is_before(known, order) { order } else { known }))
}
