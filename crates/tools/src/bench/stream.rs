//! Connections over any transport, for control and for data.

use super::error::SocketOption;
use super::native::{self, NativeStream};
use super::now;
use super::plan::{CongestionControl, Nagle, Plan, SocketOptions, Transport};
use super::protocol::{UDP_CONNECT, UDP_REPLY, UDP_REPLY_LEGACY};
use super::refusal::Code;
use hopline_linux::{sys, tcp};
use hopline_streams::Host;
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide;
use hopline_streams::wide::{PublicKey, Trust, Wide};
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Timeout of connecting.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between requests to a UDP server to register a stream.
const REQUEST_INTERVAL: Duration = Duration::from_secs(1);
/// Idle time of a control connection after which TCP sends keep-alive probes.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(8);

/// A connection over one of the transports.
#[derive(Debug)]
pub(super) enum Stream {
    Native(Box<dyn NativeStream>),
    Tcp(TcpStream),
    /// UDP, for data only: a connected socket that the server has registered.
    Udp(UdpSocket),
}

/// Opens connections over one transport. Those over TPA share a socket, and so do those over TPA-wide.
#[derive(Debug)]
pub(super) struct Dialer {
    tpa: Option<(Host<Tpa>, u8)>,
    local_address: SocketAddr,
    socket_options: SocketOptions,
    timeout: Duration,
}

/// Statistics of the sending side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Segments retransmitted since the connection was established.
    pub retransmits: u64,
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// Last advertised window of the receiver, in bytes.
    pub peer_window: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub rtt: Option<Duration>,
    /// Mean deviation of the round-trip time (RFC 6298 RTTVAR); `None` before the first sample.
    pub rtt_var: Option<Duration>,
    /// Path MTU, in bytes, if known; TPA does not discover it.
    pub path_mtu: Option<u32>,
    /// Maximum segment size, in bytes.
    pub mss: u32,
}

impl Dialer {
    /// Creates a dialer that has to reach `peer` within `patience`.
    pub(super) fn new(
        plan: &Plan,
        peer: SocketAddr,
        from: Option<IpAddr>,
        patience: Option<Duration>,
    ) -> io::Result<Self> {
        let from = from.map_or_else(|| unspecified_for(peer), |from| SocketAddr::new(from, 0));
        let tpa = match plan.transport {
            Transport::Tpa { cwnd_max } => Some((Host::bind(from)?, cwnd_max)),
            _ => None,
        };
        Ok(Self {
            tpa,
            local_address: from,
            socket_options: plan.socket_options,
            timeout: patience.unwrap_or(CONNECT_TIMEOUT),
        })
    }

    /// Opens a connection for control, or for data over a transport that has connections.
    pub(super) fn dial(&self, peer: SocketAddr) -> io::Result<Stream> {
        self.dial_within(peer, self.timeout)
    }

