//! The endpoints of a connection, of whatever transport.

use crate::outcome::Detected;
use crate::packet::Body;
use crate::spec::Transport;
use core::ops::Add;
use hopline_core::{Duration, Instant, Length, LinkId, Machine, Seq32, Stream};
use hopline_transport::connection::Event;
use hopline_transport::tcp::{self, DoorStats, Estimator, Ports};
use hopline_transport::{Signal, tpa};
use hopline_wire::ipv4::{Ecn, HEADER_LEN};
use hopline_wire::udp;

/// One end of a connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the connection around it is boxed")]
pub(crate) enum Endpoint {
    Tcp(tcp::Endpoint<Length>),
    /// Its ports are UDP's.
    Tpa {
        ports: Ports,
        endpoint: tpa::Endpoint<Length>,
    },
}

/// What an endpoint has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments_sent: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    pub(crate) detected: Detected,
    pub(crate) duplicates_received: u64,
}

/// How connections waited for routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frozen {
    pub(crate) freezes: u64,
    pub(crate) probes: u64,
    pub(crate) time: Duration,
}

impl Add for Frozen {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            freezes: self.freezes + other.freezes,
            probes: self.probes + other.probes,
            time: self.time + other.time,
        }
    }
}

/// Does the same with an endpoint of either transport.
macro_rules! either {
    ($self:expr, $endpoint:ident => $what:expr) => {
        match $self {
            Endpoint::Tcp($endpoint) => $what,
            Endpoint::Tpa { endpoint: $endpoint, .. } => $what,
        }
    };
}

impl Endpoint {
    /// A closed endpoint.
    pub(crate) fn new(transport: &Transport, ports: Ports, stream: &mut Stream) -> Self {
        let valid = "a specification holds valid configurations";
        match transport {
            Transport::Tcp(config) => {
                let iss = Seq32(stream.bits() as u32);
                Self::Tcp(tcp::Endpoint::new(*config, ports, iss).expect(valid))
            }
            Transport::Tpa(config) => {
                Self::Tpa { ports, endpoint: tpa::Endpoint::new(*config).expect(valid) }
            }
        }
    }

    pub(crate) fn connect(&mut self, now: Instant) {
        either!(self, endpoint => endpoint.connect(now)).expect("a new endpoint can connect");
    }

    pub(crate) fn listen(&mut self) {
        either!(self, endpoint => endpoint.listen()).expect("a new endpoint can listen");
    }

    /// A connection that is given up takes no data, and the application falls silent.
    pub(crate) fn send(&mut self, now: Instant, bytes: u64) {
        let _ = either!(self, endpoint => endpoint.send(now, Length(bytes)));
    }

    pub(crate) fn recv(&mut self) -> Option<Length> {
        either!(self, endpoint => endpoint.recv())
    }

    /// Does nothing where the connection is over already.
    pub(crate) fn close(&mut self, now: Instant) {
        let _ = either!(self, endpoint => endpoint.close(now));
    }

    pub(crate) fn abort(&mut self, now: Instant) {
        either!(self, endpoint => endpoint.abort(now));
    }

    /// Takes the segment in `body`; one of the other transport cannot come here, and would be no concern of this one.
    pub(crate) fn handle_packet(&mut self, now: Instant, body: &Body) {
        match (self, body) {
            (Self::Tcp(endpoint), Body::Tcp(segment)) => endpoint.handle_packet(now, LinkId::ONLY, *segment),
            (Self::Tpa { endpoint, .. }, Body::Tpa { segment, .. }) => {
                endpoint.handle_packet(now, LinkId::ONLY, *segment);
            }
            _ => {}
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        either!(self, endpoint => endpoint.handle_timeout(now));
    }

    pub(crate) fn handle_signal(&mut self, now: Instant, signal: Signal) {
        either!(self, endpoint => endpoint.handle_signal(now, signal));
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Body> {
        match self {
            Self::Tcp(endpoint) => endpoint.poll_transmit(now).map(Body::Tcp),
            Self::Tpa { endpoint, ports } => {
                let ports = *ports;
                endpoint.poll_transmit(now).map(|segment| Body::Tpa { ports, segment })
            }
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        either!(self, endpoint => endpoint.poll_event())
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        either!(self, endpoint => endpoint.poll_timeout().map(|(at, _)| at))
    }

    /// Bytes that may be in flight.
    pub(crate) fn cwnd_bytes(&self) -> u64 {
        match self {
            Self::Tcp(endpoint) => endpoint.cwnd().into(),
            Self::Tpa { endpoint, .. } => u64::from(endpoint.cwnd()) * u64::from(endpoint.effective_mss()),
        }
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        either!(self, endpoint => endpoint.srtt())
    }

    /// Data bytes of a full segment.
    pub(crate) fn effective_mss(&self) -> u32 {
        either!(self, endpoint => endpoint.effective_mss())
    }

    /// Whether it wants to know the length of the path.
    pub(crate) fn is_paced(&self) -> bool {
        either!(self, endpoint => endpoint.pacing().is_some())
    }

    /// What TCP-DOOR counted.
    pub(crate) fn door(&self) -> DoorStats {
        match self {
            Self::Tcp(endpoint) => endpoint.stats().door,
            Self::Tpa { .. } => DoorStats::default(),
        }
    }

    /// How it has waited for routes until `now`.
    pub(crate) fn frozen(&self, now: Instant) -> Frozen {
        match self {
            Self::Tcp(endpoint) => {
                let stats = &endpoint.stats().feedback;
                Frozen { freezes: stats.freezes, probes: stats.probes, time: endpoint.time_frozen(now) }
            }
            Self::Tpa { endpoint, .. } => Frozen { freezes: endpoint.stats().freezes, ..Frozen::default() },
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let detected = match self {
            Self::Tcp(endpoint) => Detected::of(endpoint.stats()),
            Self::Tpa { .. } => Detected::default(),
        };
        either!(self, endpoint => {
            let stats = endpoint.stats();
            Counts {
                segments_sent: stats.segments_sent,
                retransmissions: stats.retransmissions,
                timeouts: stats.timeouts,
                bytes_acked: stats.bytes_acked,
                bytes_received: stats.bytes_received,
                detected,
                duplicates_received: stats.duplicates_received,
            }
        })
    }
}

/// The configuration with the phase of a ticking clock drawn, as long as TCP has one.
pub(crate) fn with_clock_phase(mut over: Transport, stream: &mut Stream) -> Transport {
    if let Transport::Tcp(config) = &mut over
        && let Estimator::Ticks { phase } = &mut config.rto.estimator
    {
        *phase = stream.duration_below(config.rto.granularity);
    }
    over
}

/// The ECN field of the IP packet around a segment.
pub(crate) fn ecn(body: &Body) -> Ecn {
    if let Body::Tcp(segment) = body { segment.ecn } else { Ecn::NotCapable }
}

/// The segment as it arrives in a packet with this ECN field.
pub(crate) fn with_mark(mut body: Body, ecn: Ecn) -> Body {
    if let Body::Tcp(segment) = &mut body {
        segment.ecn = ecn;
    }
    body
}

/// Length of the IP packet around a segment.
pub(crate) fn packet_len(body: &Body) -> u32 {
    let len = match body {
        Body::Tcp(segment) => segment.wire_len(),
        Body::Tpa { segment, .. } => udp::HEADER_LEN + segment.udp_len(),
        other => unreachable!("no endpoint sends {other:?}"),
    };
    (HEADER_LEN + len) as u32
}
