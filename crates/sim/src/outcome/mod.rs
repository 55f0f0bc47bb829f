//! Results of a run.

mod ack_bursts;
mod delays;
mod handoffs;
mod neighborhood;
mod packets;
mod proxies;
mod queues;

pub use crate::drops::DropCounts;
pub use ack_bursts::{AckBursts, BURST_GAP};
pub use delays::DelayStats;
pub(crate) use handoffs::HandoffLog;
pub use handoffs::Handoffs;
pub use neighborhood::{NeighborhoodSample, NeighborhoodSeries};
pub use packets::PacketCounts;
pub use proxies::MiddleboxCounts;
pub(crate) use queues::QueueLengthTracker;
pub use queues::QueueLengths;

pub use hopline_transport::any::LossDetectionStats;

use hopline_core::{Duration, Instant};
use hopline_radio::mac::Airtime;
use hopline_transport::tcp::DoorStats;

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Hash of the event trajectory: equal runs have equal fingerprints, in every build and on every machine.
    pub fingerprint: u64,
    /// Virtual time simulated.
    pub sim_time: Duration,
    /// Warm-up time. Events before it do not count anywhere; only the series show them.
    pub warmup: Duration,
    /// Events processed.
    pub events: u64,
    /// One entry a flow, in the order of the specification.
    pub flows: Vec<FlowOutcome>,
    /// One entry a node.
    pub nodes: Vec<NodeOutcome>,
}

/// The result of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// Distinct bytes delivered in order to the application at `dst` (datagrams: all distinct bytes). Of requests and
    /// responses these are the responses.
    pub bytes_received: u64,
    /// Time at which counting began: the start of the flow, or the end of the warm-up if that is later.
    pub counting_since: Instant,
    /// Time over which goodput counts: from `since` to the flow's end, which is the last delivery of what had an end
    /// and came to it (a transfer of given size, a given number of transactions), otherwise the stop time or the end of
    /// the run.
    pub active_time: Duration,
    /// Longest time within `active` in which nothing was delivered, its beginning and its end included.
    pub longest_silence: Duration,
    /// Segments with data (datagrams: packets) sent, retransmissions included; requests and responses both count.
    pub segments_sent: u64,
    /// Segments with data sent again.
    pub retransmissions: u64,
    /// Segments with data sent again without need: segments of the source that held nothing new on their first arrival, or
    /// that made another of the source's hold nothing new. At most `retransmissions`.
    pub duplicates: u64,
    /// Segments with data that arrived, held nothing new, and were copies: middleboxes and base stations had
    /// sent again what had passed them, or the segment had been overtaken by such a copy of itself.
    pub copies: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Retransmission timeouts after which, with nothing resent, the first byte missing would have come or had come: nothing
    /// that they waited for was lost but acknowledgments. Counted once that is known. Of TCP; zero for other transports.
    pub spurious_timeouts: u64,
    /// Counters of TCP's loss detection. Zeros for other transports.
    pub loss_detection: LossDetectionStats,
    /// Distinct segments with data (datagrams: packets) received: bytes delivered over what a full segment carries,
    /// rounded up, for each message on its own.
    pub segments_received: u64,
    /// Connectivity: whether anything at all arrived, including the warm-up.
    pub connected: Connected,
    /// Time from the flow's start to the last byte, of what had an end and came to it after the warm-up.
    pub completion: Option<Duration>,
    /// Ports at `src` and at `dst`.
    pub ports: [u16; 2],
    /// IP packets from the source to the destination of the data.
    pub data: PacketCounts,
    /// IP packets in the reverse direction: acknowledgments, requests. Empty for datagrams.
    pub reverse: PacketCounts,
    /// Bursts of segments without data that arrive at the source: acknowledgments. Empty for datagrams.
    pub ack_bursts: AckBursts,
    /// Requests sent.
    pub requests: u64,
    /// Number of route loss notifications to the ends. 0 without notifications
    /// ([`FailureNotification`](crate::spec::FailureNotification)).
    pub route_loss_notifications: u64,
    /// Number of route recovery notifications to the ends.
    pub route_recovery_notifications: u64,
    /// Number of times that the source of the data had a packet to send and no route, after having had one or
    /// at the start. 0 without a routing protocol.
    pub route_gaps: u64,
    /// Total duration of these gaps, each until a packet found a route.
    pub route_gap_time: Duration,
    /// TCP-DOOR counters of both ends.
    pub door_stats: DoorStats,
    /// Number of times that an end froze for want of a route: a feedback scheme of TCP, or TPA.
    pub freezes: u64,
    /// Probes that frozen ends of TCP sent.
    pub route_probes: u64,
    /// Total time that TCP ends were frozen, both added up.
    pub frozen_time: Duration,
    /// Response times: from the hand-over of a request to TCP to the last byte of its response. One for each
    /// transaction that ended before the flow stopped.
    pub responses: DelayStats,
    /// State once a second, from one second after the start of the run on.
    pub series: Vec<FlowSample>,
}

