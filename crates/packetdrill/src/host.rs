//! Host under test: sockets, connections and a clock.

use crate::connection::{Connection, reset_for};
use crate::mapping::shifted;
use crate::script::IcmpSpec;
use crate::settings::{Settings, System};
use crate::socket::{Socket, SocketKind, SocketOptions};
use hopline_core::{Instant, Length, Seq32, StateMachine};
use hopline_transport::tcp::{Ports, State};
use hopline_wire::tcp::{Flags, Segment};
use std::collections::{BTreeMap, VecDeque};

/// Port of every listening socket, and of the peer's.
const SERVER_PORT: u16 = 8080;
/// First ephemeral port.
const FIRST_PORT: u16 = 40_000;

/// Most timers that expire in a script, so that a run ends.
const MOST_STEPS: u32 = 100_000;

/// Segment that the host sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) segment: Segment<Length>,
}

/// Host with a clock, sockets by descriptor, and all connections so far.
pub(crate) struct Host {
    pub(crate) settings: Settings,
    pub(crate) now: Instant,
    pub(crate) sockets: BTreeMap<i64, Socket>,
    pub(crate) connections: Vec<Connection>,
    /// Segments sent and not yet compared with the script.
    pub(crate) sent: VecDeque<Sent>,
    /// Connection that the script's segments belong to: the latest, unless they name ports.
    pub(crate) current: Option<usize>,
    /// Number of further timers that may expire.
    pub(crate) steps_left: u32,
    /// Largest segment without options on the path, as a message of ICMP said; bytes.
    path_mss: Option<u32>,
}

