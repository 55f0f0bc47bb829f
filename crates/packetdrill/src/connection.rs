//! Connection of the host under test, with the state that a kernel keeps beside the protocol.

use crate::mapping::Shifts;
use crate::tx_timestamps::TxTimestamps;
use hopline_core::{Instant, Length, LinkId, Payload, Seq32, StateMachine};
use hopline_transport::tcp::{CloseReason, Config, ConfigError, Endpoint, Event, Ports, State};
use hopline_wire::tcp::{Flags, Segment};

/// Connection with its socket state.
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint<Length>,
    pub(crate) iss: Seq32,
    /// Listening socket that holds the connection in its backlog until `accept`.
    pub(crate) listener: Option<i64>,
    /// Error for the next call, as `SO_ERROR` reports it.
    pub(crate) error: Option<&'static str>,
    pub(crate) opened: bool,
    pub(crate) peer_closed: bool,
    pub(crate) shut_down: bool,
    /// `true` after `shutdown(SHUT_RD)`: a read without data returns 0.
    pub(crate) reads_ended: bool,
    /// `true` after `close`: data that arrive are not read.
    pub(crate) orphaned: bool,
    /// Received bytes taken from the endpoint and not yet read.
    unread: u64,
    /// Initial sequence number of the host in the script, from its first outbound SYN.
    pub(crate) script_iss: u32,
    /// Initial sequence number of the peer, in the script and on the connection.
    pub(crate) peer_iss: Option<u32>,
    /// Bytes written so far.
    pub(crate) written: u64,
    /// Timestamps of sent data.
    pub(crate) tx_timestamps: TxTimestamps,
    /// Largest segment received, bytes of data.
    pub(crate) largest_received: u64,
    /// Sequence number and flags of the segment that arrived last.
    pub(crate) last_received: Option<(Seq32, Flags)>,
    /// Ports in the script, peer first, if it names them.
    pub(crate) script_ports: Option<(u16, u16)>,
}

impl Connection {
    pub(crate) fn new(config: Config, ports: Ports, iss: Seq32) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoint: Endpoint::new(config, ports, iss)?,
            iss,
            listener: None,
            error: None,
            opened: false,
            peer_closed: false,
            shut_down: false,
            reads_ended: false,
            orphaned: false,
            unread: 0,
            script_iss: 0,
            peer_iss: None,
            written: 0,
            tx_timestamps: TxTimestamps::default(),
            largest_received: 0,
            last_received: None,
            script_ports: None,
        })
    }

    /// Returns whether a segment bears the ports of this connection.
    pub(crate) fn sends(&self, segment: &Segment<Length>) -> bool {
        let ports = self.endpoint.ports();
        (ports.local, ports.remote) == (segment.src_port, segment.dst_port)
    }

    /// Returns the shifts of a segment's numbers.
    pub(crate) fn shifts(&self, flags: Flags) -> Shifts {
        // In a SYN, the numbers of a script are absolute; in other segments, they count from the initial ones.
        if flags.contains(Flags::SYN) {
            return Shifts { host: self.iss.0.wrapping_sub(self.script_iss), peer: 0 };
        }
        Shifts { host: self.iss.0, peer: self.peer_iss.unwrap_or(0) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.endpoint.state() == State::Closed
    }

    /// Delivers a segment of the peer.
    /// `most`: bytes of one segment; a longer one stands for several.
    pub(crate) fn deliver(&mut self, now: Instant, segment: Segment<Length>, most: u64) {
        self.largest_received = self.largest_received.max(segment.payload.0.min(most));
        self.last_received = Some((segment.seq, segment.flags));
        self.endpoint.handle_packet(now, LinkId::ONLY, segment);
        self.tx_timestamps.on_ack(now, self.acknowledged());
        self.take_events();
    }

    /// Returns the bytes that the peer has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.written.saturating_sub(self.endpoint.unacknowledged())
    }

    /// Records a segment that the connection sends.
    pub(crate) fn on_sent(&mut self, now: Instant, segment: &Segment<Length>) {
        let end = u64::from(segment.seq.0.wrapping_sub(self.iss.0)) + segment.payload.0;
        if segment.payload.0 > 0 {
            self.tx_timestamps.on_sent(now, end.saturating_sub(1));
        }
    }

    pub(crate) fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Connected => self.opened = true,
                Event::PeerClosed => self.peer_closed = true,
                Event::Closed(reason) => self.error = error_after(reason).or(self.error),
                _ => {}
            }
        }
    }

    /// Returns the bytes that a read would return.
    pub(crate) fn readable(&self) -> u64 {
        self.unread + self.endpoint.readable()
    }

    /// Returns whether no further data will arrive.
    pub(crate) fn is_at_end(&self) -> bool {
        self.peer_closed || self.reads_ended || self.is_closed()
    }

    /// Reads at most `most` bytes. A peek leaves them.
    pub(crate) fn read(&mut self, most: u64, peek: bool) -> u64 {
        let len = self.readable().min(most);
        if !peek {
            while self.unread < len
                && let Some(piece) = self.endpoint.recv()
            {
                self.unread += piece.len();
            }
            self.unread -= len;
        }
        len
    }
}

/// Returns the error that a socket reports after the end of its connection.
fn error_after(reason: CloseReason) -> Option<&'static str> {
    match reason {
        CloseReason::Refused => Some("ECONNREFUSED"),
        CloseReason::Reset => Some("ECONNRESET"),
        CloseReason::TimedOut => Some("ETIMEDOUT"),
        _ => None,
    }
}

/// Returns the reset of a host without a connection for `segment` (RFC 9293 §3.10.7.1).
pub(crate) fn reset_for(segment: &Segment<Length>) -> Option<Segment<Length>> {
    if segment.flags.contains(Flags::RST) {
        return None;
    }
    let reply = Segment { src_port: segment.dst_port, dst_port: segment.src_port, ..Segment::default() };
    Some(if segment.flags.contains(Flags::ACK) {
        Segment { seq: segment.ack, flags: Flags::RST, ..reply }
    } else {
        Segment { ack: segment.seq_end(), flags: Flags::RST | Flags::ACK, ..reply }
    })
}
