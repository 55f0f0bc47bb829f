//! Flows over a connection: both endpoints, and the application above them.

use super::exchange::{ClientAction, ExchangeState};
use super::replay::Replay;
use super::spurious_timeouts::TimeoutClassifier;
use crate::alarm::WakeUp;
use crate::custom::{CustomCongestionControl, CustomCongestionControlId};
use crate::ids::Side;
use crate::spec::Transport;
use hopline_core::{Instant, Length, RandomStream};
use hopline_transport::any::{Endpoint, EndpointStats, FreezeStats, Segment};
use hopline_transport::tcp::{DoorStats, Ports};
use hopline_transport::{Signal, connection, quic};

/// A connection between the two ends of a flow.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) app: App,
    /// The two ends, by side.
    ends: [ConnectionEnd; 2],
}

/// Application that uses the connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the connection around it is boxed")]
pub(super) enum App {
    /// The source sends; `None`: without end.
    Bulk { size: Option<u64> },
    /// The sink asks, the source answers.
    Exchange(ExchangeState),
    /// The source sends what was recorded when it was.
    Recorded(Replay),
}

/// An endpoint and when it will be woken.
#[derive(Debug)]
pub(super) struct ConnectionEnd {
    pub(super) endpoint: Endpoint<Length>,
    /// Its congestion control algorithm, if that is user-defined.
    pub(super) custom_congestion_control: Option<CustomCongestionControlId>,
    pub(super) wake_up: WakeUp,
    /// Number of hops over which the last segment came, as reported to the endpoint.
    hops: u8,
    timeouts: TimeoutClassifier,
}

impl ConnectionEnd {
    /// Tells the endpoint the length of the path if it has changed; only pacing wants to know.
    fn update_path_hops(&mut self, now: Instant, hops: u8) {
        if self.hops != hops && self.endpoint.is_paced() {
            self.hops = hops;
            self.endpoint.handle_signal(now, Signal::PathLength { hops });
        }
    }
}

impl App {
    /// Returns the side that opens the connection, and in the end closes or aborts it.
    pub(super) const fn initiator(&self) -> Side {
        match self {
            Self::Bulk { .. } | Self::Recorded(_) => Side::Source,
            Self::Exchange(_) => Side::Sink,
        }
    }
}

impl Connection {
    /// Creates the endpoints of a flow with these ports at source and sink, neither open yet.
    pub(super) fn new(
        over: [&Transport; 2],
        app: App,
        [source, sink]: [u16; 2],
        stream: &mut RandomStream,
        law: impl Fn(CustomCongestionControlId) -> Box<dyn CustomCongestionControl>,
        quic: impl Fn(&quic::Config, Ports, &mut RandomStream) -> Box<dyn quic::Endpoint<Length>>,
    ) -> Self {
        // No two connections' clocks were started at the same moment.
        let at_sink = over[1].with_clock_phase(&mut stream.clone());
        let at_source = over[0].with_clock_phase(stream);
        let mut endpoint = |over: &Transport, local, remote| {
            let ports = Ports { local, remote };
            match over {
                Transport::Quic(config) => Endpoint::Quic { ports, endpoint: quic(config, ports, stream) },
                Transport::Tcp(_) | Transport::Tpa(_) | Transport::Wide(_) => {
                    Endpoint::with_custom_algorithms(over, ports, stream, &law)
                }
            }
        };
        let mut end = |over: &Transport, local, remote| ConnectionEnd {
            endpoint: endpoint(over, local, remote),
            custom_congestion_control: over.custom_congestion_control(),
            wake_up: WakeUp::OFF,
            hops: 0,
            timeouts: TimeoutClassifier::default(),
        };
        Self { app, ends: [end(&at_source, source, sink), end(&at_sink, sink, source)] }
    }

    /// Returns the endpoint at `side`.
    pub(super) fn endpoint(&self, side: Side) -> &Endpoint<Length> {
        &self.ends[side as usize].endpoint
    }

    /// Returns the endpoint where the data come from.
    pub(super) fn source(&self) -> &Endpoint<Length> {
        &self.ends[Side::Source as usize].endpoint
    }

    /// Returns a counter, summed over the endpoints that send data.
    pub(super) fn sum_counter(&self, of: fn(&EndpointStats) -> u64) -> u64 {
        let senders = match self.app {
            App::Bulk { .. } | App::Recorded(_) => &self.ends[..1],
            App::Exchange(_) => &self.ends,
        };
        senders.iter().map(|end| of(&end.endpoint.stats())).sum()
    }

