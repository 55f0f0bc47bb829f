//! Watches a run, and records the events for its map.

use super::kind::{Kind, WIRED, inner};
use super::layout::{Rows, Stream};
use hopline_core::{Duration, Instant, NodeId};
use hopline_routing::DropReason as RoutingDrop;
use hopline_sim::spec::radios;
use hopline_sim::trace::{DropReason, FrameLossReason, PacketView, Signal, TraceEvent};
use hopline_sim::{Spec, Tracer};
use hopline_wire::dot11::{Frame, MacAddr};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Rows of a chunk: an animation can be cut between chunks.
const CHUNK_ROWS: u64 = 4096;
/// Number of remembered frames: far more than can overlap.
const MAX_REMEMBERED_FRAMES: usize = 4096;

/// Rows of a stretch of time, as `layout.rs` has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawChunk {
    /// Its end, in µs since the window began.
    pub(super) until_us: i64,
    /// The rows, not compressed.
    pub(super) rows: Vec<u8>,
    /// Reasons of drops, in addition to those of earlier chunks; of a chunk that can be read by itself, all.
    pub(super) reasons: Vec<&'static str>,
    /// Number of its first frame, from 0.
    pub(super) first_frame: i64,
}

/// Form of the chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkForm {
    /// Each goes on where the one before ends, and has [`CHUNK_ROWS`].
    Continued,
    /// Each can be read by itself, and has no more than this time.
    Whole(Duration),
}

/// Answer of a receiver of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It takes more.
    Left,
    /// It takes no more: the recording ends.
    None,
}

/// Receiver of the chunks of a recording.
pub(super) type Chunks = Box<dyn FnMut(RawChunk) -> Room + Send>;

/// Records the events of a window.
pub(super) struct Recorder {
    begins: Instant,
    ends: Instant,
    state: State,
    radios: BTreeMap<MacAddr, NodeId>,
    /// Source address of the data of each flow.
    sources: Vec<Ipv4Addr>,
    /// Next hop by flow and node.
    routes: BTreeMap<(usize, NodeId), Option<NodeId>>,
    /// Number of packets in the queues of each node.
    queues: Vec<i64>,
    /// Recent frames with their numbers, by signal.
    frames: VecDeque<(Signal, i64)>,
    frame_count: i64,
    /// By node: the frame, from 1, of its last attempt to send a packet to a neighbour.
    last_attempts: Vec<i64>,
    reasons: Vec<&'static str>,
    /// Number of reasons that chunks have brought.
    told_reasons: usize,
    rows: Rows,
    last_at_us: i64,
    form: ChunkForm,
    /// Begin of the chunk: time, and number of its first frame.
    chunk_begins: Instant,
    first_frame: i64,
    chunks: Chunks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The window has not begun.
    Before,
    Within,
    /// There is no more room, or the window is over.
    Finished,
}

impl Recorder {
    /// Creates a recorder of the events from `begins` on until just before `ends`, which hands them to `chunks`.
    pub(super) fn new(
        spec: &Spec,
        (begins, ends): (Instant, Instant),
        form: ChunkForm,
        chunks: Chunks,
    ) -> Self {
        Self {
            begins,
            ends,
            state: State::Before,
            radios: radios(&spec.nodes).into_iter().map(|radio| (radio.address, radio.node)).collect(),
            sources: spec.flows.iter().map(|flow| flow.src.ipv4()).collect(),
            routes: BTreeMap::new(),
            queues: vec![0; spec.nodes.len()],
            frames: VecDeque::new(),
            frame_count: 0,
            last_attempts: vec![0; spec.nodes.len()],
            reasons: Vec::new(),
            told_reasons: 0,
            rows: Rows::default(),
            last_at_us: 0,
            form,
            chunk_begins: begins,
            first_frame: 0,
            chunks,
        }
    }

    /// Ends the recording at the time `now`, or that of its window.
    pub(super) fn finish(&mut self, now: Instant) {
        if self.state == State::Before && now >= self.begins {
            self.begin();
        }
        if self.state == State::Within {
            self.close_chunk(micros(self.ends.min(now).since(self.begins)));
        }
        self.state = State::Finished;
    }

    /// Records the initial state when the window begins.
    fn begin(&mut self) {
        self.state = State::Within;
        self.add_queues(0);
        for (&(flow, node), &next) in &self.routes {
            self.rows.add(Stream::Routes, [0, flow as i64, i64::from(node.0), from_one(next)]);
        }
    }

