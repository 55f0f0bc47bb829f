//! One end of a connection.

mod contract;
mod outgoing;

use crate::clock::{from_quinn, to_quinn};
use crate::controllers::{ControllerFactory, Controllers, built_in_controllers};
use crate::frames::{StreamPieces, stream_pieces};
use crate::settings::Settings;
use crate::stream_data::StreamData;
use bytes::{Bytes, BytesMut};
use hopline_core::{Duration, Instant, RandomStream};
use hopline_transport::ConfigError;
use hopline_transport::connection::{CloseError, CloseReason, Event, OpenError, SendError, State};
use hopline_transport::quic::{Config, Datagram, Stats};
use hopline_transport::tcp::Ports;
use hopline_wire::ipv4::Ecn;
use outgoing::Outgoing;
use quinn_proto::{
    ConnectionError, ConnectionHandle, DatagramEvent, EcnCodepoint, Incoming, Side, StreamEvent, StreamId,
    Transmit, VarInt,
};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Error codes of CONNECTION_CLOSE, of this application: both directions are complete, or an end gave up.
const COMPLETE: VarInt = VarInt::from_u32(0);
const ABORTED: VarInt = VarInt::from_u32(1);

/// One end of a QUIC connection: an endpoint of quinn with one connection, and a stream in each direction.
///
/// Each end opens a unidirectional stream for what it sends. `close` finishes that stream. When both streams are complete, the
/// end that knows it first closes the connection.
#[derive(Debug)]
pub struct Endpoint<P> {
    config: Config,
    settings: Settings,
    controllers: Controllers,
    /// Address of the peer.
    peer: SocketAddr,
    endpoint: quinn_proto::Endpoint,
    /// The connection, from `connect` or the peer's first packet on.
    connection: Option<Box<Connection>>,
    side: Option<Side>,
    state: State,
    closed_by_user: bool,
    outgoing: Outgoing<P>,
    received: VecDeque<P>,
    events: VecDeque<Event>,
    /// Datagrams that the endpoint sends beside the connection, such as stateless resets.
    responses: VecDeque<Datagram>,
    /// Memory for the datagram that is written.
    buffer: Vec<u8>,
    wake_up: Option<Instant>,
    has_rtt: bool,
    segments_sent: u64,
    retransmissions: u64,
    bytes_received: u64,
    duplicates_received: u64,
}

#[derive(Debug)]
struct Connection {
    handle: ConnectionHandle,
    quinn: quinn_proto::Connection,
}

impl<P: StreamData> Endpoint<P> {
    /// Creates a closed endpoint with a built-in controller. `random`: source of its random numbers.
    ///
    /// # Errors
    /// A parameter is out of its range.
    ///
    /// # Panics
    /// If the configuration names a user-defined algorithm, or one that this program was built without.
    pub fn new(config: Config, ports: Ports, random: &mut RandomStream) -> Result<Self, ConfigError> {
        let algorithm = config.congestion_control();
        let controllers = built_in_controllers(algorithm, || random.bits()).expect("a built-in algorithm");
        Self::with_controllers(config, ports, controllers, random)
    }

    /// As [`Self::new`], with a controller of quinn's shape of any program.
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn with_controller(
        config: Config,
        ports: Ports,
        controller: Arc<ControllerFactory>,
        random: &mut RandomStream,
    ) -> Result<Self, ConfigError> {
        Self::with_controllers(config, ports, Controllers::of_quinn(controller), random)
    }

    /// As [`Self::new`], with controllers of any program.
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn with_controllers(
        config: Config,
        ports: Ports,
        controllers: Controllers,
        random: &mut RandomStream,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let settings = Settings::new(&config, controllers.factory(), random);
        let endpoint = quinn_proto::Endpoint::new(settings.endpoint.clone(), None, false, None);
        Ok(Self {
            config,
            settings,
            controllers,
            peer: (Ipv4Addr::LOCALHOST, ports.remote).into(),
            endpoint,
            connection: None,
            side: None,
            state: State::Closed,
            closed_by_user: false,
            outgoing: Outgoing::default(),
            received: VecDeque::new(),
            events: VecDeque::new(),
            responses: VecDeque::new(),
            buffer: Vec::new(),
            wake_up: None,
            has_rtt: false,
            segments_sent: 0,
            retransmissions: 0,
            bytes_received: 0,
            duplicates_received: 0,
        })
    }

