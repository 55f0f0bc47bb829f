//! The link set and, since every neighbour has one link, the neighbour set (RFC 3626 §4.2, §4.3.1, §7, §13, §14).

use super::config::Hysteresis;
use super::types::{LinkState, LinkView};
use hopline_core::{Duration, Instant, Seq16};
use hopline_wire::olsr::{LinkType, Willingness};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Losses in a row beyond which the quality is taken as 0.
const MAX_LOSSES: i16 = 64;
/// Bound on the loss timeout: shorter announced intervals have no effect.
const MIN_LOSS_TIMEOUT: Duration = Duration::from_millis(1);

/// The links of this node, by the neighbour's address.
#[derive(Clone, Debug)]
pub(super) struct LinkSet {
    links: BTreeMap<Ipv4Addr, Link>,
    limit: usize,
    hold_time: Duration,
    hysteresis: Option<Hysteresis>,
    /// Earliest change that time alone causes, or an earlier time. A wake-up that turns out to be too early computes it
    /// again.
    next_change: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    /// L_SYM_time: until then, the neighbour receives this node's messages.
    symmetric_until: Instant,
    /// L_ASYM_time: until then, the neighbour's messages are received.
    asymmetric_until: Instant,
    /// L_LOST_LINK_time (§13, §14).
    lost_until: Instant,
    /// L_time: time at which the link is forgotten.
    expires: Instant,
    /// N_willingness.
    willingness: Willingness,
    /// N_status, as the rest of the machine knows it.
    status: NeighbourStatus,
    /// Link quality, only with hysteresis.
    quality: Option<LinkQuality>,
}

/// Status of a neighbour (N_status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeighbourStatus {
    Symmetric,
    NotSymmetric,
}

/// Quality of a link (§14.1).
#[derive(Clone, Copy, Debug)]
struct LinkQuality {
    /// L_link_quality.
    value: f64,
    /// L_link_pending: not trusted yet, or no longer.
    pending: bool,
    latest_seq: Seq16,
    /// The neighbour's HELLO interval, and the time by which the next packet is due.
    interval: Duration,
    next_packet_due: Instant,
}

/// Statements of a HELLO about the link over which it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct HelloInfo {
    /// Validity time.
    pub(super) validity: Duration,
    /// Time until the next HELLO.
    pub(super) interval: Duration,
    pub(super) willingness: Willingness,
    /// Number of the packet that it came in.
    pub(super) packet_seq: Seq16,
    /// Neighbour's state of its link to this node, if the HELLO mentions it.
    pub(super) reverse_link: Option<LinkType>,
}

/// Change of a neighbour's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeighbourChange {
    /// It has become a symmetric neighbour.
    Appeared,
    /// It is no longer a symmetric neighbour.
    Lost,
    /// A symmetric neighbour has changed its willingness.
    Willingness,
}

impl LinkSet {
    pub(super) fn new(limit: u8, hold_time: Duration, hysteresis: Option<Hysteresis>) -> Self {
        Self {
            links: BTreeMap::new(),
            limit: usize::from(limit),
            hold_time,
            hysteresis,
            next_change: Instant::FAR_FUTURE,
        }
    }

    /// Handles a HELLO of `neighbour` (§7.1.1). `Err` if there is no room for another link.
    pub(super) fn on_hello(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        heard: HelloInfo,
    ) -> Result<Option<NeighbourChange>, LinkSetFull> {
        if !self.links.contains_key(&neighbour) && self.links.len() >= self.limit {
            return Err(LinkSetFull);
        }
        let hysteresis = self.hysteresis;
        let link = self.links.entry(neighbour).or_insert_with(|| Link::new(now, &heard, hysteresis));
        link.on_hello(now, &heard, self.hold_time);
        let willingness = core::mem::replace(&mut link.willingness, heard.willingness);
        let change = self.update_status(now, neighbour);
        let keeps = change.is_none() && self.is_symmetric(neighbour) && willingness != heard.willingness;
        Ok(if keeps { Some(NeighbourChange::Willingness) } else { change })
    }

