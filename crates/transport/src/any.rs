//! A connection over any transport: its configuration, its endpoints, its segments. For code that drives connections of
//! any transport, such as the simulator. A new transport is a variant of each type.

mod loss_detection_stats;
mod recovery;

pub use loss_detection_stats::LossDetectionStats;
pub use recovery::RecoveryState;

use crate::connection::{Event, SendError, State};
use crate::tcp::{
    self, CongestionControl, CustomCongestionControl, CustomCongestionControlId, DoorStats, Estimator, Ports,
};
use crate::{Signal, quic, tpa, wide};
use bytes::Bytes;
use core::ops::{Add, Sub};
use hopline_core::custom_algorithm::CustomAlgorithmError;
use hopline_core::{Duration, Instant, LinkId, Payload, RandomStream, Seq32, StateMachine};
use hopline_wire::Emit;
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use hopline_wire::udp;

/// Transport protocol, with its configuration.
///
/// # Example
///
/// ```
/// use hopline_core::{Instant, Length, NodeId, Purpose, RandomStream};
/// use hopline_transport::any::{Endpoint, Transport};
/// use hopline_transport::tcp::{self, Ports};
/// use hopline_transport::{tpa, wide};
///
/// let transports = [
///     Transport::Tcp(tcp::Config::modern()),
///     Transport::Tpa(tpa::Config::tpa(3)),
///     Transport::Wide(wide::Config::DEFAULT),
/// ];
/// for transport in transports {
///     let mut random = RandomStream::new(1, 0, NodeId(0), Purpose::Transport);
///     let ports = Ports { local: 40_000, remote: transport.server_port() };
///     let mut endpoint = Endpoint::<Length>::new(&transport, ports, &mut random);
///     endpoint.connect(Instant::ZERO);
///     assert!(endpoint.poll_transmit(Instant::ZERO).is_some(), "{transport:?}");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// TCP.
    Tcp(tcp::Config),
    /// TPA over UDP.
    Tpa(tpa::Config),
    /// TPA-wide over UDP.
    Wide(wide::Config),
    /// QUIC over UDP. Its endpoints come from another crate; see [`quic`].
    Quic(quic::Config),
}

impl Transport {
    /// Returns the largest payload of a segment, bytes.
    #[must_use]
    pub fn mss(&self) -> u32 {
        match self {
            Self::Tcp(config) => config.mss,
            Self::Tpa(config) => config.mss.into(),
            Self::Wide(config) => config.mss.into(),
            Self::Quic(config) => config.mss().into(),
        }
    }

    /// Returns the user-defined congestion control algorithm, if there is one.
    #[must_use]
    pub const fn custom_congestion_control(&self) -> Option<CustomCongestionControlId> {
        match self {
            Self::Tcp(tcp::Config { congestion_control: CongestionControl::Custom(id), .. }) => Some(*id),
            Self::Tcp(_) | Self::Tpa(_) | Self::Wide(_) | Self::Quic(_) => None,
        }
    }

    /// Returns the default port of a server: TPA's own, HTTP/3's (RFC 9114 §3.1), or the discard port (RFC 863).
    #[must_use]
    pub const fn server_port(&self) -> u16 {
        match self {
            Self::Tcp(_) => 9,
            Self::Tpa(_) => hopline_wire::tpa::PORT,
            Self::Wide(_) => hopline_wire::wide::PORT,
            Self::Quic(_) => 443,
        }
    }

    /// As `self`, with a random phase of the ticking clock, if there is one.
    #[must_use]
    pub fn with_clock_phase(mut self, stream: &mut RandomStream) -> Self {
        if let Self::Tcp(config) = &mut self
            && let Estimator::Ticks { phase } = &mut config.rto.estimator
        {
            *phase = stream.duration_below(config.rto.granularity);
        }
        self
    }
}

impl From<tcp::Config> for Transport {
    fn from(config: tcp::Config) -> Self {
        Self::Tcp(config)
    }
}

