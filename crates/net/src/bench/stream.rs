//! A connection of either kind, for control and for data.

use super::plan::{CongestionControl, Transport};
use crate::tcp;
use crate::tpa::{self, Host, TpaStream};
use socket2::SockRef;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How long an attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection over one of the transports.
#[derive(Debug)]
pub(super) enum Stream {
    Tpa(TpaStream),
    Tcp(TcpStream),
}

/// Makes connections over one transport; those over TPA share a socket.
#[derive(Debug)]
pub(super) enum Dialer {
    Tpa { host: Host, cwnd_max: u8 },
    Tcp,
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
    /// One that reaches `peer`.
    pub(super) fn new(transport: &Transport, peer: SocketAddr) -> io::Result<Self> {
        Ok(match *transport {
            Transport::Tpa { cwnd_max } => Self::Tpa { host: Host::bind(any_towards(peer))?, cwnd_max },
            Transport::Tcp { .. } => Self::Tcp,
        })
    }

    pub(super) fn dial(&self, peer: SocketAddr) -> io::Result<Stream> {
        match self {
            Self::Tpa { host, cwnd_max } => {
                host.connect(peer, &tpa::config(*cwnd_max), Some(CONNECT)).map(Stream::Tpa)
            }
            Self::Tcp => TcpStream::connect_timeout(&peer, CONNECT).map(Stream::Tcp),
        }
    }
}

fn any_towards(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

impl Stream {
    /// Gives it what the plan says of the side that sends.
    pub(super) fn prepare_to_send(&self, transport: &Transport) -> Result<(), crate::Error> {
        match (self, transport) {
            (Self::Tpa(stream), Transport::Tpa { cwnd_max }) => stream
                .set_cwnd_max(*cwnd_max)
                .map_err(|e| crate::Error::system("setting the largest window", e)),
            (Self::Tcp(stream), Transport::Tcp { congestion_control: Some(control) }) => {
                tcp::set_congestion_control(&SockRef::from(stream), control.name())
            }
            _ => Ok(()),
        }
    }

    /// How long a call may wait before it gives `WouldBlock`.
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Tpa(stream) => {
                stream.set_read_timeout(Some(patience));
                stream.set_write_timeout(Some(patience));
                Ok(())
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))
            }
        }
    }

    /// Small messages leave at once.
    pub(super) fn set_prompt(&self) -> io::Result<()> {
        match self {
            Self::Tpa(_) => Ok(()), // it has `flush`
            Self::Tcp(stream) => stream.set_nodelay(true),
        }
    }

    pub(super) fn end_writing(&self) -> io::Result<()> {
        match self {
            Self::Tpa(stream) => stream.shutdown(Shutdown::Write),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    /// Ends it, and with it whatever is still on the way.
    pub(super) fn abort(self) {
        match self {
            Self::Tpa(stream) => stream.abort(),
            // With a linger time of zero, closing discards and resets. If it cannot be set, it ends a little later.
            Self::Tcp(stream) => _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO)),
        }
    }

    /// Ends it, and waits for as long as `limit` for the peer to have everything.
    pub(super) fn close(self, limit: Duration) {
        match self {
            // The peer may have left.
            Self::Tpa(stream) => _ = stream.close_within(limit),
            // The kernel goes on by itself.
            Self::Tcp(_) => {}
        }
    }

    pub(super) fn telemetry(&self) -> io::Result<Telemetry> {
        match self {
            Self::Tpa(stream) => {
                let info = stream.info();
                let std = |span: hopline_core::Duration| Duration::from_nanos(span.as_nanos());
                Ok(Telemetry {
                    retransmits: info.stats.retransmissions,
                    cwnd: u64::from(info.cwnd) * u64::from(info.mss),
                    peer_window: info.peer_window,
                    rtt: info.srtt.map(std),
                    rtt_var: info.rtt_deviation.map(std),
                    path_mtu: None,
                    mss: info.mss,
                })
            }
            Self::Tcp(stream) => {
                let info = tcp::info(stream).map_err(io::Error::other)?;
                Ok(Telemetry {
                    retransmits: info.retransmitted.into(),
                    cwnd: u64::from(info.cwnd) * u64::from(info.mss),
                    peer_window: info.peer_window.into(),
                    rtt: Some(info.srtt),
                    rtt_var: Some(info.rtt_var),
                    path_mtu: Some(info.path_mtu),
                    mss: info.mss,
                })
            }
        }
    }

    /// What controls congestion here; of TPA, its largest window does.
    pub(super) fn congestion_control(&self) -> Option<CongestionControl> {
        match self {
            Self::Tpa(_) => CongestionControl::new("tpa"),
            Self::Tcp(stream) => {
                CongestionControl::new(&tcp::congestion_control(&SockRef::from(stream)).ok()?)
            }
        }
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tpa(stream) => {
                let mut here = stream.host().local_addr()?;
                if here.ip().is_unspecified() {
                    here.set_ip(address_towards(stream.peer_addr())?);
                }
                Ok(here)
            }
            Self::Tcp(stream) => stream.local_addr(),
        }
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tpa(stream) => Ok(stream.peer_addr()),
            Self::Tcp(stream) => stream.peer_addr(),
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tpa(stream) => { stream }.read(buffer),
            Stream::Tcp(stream) => { stream }.read(buffer),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tpa(stream) => { stream }.write(data),
            Stream::Tcp(stream) => { stream }.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tpa(stream) => { stream }.flush(),
            Stream::Tcp(stream) => { stream }.flush(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tpa(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// The address that packets to `peer` bear. No packet leaves.
fn address_towards(peer: SocketAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind(any_towards(peer))?;
    socket.connect(peer)?;
    Ok(socket.local_addr()?.ip())
}

/// Whether a call only waited in vain. `TimedOut` is something else: the connection did.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
