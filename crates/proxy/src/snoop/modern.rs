//! Rules for today's senders: SACK, RACK, tail loss probes, timestamps, D-SACK.
//!
//! * What is being repaired here is not shown: a duplicate ACK for it is absorbed, and SACK blocks above it are cut off, for they would
//!   tell the sender of the hole. The blocks that pass are a prefix of what the mobile host has said, and true.
//! * An ACK that tells of a retransmission of the sender is held back while something that he sent before is being repaired: RACK would
//!   take that for lost.
//! * All holes of a window are repaired at once. The last hop is first in, first out, and what is sent again goes first: so what was
//!   sent before something that has arrived, and has not arrived itself, is lost. On a hop that has delivered packets late it is waited
//!   for so long first.
//! * The tail of a window is sent again when it is overdue on the last hop, long before the sender's probe.
//! * What the queue of the last hop has refused is congestion: it is shown, and left to the sender. So is what was sent again too often.
//! * A report of a duplicate that was made here is taken out (D-SACK): the sender would undo what it never did.
//! * A packet goes out again with the clock it had, unless the mobile host would take it for old by that, since the sender has sent
//!   something earlier again: then with the latest that the host has taken.
//! * A mobile host that was silent for long while something was under way was gone. What had been sent by its return is lost, and goes out
//!   again at once; how long that took is no round trip. While it is gone its first packet asks for it, and is not given up.
//! * The sender hears what the mobile host has acknowledged within [`LONGEST_HIDDEN`], whatever is being repaired: it waits for that after
//!   a timeout of its own.
//! * ECN and timestamps pass as they are, and an ACK is never made up while a hole is open: the sender measures what its data really took.

use super::cache::{Cache, Cached, Dated, Origin, State as Of};
use super::config::{Modern, OldData, Repairs};
use super::order::{Cause, Latest, Order, is_before};
use super::told::Host;
use super::{Ack, Data, Followed, Hand, Kind, Stats, Tracked};
use crate::packet::{Says, Verdict};
use crate::rtt::{Longest, Rtt};
use hopline_core::{Duration, Instant, Seq32};
use hopline_wire::tcp::{SackBlock, SackBlocks};

/// So often a packet is sent again after the same wait: losses in a row are rare, and a sender's timeout is near. Then the wait doubles.
const UNDOUBLED: u8 = 5;
/// So often at most.
const MOST_DOUBLINGS: u8 = 5;
/// So long a round trip counts at least as the longest of late, and twice that at most.
const LATE: Duration = Duration::from_secs(1);
/// And after this wait at most, unless round trips take longer or the mobile host is gone.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// A mobile host that says nothing for so long, and for two round trips, while something is under way is gone: longer than radios keep
/// what they send in bursts.
const GONE: Duration = Duration::from_millis(500);
/// A mobile host is asked for again after this share of the time for which it has been gone: that long its return is overlooked at most.
const ASKED_SHARE: u64 = 16;
/// The sender is told nothing for so long at most: the least time-out of today's senders.
const LONGEST_HIDDEN: Duration = Duration::from_millis(200);

/// What these rules remember of a connection.
#[derive(Debug)]
pub(super) struct State {
    pub(super) repairs: Repairs,
    /// Of a host that is told.
    pub(super) announces: bool,
    pub(super) host: Host,
    min_timer: Duration,
    /// Of first transmissions, from the queue to the ACK; of those sent again, which go first.
    first: Rtt,
    again: Rtt,
    /// The shortest of first transmissions.
    shortest: Duration,
    /// The longest of late of each. A mean over samples of one burst says little of the next one.
    longest_first: Longest,
    longest_again: Longest,
    /// The latest transmission known to have arrived: of first ones, of those sent again.
    arrived_first: Latest,
    arrived_again: Latest,
    /// The latest retransmission of the sender known to have arrived.
    arrived_resent: Option<u32>,
    /// When something arrived last, as the mobile host has told.
    progress: Instant,
    /// How many packets the mobile host has said selectively that it has.
    sacked: u32,
    order: Order,
    /// Since when something is under way and nothing has come from the mobile host.
    unanswered: Option<Instant>,
    /// Time from which on the sender is not told of ACKs of the mobile host.
    hidden: Option<Instant>,
    /// The highest ACK that the sender was told.
    told: Option<Seq32>,
}