    /// Handles the arrival of any packet of `neighbour` (§14.3).
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        neighbour: Ipv4Addr,
        seq: Seq16,
    ) -> Option<NeighbourChange> {
        let hysteresis = self.hysteresis?;
        let link = self.links.get_mut(&neighbour)?;
        link.on_packet(now, seq, &hysteresis, self.hold_time);
        self.update_status(now, neighbour)
    }

    /// Handles the loss of `neighbour` reported by the link layer (§13).
    pub(super) fn on_link_failure(&mut self, now: Instant, neighbour: Ipv4Addr) -> Option<NeighbourChange> {
        let link = self.links.get_mut(&neighbour)?;
        link.lost_until = now + self.hold_time;
        // The loss is advertised for that long. Then the link is forgotten unless HELLOs still arrive.
        link.expires = link.lost_until;
        self.update_status(now, neighbour)
    }

    /// Applies the passing of time. Returns the neighbours with a changed status.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<(Ipv4Addr, NeighbourChange)> {
        if self.next_change > now {
            return Vec::new();
        }
        self.next_change = Instant::FAR_FUTURE;
        let neighbours: Vec<Ipv4Addr> = self.links.keys().copied().collect();
        let mut changes = Vec::new();
        for neighbour in neighbours {
            if let (Some(link), Some(hysteresis)) = (self.links.get_mut(&neighbour), &self.hysteresis) {
                link.on_silence(now, hysteresis, self.hold_time);
            }
            changes.extend(self.update_status(now, neighbour).map(|change| (neighbour, change)));
        }
        self.links.retain(|_, link| link.expires > now);
        changes
    }

    /// Returns the time at which [`expire`](Self::expire) is to be called next.
    pub(super) const fn next_expiry(&self) -> Instant {
        self.next_change
    }

    pub(super) fn is_symmetric(&self, neighbour: Ipv4Addr) -> bool {
        self.links.get(&neighbour).is_some_and(|link| link.status == NeighbourStatus::Symmetric)
    }

    /// The symmetric neighbours and their willingness, in the order of their addresses.
    pub(super) fn neighbours(&self) -> impl Iterator<Item = (Ipv4Addr, Willingness)> {
        let symmetric = self.links.iter().filter(|(_, link)| link.status == NeighbourStatus::Symmetric);
        symmetric.map(|(address, link)| (*address, link.willingness))
    }

    /// All links, in the order of their addresses.
    pub(super) fn iter(&self, now: Instant) -> impl Iterator<Item = LinkView> {
        self.links.iter().map(move |(neighbour, link)| LinkView {
            neighbour: *neighbour,
            state: link.state(now),
            willingness: link.willingness,
            expires: link.expires,
        })
    }

    /// Checks whether `neighbour` has appeared or been lost, and updates the time of the next check.
    fn update_status(&mut self, now: Instant, neighbour: Ipv4Addr) -> Option<NeighbourChange> {
        let link = self.links.get_mut(&neighbour)?;
        let status = match link.state(now) {
            LinkState::Symmetric => NeighbourStatus::Symmetric,
            _ => NeighbourStatus::NotSymmetric,
        };
        let before = core::mem::replace(&mut link.status, status);
        self.next_change = self.next_change.min(link.next_change(now));
        match (before, status) {
            (NeighbourStatus::NotSymmetric, NeighbourStatus::Symmetric) => Some(NeighbourChange::Appeared),
            (NeighbourStatus::Symmetric, NeighbourStatus::NotSymmetric) => Some(NeighbourChange::Lost),
            _ => None,
        }
    }
}

/// There is no room for another link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkSetFull;