    /// Hands out the waiting rows, which end at `until_us`.
    fn close_chunk(&mut self, until_us: i64) {
        let told = if self.form == ChunkForm::Continued { self.told_reasons } else { 0 };
        let reasons = self.reasons[told..].to_vec();
        self.told_reasons = self.reasons.len();
        let rows = self.rows.take();
        let first_frame = std::mem::replace(&mut self.first_frame, self.frame_count);
        if (self.chunks)(RawChunk { until_us, rows, reasons, first_frame }) == Room::None {
            self.state = State::Finished;
        }
        if let ChunkForm::Whole(_) = self.form {
            self.rows = Rows::default();
            self.add_queues(until_us);
        }
    }

    /// Records the lengths of the queues that are not empty.
    fn add_queues(&mut self, at_us: i64) {
        for (node, &packets) in self.queues.iter().enumerate().filter(|(_, packets)| **packets > 0) {
            self.rows.add(Stream::Queues, [at_us, node as i64, packets]);
        }
    }

    /// Records a row.
    fn add<const N: usize>(&mut self, stream: Stream, row: [i64; N]) {
        // A chunk ends between two times: simultaneous events stay together.
        if self.rows.len() >= CHUNK_ROWS && row[0] > self.last_at_us {
            self.close_chunk(self.last_at_us);
        }
        if self.state == State::Within {
            self.last_at_us = row[0];
            self.rows.add(stream, row);
        }
    }

    fn frame(&mut self, signal: Signal, to: Option<NodeId>, airtime: Duration, what: FrameColumns) {
        let FrameColumns { kind, flow, bytes, serial } = what;
        let row = [
            self.micros_of(signal.since),
            i64::from(signal.node.0),
            from_one(to),
            kind,
            micros(airtime).max(1),
            flow,
            bytes,
            serial,
        ];
        self.add(Stream::Frames, row);
        if self.frames.len() == MAX_REMEMBERED_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((signal, self.frame_count));
        self.frame_count += 1;
        if to.is_some() && kind != Kind::Cts as i64 && kind != Kind::MacAck as i64 {
            self.last_attempts[signal.node.index()] = self.frame_count;
        }
    }

    fn lost(&mut self, now: Instant, node: NodeId, signal: Signal, why: FrameLossReason, others: &[Signal]) {
        // Frames that began before the window are not recorded.
        let Some(frame) = self.number(signal) else { return };
        let why = FrameLossReason::ALL.iter().position(|other| *other == why).unwrap_or_default() as i64;
        let others: Vec<i64> = others.iter().filter_map(|other| self.number(*other)).collect();
        let row = [self.micros_of(now), i64::from(node.0), frame, why, others.len() as i64];
        self.add(Stream::Losses, row);
        if self.state == State::Within {
            others.into_iter().for_each(|other| self.rows.add(Stream::Others, [other]));
        }
    }

    fn dropped(&mut self, now: Instant, node: NodeId, view: PacketView<'_>, reason: DropReason) {
        let packet = inner(view);
        let (what, words) = (FrameColumns::of_packet(view), reason.describe());
        let why = self.reasons.iter().position(|known| *known == words).unwrap_or_else(|| {
            self.reasons.push(words);
            self.reasons.len() - 1
        });
        let end = |address: Ipv4Addr| from_one(NodeId::from_ipv4(address).filter(|node| self.is_node(*node)));
        let next = packet.account.flow().filter(|_| self.is_forward(view));
        let next = next.and_then(|flow| self.routes.get(&(flow.index(), node)).copied().flatten());
        // Frame of the MAC's last attempt; other reasons have none.
        let unanswered =
            matches!(reason, DropReason::RetryLimit | DropReason::Routing(RoutingDrop::LinkFailure));
        let row = [
            self.micros_of(now),
            i64::from(node.0),
            why as i64,
            what.kind,
            what.flow,
            what.serial,
            what.bytes,
            end(packet.ip.src),
            end(packet.ip.dst),
            from_one(next),
            if unanswered { self.last_attempts[node.index()] } else { 0 },
        ];
        self.add(Stream::Drops, row);
    }

    fn routed(&mut self, now: Instant, node: NodeId, view: PacketView<'_>, next_hop: Option<NodeId>) {
        let Some(flow) = inner(view).account.flow().filter(|_| self.is_forward(view)) else { return };
        let before = self.routes.insert((flow.index(), node), next_hop);
        if before != Some(next_hop) && self.state == State::Within {
            let row = [self.micros_of(now), flow.index() as i64, i64::from(node.0), from_one(next_hop)];
            self.add(Stream::Routes, row);
        }
    }

