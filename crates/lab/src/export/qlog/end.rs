//! Log of one end of a flow.

use super::content::{Content, Numbering, content};
use super::events::{
    ConnectionRole, Data, Event, FileHeader, Frame, Metrics, PacketData, PacketHeader, RawInfo,
    TransportName, append,
};
use super::ledger::{Entry, Ledger, ranges};
use hopline_core::{Duration, Instant, Length};
use hopline_transport::any::{Endpoint, EndpointStats, RecoveryState, Segment};
use hopline_transport::connection::State;
use std::net::Ipv4Addr;

/// Description of an end.
#[derive(Clone, Debug)]
pub(super) struct Description {
    /// Title of the file.
    pub(super) title: String,
    /// Name of the end: "f0 sender".
    pub(super) name: String,
    pub(super) role: ConnectionRole,
    /// Description of the flow: transport and nodes.
    pub(super) flow: String,
    /// Protocol: TCP, TPA, TPA-wide.
    pub(super) protocol: &'static str,
    /// Transport as in the scenario: `tcp-newreno`.
    pub(super) transport: String,
    /// Address here and at the other end.
    pub(super) addresses: [Ipv4Addr; 2],
    /// Data bytes of a full segment.
    pub(super) mss: u32,
    /// Start of the application.
    pub(super) start: Instant,
}

/// Log of one end.
#[derive(Debug)]
pub(super) struct EndLog {
    description: Description,
    /// Text that is not yet in the file.
    text: Vec<u8>,
    /// Numbering of what is sent, and of what is received.
    pub(super) numbering: [Numbering; 2],
    sent: Ledger<SentPacket>,
    received: Ledger<()>,
    /// Highest acknowledged packet so far, of those sent and of those received.
    highest_acked: [Option<u64>; 2],
    /// Ports here and at the other end, once a segment has shown them.
    ports: [u16; 2],
    connection: Option<&'static str>,
    congestion: Option<&'static str>,
    /// `true` once a reset was sent or received.
    was_reset: bool,
    latest_rtt: Option<Duration>,
    metrics: Metrics,
    stats: EndpointStats,
}

/// Packet that was sent.
#[derive(Clone, Debug, PartialEq)]
struct SentPacket {
    frames: Vec<Frame>,
    transmission: Transmission,
    /// Time-outs until then.
    timeouts: u64,
}

/// Transmission of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transmission {
    First,
    /// It is not known which of the packets an acknowledgment is for.
    Again,
}

impl EndLog {
    /// Begins the log.
    pub(super) fn new(description: Description) -> Self {
        let mut log = Self {
            text: Vec::new(),
            numbering: Default::default(),
            sent: Ledger::default(),
            received: Ledger::default(),
            highest_acked: [None; 2],
            ports: [0; 2],
            connection: None,
            congestion: None,
            was_reset: false,
            latest_rtt: None,
            metrics: Metrics::default(),
            stats: EndpointStats::default(),
            description,
        };
        let Description { title, name, role, flow, protocol, transport, mss, start, .. } = &log.description;
        append(&FileHeader::new(title, (name, *role), flow, protocol), &mut log.text);
        // A viewer needs at least one event, and there may be no packet.
        let hopline = TransportName { transport, flow: name };
        let parameters = Data::Parameters { owner: "local", unknown_parameters: [], hopline };
        append(&Event::new(*start, parameters), &mut log.text);
        append(&Event::new(*start, Data::RecoveryParameters { max_datagram_size: *mss }), &mut log.text);
        log
    }

