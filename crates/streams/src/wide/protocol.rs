//! Implementation of the protocol interface of streams for TPA-wide.

use super::config::{self, Config};
use super::stats::{HostStats, Info};
use crate::udp::{self, Fragments, GsoGrouping, Path, Protocol, ProtocolEvent, Reason, Traffic, Transmit};
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_sealed::{
    CloseError, Conn, ConnectError, ConnectionKey, Failure, Host, HostConfig, HostEvent, ListenError,
    OpenFailure, SendError, State,
};
use hopline_wire::ipv4::Ecn;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

const IN_USE: &str = "a connection stays as long as it has a user";

/// TPA-wide state machine with all connections of a UDP socket.
#[derive(Debug)]
pub struct Wide {
    host: Host,
    untrusted_keys: u64,
}

impl Wide {
    /// Creates a host without connections and with a given configuration: start from [`Wide::host_config`].
    ///
    /// # Errors
    /// `InvalidInput` for a parameter out of its range; the system has no random numbers.
    pub fn with(config: HostConfig) -> io::Result<Self> {
        let host = Host::new(config, config::seed()?).map_err(invalid)?;
        Ok(Self { host, untrusted_keys: 0 })
    }

    /// Returns the default configuration of hosts: [`HostConfig::default`] with longer bursts and a random stateless
    /// reset key. A listener with a private key derives a reset key from it and its port, which survives restarts.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn host_config() -> io::Result<HostConfig> {
        config::host_config()
    }

    fn conn(&self, key: ConnectionKey) -> &Conn {
        self.host.connection(key).expect(IN_USE)
    }
}

impl Protocol for Wide {
    type Key = ConnectionKey;
    type Config = Config;
    type Endpoint<'a> = &'a mut Conn;
    type Info = Info;
    type HostStats = HostStats;

    const NAME: &'static str = "tpa-wide";

    fn new() -> io::Result<Self> {
        Self::with(config::host_config()?)
    }

    fn connect(&mut self, now: Instant, path: Path, config: &Config) -> io::Result<ConnectionKey> {
        let transport = config::config_for(config.transport, path.peer);
        self.host.connect(now, to_sealed(path), config.credentials.clone(), transport).map_err(|error| {
            match error {
                ConnectError::Full(_) => io::Error::new(ErrorKind::ResourceBusy, error),
                ConnectError::Secure(_) | ConnectError::Transport(_) => invalid(error),
            }
        })
    }

    fn listen(&mut self, local: SocketAddr, config: &Config, backlog: usize) -> io::Result<()> {
        if let Some(resets) = config::reset_key_for(&config.credentials, local) {
            self.host.set_resets(Some(resets));
        }
        let transport = config::config_for(config.transport, local);
        self.host.listen(config.credentials.clone(), transport, backlog).map_err(|error| match error {
            ListenError::AlreadyListening => io::Error::new(ErrorKind::AddrInUse, error),
            error => invalid(error),
        })
    }

    fn unlisten(&mut self) {
        self.host.unlisten();
    }

    fn mark_accepted(&mut self, key: ConnectionKey) {
        self.host.mark_accepted(key);
    }

    /// Removes the connection and informs the peer, which considers it open by now.
    fn reject(&mut self, key: ConnectionKey) {
        self.host.remove(key);
    }

    fn remove(&mut self, _now: Instant, key: ConnectionKey) {
        self.host.remove(key);
    }

    fn endpoint(&mut self, key: ConnectionKey) -> Option<&mut Conn> {
        self.host.endpoint(key)
    }

    fn handle_user_call(&mut self, key: ConnectionKey) {
        self.host.handle_user_call(key);
    }

    fn path(&self, key: ConnectionKey) -> Path {
        from_sealed(self.conn(key).path())
    }

    fn info(&self, key: ConnectionKey) -> Info {
        let conn = self.conn(key);
        let endpoint = conn.endpoint();
        Info {
            state: conn.state(),
            peer: conn.peer(),
            rate: endpoint.rate(),
            window: endpoint.window(),
            in_flight: endpoint.in_flight(),
            mss: endpoint.effective_mss(),
            srtt: endpoint.srtt(),
            rtt_deviation: endpoint.rtt_deviation(),
            peer_window: endpoint.peer_window(),
            unacknowledged: conn.unacknowledged(),
            stats: conn.stats(),
            rejections: conn.rejections(),
        }
    }