    fn queued(&mut self, now: Instant, node: NodeId, change: i64) {
        self.queues[node.index()] += change;
        if self.state == State::Within {
            self.add(Stream::Queues, [self.micros_of(now), i64::from(node.0), self.queues[node.index()]]);
        }
    }

    /// Returns whether a packet of a flow travels in the direction of its data.
    fn is_forward(&self, view: PacketView<'_>) -> bool {
        let packet = inner(view);
        packet.account.flow().is_some_and(|flow| self.sources.get(flow.index()) == Some(&packet.ip.src))
    }

    fn is_node(&self, node: NodeId) -> bool {
        node.index() < self.queues.len()
    }

    fn number(&self, signal: Signal) -> Option<i64> {
        self.frames.iter().rev().find(|(known, _)| *known == signal).map(|(_, number)| *number)
    }

    fn micros_of(&self, at: Instant) -> i64 {
        micros(at.since(self.begins))
    }

    fn node_of(&self, address: MacAddr) -> Option<NodeId> {
        self.radios.get(&address).copied()
    }
}

/// Columns of a row that describe a frame or a packet.
struct FrameColumns {
    kind: i64,
    flow: i64,
    bytes: i64,
    serial: i64,
}

impl FrameColumns {
    fn of_packet(view: PacketView<'_>) -> Self {
        let packet = inner(view);
        Self {
            kind: Kind::of_packet(view) as i64,
            flow: packet.account.flow().map_or(0, |flow| i64::from(flow.0) + 1),
            bytes: i64::from(view.packet.len_bytes),
            serial: packet.serial as i64,
        }
    }

    fn of_frame(frame: &Frame<PacketView<'_>>) -> Self {
        match frame.body() {
            Some(body) => Self::of_packet(*body),
            None => Self { kind: Kind::of_frame(frame) as i64, flow: 0, bytes: 0, serial: 0 },
        }
    }
}

impl Tracer for Recorder {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        if self.state == State::Before && now >= self.begins {
            self.begin();
        }
        if now >= self.ends && self.state == State::Within {
            self.close_chunk(micros(self.ends.since(self.begins)));
            self.state = State::Finished;
        }
        if let (ChunkForm::Whole(most), State::Within) = (self.form, self.state)
            && now.since(self.chunk_begins) >= most
        {
            self.chunk_begins = now;
            self.close_chunk(micros(now.since(self.begins)));
        }
        match (event, self.state) {
            (_, State::Finished) => {}
            (TraceEvent::Queued { before, after }, _) => self.queued(now, node, after as i64 - before as i64),
            (TraceEvent::Routed { packet, next_hop }, _) => self.routed(now, node, packet, next_hop),
            (_, State::Before) => {}
            (TraceEvent::FrameSent { frame, airtime, .. }, State::Within) => {
                let signal = Signal { node, since: now };
                self.frame(signal, self.node_of(frame.ra()), airtime, FrameColumns::of_frame(frame));
            }
            (TraceEvent::PacketSent { packet, to, arrives }, State::Within) => {
                let what = FrameColumns::of_packet(packet);
                let what = FrameColumns { kind: what.kind + WIRED, ..what };
                self.frame(Signal { node, since: now }, Some(to), arrives.since(now), what);
            }
            (TraceEvent::FrameLost { signal, reason: why, others, .. }, State::Within) => {
                self.lost(now, node, signal, why, others);
            }
            (TraceEvent::Dropped { packet, reason, .. }, State::Within) => {
                self.dropped(now, node, packet, reason);
            }
            (
                TraceEvent::FrameReceived { .. }
                | TraceEvent::PacketReceived(_)
                | TraceEvent::Originated(_)
                | TraceEvent::Arrived(_)
                | TraceEvent::Delivered(_)
                | TraceEvent::Signalled { .. }
                | TraceEvent::Transport { .. },
                State::Within,
            ) => {}
        }
    }
}

fn micros(time: Duration) -> i64 {
    (time.as_nanos() / 1000) as i64
}

/// Returns the number of a node from 1; 0 for none.
fn from_one(node: Option<NodeId>) -> i64 {
    node.map_or(0, |node| i64::from(node.0) + 1)
}