    /// Segments with data that came to the end at `side` and held nothing new.
    pub(super) fn duplicates_at(&self, side: Side) -> u64 {
        self.ends[side as usize].endpoint.stats().duplicates_received
    }

    /// Restarts the counting of time-outs: earlier ones are not judged.
    pub(super) fn restart_timeouts(&mut self) {
        self.ends.iter_mut().for_each(|end| end.timeouts.discard_unclassified());
    }

    /// Segments of data that were sent, each once.
    pub(super) fn distinct_segments_sent(&self) -> u64 {
        self.sum_counter(|stats| stats.segments_sent)
            .saturating_sub(self.sum_counter(|stats| stats.retransmissions))
    }

    /// Returns the number of spurious time-outs of both ends. TPA counts bytes in another order, so that
    /// nothing can be said of it.
    pub(super) fn spurious_timeouts(&self) -> u64 {
        let counted = self.ends.iter().filter(|end| end.endpoint.counts_in_order());
        counted.map(|end| end.timeouts.spurious()).sum()
    }

    /// Returns the TCP-DOOR counters of both ends.
    pub(super) fn door_stats(&self) -> DoorStats {
        let [one, other] = &self.ends;
        one.endpoint.door_stats() + other.endpoint.door_stats()
    }

    /// Returns the time that its two ends have spent waiting for routes until `now`.
    pub(super) fn freeze_stats(&self, now: Instant) -> FreezeStats {
        self.ends
            .iter()
            .map(|end| end.endpoint.freeze_stats(now))
            .fold(FreezeStats::default(), |sum, end| sum + end)
    }

    pub(super) fn end(&mut self, side: Side) -> &mut ConnectionEnd {
        &mut self.ends[side as usize]
    }

    /// Handles the timer of the end at `side`.
    pub(super) fn handle_timeout(&mut self, now: Instant, side: Side) {
        let before = self.end(side).endpoint.stats().timeouts;
        self.end(side).endpoint.handle_timeout(now);
        let counts = self.end(side).endpoint.stats();
        if counts.timeouts > before {
            let received = self.end(side.other()).endpoint.stats().bytes_received;
            self.end(side).timeouts.on_timeout(now, counts.bytes_acked, received);
        }
    }

    /// Records that a segment that was `made` then has come to the end at `side`.
    pub(super) fn handle_packet(
        &mut self,
        now: Instant,
        side: Side,
        segment: Segment<Length>,
        made: Instant,
        hops: u8,
    ) {
        let end = self.end(side);
        end.update_path_hops(now, hops);
        end.endpoint.handle_packet(now, segment);
        if self.end(side.other()).timeouts.has_unclassified() {
            let received = self.end(side).endpoint.stats().bytes_received;
            self.end(side.other()).timeouts.on_arrival(made, received);
        }
    }

    /// Hands `len` bytes to the application at `side`. Returns when it wants to be woken.
    pub(super) fn deliver_to_app(&mut self, now: Instant, side: Side, len: u64) -> Option<Instant> {
        let App::Exchange(exchange) = &mut self.app else { return None };
        // What the segments carried that brought the data.
        let mss = self.ends[side.other() as usize].endpoint.effective_mss();
        match side {
            Side::Source => {
                if let Some(response_bytes) = exchange.on_request_data(len, mss) {
                    self.send(now, Side::Source, response_bytes);
                }
                None
            }
            Side::Sink => match exchange.on_response_data(now, len, mss)? {
                ClientAction::Think(pause) => Some(now + pause),
                ClientAction::Close => {
                    self.close(now, Side::Sink);
                    None
                }
            },
        }
    }

    /// Handles an event of the endpoint at `side`.
    pub(super) fn handle_event(&mut self, now: Instant, side: Side, event: connection::Event) {
        if event == connection::Event::PeerClosed && matches!(self.app, App::Exchange(_)) {
            self.close(now, side);
        }
    }

    pub(super) fn send(&mut self, now: Instant, side: Side, bytes: u64) {
        self.end(side).endpoint.send(now, Length(bytes));
    }

    pub(super) fn close(&mut self, now: Instant, side: Side) {
        self.end(side).endpoint.close(now);
    }

    /// Sends the packets of a recording that are due, and closes after the last of them. Returns when more
    /// are due.
    pub(super) fn replay_due(&mut self, now: Instant) -> Option<Instant> {
        loop {
            let App::Recorded(recording) = &mut self.app else { return None };
            match (recording.next_packet(now), recording.due()) {
                (Some(bytes), next) => {
                    self.send(now, Side::Source, bytes);
                    if next.is_none() {
                        self.close(now, Side::Source);
                        return None;
                    }
                }
                (None, next) => return next,
            }
        }
    }
}