impl From<tpa::Config> for Transport {
    fn from(config: tpa::Config) -> Self {
        Self::Tpa(config)
    }
}

impl From<wide::Config> for Transport {
    fn from(config: wide::Config) -> Self {
        Self::Wide(config)
    }
}

impl From<quic::Config> for Transport {
    fn from(config: quic::Config) -> Self {
        Self::Quic(config)
    }
}

/// Segment, with its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment<P> {
    /// Segment of TCP.
    Tcp(hopline_wire::tcp::Segment<P>),
    /// Segment of TPA, over UDP.
    Tpa {
        /// UDP ports: local is the source's.
        ports: Ports,
        /// The segment.
        segment: hopline_wire::tpa::Segment<P>,
    },
    /// Packet of TPA-wide, over UDP.
    Wide {
        /// UDP ports: local is the source's.
        ports: Ports,
        /// The packet.
        packet: hopline_wire::wide::Packet<P>,
    },
    /// Datagram of QUIC.
    Quic {
        /// UDP ports: local is the source's.
        ports: Ports,
        /// The datagram.
        datagram: quic::Datagram,
    },
}

impl<P: Payload> Segment<P> {
    /// Returns the protocol of the IP header.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self {
            Self::Tcp(_) => Protocol::Tcp,
            Self::Tpa { .. } | Self::Wide { .. } | Self::Quic { .. } => Protocol::Udp,
        }
    }

    /// Returns the source and the destination port.
    #[must_use]
    pub const fn ports(&self) -> [u16; 2] {
        match self {
            Self::Tcp(segment) => [segment.src_port, segment.dst_port],
            Self::Tpa { ports, .. } | Self::Wide { ports, .. } | Self::Quic { ports, .. } => {
                [ports.local, ports.remote]
            }
        }
    }

    /// Returns the number of bytes after the IP header.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        match self {
            Self::Tcp(segment) => segment.wire_len(),
            Self::Tpa { segment, .. } => udp::HEADER_LEN + segment.udp_len(),
            Self::Wide { packet, .. } => udp::HEADER_LEN + packet.sealed_len(),
            Self::Quic { datagram, .. } => udp::HEADER_LEN + datagram.bytes.len(),
        }
    }

    /// Returns the number of data bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        match self {
            Self::Tcp(segment) => segment.payload.len(),
            Self::Tpa { segment, .. } => segment.payload.len(),
            Self::Wide { packet, .. } => packet.data_len(),
            Self::Quic { datagram, .. } => datagram.data_bytes,
        }
    }

    /// Returns the initial ECN field of the IP packet.
    #[must_use]
    pub const fn ecn(&self) -> Ecn {
        match self {
            Self::Tcp(segment) => segment.ecn,
            Self::Tpa { .. } => Ecn::NotCapable,
            Self::Wide { packet, .. } => packet.ecn,
            Self::Quic { datagram, .. } => datagram.ecn,
        }
    }

    /// Returns the segment as it arrives in a packet with this ECN field.
    #[must_use]
    pub fn with_ecn(mut self, ecn: Ecn) -> Self {
        match &mut self {
            Self::Tcp(segment) => segment.ecn = ecn,
            Self::Wide { packet, .. } => packet.ecn = ecn,
            Self::Quic { datagram, .. } => datagram.ecn = ecn,
            Self::Tpa { .. } => {}
        }
        self
    }
}

impl<P: Emit> Segment<P> {
    /// Appends the bytes that follow the IP header `ip`.
    pub fn emit(&self, ip: &Header, out: &mut Vec<u8>) {
        match self {
            Self::Tcp(segment) => segment.emit(ip, out),
            Self::Tpa { ports, segment } => {
                let mut message = Vec::with_capacity(segment.udp_len());
                segment.emit_udp(&mut message);
                emit_datagram(*ports, message.into(), ip, out);
            }
            // There is no key here: the sealed content is zeros of the right length.
            Self::Wide { ports, packet } => {
                emit_datagram(*ports, vec![0; packet.sealed_len()].into(), ip, out)
            }
            Self::Quic { ports, datagram } => emit_datagram(*ports, datagram.bytes.clone(), ip, out),
        }
    }
}