/// Connectivity of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connected {
    /// At least one byte arrived.
    Yes,
    /// No byte arrived.
    #[default]
    Never,
}

/// State of a flow at the end of one second.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct FlowSample {
    /// End of the second.
    pub at: Instant,
    /// Bytes delivered by then, in all.
    pub bytes_received: u64,
    /// Congestion window in bytes; 0 for a flow without one.
    pub cwnd_bytes: u64,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Duration>,
    /// Packets in the interface queue of the flow's source; in the longest if it has several.
    pub queue_packets: u32,
    /// Packets of data that have arrived by then, in all.
    pub packets_received: u64,
    /// Their one-way delays, added up.
    pub delay_sum: Duration,
}

/// The result of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeOutcome {
    /// Radio time by state, of several radios added up; all zero for a node without one.
    pub airtime: Airtime,
    /// Energy that its radios took, in joules; 0 without one.
    pub energy_j: f64,
    /// Packets dropped at this node, by reason.
    pub drops: DropCounts,
    /// Counters of the TCP middleboxes here.
    pub proxies: MiddleboxCounts,
    /// Its handoffs, if it is a mobile host.
    pub handoffs: Handoffs,
    /// Lengths of its queues, in packets.
    pub queues: QueueLengths,
    /// Packets that queues of this node marked in place of dropping them (RFC 3168).
    pub marks: u64,
    /// Frames sent over the radio, by kind.
    pub frames: FrameCounts,
    /// Frames to one neighbour that carry data of a flow: bytes of a connection, or a datagram.
    pub data_frames: UnicastFrames,
    /// Frames to one neighbour that carry a segment without data: ACKs of a transport, and what opens and ends a connection.
    pub ack_frames: UnicastFrames,
    /// Packets of routing protocols sent, those passed on included.
    pub routing_packets: u64,
    /// Their bytes, IP headers included.
    pub routing_bytes: u64,
    /// Notices of Neighborhood RED, since the start of the run.
    pub notices: NoticeCounts,
    /// Its neighbourhood over time, if it was observed.
    pub neighborhood: Option<NeighborhoodSeries>,
}

/// Notices of Neighborhood RED at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NoticeCounts {
    /// Its own.
    pub sent: u64,
    /// Notices of other nodes, passed on.
    pub relayed: u64,
    /// Received or overheard.
    pub received: u64,
    /// Received notices that were ignored.
    pub ignored: u64,
    /// Accepted notices that were not believed in full.
    pub capped: u64,
    /// Pairs of a notice sent or passed on here and a node that it was for: a member that could decode its
    /// sender when it was handed down.
    pub intended: u64,
    /// Number of these pairs in which the notice was received or overheard.
    pub arrived: u64,
}

