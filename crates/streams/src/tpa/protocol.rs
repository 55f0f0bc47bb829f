//! Implementation of the protocol interface of streams for TPA.

use super::Config;
use super::backlog::Backlog;
use super::stats::{HostStats, Info};
use super::table::{Connection, Origin, Tpa};
use super::tokens::TokenKey;
use crate::udp::{self, Path, Protocol, ProtocolEvent, Traffic, Transmit};
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_transport::connection::{CloseError, SendError, State};
use hopline_transport::tpa::{ConfigError, Endpoint, Listener, Secret};
use hopline_wire::ipv4::Ecn;
use hopline_wire::tpa::Tag;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

/// Additional bytes of the IPv6 header over that of IPv4.
const IPV6_EXTRA: u16 = 20;

impl Protocol for Tpa {
    type Key = Tag;
    type Config = Config;
    type Endpoint<'a> = &'a mut Endpoint<Bytes>;
    type Info = Info;
    type HostStats = HostStats;

    const NAME: &'static str = "tpa";

    fn new() -> io::Result<Self> {
        Ok(Self::with(TokenKey::new()?))
    }

    fn connect(&mut self, now: Instant, path: Path, config: &Config) -> io::Result<Tag> {
        let identity = self.token_key.identity()?;
        let mut endpoint = Endpoint::tagged(config_for(config, path.peer), identity).map_err(invalid)?;
        endpoint.connect(now).expect("it is new");
        Ok(self.insert(Connection::new(endpoint, path, Origin::Connected)))
    }

    fn listen(&mut self, local: SocketAddr, config: &Config, backlog: usize) -> io::Result<()> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)?;
        let machine = Listener::new(config_for(config, local), Secret(secret)).map_err(invalid)?;
        self.backlog = Some(Backlog::new(machine, backlog));
        Ok(())
    }

    fn unlisten(&mut self) {
        self.backlog = None;
    }

    fn mark_accepted(&mut self, _key: Tag) {
        self.backlog.iter_mut().for_each(Backlog::remove_waiting);
    }

    fn reject(&mut self, key: Tag) {
        self.remove_connection(key);
        self.backlog.iter_mut().for_each(Backlog::remove_waiting);
    }

    fn remove(&mut self, now: Instant, key: Tag) {
        if self.remove_connection(key) == Some(Origin::Accepted)
            && let Some(backlog) = &mut self.backlog
        {
            backlog.spent.insert(now, key);
        }
    }

    fn endpoint(&mut self, key: Tag) -> Option<&mut Endpoint<Bytes>> {
        self.connections.get_mut(&key).map(|connection| &mut connection.endpoint)
    }

    fn handle_user_call(&mut self, key: Tag) {
        self.enqueue(key);
    }

    fn path(&self, key: Tag) -> Path {
        self.connections[&key].path_state.path()
    }

    fn info(&self, key: Tag) -> Info {
        let endpoint = &self.connections[&key].endpoint;
        Info {
            state: endpoint.state(),
            path: endpoint.path(),
            cwnd: endpoint.cwnd(),
            mss: endpoint.effective_mss(),
            peer_window: endpoint.peer_window(),
            srtt: endpoint.srtt(),
            rtt_deviation: endpoint.rtt_deviation(),
            rto: endpoint.rto(),
            unacknowledged: endpoint.unacknowledged(),
            stats: *endpoint.stats(),
        }
    }

    fn unreachable_connection(&self, address: IpAddr) -> Option<Tag> {
        let is_there = |connection: &Connection| {
            connection.path_state.path().peer.ip().to_canonical() == address.to_canonical()
        };
        let mut to_it = self.connections.iter().filter(|(_, connection)| is_there(connection));
        match (to_it.next(), to_it.next()) {
            (Some((&tag, connection)), None) if connection.endpoint.state() == State::SynSent => Some(tag),
            _ => None,
        }
    }

    fn handle_datagram(&mut self, now: Instant, path: Path, _ecn: Ecn, datagram: &mut [u8]) {
        self.handle_segment_from(now, path, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeouts(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    fn poll_event(&mut self, _now: Instant) -> Option<ProtocolEvent<Tag>> {
        self.next_event()
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit<Tag>> {
        self.next_datagram(now, buffer)
    }

    fn handle_drained(&mut self, _now: Instant) {
        self.update_index();
    }

    fn handle_gso_group(&mut self, key: Tag) {
        if let Some(Connection { path_state: route, endpoint, .. }) =
            self.connections.get_mut(&key).map(|c| &mut **c)
        {
            route.record_burst(endpoint.stats());
        }
    }

    fn handle_mtu_exceeded(&mut self, now: Instant, key: Tag, len: usize) {
        if let (Some(connection), Ok(len)) = (self.connections.get_mut(&key), len.try_into()) {
            connection.path_state.handle_send_failure(now, len);
        }
    }

    fn stats(&self, traffic: &Traffic) -> HostStats {
        let &Traffic { received, sent, send_failures, accepted, connections } = traffic;
        HostStats { received, sent, send_failures, accepted, connections, ..self.stats }
    }
}

impl udp::Endpoint for &mut Endpoint<Bytes> {
    fn state(&self) -> State {
        Endpoint::state(self)
    }

    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError> {
        Endpoint::send(self, now, data)
    }

    fn flush(&mut self, now: Instant) {
        Endpoint::flush(self, now);
    }

    fn recv(&mut self) -> Option<Bytes> {
        Endpoint::recv(self)
    }

    fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        Endpoint::close(self, now)
    }

    fn abort(&mut self, now: Instant) {
        Endpoint::abort(self, now);
    }

    fn send_capacity(&self) -> u64 {
        Endpoint::send_capacity(self)
    }

    fn send_buffer(&self) -> Option<u64> {
        self.config().send_buffer()
    }

    fn unacknowledged(&self) -> u64 {
        Endpoint::unacknowledged(self)
    }

    fn silence_limit(&self) -> Option<Duration> {
        self.config().silence_limit()
    }
}

/// Returns the configuration with segments reduced for the IPv6 header, if `address` is an IPv6 one.
fn config_for(config: &Config, address: SocketAddr) -> Config {
    let over_ipv6 = match address {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(address) => address.ip().to_ipv4_mapped().is_none(),
    };
    let mss = if over_ipv6 { config.mss().saturating_sub(IPV6_EXTRA).max(1) } else { config.mss() };
    config.with_mss(mss)
}

fn invalid(error: ConfigError) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, error)
}