fn emit_datagram(ports: Ports, payload: Bytes, ip: &Header, out: &mut Vec<u8>) {
    udp::Datagram { src_port: ports.local, dst_port: ports.remote, payload }.emit(ip, out);
}

/// One end of a connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most endpoints are of TCP, and their connections are boxed")]
pub enum Endpoint<P: Payload> {
    /// Endpoint of TCP.
    Tcp(tcp::Endpoint<P>),
    /// Endpoint of TPA, with its UDP ports.
    Tpa {
        /// UDP ports.
        ports: Ports,
        /// The endpoint.
        endpoint: tpa::Endpoint<P>,
    },
    /// Endpoint of TPA-wide, with its UDP ports.
    Wide {
        /// UDP ports.
        ports: Ports,
        /// The endpoint.
        endpoint: wide::Endpoint<P>,
    },
    /// Endpoint of QUIC, with its UDP ports.
    Quic {
        /// UDP ports.
        ports: Ports,
        /// The endpoint.
        endpoint: Box<dyn quic::Endpoint<P>>,
    },
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Segments with data sent, retransmissions included.
    pub segments_sent: u64,
    /// Retransmitted segments with data.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes passed to the application, or ready for it.
    pub bytes_received: u64,
    /// Counters of TCP's loss detection; zeros for other transports.
    pub loss_detection: LossDetectionStats,
    /// Segments with data that were all received before.
    pub duplicates_received: u64,
}

/// Counters of freezes for lost routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FreezeStats {
    /// Number of freezes.
    pub freezes: u64,
    /// Probes sent while frozen.
    pub probes: u64,
    /// Total time frozen; zero for TPA.
    pub time: Duration,
}

impl Add for FreezeStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            freezes: self.freezes + other.freezes,
            probes: self.probes + other.probes,
            time: self.time + other.time,
        }
    }
}

impl Sub for FreezeStats {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            freezes: self.freezes - earlier.freezes,
            probes: self.probes - earlier.probes,
            time: self.time - earlier.time,
        }
    }
}

/// Evaluates the same expression with an endpoint of any transport.
macro_rules! either {
    ($self:expr, $endpoint:ident => $what:expr) => {
        match $self {
            Endpoint::Tcp($endpoint) => $what,
            Endpoint::Tpa { endpoint: $endpoint, .. } => $what,
            Endpoint::Wide { endpoint: $endpoint, .. } => $what,
            Endpoint::Quic { endpoint: $endpoint, .. } => $what,
        }
    };
}

impl<P: Payload> Endpoint<P> {
    /// Creates a closed endpoint. `stream`: source of its random numbers.
    ///
    /// # Panics
    /// If the configuration is not valid, or names a user-defined algorithm, or the transport is QUIC.
    #[must_use]
    pub fn new(transport: &Transport, ports: Ports, stream: &mut RandomStream) -> Self {
        Self::with_custom_algorithms(transport, ports, stream, |id| {
            unreachable!("nobody has a law {id:?} here")
        })
    }

