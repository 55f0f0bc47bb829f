//! What is under way to a mobile host, and what waits.

use super::rate::{Bursts, Greatest, Shortest};
use super::waiting::Waiting;
use super::{Config, Sending, Span, Spanned};
use crate::packet::Connection;
use crate::rtt::Rtt;
use hopline_core::{Duration, Instant, Seq32};
use hopline_wire::tcp::SackBlocks;
use std::collections::VecDeque;

/// The last hop to a host.
#[derive(Debug)]
pub(super) struct Host<K> {
    under_way: VecDeque<Sent>,
    under_way_bytes: u64,
    /// Made when it is needed.
    waiting: Option<Box<Waiting<K>>>,
    /// Bytes that have arrived. What a full queue beyond has dropped must not count: the more it drops the more would be let go.
    delivered: u64,
    /// Packets that are under way no more and had not arrived: lost, or late.
    missing: VecDeque<Span>,
    /// When the latest of them was heard of, and when it was sent.
    heard: Instant,
    heard_sent: Instant,
    rate: Greatest,
    shortest: Shortest,
    bursts: Bursts,
    rtt: Rtt,
    /// How often something was given up since it said anything.
    silences: u32,
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    span: Span,
    at: Instant,
    /// Bytes that had arrived then, and the times at which that was heard of and sent.
    delivered: u64,
    heard: Instant,
    heard_sent: Instant,
    /// There was hardly anything before it.
    alone: bool,
    /// Others were waiting: the hop is kept busy.
    busy: bool,
}

/// What a mobile host says.
pub(super) struct Heard<'a> {
    pub(super) connection: Connection,
    pub(super) ack: Seq32,
    pub(super) sack: &'a SackBlocks,
    /// It says nothing else.
    pub(super) bare: bool,
}

/// Bytes before which a packet has the hop for itself: four full packets.
const HARDLY: u64 = 6_000;
/// Nothing is given up before so long: ACKs are delayed.
const PATIENCE: Duration = Duration::from_millis(100);
/// Most packets that may be late.
const MISSING: usize = 64;
/// A host that has said nothing since something was given up so often may answer another way: everything passes then.
const DEAF: u32 = 10;