impl Link {
    /// Creates a link over which no message has arrived yet.
    fn new(now: Instant, heard: &HelloInfo, hysteresis: Option<Hysteresis>) -> Self {
        Self {
            symmetric_until: now,
            asymmetric_until: now,
            lost_until: now,
            expires: now + heard.validity,
            willingness: heard.willingness,
            status: NeighbourStatus::NotSymmetric,
            quality: hysteresis.map(|hysteresis| LinkQuality {
                value: hysteresis.scaling,
                pending: true,
                latest_seq: heard.packet_seq,
                interval: heard.interval.max(MIN_LOSS_TIMEOUT),
                next_packet_due: now + heard.interval.max(MIN_LOSS_TIMEOUT),
            }),
        }
    }

    fn on_hello(&mut self, now: Instant, heard: &HelloInfo, hold_time: Duration) {
        let until = now + heard.validity;
        self.asymmetric_until = until;
        match heard.reverse_link {
            Some(LinkType::Lost) => self.symmetric_until = now,
            Some(LinkType::Symmetric | LinkType::Asymmetric) => {
                self.symmetric_until = until;
                // §7.1.1: HELLOs advertise the lost link for a while.
                self.expires = until + hold_time;
            }
            Some(LinkType::Unspecified) | None => {}
        }
        self.expires = self.expires.max(until);
        if let Some(quality) = &mut self.quality {
            quality.interval = heard.interval.max(MIN_LOSS_TIMEOUT);
            quality.next_packet_due = now + quality.interval;
        }
    }

    /// Handles a packet: skipped sequence numbers count as losses (§14.3).
    fn on_packet(&mut self, now: Instant, seq: Seq16, hysteresis: &Hysteresis, hold_time: Duration) {
        let Some(quality) = &mut self.quality else { return };
        let losses = (seq.distance_from(quality.latest_seq).saturating_sub(1)).clamp(0, MAX_LOSSES);
        for _ in 0..losses {
            quality.value *= 1.0 - hysteresis.scaling;
        }
        quality.value = (1.0 - hysteresis.scaling) * quality.value + hysteresis.scaling;
        quality.latest_seq = seq;
        quality.next_packet_due = now + quality.interval;
        self.apply_hysteresis(now, hysteresis, hold_time);
    }

    /// Handles silence: an interval without a packet counts as a loss (§14.3).
    fn on_silence(&mut self, now: Instant, hysteresis: &Hysteresis, hold_time: Duration) {
        let Some(quality) = &mut self.quality else { return };
        if quality.next_packet_due > now {
            return;
        }
        quality.value *= 1.0 - hysteresis.scaling;
        quality.next_packet_due = now + quality.interval;
        self.apply_hysteresis(now, hysteresis, hold_time);
    }

    fn apply_hysteresis(&mut self, now: Instant, hysteresis: &Hysteresis, hold_time: Duration) {
        let Some(quality) = &mut self.quality else { return };
        if quality.value > hysteresis.threshold_high {
            quality.pending = false;
            self.lost_until = self.lost_until.min(now);
        } else if quality.value < hysteresis.threshold_low {
            // §14.3 (2); also for a link that was never used.
            quality.pending = true;
            self.lost_until = self.expires.min(now + hold_time);
        }
    }

    /// Returns the link state (§6.2, §14.2).
    fn state(&self, now: Instant) -> LinkState {
        // A link about to be forgotten is no neighbour, whatever was advertised before the link layer lost it.
        if self.lost_until > now || self.expires <= now {
            LinkState::Lost
        } else if self.quality.is_some_and(|quality| quality.pending) {
            LinkState::Pending
        } else if self.symmetric_until > now {
            LinkState::Symmetric
        } else if self.asymmetric_until > now {
            LinkState::Asymmetric
        } else {
            LinkState::Lost
        }
    }

    /// Returns the time at which the state of this link may change without an input.
    fn next_change(&self, now: Instant) -> Instant {
        let overdue = self.quality.map_or(Instant::FAR_FUTURE, |quality| quality.next_packet_due);
        let ends = [self.symmetric_until, self.lost_until, self.expires, overdue];
        ends.into_iter().filter(|end| *end > now).min().unwrap_or(Instant::FAR_FUTURE)
    }
}