    /// As [`Self::new`], for configurations that may name user-defined algorithms, which `law` creates.
    ///
    /// # Panics
    /// If the configuration is not valid, or the transport is QUIC.
    #[must_use]
    pub fn with_custom_algorithms(
        transport: &Transport,
        ports: Ports,
        stream: &mut RandomStream,
        law: impl FnOnce(CustomCongestionControlId) -> Box<dyn CustomCongestionControl>,
    ) -> Self {
        let valid = "the configuration was checked";
        match transport {
            Transport::Tcp(config) => {
                let iss = Seq32(stream.bits() as u32);
                let endpoint = match config.congestion_control {
                    CongestionControl::Custom(id) => {
                        tcp::Endpoint::with_custom_congestion_control(*config, ports, iss, law(id))
                    }
                    CongestionControl::Reno
                    | CongestionControl::Cubic(_)
                    | CongestionControl::Bbr(_)
                    | CongestionControl::Prague(_) => tcp::Endpoint::new(*config, ports, iss),
                };
                Self::Tcp(endpoint.expect(valid))
            }
            Transport::Tpa(config) => {
                Self::Tpa { ports, endpoint: tpa::Endpoint::new(*config).expect(valid) }
            }
            Transport::Wide(config) => {
                Self::Wide { ports, endpoint: wide::Endpoint::new(*config).expect(valid) }
            }
            Transport::Quic(_) => panic!("an endpoint of QUIC comes from another crate"),
        }
    }

    /// Opens the connection of a new endpoint.
    ///
    /// # Panics
    /// If the endpoint is not new.
    pub fn connect(&mut self, now: Instant) {
        either!(self, endpoint => endpoint.connect(now)).expect("a new endpoint can connect");
    }

    /// Waits for a peer, with a new endpoint.
    ///
    /// # Panics
    /// If the endpoint is not new.
    pub fn listen(&mut self) {
        either!(self, endpoint => endpoint.listen()).expect("a new endpoint can listen");
    }

    /// Sends data. A connection that has ended accepts none, and the data are discarded.
    pub fn send(&mut self, now: Instant, data: P) {
        let _ = self.try_send(now, data);
    }

    /// Sends data, all or none.
    ///
    /// # Errors
    /// The connection is not open for sending, or the send buffer has no room.
    pub fn try_send(&mut self, now: Instant, data: P) -> Result<(), SendError> {
        either!(self, endpoint => endpoint.send(now, data))
    }

    /// Returns the connection state.
    #[must_use]
    pub fn state(&self) -> State {
        either!(self, endpoint => endpoint.state())
    }

    /// Returns the next data for the application.
    pub fn recv(&mut self) -> Option<P> {
        either!(self, endpoint => endpoint.recv())
    }

    /// Closes the sending direction. Does nothing if the connection has ended.
    pub fn close(&mut self, now: Instant) {
        let _ = either!(self, endpoint => endpoint.close(now));
    }

    /// Ends the connection at once.
    pub fn abort(&mut self, now: Instant) {
        either!(self, endpoint => endpoint.abort(now));
    }

    /// Processes a segment. Segments of another transport are ignored.
    pub fn handle_packet(&mut self, now: Instant, segment: Segment<P>) {
        match (self, segment) {
            (Self::Tcp(endpoint), Segment::Tcp(segment)) => {
                endpoint.handle_packet(now, LinkId::ONLY, segment)
            }
            (Self::Tpa { endpoint, .. }, Segment::Tpa { segment, .. }) => {
                endpoint.handle_packet(now, LinkId::ONLY, segment);
            }
            (Self::Wide { endpoint, .. }, Segment::Wide { packet, .. }) => {
                endpoint.handle_packet(now, LinkId::ONLY, packet);
            }
            (Self::Quic { endpoint, .. }, Segment::Quic { datagram, .. }) => {
                endpoint.handle_packet(now, LinkId::ONLY, datagram);
            }
            _ => {}
        }
    }