impl<K> Host<K> {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            waiting: None,
            delivered: 0,
            missing: VecDeque::new(),
            heard: now,
            heard_sent: now,
            rate: Greatest::new(now),
            shortest: Shortest::new(now),
            bursts: Bursts::new(now),
            rtt: Rtt::until_sampled(PATIENCE),
            silences: 0,
        }
    }

    pub(super) fn waits(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| !waiting.is_empty())
    }

    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting.as_ref().map_or(0, |waiting| waiting.bytes())
    }

    /// Whether a packet may be on its way beside what is.
    pub(super) fn has_room(&self, config: &Config) -> bool {
        self.silences >= DEAF || self.is_fast(config) || self.under_way_bytes < self.window(config)
    }

    fn is_fast(&self, config: &Config) -> bool {
        self.rate.get() > f64::from(config.fastest)
    }

    /// Bytes that may be under way.
    pub(super) fn window(&self, config: &Config) -> u64 {
        let least = u64::from(config.least_bytes);
        if self.shortest.is_looked_for() {
            return least.min(HARDLY);
        }
        let Some(shortest) = self.shortest.get() else { return least };
        let needed = 1.5 * shortest.as_secs_f64() + config.slack.as_secs_f64();
        least.max((self.rate.get() * needed + self.bursts.largest()) as u64)
    }

    /// A packet waits. Which one gives way to it, if there are too many.
    pub(super) fn wait(&mut self, now: Instant, config: &Config, packet: Spanned<K>) -> Option<Spanned<K>> {
        self.waiting.get_or_insert_with(|| Box::new(Waiting::new(config))).push(now, packet)
    }

    /// The next that waits, if there is room: it leaves now. `dropped`: what had waited for too long.
    pub(super) fn next(
        &mut self,
        now: Instant,
        config: &Config,
        dropped: &mut Vec<Spanned<K>>,
    ) -> Option<Spanned<K>> {
        if !self.has_room(config) {
            return None;
        }
        let packet = self.waiting.as_mut()?.pop(now, dropped)?;
        self.leaves(now, config, packet.span);
        Some(packet)
    }

    /// A packet is sent over the hop.
    pub(super) fn leaves(&mut self, now: Instant, config: &Config, span: Span) {
        if self.under_way.is_empty() {
            (self.heard, self.heard_sent) = (now, now);
        }
        if span.sending == Sending::Again {
            // What arrives of it may be this one, and counts once.
            self.missing.retain(|known| (known.connection, known.seq) != (span.connection, span.seq));
        }
        self.under_way_bytes += u64::from(span.len_bytes);
        self.under_way.push_back(Sent {
            span,
            at: now,
            delivered: self.delivered,
            heard: self.heard,
            heard_sent: self.heard_sent,
            alone: self.under_way_bytes <= HARDLY,
            // A fast hop is taken for busy: it must be noticed when it is fast no more.
            busy: self.waits() || self.is_fast(config),
        });
    }

    /// What was sent up to the latest that the host has, has arrived or is lost.
    pub(super) fn hear(&mut self, now: Instant, heard: &Heard<'_>) {
        self.silences = 0;
        let before = self.delivered;
        self.count_late(heard);
        let tells = |sent: &Sent| {
            heard.has(&sent.span) && (sent.span.sending == Sending::New || self.is_due(now, sent))
        };
        match self.under_way.iter().rposition(tells) {
            Some(latest) => {
                let told = self.under_way.iter().take(latest + 1).rev().copied();
                let measured =
                    told.into_iter().find(|sent| sent.span.sending == Sending::New && heard.has(&sent.span));
                self.serve(latest + 1, heard);
                if let Some(sent) = measured {
                    self.measure(now, &sent);
                }
            }
            // Without SACK a duplicate does not say which packet it is for.
            None if heard.bare && heard.sack.is_empty() => {
                let first = self.under_way.front().filter(|sent| sent.span.connection == heard.connection);
                if let Some(first) = first {
                    self.delivered += u64::from(first.span.len_bytes);
                    self.under_way_bytes -= u64::from(first.span.len_bytes);
                    self.under_way.pop_front();
                }
            }
            None => {}
        }
        self.bursts.sample(now, self.delivered - before, self.rate.get());
    }

    /// Returns whether an answer to this transmission may have come: what the host says may be of an earlier one (Karn), but this one would
    /// be there as well by now.
    fn is_due(&self, now: Instant, sent: &Sent) -> bool {
        self.shortest.get().is_some_and(|shortest| now.since(sent.at) >= shortest)
    }

    /// Counts packets that were missing and have arrived after all.
    fn count_late(&mut self, heard: &Heard<'_>) {
        let delivered = &mut self.delivered;
        self.missing.retain(|span| {
            let has = heard.has(span);
            *delivered += if has { u64::from(span.len_bytes) } else { 0 };
            !has
        });
    }

    /// So many packets are under way no more.
    fn serve(&mut self, packets: usize, heard: &Heard<'_>) {
        for Sent { span, .. } in self.under_way.drain(..packets) {
            let bytes = u64::from(span.len_bytes);
            self.under_way_bytes -= bytes;
            if heard.has(&span) {
                self.delivered += bytes;
            } else {
                self.missing.push_back(span);
            }
        }
        let beyond = self.missing.len().saturating_sub(MISSING);
        self.missing.drain(..beyond);
    }

    /// A packet was heard of. The rate is that of sending or of hearing, whichever is slower.
    fn measure(&mut self, now: Instant, sent: &Sent) {
        let took = now.since(sent.at);
        self.rtt.sample(took);
        self.shortest.sample(now, took, sent.alone);
        let interval = now.since(sent.heard).max(sent.at.since(sent.heard_sent));
        if !interval.is_zero() && self.shortest.get().is_some_and(|shortest| interval >= shortest) {
            let rate = (self.delivered - sent.delivered) as f64 / interval.as_secs_f64();
            self.rate.sample(now, rate, sent.busy);
        }
        (self.heard, self.heard_sent) = (now, sent.at);
    }

    /// The queue of this host has dropped what begins at `seq`: it is under way no more.
    pub(super) fn refused(&mut self, connection: Connection, seq: Seq32) {
        let is_it = |sent: &Sent| (sent.span.connection, sent.span.seq) == (connection, seq);
        if let Some(sent) =
            self.under_way.iter().rposition(is_it).and_then(|index| self.under_way.remove(index))
        {
            self.under_way_bytes -= u64::from(sent.span.len_bytes);
        }
    }

    /// What waits of a connection goes.
    pub(super) fn forget(&mut self, connection: Connection) {
        if let Some(waiting) = &mut self.waiting {
            waiting.forget(connection);
        }
    }

    /// When the first that is under way is given up.
    pub(super) fn due(&self) -> Option<Instant> {
        self.under_way.front().map(|sent| sent.at + self.patience())
    }

    fn patience(&self) -> Duration {
        PATIENCE.max(self.rtt.with_deviations(4) * 2)
    }

    /// Gives up what nobody has said anything of for long, and room that is not needed. How many packets that is.
    pub(super) fn give_up(&mut self, now: Instant) -> u64 {
        let patience = self.patience();
        let gone = self.under_way.iter().take_while(|sent| sent.at + patience <= now).count();
        let bytes: u64 = self.under_way.drain(..gone).map(|sent| u64::from(sent.span.len_bytes)).sum();
        self.under_way_bytes -= bytes;
        self.silences = self.silences.saturating_add(u32::from(gone > 0));
        if self.under_way.is_empty() && !self.waits() {
            self.waiting = None;
        }
        gone as u64
    }
}

impl Heard<'_> {
    /// Whether the host has a packet.
    fn has(&self, span: &Span) -> bool {
        let mut blocks = self.sack.as_slice().iter();
        let mut within = || blocks.any(|b| span.seq.at_or_after(b.left) && !span.end.after(b.right));
        self.connection == span.connection && (!span.end.after(self.ack) || within())
    }
}