impl Host {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            now: Instant::ZERO,
            sockets: BTreeMap::new(),
            connections: Vec::new(),
            sent: VecDeque::new(),
            current: None,
            steps_left: MOST_STEPS,
            path_mss: None,
        }
    }

    /// Advances the clock to the next timer that expires until `limit`, or to `limit`. Returns whether a timer expired.
    pub(crate) fn step(&mut self, limit: Instant) -> bool {
        let next = self.connections.iter().filter_map(|c| c.endpoint.poll_timeout()).map(|(at, _)| at).min();
        match next {
            Some(at) if at <= limit && self.steps_left > 0 => {
                self.steps_left -= 1;
                self.now = self.now.max(at);
                for connection in &mut self.connections {
                    if connection.endpoint.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
                        connection.endpoint.handle_timeout(self.now);
                        connection.take_events();
                    }
                }
                self.drain();
                true
            }
            _ => {
                self.now = self.now.max(limit);
                false
            }
        }
    }

    /// Takes the segments that the connections want to send.
    pub(crate) fn drain(&mut self) {
        for connection in &mut self.connections {
            while let Some(segment) = connection.endpoint.poll_transmit(self.now) {
                connection.on_sent(self.now, &segment);
                self.sent.push_back(Sent { at: self.now, segment });
            }
            connection.take_events();
        }
    }

    /// Discards segments of connections before the current one: a script follows one connection, unless it names ports.
    pub(crate) fn skip_earlier_connections(&mut self) {
        let Some(current) = self.current.map(|id| &self.connections[id]) else { return };
        if current.script_ports.is_none() {
            let (current, connections) = (current.endpoint.ports(), &self.connections);
            self.sent.retain(|sent| {
                let (local, remote) = (sent.segment.src_port, sent.segment.dst_port);
                (local, remote) == (current.local, current.remote)
                    || !connections.iter().any(|connection| connection.sends(&sent.segment))
            });
        }
    }

    /// Returns the connection that sent a segment.
    pub(crate) fn connection_of(&self, segment: &Segment<Length>) -> Option<&Connection> {
        self.connections.iter().find(|connection| connection.sends(segment))
    }

    /// Returns the connection that sent a segment.
    pub(crate) fn connection_of_mut(&mut self, segment: &Segment<Length>) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.sends(segment))
    }

    /// Opens a connection from the socket.
    pub(crate) fn connect(&mut self, options: &SocketOptions) -> Result<usize, String> {
        let ports = Ports { local: self.ephemeral_port()?, remote: SERVER_PORT };
        let id = self.add_connection(options, ports)?;
        // A new endpoint with a remote port may be opened.
        let _opened = self.connections[id].endpoint.connect(self.now);
        self.drain();
        Ok(id)
    }

    /// Returns a port that no connection has used.
    fn ephemeral_port(&self) -> Result<u16, String> {
        port_after(self.connections.len())
    }

    fn add_connection(&mut self, options: &SocketOptions, ports: Ports) -> Result<usize, String> {
        let id = self.connections.len();
        // Far apart, and near the wrap-around for the second connection.
        let iss = Seq32(1_000_000_u32.wrapping_add((id as u32).wrapping_mul(0x7fff_0000)));
        let config = options.apply_to(&self.settings)?;
        let connection = Connection::new(config, ports, iss).map_err(|error| error.to_string())?;
        self.connections.push(connection);
        options.apply_to_endpoint(self.now, &self.settings, &mut self.connections[id].endpoint);
        self.current = Some(id);
        Ok(id)
    }

    /// Delivers a segment with the numbers of the script.
    pub(crate) fn deliver(
        &mut self,
        mut segment: Segment<Length>,
        script_ports: Option<(u16, u16)>,
    ) -> Result<(), String> {
        let id = self.connection_for(&segment, script_ports)?;
        if let Some(id) = id {
            self.connections[id].script_ports = script_ports;
            self.current = Some(id);
        }
        if let Some(connection) = self.current.map(|id| &mut self.connections[id]) {
            if segment.flags.contains(Flags::SYN) {
                connection.peer_iss.get_or_insert(segment.seq.0);
            }
            let shifts = connection.shifts(segment.flags);
            let ports = connection.endpoint.ports();
            (segment.src_port, segment.dst_port) = (ports.remote, ports.local);
            segment.seq += shifts.peer;
            if segment.flags.contains(Flags::ACK) {
                segment.ack += shifts.host;
            }
            segment.options.sack = shifted(&segment.options.sack, shifts.host);
        }
        match id {
            Some(id) => {
                let most = self.settings.peer_mss.map_or(u64::MAX, u64::from);
                let was_open = self.connections[id].opened;
                self.connections[id].deliver(self.now, segment, most);
                if let Some(mss) = self.path_mss.filter(|_| !was_open && self.connections[id].opened) {
                    self.connections[id].endpoint.lower_mss(mss);
                }
                self.reset_orphan(id, &segment);
            }
            // RFC 9293 §3.10.7.2: a listening socket answers nothing but an acknowledgment.
            None if self.is_listening() && !segment.flags.contains(Flags::ACK) => {}
            None => self.sent.extend(reset_for(&segment).map(|segment| Sent { at: self.now, segment })),
        }
        self.drain();
        Ok(())
    }

    /// Resets a connection that has no user to read arrived data (RFC 2525 §2.17, as Linux does).
    fn reset_orphan(&mut self, id: usize, segment: &Segment<Length>) {
        let connection = &mut self.connections[id];
        if connection.orphaned && connection.readable() > 0 && !connection.is_closed() {
            connection.endpoint.abort(self.now);
            // The segment is answered as one that belongs to no connection.
            while connection.endpoint.poll_transmit(self.now).is_some() {}
            self.sent.extend(reset_for(segment).map(|segment| Sent { at: self.now, segment }));
        }
    }

    /// Delivers a message of ICMP, as far as it concerns a segment in flight (RFC 5927 §4.1).
    pub(crate) fn deliver_icmp(&mut self, spec: &IcmpSpec) {
        let Some(connection) = self.current.map(|id| &mut self.connections[id]) else { return };
        let flags = if connection.opened { Flags::ACK } else { Flags::SYN };
        let seq = Seq32(spec.seq.wrapping_add(connection.shifts(flags).host));
        if !connection.endpoint.is_outstanding(seq) {
            return;
        }
        if let Some(mtu) = spec.mtu {
            let mss = mtu.saturating_sub(self.settings.header_len());
            connection.endpoint.lower_mss(mss);
            self.path_mss = Some(mss);
        } else if let Some(error) = icmp_error(spec)
            && connection.endpoint.state() == State::SynSent
            && self.settings.icmp_ends_handshake
        {
            // RFC 5461 §4.1: an attempt to connect need not wait for its last time-out.
            connection.endpoint.abort(self.now);
            connection.error = Some(error);
        }
        self.drain();
    }

    /// Returns the connection for a segment: the one under test, or a new one of a listening socket.
    fn connection_for(
        &mut self,
        segment: &Segment<Length>,
        script_ports: Option<(u16, u16)>,
    ) -> Result<Option<usize>, String> {
        let is_open = |c: &Connection| !c.is_closed();
        let known = match script_ports {
            Some(_) => self.connections.iter().position(|c| c.script_ports == script_ports && is_open(c)),
            None => self.current.filter(|id| is_open(&self.connections[*id])),
        };
        if let Some(id) = known
            && !(is_request(segment) && self.opens_another(id))
            && !(self.connections[id].endpoint.state() == State::TimeWait && self.may_reuse(id, segment))
        {
            return Ok(Some(id));
        }
        self.accept_syn(segment)
    }

    /// Returns whether a SYN may open a new connection in place of one in TIME-WAIT (RFC 9293 §3.10.7.4, RFC 6191).
    fn may_reuse(&self, id: usize, segment: &Segment<Length>) -> bool {
        is_request(segment)
            && !segment.flags.contains(Flags::FIN)
            && self.connections[id].endpoint.is_after_stream(segment.seq)
            && self.is_listening()
            // RFC 5961 §4.2 sends a challenge ACK; RFC 9293 permits a new connection.
            && self.settings.system == System::Linux
    }

    /// Returns whether a SYN opens another connection than `id`: its user is gone, or the socket listens since later.
    fn opens_another(&self, id: usize) -> bool {
        let is_orphaned = self.connections[id].orphaned;
        let mut listeners = self.sockets.values().filter(|socket| socket.kind == SocketKind::Listener);
        listeners.any(|listener| is_orphaned || listener.listens_since > id)
    }

    fn is_listening(&self) -> bool {
        self.sockets.values().any(|socket| matches!(socket.kind, SocketKind::Listener))
    }

    /// Makes a connection of a listening socket for a SYN.
    fn accept_syn(&mut self, segment: &Segment<Length>) -> Result<Option<usize>, String> {
        let listener = self.sockets.iter().find(|(_, socket)| matches!(socket.kind, SocketKind::Listener));
        let Some((fd, socket)) = listener else { return Ok(None) };
        if !is_request(segment) {
            return Ok(None);
        }
        let (fd, options) = (*fd, socket.options.clone());
        let ports = Ports { local: SERVER_PORT, remote: self.ephemeral_port()? };
        let id = self.add_connection(&options, ports)?;
        // A new endpoint may listen.
        let _listening = self.connections[id].endpoint.listen();
        self.connections[id].listener = Some(fd);
        Ok(Some(id))
    }
}