    /// Opens a connection within at most `limit`.
    pub(super) fn dial_within(&self, peer: SocketAddr, limit: Duration) -> io::Result<Stream> {
        // A timeout of zero is an error.
        let limit = limit.max(Duration::from_millis(1));
        if let Some((host, cwnd_max)) = &self.tpa {
            return host.connect(peer, &tpa::config(*cwnd_max), Some(limit)).map(Stream::native);
        }
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, None)?;
        socket.bind(&self.local_address.into())?;
        // The handshake announces the window and the segment size, so the options are set before.
        set_socket_options(SockRef::from(&socket), &self.socket_options, Kind::Tcp, peer)
            .map_err(SocketOption::into_io)?;
        socket.connect_timeout(&peer.into(), limit)?;
        Ok(Stream::Tcp(socket.into()))
    }

    /// Returns a dialer for TPA-wide connections to the peer that has `key`.
    pub(super) fn wide(&self, key: PublicKey) -> io::Result<WideDialer> {
        let (_, config) = native::wide(Trust::Only(vec![key]))?;
        Ok(WideDialer { host: Host::bind(self.local_address)?, config, timeout: self.timeout })
    }

    /// Opens a UDP stream, and waits until the server has registered it.
    pub(super) fn dial_udp(&self, peer: SocketAddr) -> io::Result<Stream> {
        let socket = UdpSocket::bind(self.local_address)?;
        set_socket_options(SockRef::from(&socket), &self.socket_options, Kind::Udp, peer)
            .map_err(SocketOption::into_io)?;
        socket.connect(peer)?;
        socket.set_read_timeout(Some(REQUEST_INTERVAL))?;
        let until = now() + self.timeout;
        while now() < until {
            socket.send(&UDP_CONNECT.to_ne_bytes())?;
            let mut answer = [0; 4];
            match socket.recv(&mut answer) {
                Ok(4) if [UDP_REPLY, UDP_REPLY_LEGACY].contains(&u32::from_ne_bytes(answer)) => {
                    return Ok(Stream::Udp(socket));
                }
                Ok(_) => {}
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Err(ErrorKind::TimedOut.into())
    }
}

/// Opens TPA-wide connections, all over one socket.
#[derive(Debug)]
pub(super) struct WideDialer {
    host: Host<Wide>,
    config: wide::Config,
    timeout: Duration,
}

impl WideDialer {
    pub(super) fn dial(&self, peer: SocketAddr) -> io::Result<Stream> {
        self.host.connect(peer, &self.config, Some(self.timeout)).map(Stream::native)
    }
}

pub(super) fn unspecified_for(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tcp,
    Udp,
}

/// Applies the socket options of the plan.
pub(super) fn set_socket_options(
    socket: SockRef<'_>,
    sockets: &SocketOptions,
    kind: Kind,
    peer: SocketAddr,
) -> Result<(), SocketOption> {
    let refused = |name, code| move |source| SocketOption { name, code, source };
    if let Some(bytes) = sockets.buffer {
        let refused = refused("the buffers", Code::SetBuffer);
        socket.set_send_buffer_size(bytes as usize).map_err(refused)?;
        socket.set_recv_buffer_size(bytes as usize).map_err(refused)?;
    }
    if sockets.tos > 0 {
        let refused = refused("the type of service", Code::SetTos);
        match peer {
            SocketAddr::V4(_) => socket.set_tos_v4(sockets.tos.into()).map_err(refused)?,
            SocketAddr::V6(_) => socket.set_tclass_v6(sockets.tos.into()).map_err(refused)?,
        }
    }
    if kind == Kind::Tcp {
        if let Some(mss) = sockets.mss {
            socket.set_tcp_mss(mss.into()).map_err(refused("the maximum segment size", Code::SetMss))?;
        }
        let nodelay = sockets.nagle == Nagle::Off;
        socket.set_tcp_nodelay(nodelay).map_err(refused("TCP_NODELAY", Code::SetNoDelay))?;
    }
    Ok(())
}

impl Stream {
    pub(super) fn native(stream: impl NativeStream + 'static) -> Self {
        Self::Native(Box::new(stream))
    }

    /// Returns the name of the transport, as in [`Transport::protocol`].
    pub(super) fn protocol(&self) -> &'static str {
        match self {
            Self::Native(stream) => stream.protocol(),
            Self::Tcp(_) => "TCP",
            Self::Udp(_) => "UDP",
        }
    }

    /// Applies the parameters that the plan has for the sending side.
    pub(super) fn prepare_to_send(&self, transport: &Transport) -> Result<(), hopline_linux::Error> {
        match (self, transport) {
            (Self::Native(stream), transport) => stream
                .prepare_to_send(transport)
                .map_err(|e| hopline_linux::Error::system("setting the largest window", e)),
            (Self::Tcp(stream), Transport::Tcp { congestion_control: Some(control) }) => {
                tcp::set_congestion_control(&SockRef::from(stream), control.name())
            }
            _ => Ok(()),
        }
    }

    /// Applies the socket options of the plan to a connection that the peer opened.
    pub(super) fn set_socket_options(
        &self,
        sockets: &SocketOptions,
        peer: SocketAddr,
    ) -> Result<(), SocketOption> {
        match self {
            Self::Native(_) => Ok(()),
            Self::Tcp(stream) => set_socket_options(SockRef::from(stream), sockets, Kind::Tcp, peer),
            Self::Udp(socket) => set_socket_options(SockRef::from(socket), sockets, Kind::Udp, peer),
        }
    }

    /// Returns the bytes that were written and that the peer has not acknowledged.
    pub(super) fn unacknowledged(&self) -> io::Result<u64> {
        Ok(match self {
            Self::Native(stream) => stream.telemetry().1,
            Self::Tcp(stream) => sys::unacknowledged(stream)?,
            Self::Udp(_) => 0,
        })
    }

    /// Returns the send and receive buffer of the socket, in bytes. `None` for hopline's own transports.
    pub(super) fn buffers(&self) -> Option<(u32, u32)> {
        let socket = match self {
            Self::Native(_) => return None,
            Self::Tcp(stream) => SockRef::from(stream),
            Self::Udp(socket) => SockRef::from(socket),
        };
        Some((socket.send_buffer_size().ok()? as u32, socket.recv_buffer_size().ok()? as u32))
    }

    /// Sets the timeout after which a call returns `WouldBlock`.
    pub(super) fn set_timeout(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Native(stream) => {
                stream.set_timeout(patience);
                Ok(())
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))
            }
            Self::Udp(socket) => {
                socket.set_read_timeout(Some(patience))?;
                socket.set_write_timeout(Some(patience))
            }
        }
    }

    /// Makes small messages leave at once.
    pub(super) fn set_prompt(&self) -> io::Result<()> {
        match self {
            Self::Native(_) => Ok(()), // it has `flush`
            Self::Tcp(stream) => {
                // A peer that has disappeared is detected after about half a minute.
                let alive = TcpKeepalive::new()
                    .with_time(KEEP_ALIVE_TIME)
                    .with_interval(KEEP_ALIVE_TIME)
                    .with_retries(3);
                SockRef::from(stream).set_tcp_keepalive(&alive)?;
                stream.set_nodelay(true)
            }
            Self::Udp(_) => Ok(()),
        }
    }

    /// Closes the sending direction, if the transport can do so while another thread may be writing.
    pub(super) fn end_data(&self) {
        if let Self::Tcp(stream) = self {
            // The peer may have closed the connection.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    /// Aborts the connection, and discards all data in flight.
    pub(super) fn abort(self) {
        match self {
            Self::Native(stream) => stream.abort(),
            // With a linger time of zero, closing discards and resets. If it cannot be set, the connection ends a little
            // later.
            Self::Tcp(stream) => _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO)),
            Self::Udp(_) => {}
        }
    }

    /// Closes the connection, and waits at most `limit` until the peer has everything.
    pub(super) fn close(self, limit: Duration) {
        match self {
            // The peer may have closed the connection.
            Self::Native(stream) => _ = stream.close_within(limit),
            // The kernel delivers the rest by itself.
            Self::Tcp(_) | Self::Udp(_) => {}
        }
    }

    /// Returns the transport statistics; `None` for UDP.
    pub(super) fn telemetry(&self) -> io::Result<Option<Telemetry>> {
        match self {
            Self::Native(stream) => Ok(Some(stream.telemetry().0)),
            Self::Tcp(stream) => {
                let info = tcp::info(stream).map_err(io::Error::other)?;
                Ok(Some(Telemetry {
                    retransmits: info.retransmitted.into(),
                    cwnd: u64::from(info.cwnd) * u64::from(info.mss),
                    peer_window: info.peer_window.into(),
                    rtt: Some(info.srtt),
                    rtt_var: Some(info.rtt_var),
                    path_mtu: Some(info.path_mtu),
                    mss: info.mss,
                }))
            }
            Self::Udp(_) => Ok(None),
        }
    }

    /// Returns the congestion control algorithm; for hopline's own transports, their name.
    pub(super) fn congestion_control(&self) -> Option<CongestionControl> {
        match self {
            Self::Native(stream) => CongestionControl::new(&stream.protocol().to_ascii_lowercase()),
            Self::Tcp(stream) => {
                CongestionControl::new(&tcp::congestion_control(&SockRef::from(stream)).ok()?)
            }
            Self::Udp(_) => None,
        }
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Native(stream) => stream.local_addr(),
            Self::Tcp(stream) => stream.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        }
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Native(stream) => Ok(stream.peer_addr()),
            Self::Tcp(stream) => stream.peer_addr(),
            Self::Udp(socket) => socket.peer_addr(),
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Native(stream) => stream.read(buffer),
            Stream::Tcp(stream) => { stream }.read(buffer),
            Stream::Udp(socket) => socket.recv(buffer),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Native(stream) => stream.write(data),
            Stream::Tcp(stream) => { stream }.write(data),
            Stream::Udp(socket) => socket.send(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Native(stream) => stream.flush(),
            Stream::Tcp(stream) => { stream }.flush(),
            Stream::Udp(_) => Ok(()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Native(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}

/// Returns whether the error is a timeout of one call. `TimedOut` is different: the connection has timed out.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