    /// Returns the text that is not yet in the file.
    pub(super) const fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Records that the endpoint has sent `segment`, which the simulator calls packet `number`.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        endpoint: &Endpoint<Length>,
        number: u64,
        segment: &Segment<Length>,
    ) {
        self.ports = segment.ports();
        let [own, other] = &mut self.numbering;
        let content = content(segment, own, other);
        let number = content.number.unwrap_or(number);
        let (before, state) = self.observe(now, endpoint, &content);
        let overlapped = self.sent.take_overlapping(&content.units);
        let transmission = if overlapped.is_empty() { Transmission::First } else { Transmission::Again };
        let is_probe = before.loss_detection.tail_probes < self.stats.loss_detection.tail_probes;
        let mut trigger = is_probe.then_some("pto_probe");
        for entry in overlapped {
            if is_probe {
                // A tail loss probe repeats data that are not considered lost (RFC 8985 §7).
                self.sent.add(entry);
            } else {
                let timed_out = self.lost(now, endpoint, entry);
                trigger = Some(if timed_out { "retransmit_timeout" } else { "retransmit_reordered" });
            }
        }
        let mut frames = content.frames;
        let entry = SentPacket { frames: frames.clone(), transmission, timeouts: self.stats.timeouts };
        self.sent.add(Entry { number, units: content.units, at: now, data: entry });
        if let Some(ack) = content.ack {
            let covered = self.received.take_covered(ack.below, &ack.blocks);
            let acked = covered.into_iter().map(|entry| entry.number).collect();
            let repeats = segment.data_len() == 0;
            frames.extend(ack.frame.or_else(|| acknowledgment(acked, repeats, &mut self.highest_acked[1])));
        }
        let extension = &content.extension;
        let header = PacketHeader::new(number);
        self.event(
            now,
            Data::Sent(PacketData { header, raw: raw(segment), trigger, frames: &frames, extension }),
        );
        self.update_metrics(now, &state);
    }

    /// Records that the endpoint has processed `segment`, which is packet `number` of the other end.
    pub(super) fn on_received(
        &mut self,
        now: Instant,
        endpoint: &Endpoint<Length>,
        number: u64,
        segment: &Segment<Length>,
    ) {
        let [remote, local] = segment.ports();
        self.ports = [local, remote];
        let [own, other] = &mut self.numbering;
        let mut content = content(segment, other, own);
        let number = content.number.unwrap_or(number);
        let mut frames = core::mem::take(&mut content.frames);
        self.received.add(Entry { number, units: content.units.clone(), at: now, data: () });
        if let Some(ack) = content.ack.take() {
            let covered = self.sent.take_covered(ack.below, &ack.blocks);
            let newest = covered.iter().rfind(|entry| entry.data.transmission == Transmission::First);
            self.latest_rtt = newest.map_or(self.latest_rtt, |entry| Some(now.since(entry.at)));
            let acked = covered.into_iter().map(|entry| entry.number).collect();
            let repeats = segment.data_len() == 0;
            frames.extend(ack.frame.or_else(|| acknowledgment(acked, repeats, &mut self.highest_acked[0])));
        }
        let (header, extension) = (PacketHeader::new(number), &content.extension);
        let data = PacketData { header, raw: raw(segment), trigger: None, frames: &frames, extension };
        self.event(now, Data::Received(data));
        let (_, state) = self.observe(now, endpoint, &content);
        self.update_metrics(now, &state);
    }

    /// Records that the endpoint has nothing more to send.
    pub(super) fn on_drained(&mut self, now: Instant, endpoint: &Endpoint<Length>) {
        let (_, state) = self.observe_state(now, endpoint);
        self.update_metrics(now, &state);
    }

    fn observe(
        &mut self,
        now: Instant,
        endpoint: &Endpoint<Length>,
        content: &Content,
    ) -> (EndpointStats, RecoveryState) {
        self.was_reset |= content.is_reset;
        self.observe_state(now, endpoint)
    }

    /// Logs changes of the endpoint's state, other than of its metrics. Returns the counters before, and the state.
    fn observe_state(&mut self, now: Instant, endpoint: &Endpoint<Length>) -> (EndpointStats, RecoveryState) {
        let state = endpoint.recovery_state();
        let before = core::mem::replace(&mut self.stats, endpoint.stats());
        if before.timeouts < self.stats.timeouts {
            self.event(now, Data::TimerExpired { timer_type: "pto", event_type: "expired" });
        }
        for number in endpoint.packets_lost_at(now) {
            for entry in self.sent.take_overlapping(&(number..number + 1)) {
                self.lost(now, endpoint, entry);
            }
        }
        self.update_connection(now, state.connection);
        let congestion = Some(state.congestion).filter(|name| !name.is_empty());
        if state.connection.is_synchronized()
            && let (Some(new), true) = (congestion, congestion != self.congestion)
        {
            self.event(now, Data::Congestion { old: self.congestion, new });
            self.congestion = congestion;
        }
        (before, state)
    }

    /// Logs the loss of a packet. Returns whether a time-out has shown it.
    fn lost(&mut self, now: Instant, endpoint: &Endpoint<Length>, entry: Entry<SentPacket>) -> bool {
        let timed_out = self.stats.timeouts > entry.data.timeouts;
        let trigger = match (timed_out, endpoint.detects_loss_by_time()) {
            (true, _) => "pto_expired",
            (false, true) => "time_threshold",
            (false, false) => "reordering_threshold",
        };
        let (header, frames) = (PacketHeader::new(entry.number), &*entry.data.frames);
        self.event(now, Data::Lost { header, frames, trigger });
        timed_out
    }

    fn update_connection(&mut self, now: Instant, state: State) {
        let Some(new) = connection_state(state, self.connection.is_some()) else { return };
        if self.connection == Some(new) {
            return;
        }
        if self.connection.is_none() {
            let (Description { protocol, addresses: [src_ip, dst_ip], .. }, [src_port, dst_port]) =
                (&self.description, self.ports);
            let (src_ip, dst_ip) = (*src_ip, *dst_ip);
            let started = Data::Started { ip_version: "v4", src_ip, dst_ip, protocol, src_port, dst_port };
            self.event(now, started);
        }
        self.event(now, Data::State { old: self.connection, new });
        if new == CLOSED {
            self.event(now, Data::Closed { trigger: if self.was_reset { "error" } else { "clean" } });
        }
        self.connection = Some(new);
    }

    fn update_metrics(&mut self, now: Instant, state: &RecoveryState) {
        if self.connection.is_none() {
            return;
        }
        let metrics = Metrics {
            min_rtt: state.min_rtt.map(milliseconds),
            smoothed_rtt: state.srtt.map(milliseconds),
            latest_rtt: self.latest_rtt.map(milliseconds),
            rtt_variance: state.rtt_deviation.map(milliseconds),
            pto_count: Some(state.backoffs),
            congestion_window: Some(state.cwnd_bytes),
            bytes_in_flight: Some(state.bytes_in_flight),
            ssthresh: state.ssthresh_bytes,
            pacing_rate: state.pacing_rate_bps.map(|bps| bps as u64),
        };
        if let Some(changes) = metrics.changes(&self.metrics) {
            self.event(now, Data::Metrics(changes));
            self.metrics = metrics;
        }
    }

    fn event(&mut self, now: Instant, data: Data<'_>) {
        append(&Event::new(now, data), &mut self.text);
    }
}