/// Counts of frames sent over a radio, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FrameCounts {
    /// Frames that carry a packet (data, acknowledgments of TCP, routing), repeated ones included.
    pub data: u64,
    /// Requests to send.
    pub rts: u64,
    /// Clears to send.
    pub cts: u64,
    /// Acknowledgments.
    pub ack: u64,
    /// Requests for block acknowledgment.
    pub block_ack_req: u64,
    /// Block acknowledgments.
    pub block_ack: u64,
    /// Action frames: what sets block acknowledgment up, and ends it.
    pub action: u64,
}

/// Counts of frames sent to one neighbour, repeated ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct UnicastFrames {
    /// Sent.
    pub sent: u64,
    /// Strong enough at the radio that they were for, and not received: another signal, or that radio's own, was in the air.
    /// Losses by error models and outages are not among them.
    pub collided: u64,
}

impl FrameCounts {
    /// Frames of every kind.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.data + self.rts + self.cts + self.ack + self.block_ack_req + self.block_ack + self.action
    }
}

impl FlowOutcome {
    /// Returns the samples of the time over which goodput counts.
    #[must_use]
    pub fn counted_series(&self) -> &[FlowSample] {
        let until = self.counting_since + self.active_time;
        let begin = self.series.partition_point(|sample| sample.at <= self.counting_since);
        let end = self.series.partition_point(|sample| sample.at <= until);
        &self.series[begin.min(end)..end]
    }

    /// Returns the goodput in bits per second: distinct bytes delivered over the time the flow was active.
    #[must_use]
    pub fn goodput_bps(&self) -> f64 {
        let secs = self.active_time.as_secs_f64();
        if secs > 0.0 { self.bytes_received as f64 * 8.0 / secs } else { 0.0 }
    }

    /// Returns the retransmission index in percent: segments sent again per distinct segment received (TPA
    /// §4.2). 0 if none was.
    #[must_use]
    pub fn rtx_index_pct(&self) -> f64 {
        if self.segments_received == 0 {
            0.0
        } else {
            100.0 * self.retransmissions as f64 / self.segments_received as f64
        }
    }
}

impl Outcome {
    /// Returns the sum of the goodputs in bits per second.
    #[must_use]
    pub fn aggregate_goodput_bps(&self) -> f64 {
        self.flows.iter().map(FlowOutcome::goodput_bps).sum()
    }

    /// Returns Jain's fairness index of the goodputs: (Σx)² / (n·Σx²). 1 when nothing was delivered at all.
    #[must_use]
    pub fn jain(&self) -> f64 {
        jain(self.flows.iter().map(FlowOutcome::goodput_bps))
    }

    /// Returns Jain's index of the bytes delivered in each 2 s interval, averaged over the intervals in which
    /// anything was (TPA's instantaneous fairness). The first begins with the first second after the warm-up.
    #[must_use]
    pub fn jain_2s(&self) -> f64 {
        let samples = self.flows.iter().map(|f| f.series.len()).min().unwrap_or(0);
        let delivered = |flow: &FlowOutcome, until: usize| match until {
            0 => 0,
            _ => flow.series[until - 1].bytes_received,
        };
        let warmup = Instant::ZERO + self.warmup;
        let first = match self.flows.first() {
            Some(flow) if warmup > Instant::ZERO => flow.series.partition_point(|s| s.at < warmup) + 1,
            _ => 0,
        };
        let indices: Vec<f64> = (first + 2..=samples)
            .step_by(2)
            .filter_map(|end| {
                let in_interval = |f: &FlowOutcome| (delivered(f, end) - delivered(f, end - 2)) as f64;
                let any = self.flows.iter().any(|f| in_interval(f) > 0.0);
                any.then(|| jain(self.flows.iter().map(in_interval)))
            })
            .collect();
        if indices.is_empty() { 1.0 } else { indices.iter().sum::<f64>() / indices.len() as f64 }
    }
}

/// Returns Jain's fairness index.
#[must_use]
pub fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut sum, mut squares) = (0u32, 0.0, 0.0);
    for x in values {
        n += 1;
        sum += x;
        squares += x * x;
    }
    if squares > 0.0 { sum * sum / (f64::from(n) * squares) } else { 1.0 }
}