/// Presence of the mobile host before an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// The mobile host was there.
    There,
    /// It was gone.
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

    /// Returns the time of the next look at the connection: the first packet that may be under way is overdue, one that was passed is lost, or the
    /// sender is to be told.
    pub(super) fn next_wake<K>(&self, cache: &Cache<K>, acked: Option<Seq32>) -> Option<Instant> {
        let overdue = cache.iter().find(|cached| self.is_watched(cached)).map(|cached| self.overdue(cached));
        let tell = self.hidden.filter(|_| self.owes(acked)).map(|since| since + LONGEST_HIDDEN);
        overdue.into_iter().chain(tell).chain(self.next_passed(cache)).min()
    }

    /// Returns the time from which on the first packet that was passed is lost, on a hop that reorders.
    fn next_passed<K>(&self, cache: &Cache<K>) -> Option<Instant> {
        if self.repairs == Repairs::Told || self.sacked == 0 || self.order.tolerance().is_zero() {
            return None;
        }
        let missing = cache.iter().filter(|cached| cached.state == Of::Sent);
        missing.filter_map(|cached| self.passed(cached)).min().map(|at| at + self.order.tolerance())
    }

    /// A first transmission and its ACK take no longer than this, as a rule.
    pub(super) fn round_trip(&self) -> Duration {
        self.first.with_deviations(4)
    }

    /// Returns whether the mobile host has acknowledged more than the sender was told.
    fn owes(&self, acked: Option<Seq32>) -> bool {
        acked.is_some_and(|acked| self.told.is_none_or(|told| acked.after(told)))
    }

    /// Returns whether the mobile host is gone: it has not answered for long.
    fn is_gone(&self, now: Instant) -> bool {
        let patience = GONE.max(self.first.with_deviations(4) * 2);
        self.repairs == Repairs::Inferred && self.unanswered.is_some_and(|since| now.since(since) >= patience)
    }

    /// Something leaves for the mobile host.
    pub(super) fn leaves(&mut self, now: Instant) {
        self.unanswered.get_or_insert(now);
    }

    /// Records that the packet which has just passed waits before the last hop: no answer is due.
    pub(super) fn waits(&mut self, now: Instant) {
        self.unanswered = self.unanswered.filter(|since| *since < now);
    }

    /// Something comes from the mobile host.
    fn hear(&mut self, now: Instant) -> Presence {
        let presence = if self.is_gone(now) { Presence::Back } else { Presence::There };
        self.unanswered = None;
        presence
    }

    /// Returns whether an ACK may still be kept from the sender.
    fn may_hide(&mut self, now: Instant) -> bool {
        now.since(*self.hidden.get_or_insert(now)) < LONGEST_HIDDEN
    }

    /// The sender is told this.
    fn tell(&mut self, ack: Seq32) {
        self.hidden = None;
        self.told = Some(self.told.map_or(ack, |told| told.max(ack)));
    }

    /// Whether it matters when a packet is acknowledged.
    fn is_watched<K>(&self, cached: &Cached<K>) -> bool {
        cached.state == Of::Sent && (self.repairs == Repairs::Inferred || cached.local > 0)
    }

    /// When a packet should have been acknowledged.
    fn overdue<K>(&self, cached: &Cached<K>) -> Instant {
        if self.repairs == Repairs::Told {
            return cached.sent + self.first.with_deviations(4).max(self.min_timer) * 2;
        }
        let (since, rtt, longest) = match cached.local {
            // While others arrive it waits its turn.
            0 => (cached.sent.max(self.progress), &self.first, &self.longest_first),
            _ => (cached.sent, &self.again, &self.longest_again),
        };
        let doublings = cached.local.saturating_sub(UNDOUBLED).min(MOST_DOUBLINGS);
        let least = rtt.with_deviations(4).max(longest.get()).max(self.min_timer);
        let doubled = least.saturating_mul(1 << doublings).min(least.max(LONGEST_WAIT));
        let gone = self.unanswered.map_or(Duration::ZERO, |since| cached.sent.since(since));
        since + doubled.max(gone / ASKED_SHARE)
    }

    /// Returns the time at which a packet should have been there, if one that was sent later has arrived.
    fn passed<K>(&self, cached: &Cached<K>) -> Option<Instant> {
        let first = self.arrived_first.passed(cached.order, cached.sent);
        let again = self.arrived_again.passed(cached.order, cached.sent).filter(|_| cached.local > 0);
        first.into_iter().chain(again).min()
    }

    /// A packet has arrived.
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
            // Sooner than anything can come, it was the transmission before, after all.
            self.again.sample(took);
            self.longest_again.sample(now, took);
            self.arrived_again.note(now, cached.order, took);
        }
    }

    /// Why a packet is lost, if it is.
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

    /// Whether a duplicate of what begins at `seq` was made here.
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

