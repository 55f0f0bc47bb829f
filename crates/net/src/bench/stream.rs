//! A connection of any kind, for control and for data.

use super::error::SocketOption;
use super::now;
use super::own::{self, Own};
use super::plan::{CongestionControl, Nagle, Plan, Sockets, Transport};
use super::protocol::{UDP_CONNECT, UDP_REPLY, UDP_REPLY_BEFORE};
use super::refusal::Code;
use crate::streams::Host;
use crate::tpa::{self, Tpa};
use crate::wide::{PublicKey, Trust, Wide};
use crate::{sys, tcp, wide};
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How long an attempt to connect may take.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// How often a server of UDP is asked to take note of a stream.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long a control connection is silent before TCP asks whether the peer is there.
const ALIVE: Duration = Duration::from_secs(8);

/// A connection over one of the transports.
#[derive(Debug)]
pub(super) enum Stream {
    Own(Box<dyn Own>),
    Tcp(TcpStream),
    /// Of data only: connected, and known to the other side.
    Udp(UdpSocket),
}

/// Makes connections over one transport; those over TPA share a socket, and so do those over TPA-wide.
#[derive(Debug)]
pub(super) struct Dialer {
    tpa: Option<(Host<Tpa>, u8)>,
    from: SocketAddr,
    sockets: Sockets,
    patience: Duration,
}

/// What the sending side of a connection knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Segments sent again since the connection was made.
    pub retransmits: u64,
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// What the receiver had room for when it was last heard, in bytes.
    pub peer_window: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub rtt: Option<Duration>,
    /// Mean deviation of the round-trip time; `None` before the first sample.
    pub rtt_var: Option<Duration>,
    /// Longest packet that the path is known to take, in bytes; TPA does not ask.
    pub path_mtu: Option<u32>,
    /// Data of a full segment, in bytes.
    pub mss: u32,
}

impl Dialer {
    /// One that reaches `peer` within `patience`.
    pub(super) fn new(
        plan: &Plan,
        peer: SocketAddr,
        from: Option<IpAddr>,
        patience: Option<Duration>,
    ) -> io::Result<Self> {
        let from = from.map_or_else(|| any_towards(peer), |from| SocketAddr::new(from, 0));
        let tpa = match plan.transport {
            Transport::Tpa { cwnd_max } => Some((Host::bind(from)?, cwnd_max)),
            _ => None,
        };
        Ok(Self { tpa, from, sockets: plan.sockets, patience: patience.unwrap_or(CONNECT) })
    }

    /// A connection for control, or for data over a transport that has connections.
    pub(super) fn dial(&self, peer: SocketAddr) -> io::Result<Stream> {
        self.dial_within(peer, self.patience)
    }