    /// Processes the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        either!(self, endpoint => endpoint.handle_timeout(now));
    }

    /// Processes a notification of the network layer.
    pub fn handle_signal(&mut self, now: Instant, signal: Signal) {
        either!(self, endpoint => endpoint.handle_signal(now, signal));
    }

    /// Returns the next segment to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment<P>> {
        match self {
            Self::Tcp(endpoint) => endpoint.poll_transmit(now).map(Segment::Tcp),
            Self::Tpa { endpoint, ports } => {
                let ports = *ports;
                endpoint.poll_transmit(now).map(|segment| Segment::Tpa { ports, segment })
            }
            Self::Wide { endpoint, ports } => {
                let ports = *ports;
                endpoint.poll_transmit(now).map(|packet| Segment::Wide { ports, packet })
            }
            Self::Quic { endpoint, ports } => {
                let ports = *ports;
                endpoint.poll_transmit(now).map(|datagram| Segment::Quic { ports, datagram })
            }
        }
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        either!(self, endpoint => endpoint.poll_event())
    }

    /// Returns the time of the next timer.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        either!(self, endpoint => endpoint.poll_timeout().map(|(at, _)| at))
    }

    /// Returns the bytes that may be in flight.
    #[must_use]
    pub fn cwnd_bytes(&self) -> u64 {
        match self {
            Self::Tcp(endpoint) => endpoint.cwnd().into(),
            Self::Tpa { endpoint, .. } => u64::from(endpoint.cwnd()) * u64::from(endpoint.effective_mss()),
            Self::Wide { endpoint, .. } => endpoint.window(),
            Self::Quic { endpoint, .. } => endpoint.cwnd(),
        }
    }

    /// Returns the smoothed round-trip time, if there is a sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        either!(self, endpoint => endpoint.srtt())
    }

    /// Returns the data bytes of a full segment.
    #[must_use]
    pub fn effective_mss(&self) -> u32 {
        either!(self, endpoint => endpoint.effective_mss())
    }

    /// Returns whether the endpoint needs the length of the path.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        match self {
            Self::Tcp(endpoint) => endpoint.pacing().is_some(),
            Self::Tpa { endpoint, .. } => endpoint.pacing().is_some(),
            Self::Wide { .. } | Self::Quic { .. } => false,
        }
    }

    /// Returns whether the counters of acknowledged and of received bytes count in stream order, from the start of the
    /// connection.
    #[must_use]
    pub const fn counts_in_order(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Wide { .. })
    }

    /// Returns the same as [`tcp::Endpoint::take_custom_failure`].
    pub fn take_custom_failure(&mut self) -> Option<CustomAlgorithmError> {
        match self {
            Self::Tcp(endpoint) => endpoint.take_custom_failure(),
            Self::Tpa { .. } | Self::Wide { .. } | Self::Quic { .. } => None,
        }
    }

    /// Returns the counters of TCP-DOOR.
    #[must_use]
    pub fn door_stats(&self) -> DoorStats {
        match self {
            Self::Tcp(endpoint) => endpoint.stats().door,
            Self::Tpa { .. } | Self::Wide { .. } | Self::Quic { .. } => DoorStats::default(),
        }
    }

    /// Returns the counters of freezes until `now`.
    #[must_use]
    pub fn freeze_stats(&self, now: Instant) -> FreezeStats {
        match self {
            Self::Tcp(endpoint) => {
                let stats = &endpoint.stats().feedback;
                FreezeStats { freezes: stats.freezes, probes: stats.probes, time: endpoint.time_frozen(now) }
            }
            Self::Tpa { endpoint, .. } => {
                FreezeStats { freezes: endpoint.stats().freezes, ..FreezeStats::default() }
            }
            Self::Wide { endpoint, .. } => {
                let stats = endpoint.stats();
                FreezeStats { freezes: stats.freezes, probes: stats.probes, time: stats.frozen }
            }
            Self::Quic { .. } => FreezeStats::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        let detected = match self {
            Self::Tcp(endpoint) => LossDetectionStats::from_stats(endpoint.stats()),
            Self::Tpa { .. } | Self::Wide { .. } | Self::Quic { .. } => LossDetectionStats::default(),
        };
        either!(self, endpoint => {
            let stats = endpoint.stats();
            EndpointStats {
                segments_sent: stats.segments_sent,
                retransmissions: stats.retransmissions,
                timeouts: stats.timeouts,
                bytes_acked: stats.bytes_acked,
                bytes_received: stats.bytes_received,
                loss_detection: detected,
                duplicates_received: stats.duplicates_received,
            }
        })
    }
}