/// A packet with data goes to the mobile host.
pub(super) fn take_data<K: Clone>(
    tracked: &mut Tracked<K>,
    hand: &mut Hand<'_, K>,
    data: Data,
    keep: impl FnOnce() -> K,
) -> Verdict {
    if tracked.has_acked(data.end) {
        // The host itself knows what it does.
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
    // What the mobile host has said selectively that it has it may take back (RFC 2018 §8): the packet passes, and nothing changes.
    if is_new || tracked.cache.at(data.seq).is_none_or(|known| known.state != Of::Sacked) {
        tracked.keep(hand.now, data, by, keep());
    }
    Verdict::Forward
}

/// An ACK comes from the mobile host.
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
        // It came before, and waits to come again.
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
    // Of what the sender has sent again it knows already, and counts on hearing what arrives meanwhile.
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

/// The SACK blocks of an ACK without the report of a duplicate that was made here (RFC 2883 §4: it comes first).
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

/// The blocks below the first hole that is under repair, each with all that the mobile host has said it has around it. It may have said so
/// while a hole below was under repair, when the sender was not told; it need not say so again, for an ACK has room for few blocks, and
/// the sender would take for lost what he has not heard of.
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

/// Whether the first block reports a duplicate (RFC 2883 §4).
fn is_report(ack: &Ack, blocks: &SackBlocks) -> bool {
    let Some((first, others)) = blocks.as_slice().split_first() else { return false };
    let within = |outer: &SackBlock| first.left.at_or_after(outer.left) && !first.right.after(outer.right);
    !first.right.after(ack.number) || others.first().is_some_and(within)
}

/// Whether a block lies within what the sender has sent and the mobile host has not acknowledged. Others are hostile, or reports.
fn is_of_window(block: &SackBlock, acked: Seq32, seen: Seq32) -> bool {
    block.left.at_or_after(acked) && block.right.after(block.left) && !block.right.after(seen)
}

/// Sends everything again that is lost, or leaves it to the sender.
fn repair<K: Clone>(tracked: &mut Tracked<K>, hand: &mut Hand<'_, K>) {
    let (mut sent, echo) = (tracked.sent, tracked.echo());
    let (state, cache) = state_of(tracked);
    // No hole: nothing to look for.
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

/// Sends everything again that was sent to a mobile host while it was gone. What the queue of the last hop refused stays the sender's.
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

/// Sends a lost packet again, or leaves it to the sender if that was often enough. Whether it is sent.
///
/// `echo`: the latest of the sender's clock that the mobile host has taken. What shows an earlier one it would throw away (PAWS, RFC 7323
/// §5.3): it goes out with that.
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

/// Sends again what a station has asked for, as [`send_or_leave`].
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

/// A packet may be overdue.
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
    // Only the first: what becomes of it tells of the others.
    let Some(cached) = cache.iter_mut().find(|cached| state.is_watched(cached)) else { return };
    if state.overdue(cached) > hand.now {
        return;
    }
    if state.repairs == Repairs::Told {
        // It is lost farther on, and that is congestion.
        leave(hand.stats, cached);
        return;
    }
    if state.is_gone(hand.now) {
        // Nothing is known against it.
        cached.local = cached.local.min(hand.config.local_limit.saturating_sub(1));
    }
    let cause = if cached.local == 0 { Cause::Overdue(cached.sent) } else { Cause::Again };
    let goes = send_or_leave(state, hand, cached, &mut sent, (echo, cause));
    hand.stats.timeouts += u64::from(goes);
    tracked.sent = sent;
}

/// The queue of the last hop has no room for what begins at `seq`.
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