/// Returns the ephemeral port of the connection after `connections` others.
fn port_after(connections: usize) -> Result<u16, String> {
    let most = usize::from(u16::MAX - FIRST_PORT) + 1;
    u16::try_from(usize::from(FIRST_PORT) + connections).map_err(|_| format!("more than {most} connections"))
}

/// Returns the error with which a message of ICMP ends an attempt to connect. Messages about routes do not: those may come back.
fn icmp_error(spec: &IcmpSpec) -> Option<&'static str> {
    match (spec.kind.as_str(), spec.code.as_str()) {
        ("unreachable", "protocol_unreachable" | "port_unreachable" | "packet_filtered")
        | ("unreachable", "net_prohibited" | "host_prohibited" | "admin_prohibited")
        | ("parameter_problem", "unknown_next_header") => Some("ECONNREFUSED"),
        ("time_exceeded", "ttl_exceeded_in_transit" | "exceeded_hop_limit") => Some("EHOSTUNREACH"),
        _ => None,
    }
}

/// Returns whether the segment asks for a connection.
fn is_request(segment: &Segment<Length>) -> bool {
    let flags = segment.flags;
    flags.contains(Flags::SYN) && !flags.contains(Flags::ACK) && !flags.contains(Flags::RST)
}

#[cfg(test)]
mod tests {
    use super::port_after;

    #[test]
    fn ports_run_out_with_an_error() {
        assert_eq!(port_after(0), Ok(40_000));
        assert_eq!(port_after(25_535), Ok(65_535));
        assert_eq!(port_after(25_536), Err("more than 25536 connections".to_owned()));
    }
}