    /// Dials for at most `limit`.
    pub(super) fn dial_within(&self, peer: SocketAddr, limit: Duration) -> io::Result<Stream> {
        // A limit of zero is an error of its own.
        let limit = limit.max(Duration::from_millis(1));
        if let Some((host, cwnd_max)) = &self.tpa {
            return host.connect(peer, &tpa::config(*cwnd_max), Some(limit)).map(Stream::own);
        }
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, None)?;
        socket.bind(&self.from.into())?;
        // The other side hears of the buffer and the segment as the connection begins.
        prepare(SockRef::from(&socket), &self.sockets, Kind::Tcp, peer).map_err(SocketOption::into_io)?;
        socket.connect_timeout(&peer.into(), limit)?;
        Ok(Stream::Tcp(socket.into()))
    }

    /// What makes connections over TPA-wide to who has `key`.
    pub(super) fn wide(&self, key: PublicKey) -> io::Result<WideDialer> {
        let (_, config) = own::wide(Trust::Only(vec![key]))?;
        Ok(WideDialer { host: Host::bind(self.from)?, config, patience: self.patience })
    }

    /// A stream of datagrams that the server has taken note of.
    pub(super) fn dial_udp(&self, peer: SocketAddr) -> io::Result<Stream> {
        let socket = UdpSocket::bind(self.from)?;
        prepare(SockRef::from(&socket), &self.sockets, Kind::Udp, peer).map_err(SocketOption::into_io)?;
        socket.connect(peer)?;
        socket.set_read_timeout(Some(ASK_AGAIN))?;
        let until = now() + self.patience;
        while now() < until {
            socket.send(&UDP_CONNECT.to_ne_bytes())?;
            let mut answer = [0; 4];
            match socket.recv(&mut answer) {
                Ok(4) if [UDP_REPLY, UDP_REPLY_BEFORE].contains(&u32::from_ne_bytes(answer)) => {
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

/// Makes connections over TPA-wide, of one socket.
#[derive(Debug)]
pub(super) struct WideDialer {
    host: Host<Wide>,
    config: wide::Config,
    patience: Duration,
}

impl WideDialer {
    pub(super) fn dial(&self, peer: SocketAddr) -> io::Result<Stream> {
        self.host.connect(peer, &self.config, Some(self.patience)).map(Stream::own)
    }
}

pub(super) fn any_towards(peer: SocketAddr) -> SocketAddr {
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

/// Gives a socket what the plan says of it.
pub(super) fn prepare(
    socket: SockRef<'_>,
    sockets: &Sockets,
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
    pub(super) fn own(stream: impl Own + 'static) -> Self {
        Self::Own(Box::new(stream))
    }

    /// What carries it, as [`Transport::protocol`] has it.
    pub(super) fn protocol(&self) -> &'static str {
        match self {
            Self::Own(stream) => stream.protocol(),
            Self::Tcp(_) => "TCP",
            Self::Udp(_) => "UDP",
        }
    }

    /// Gives it what the plan says of the side that sends.
    pub(super) fn prepare_to_send(&self, transport: &Transport) -> Result<(), crate::Error> {
        match (self, transport) {
            (Self::Own(stream), transport) => stream
                .prepare_to_send(transport)
                .map_err(|e| crate::Error::system("setting the largest window", e)),
            (Self::Tcp(stream), Transport::Tcp { congestion_control: Some(control) }) => {
                tcp::set_congestion_control(&SockRef::from(stream), control.name())
            }
            _ => Ok(()),
        }
    }

    /// Gives a connection that the peer made what the plan says of sockets.
    pub(super) fn prepare(&self, sockets: &Sockets, peer: SocketAddr) -> Result<(), SocketOption> {
        match self {
            Self::Own(_) => Ok(()),
            Self::Tcp(stream) => prepare(SockRef::from(stream), sockets, Kind::Tcp, peer),
            Self::Udp(socket) => prepare(SockRef::from(socket), sockets, Kind::Udp, peer),
        }
    }

    /// Bytes that were written and that the peer's system has not confirmed.
    pub(super) fn unconfirmed(&self) -> io::Result<u64> {
        Ok(match self {
            Self::Own(stream) => stream.told().1,
            Self::Tcp(stream) => sys::unsent(stream)?,
            Self::Udp(_) => 0,
        })
    }

    /// What the socket has for sending and receiving, in bytes; of our own transports nothing.
    pub(super) fn buffers(&self) -> Option<(u32, u32)> {
        let socket = match self {
            Self::Own(_) => return None,
            Self::Tcp(stream) => SockRef::from(stream),
            Self::Udp(socket) => SockRef::from(socket),
        };
        Some((socket.send_buffer_size().ok()? as u32, socket.recv_buffer_size().ok()? as u32))
    }

    /// How long a call may wait before it gives `WouldBlock`.
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Own(stream) => {
                stream.set_patience(patience);
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

    /// Small messages leave at once.
    pub(super) fn set_prompt(&self) -> io::Result<()> {
        match self {
            Self::Own(_) => Ok(()), // it has `flush`
            Self::Tcp(stream) => {
                // A peer that has gone without a word is missed after half a minute.
                let alive = TcpKeepalive::new().with_time(ALIVE).with_interval(ALIVE).with_retries(3);
                SockRef::from(stream).set_tcp_keepalive(&alive)?;
                stream.set_nodelay(true)
            }
            Self::Udp(_) => Ok(()),
        }
    }

    /// Says that no more data will come, where the transport can while somebody may be about to write.
    pub(super) fn end_data(&self) {
        if let Self::Tcp(stream) = self {
            // The peer may have left.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    /// Ends it, and with it whatever is still on the way.
    pub(super) fn abort(self) {
        match self {
            Self::Own(stream) => stream.abort(),
            // With a linger time of zero, closing discards and resets. If it cannot be set, it ends a little later.
            Self::Tcp(stream) => _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO)),
            Self::Udp(_) => {}
        }
    }

    /// Ends it, and waits for as long as `limit` for the peer to have everything.
    pub(super) fn close(self, limit: Duration) {
        match self {
            // The peer may have left.
            Self::Own(stream) => _ = stream.close_within(limit),
            // The kernel goes on by itself.
            Self::Tcp(_) | Self::Udp(_) => {}
        }
    }

    /// `None` for UDP.
    pub(super) fn telemetry(&self) -> io::Result<Option<Telemetry>> {
        match self {
            Self::Own(stream) => Ok(Some(stream.told().0)),
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

    /// What controls congestion here; our own transports do it themselves.
    pub(super) fn congestion_control(&self) -> Option<CongestionControl> {
        match self {
            Self::Own(stream) => CongestionControl::new(&stream.protocol().to_ascii_lowercase()),
            Self::Tcp(stream) => {
                CongestionControl::new(&tcp::congestion_control(&SockRef::from(stream)).ok()?)
            }
            Self::Udp(_) => None,
        }
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Own(stream) => stream.local_addr(),
            Self::Tcp(stream) => stream.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        }
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Own(stream) => Ok(stream.peer_addr()),
            Self::Tcp(stream) => stream.peer_addr(),
            Self::Udp(socket) => socket.peer_addr(),
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Own(stream) => stream.read(buffer),
            Stream::Tcp(stream) => { stream }.read(buffer),
            Stream::Udp(socket) => socket.recv(buffer),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Own(stream) => stream.write(data),
            Stream::Tcp(stream) => { stream }.write(data),
            Stream::Udp(socket) => socket.send(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Own(stream) => stream.flush(),
            Stream::Tcp(stream) => { stream }.flush(),
            Stream::Udp(_) => Ok(()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}

/// Whether a call only waited in vain. `TimedOut` is something else: the connection did.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