    fn unreachable_connection(&self, address: IpAddr) -> Option<ConnectionKey> {
        let is_there = |conn: &Conn| conn.path().peer.ip().to_canonical() == address.to_canonical();
        let mut to_it = self.host.connections().filter(|(_, conn)| is_there(conn));
        match (to_it.next(), to_it.next()) {
            (Some((key, conn)), None) if conn.state() == State::SynSent => Some(key),
            _ => None,
        }
    }

    fn handle_datagram(&mut self, now: Instant, path: Path, ecn: Ecn, datagram: &mut [u8]) {
        self.host.handle_datagram(now, to_sealed(path), ecn, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn poll_event(&mut self, _now: Instant) -> Option<ProtocolEvent<ConnectionKey>> {
        loop {
            return Some(match self.host.poll_event()? {
                HostEvent::Accepted(key) => ProtocolEvent::Accepted(key),
                HostEvent::Connection(key, event) => ProtocolEvent::Event(key, event),
                HostEvent::Changed(key) | HostEvent::Moved(key, _) => ProtocolEvent::Touched(key),
                HostEvent::Failed(key, failure) => ProtocolEvent::Failed(key, reason(failure)),
                HostEvent::UntrustedKey(..) => {
                    self.untrusted_keys += 1;
                    continue;
                }
            });
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit<ConnectionKey>> {
        let hopline_sealed::Transmit { path, len, ecn, key } = self.host.poll_transmit(now, buffer)?;
        // The transport does no path MTU discovery, so that without fragmentation a peer behind a smaller MTU would
        // receive no full packet.
        let (company, fragments) = (GsoGrouping::SamePath, Fragments::Allowed);
        Some(Transmit { path: from_sealed(path), len, ecn, key, gso_grouping: company, fragments })
    }

    fn handle_drained(&mut self, _now: Instant) {}

    fn handle_gso_group(&mut self, _key: ConnectionKey) {}

    fn handle_mtu_exceeded(&mut self, _now: Instant, _key: ConnectionKey, _len: usize) {}

    fn stats(&self, traffic: &Traffic) -> HostStats {
        let &Traffic { received, sent, send_failures, accepted, connections } = traffic;
        let (strangers, sealed) = (self.untrusted_keys, self.host.stats());
        HostStats { received, accepted, untrusted_keys: strangers, sent, send_failures, connections, sealed }
    }
}

impl udp::Endpoint for &mut Conn {
    fn state(&self) -> State {
        Conn::state(self)
    }

    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError> {
        Conn::send(self, now, data)
    }

    /// Does nothing: written data are sent without waiting for more.
    fn flush(&mut self, _now: Instant) {}

    fn recv(&mut self) -> Option<Bytes> {
        Conn::recv(self)
    }

    fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        Conn::close(self, now)
    }

    fn abort(&mut self, now: Instant) {
        Conn::abort(self, now);
    }

    fn send_capacity(&self) -> u64 {
        Conn::send_capacity(self)
    }

    fn send_buffer(&self) -> Option<u64> {
        self.endpoint().config().send_buffer()
    }

    fn unacknowledged(&self) -> u64 {
        Conn::unacknowledged(self)
    }

    fn silence_limit(&self) -> Option<Duration> {
        self.endpoint().config().silence().limit()
    }
}

/// Returns the reason that a connection was not opened.
fn reason(failure: OpenFailure) -> Reason {
    let kind = match failure {
        OpenFailure::Handshake(Failure::NoAnswer | Failure::Unconfirmed) => ErrorKind::TimedOut,
        OpenFailure::Handshake(Failure::Refused { .. }) | OpenFailure::NotAccepted => {
            ErrorKind::ConnectionRefused
        }
        OpenFailure::Handshake(Failure::WrongPeer(_)) => ErrorKind::PermissionDenied,
        OpenFailure::Transport => ErrorKind::InvalidData,
    };
    Reason { kind, text: Some(failure.to_string().into()) }
}

fn to_sealed(path: Path) -> hopline_sealed::Path {
    hopline_sealed::Path { peer: path.peer, local: path.local }
}

fn from_sealed(path: hopline_sealed::Path) -> Path {
    Path { peer: path.peer, local: path.local }
}

fn invalid(error: impl Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, error)
}
