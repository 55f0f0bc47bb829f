//! Delay and loss of each link over time.

use hopline_core::{Duration, Instant, NodeId};
use hopline_sim::Tracer;
use hopline_sim::trace::{Body, PacketView, TraceEvent};
use std::collections::BTreeMap;

/// Length of an interval, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Measures the frames from each node to each neighbour, from the queue of the one to the kernel of the other.
#[derive(Debug)]
pub(crate) struct LinkRecorder {
    /// Number of nodes. Hosts behind a node may have addresses as further nodes would.
    nodes: usize,
    links: BTreeMap<(NodeId, NodeId), Vec<LinkSecond>>,
    /// Frames on their way, by serial number, and when they were sent.
    on_the_way: BTreeMap<u64, ((NodeId, NodeId), Instant)>,
}

/// A link, and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedLink {
    /// The node that sends.
    pub from: NodeId,
    /// The node that receives.
    pub to: NodeId,
    /// Seconds in which frames with a known fate were sent, in order.
    pub seconds: Vec<LinkSecond>,
}

/// Frames that were sent over a link in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSecond {
    /// Its number, from 0.
    pub second: u64,
    /// Frames that arrived.
    pub received: u64,
    /// Frames that were dropped: by the queue, after the last retry, or damaged.
    pub lost: u64,
    /// Delays of the frames that arrived, added up.
    pub delay_sum: Duration,
}

impl LinkSecond {
    /// Returns the share of lost frames, 0 to 1.
    #[must_use]
    pub fn loss(&self) -> f64 {
        self.lost as f64 / (self.lost + self.received).max(1) as f64
    }

    /// Returns the mean delay. `None` if no frame arrived.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        let nanos = self.delay_sum.as_nanos().checked_div(self.received)?;
        Some(Duration::from_nanos(nanos))
    }
}

impl LinkRecorder {
    pub(crate) const fn new(nodes: usize) -> Self {
        Self { nodes, links: BTreeMap::new(), on_the_way: BTreeMap::new() }
    }

    pub(crate) fn finish(self) -> Vec<RecordedLink> {
        let links = self.links.into_iter();
        links.map(|((from, to), seconds)| RecordedLink { from, to, seconds }).collect()
    }

    fn sent(&mut self, now: Instant, node: NodeId, view: PacketView<'_>) {
        if let Body::Ethernet(tap_frame) = &view.packet.body
            && let Some(to) = tap_frame.frame.destination().node().filter(|to| to.index() < self.nodes)
        {
            self.on_the_way.insert(view.packet.serial, ((node, to), now));
        }
    }

    fn ended(&mut self, view: PacketView<'_>, delay_until: Option<Instant>) {
        let Some((link, sent)) = self.on_the_way.remove(&view.packet.serial) else { return };
        let second = sent.as_nanos() / SECOND;
        let seconds = self.links.entry(link).or_default();
        // Frames of one link can overtake each other at the turn of a second.
        let at = seconds.partition_point(|known| known.second < second);
        if seconds.get(at).is_none_or(|known| known.second != second) {
            seconds.insert(at, LinkSecond { second, ..LinkSecond::default() });
        }
        match delay_until {
            Some(now) => {
                seconds[at].received += 1;
                seconds[at].delay_sum += now.since(sent);
            }
            None => seconds[at].lost += 1,
        }
    }
}

impl Tracer for LinkRecorder {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        match event {
            TraceEvent::Originated(view) => self.sent(now, node, view),
            TraceEvent::Delivered(view) => self.ended(view, Some(now)),
            TraceEvent::Dropped { packet, .. } => self.ended(packet, None),
            _ => {}
        }
    }
}