    /// Opens the connection.
    ///
    /// # Errors
    /// The endpoint is or was already open, or the remote port is unknown.
    pub fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        if self.side.is_some() {
            return Err(OpenError::AlreadyOpened);
        }
        let client = self.settings.client.clone();
        let (handle, quinn) = self
            .endpoint
            .connect(to_quinn(now), client, self.peer, "server")
            .map_err(|_| OpenError::NoRemotePort)?;
        self.connection = Some(Box::new(Connection { handle, quinn }));
        self.side = Some(Side::Client);
        self.state = State::SynSent;
        Ok(())
    }

    /// Waits for the peer to open the connection.
    ///
    /// # Errors
    /// The endpoint is or was already open.
    pub fn listen(&mut self) -> Result<(), OpenError> {
        if self.side.is_some() {
            return Err(OpenError::AlreadyOpened);
        }
        self.endpoint.set_server_config(Some(self.settings.server.clone()));
        self.side = Some(Side::Server);
        self.state = State::Listen;
        Ok(())
    }

    /// Accepts data to send.
    ///
    /// # Errors
    /// The connection is not open for sending.
    pub fn send(&mut self, data: P) -> Result<(), SendError> {
        if !self.is_open_for_sending() {
            return Err(SendError::NotOpen);
        }
        self.outgoing.push(data);
        Ok(())
    }

    /// Returns the next piece of received data, in order.
    pub fn recv(&mut self) -> Option<P> {
        self.received.pop_front()
    }

    /// Closes the sending direction after all accepted data are sent.
    ///
    /// # Errors
    /// The connection is not open, or was closed by the user before.
    pub fn close(&mut self) -> Result<(), CloseError> {
        if !self.is_open_for_sending() {
            return Err(CloseError::NotOpen);
        }
        self.closed_by_user = true;
        self.outgoing.close();
        self.state = self.state.after_close();
        Ok(())
    }

    /// Ends the connection at once.
    pub fn abort(&mut self, now: Instant) {
        if self.state == State::Closed {
            return;
        }
        self.close_connection(now, ABORTED);
        self.finish(CloseReason::Aborted);
    }

    /// Returns the connection state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Processes a datagram of the peer.
    pub fn handle_packet(&mut self, now: Instant, datagram: &Datagram) {
        if self.side.is_none() {
            return;
        }
        if datagram.data_bytes > 0 && datagram.data.end <= self.bytes_received {
            self.duplicates_received += 1;
        }
        let ecn = EcnCodepoint::from_bits(datagram.ecn as u8);
        let mut response = Vec::new();
        if let Some(companion) = self.controllers.companion() {
            companion.before_receive(&datagram.bytes);
        }
        let bytes = BytesMut::from(&datagram.bytes[..]);
        let event = self.endpoint.handle(to_quinn(now), self.peer, None, ecn, bytes, &mut response);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = &mut self.connection
                    && connection.handle == handle
                {
                    connection.quinn.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit, &response),
            None => {}
        }
        if let Some(companion) = self.controllers.companion() {
            companion.after_receive();
        }
        self.update(now);
    }

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.wake_up.is_none_or(|at| at > now) {
            return;
        }
        if let Some(connection) = &mut self.connection {
            connection.quinn.handle_timeout(to_quinn(now));
        }
        self.update(now);
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(response) = self.responses.pop_front() {
            return Some(response);
        }
        let connection = &mut self.connection.as_mut()?.quinn;
        self.outgoing.write(connection);
        self.buffer.clear();
        if let Some(companion) = self.controllers.companion() {
            companion.before_transmit(to_quinn(now));
        }
        let Some(transmit) = connection.poll_transmit(to_quinn(now), 1, &mut self.buffer) else {
            self.update(now);
            return None;
        };
        let bytes = Bytes::copy_from_slice(&self.buffer[..transmit.size]);
        let StreamPieces { bytes: data_bytes, span } = stream_pieces(&bytes);
        if data_bytes > 0 {
            self.segments_sent += 1;
            self.retransmissions += u64::from(self.outgoing.is_retransmission(&span));
        }
        if let Some(companion) = self.controllers.companion() {
            companion.on_transmit(to_quinn(now), &bytes, self.outgoing.backlog());
        }
        self.update(now);
        Some(Datagram { bytes, ecn: ecn_of(&transmit), data_bytes, data: span })
    }

    /// Returns the next event for the user.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time of the next call to `handle_timeout`.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.wake_up
    }

    /// Returns the congestion window, bytes; 0 before there is a connection.
    #[must_use]
    pub fn cwnd(&self) -> u64 {
        // Not `window`, with which a controller may tell quinn to wait.
        let window =
            |connection: &Connection| connection.quinn.congestion_state().metrics().congestion_window;
        self.connection.as_deref().map_or(0, window)
    }

    /// Returns the smoothed round-trip time, if there is a sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        let connection = self.connection.as_ref().filter(|_| self.has_rtt)?;
        Some(connection.quinn.rtt().into())
    }

    /// Returns the data bytes of a full datagram.
    #[must_use]
    pub fn effective_mss(&self) -> u32 {
        self.config.mss().into()
    }

    /// Returns quinn's counters, if there is a connection.
    #[must_use]
    pub fn quinn_stats(&self) -> Option<quinn_proto::ConnectionStats> {
        self.connection.as_ref().map(|connection| connection.quinn.stats())
    }

    /// Returns the counters. quinn does not report probe timeouts, and reports acknowledged data when all is acknowledged.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            segments_sent: self.segments_sent,
            retransmissions: self.retransmissions,
            timeouts: 0,
            bytes_acked: self.outgoing.acknowledged(),
            bytes_received: self.bytes_received,
            duplicates_received: self.duplicates_received,
        }
    }

    fn is_open_for_sending(&self) -> bool {
        self.state.may_send() && !self.closed_by_user
    }

    /// Accepts the first connection, and no other.
    fn accept(&mut self, now: Instant, incoming: Incoming) {
        if self.connection.is_some() || self.state != State::Listen {
            self.endpoint.ignore(incoming);
            return;
        }
        let mut response = Vec::new();
        match self.endpoint.accept(incoming, to_quinn(now), &mut response, None) {
            Ok((handle, quinn)) => {
                self.connection = Some(Box::new(Connection { handle, quinn }));
                self.state = State::SynReceived;
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.respond(&transmit, &response);
                }
            }
        }
    }

    fn respond(&mut self, transmit: &Transmit, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(&bytes[..transmit.size]);
        self.responses.push_back(Datagram { bytes, ecn: ecn_of(transmit), data_bytes: 0, data: 0..0 });
    }

    /// Takes all that the connection reports, and its next timer.
    fn update(&mut self, now: Instant) {
        // Out of its place, so that its events can change the rest.
        let Some(mut connection) = self.connection.take() else { return };
        loop {
            while let Some(event) = connection.quinn.poll_endpoint_events() {
                if let Some(reply) = self.endpoint.handle_event(connection.handle, event) {
                    connection.quinn.handle_event(reply);
                }
            }
            let Some(event) = connection.quinn.poll() else { break };
            match event {
                quinn_proto::Event::Connected => self.enter_established(),
                quinn_proto::Event::Stream(event) => self.handle_stream_event(&mut connection.quinn, &event),
                quinn_proto::Event::ConnectionLost { reason } => self.handle_loss(&reason),
                quinn_proto::Event::HandshakeDataReady
                | quinn_proto::Event::DatagramReceived
                | quinn_proto::Event::DatagramsUnblocked => {}
            }
        }
        let departure =
            self.controllers.companion().and_then(|companion| companion.next_departure(to_quinn(now)));
        let wake_up = connection.quinn.poll_timeout().into_iter().chain(departure).min();
        self.wake_up = wake_up.map(from_quinn);
        self.connection = Some(connection);
        if self.outgoing.is_acknowledged() && matches!(self.state, State::TimeWait) {
            self.close_connection(now, COMPLETE);
            self.finish(CloseReason::Finished);
        }
    }

    fn enter_established(&mut self) {
        if !matches!(self.state, State::SynSent | State::SynReceived) {
            return;
        }
        self.has_rtt = true;
        self.state = if self.closed_by_user { State::FinWait1 } else { State::Established };
        self.outgoing.open();
        self.events.push_back(Event::Connected);
    }

    fn handle_stream_event(&mut self, connection: &mut quinn_proto::Connection, event: &StreamEvent) {
        match *event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = connection.streams().accept(dir) {
                    self.read(connection, id);
                }
            }
            StreamEvent::Readable { id } => self.read(connection, id),
            StreamEvent::Writable { .. } => self.outgoing.unblock(),
            StreamEvent::Finished { .. } => {
                self.outgoing.acknowledge();
                self.enter_after_fin(State::after_fin_acked);
            }
            // Endpoints here stop no stream, and open no more than one.
            StreamEvent::Stopped { .. } | StreamEvent::Available { .. } => {}
        }
    }

    /// Takes the data of the peer's stream.
    fn read(&mut self, connection: &mut quinn_proto::Connection, id: StreamId) {
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let before = self.bytes_received;
        let is_finished = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    self.bytes_received += chunk.bytes.len() as u64;
                    self.received.push_back(P::from_bytes(chunk.bytes));
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let _ = chunks.finalize();
        if self.bytes_received > before && !self.events.contains(&Event::Readable) {
            self.events.push_back(Event::Readable);
        }
        if is_finished {
            self.events.push_back(Event::PeerClosed);
            self.enter_after_fin(State::after_peer_fin);
        }
    }

    /// Changes the state after the end of a direction. In both orders the last state is that of a connection to be closed.
    fn enter_after_fin(&mut self, next: fn(State) -> State) {
        self.state = match next(self.state) {
            State::Closed if self.state == State::LastAck => State::TimeWait,
            state => state,
        };
    }

    /// Handles the end of the connection that this end has not brought about.
    fn handle_loss(&mut self, reason: &ConnectionError) {
        if self.state == State::Closed {
            return;
        }
        self.finish(match reason {
            ConnectionError::ApplicationClosed(close) if close.error_code == COMPLETE => {
                CloseReason::Finished
            }
            ConnectionError::TimedOut => CloseReason::TimedOut,
            _ if self.state == State::SynSent => CloseReason::Refused,
            _ => CloseReason::Reset,
        });
    }

    fn close_connection(&mut self, now: Instant, code: VarInt) {
        if let Some(connection) = &mut self.connection {
            connection.quinn.close(to_quinn(now), code, Bytes::new());
            self.wake_up = connection.quinn.poll_timeout().map(from_quinn);
        }
    }

    fn finish(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.events.push_back(Event::Closed(reason));
    }
}

fn ecn_of(transmit: &Transmit) -> Ecn {
    match transmit.ecn {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable0,
        Some(EcnCodepoint::Ect1) => Ecn::Capable1,
        Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
    }
}