const CLOSED: &str = "closed";

/// Returns the name of a state that is reached; `None` before the connection begins.
const fn connection_state(state: State, has_begun: bool) -> Option<&'static str> {
    match state {
        State::Closed if has_begun => Some(CLOSED),
        State::Closed | State::Listen => None,
        State::SynSent => Some("attempted"),
        State::SynReceived => Some("handshake_started"),
        State::Established => Some("handshake_completed"),
        State::FinWait1 | State::FinWait2 | State::CloseWait | State::Closing | State::LastAck => {
            Some("closing")
        }
        State::TimeWait => Some("draining"),
    }
}

/// Returns the frame of an acknowledgment of these packets. If there are none, one that `repeats` is for the `highest`
/// before: a duplicate acknowledgment, which has no data (RFC 5681 §2).
fn acknowledgment(acked: Vec<u64>, repeats: bool, highest: &mut Option<u64>) -> Option<Frame> {
    *highest = acked.last().copied().max(*highest);
    let acked_ranges = match acked.is_empty() {
        true => ranges(highest.filter(|_| repeats)),
        false => ranges(acked),
    };
    (!acked_ranges.is_empty()).then_some(Frame::Ack { ack_delay: None, acked_ranges })
}

fn raw(segment: &Segment<Length>) -> RawInfo {
    RawInfo { length: segment.wire_len() as u64, payload_length: segment.data_len() }
}

/// Returns milliseconds, to a microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_nanos() / 1000) as f64 / 1000.0
}
