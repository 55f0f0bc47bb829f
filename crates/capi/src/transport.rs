//! The protocols below a socket: TPA-wide, TPA as published, and TCP where a peer does not know TPA.

use crate::abi::tpa_protocol;
use crate::error::{Error, Result};
use crate::ffi::signals::without_signals;
use crate::identity::PeerCheck;
use crate::options::Settings;
use crate::protocol::{Parameters, Protocol};
use crate::tcp::Tcp;
use hopline_streams::fallback::{self, Connector, PendingConnection, Port};
use hopline_streams::tpa::{self, TpaListener, TpaStream};
use hopline_streams::wide::{self, State, WideListener, WideStream};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Cache of peers that do not answer TPA, for the whole program.
static CONNECTOR: LazyLock<Connector> = LazyLock::new(Connector::default);

/// Bound sockets of the protocol.
#[derive(Clone, Debug)]
pub(crate) enum Bound {
    Wide(wide::Host),
    Tpa(tpa::Host),
    TpaOrTcp(Arc<Port>),
}

/// Listener.
#[derive(Debug)]
pub(crate) enum Listener {
    Wide(WideListener),
    Tpa(TpaListener),
    TpaOrTcp(fallback::Listener),
}

/// Connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Wide(WideStream),
    Tpa(TpaStream),
    Tcp(Tcp),
}

/// State and counters of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Info {
    Wide(Box<wide::Info>),
    Tpa(Box<tpa::Info>),
    Tcp(hopline_linux::tcp::Info),
}

/// Connection that is being opened.
#[derive(Clone, Debug)]
pub(crate) enum ConnectingStream {
    /// The protocol is selected.
    Stream(Arc<Stream>),
    /// The protocol is not selected yet.
    TpaOrTcp(Arc<PendingConnection>),
}

impl Bound {
    pub(crate) fn new(address: SocketAddr, protocol: Protocol) -> Result<Self> {
        // The host starts a thread of the library. Signals are for threads of the program.
        let bound = without_signals(|| match protocol {
            Protocol::Wide => wide::Host::bind(address).map(Self::Wide),
            Protocol::Tpa => tpa::Host::bind(address).map(Self::Tpa),
            Protocol::TpaOrTcp => Port::bind(address).map(|port| Self::TpaOrTcp(Arc::new(port))),
        });
        bound.map_err(|error| Error::from(error).with_context(address))
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Wide(host) => host.local_addr(),
            Self::Tpa(host) => host.local_addr(),
            Self::TpaOrTcp(port) => Ok(port.local_addr()),
        }
    }

    pub(crate) fn listen(&self, parameters: &Parameters, backlog: usize) -> io::Result<Listener> {
        match (self, parameters) {
            (Self::Wide(host), Parameters::Wide(config)) => {
                let listener = host.listen(config, backlog)?;
                listener.set_nonblocking(true);
                Ok(Listener::Wide(listener))
            }
            (Self::Tpa(host), Parameters::Tpa(config)) => {
                let listener = host.listen(config, backlog)?;
                listener.set_nonblocking(true);
                Ok(Listener::Tpa(listener))
            }
            (Self::TpaOrTcp(port), Parameters::TpaOrTcp(config)) => {
                let listener = port.listen(config, backlog)?;
                listener.set_nonblocking(true);
                Ok(Listener::TpaOrTcp(listener))
            }
            _ => Err(another_protocol()),
        }
    }
}

/// Begins a connection to `peer` from a bound socket. Only TPA with TCP needs none.
pub(crate) fn start_connect(
    bound: Option<&Bound>,
    peer: SocketAddr,
    parameters: &Parameters,
) -> io::Result<ConnectingStream> {
    let stream = match (bound, parameters) {
        (Some(Bound::Wide(host)), Parameters::Wide(config)) => {
            Stream::Wide(host.begin_connect(peer, config)?)
        }
        (Some(Bound::Tpa(host)), Parameters::Tpa(config)) => Stream::Tpa(host.begin_connect(peer, config)?),
        (None, Parameters::TpaOrTcp(config)) => return start_both(None, peer, config),
        (Some(Bound::TpaOrTcp(port)), Parameters::TpaOrTcp(config)) => {
            return start_both(Some(port), peer, config);
        }
        _ => return Err(another_protocol()),
    };
    Ok(ConnectingStream::Stream(Arc::new(stream)))
}

fn start_both(
    port: Option<&Port>,
    peer: SocketAddr,
    config: &fallback::Config,
) -> io::Result<ConnectingStream> {
    let opening = without_signals(|| CONNECTOR.begin(port, peer, config))?;
    Ok(ConnectingStream::TpaOrTcp(Arc::new(opening)))
}

/// Error of a socket that is bound to another protocol.
fn another_protocol() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is bound to another protocol")
}

impl ConnectingStream {
    pub(crate) fn stream(&self) -> Option<&Arc<Stream>> {
        match self {
            Self::Stream(stream) => Some(stream),
            Self::TpaOrTcp(_) => None,
        }
    }
}

impl AsFd for ConnectingStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stream(stream) => stream.as_fd(),
            Self::TpaOrTcp(opening) => opening.as_fd(),
        }
    }
}

impl Listener {
    /// Accepts a connection. Does not wait.
    pub(crate) fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        match self {
            Self::Wide(listener) => listener.accept().map(|(stream, peer)| (Stream::Wide(stream), peer)),
            Self::Tpa(listener) => listener.accept().map(|(stream, peer)| (Stream::Tpa(stream), peer)),
            Self::TpaOrTcp(listener) => {
                let (stream, peer) = listener.accept()?;
                Ok((Stream::of(stream)?, peer))
            }
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Wide(listener) => listener.local_addr(),
            Self::Tpa(listener) => listener.local_addr(),
            Self::TpaOrTcp(listener) => Ok(listener.local_addr()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Wide(listener) => listener.as_fd(),
            Self::Tpa(listener) => listener.as_fd(),
            Self::TpaOrTcp(listener) => listener.as_fd(),
        }
    }
}

impl Stream {
    pub(crate) fn of(stream: fallback::Stream) -> io::Result<Self> {
        Ok(match stream {
            fallback::Stream::Tpa(stream) => Self::Tpa(stream),
            fallback::Stream::Tcp(stream) => Self::Tcp(Tcp::new(stream)?),
        })
    }

    /// Returns whether a connection that was begun is open. Does not wait.
    pub(crate) fn is_open(&self) -> io::Result<bool> {
        match self {
            Self::Wide(stream) => stream.is_open(),
            Self::Tpa(stream) => stream.is_open(),
            Self::Tcp(_) => Ok(true),
        }
    }

    /// Returns the connection, if it is open and the check of its peer succeeds.
    pub(crate) fn checked(self: &Arc<Self>, check: &PeerCheck) -> Result<Option<Arc<Self>>> {
        match self.is_open() {
            Ok(false) => Ok(None),
            Ok(true) => {
                if let Self::Wide(stream) = &**self {
                    check.apply(&stream.info())?;
                }
                Ok(Some(Arc::clone(self)))
            }
            Err(error) => Err(check.failed(error.into())),
        }
    }

    pub(crate) fn await_open(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Wide(stream) => stream.await_open(limit),
            Self::Tpa(stream) => stream.await_open(limit),
            Self::Tcp(_) => Ok(()),
        }
    }

    /// Applies the settings for waiting.
    pub(crate) fn apply(&self, settings: &Settings) {
        let does_not_wait = settings.is_nonblocking();
        match self {
            Self::Wide(stream) => {
                stream.set_nonblocking(does_not_wait);
                stream.set_read_timeout(settings.receive);
                stream.set_write_timeout(settings.send);
            }
            Self::Tpa(stream) => {
                if let Some(cwnd_max) = settings.cwnd_max {
                    // The value was checked when it was set.
                    let _ = stream.set_cwnd_max(cwnd_max);
                }
                stream.set_nonblocking(does_not_wait);
                stream.set_read_timeout(settings.receive);
                stream.set_write_timeout(settings.send);
            }
            Self::Tcp(stream) => stream.apply(settings),
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Wide(stream) => (&*stream).read(buffer),
            Self::Tpa(stream) => (&*stream).read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }

    pub(crate) fn write(&self, data: &[u8]) -> io::Result<usize> {
        match self {
            Self::Wide(stream) => (&*stream).write(data),
            Self::Tpa(stream) => (&*stream).write(data),
            Self::Tcp(stream) => stream.write(data),
        }
    }

    /// Sends buffered data. TCP needs no flush: its socket option is set once.
    pub(crate) fn flush(&self) -> io::Result<()> {
        match self {
            Self::Wide(_) | Self::Tcp(_) => Ok(()),
            Self::Tpa(stream) => (&*stream).flush(),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Wide(stream) => stream.shutdown(how),
            Self::Tpa(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        }
    }

    pub(crate) fn close_within(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Wide(stream) => stream.close_within(limit),
            Self::Tpa(stream) => stream.close_within(limit),
            Self::Tcp(stream) => stream.close_within(limit),
        }
    }

    pub(crate) fn abort(&self) {
        match self {
            Self::Wide(stream) => stream.abort(),
            Self::Tpa(stream) => stream.abort(),
            Self::Tcp(stream) => stream.abort(),
        }
    }

    pub(crate) fn protocol(&self) -> tpa_protocol {
        match self {
            Self::Wide(_) => tpa_protocol::TPA_PROTOCOL_WIDE,
            Self::Tpa(_) => tpa_protocol::TPA_PROTOCOL_TPA,
            Self::Tcp(_) => tpa_protocol::TPA_PROTOCOL_TCP,
        }
    }

    /// Returns the UDP socket that connections of a port share. TCP has one for each connection.
    pub(crate) fn bound(&self) -> Option<Bound> {
        match self {
            Self::Wide(stream) => Some(Bound::Wide(stream.host().clone())),
            Self::Tpa(stream) => Some(Bound::Tpa(stream.host().clone())),
            Self::Tcp(_) => None,
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Wide(stream) => stream.host().local_addr(),
            Self::Tpa(stream) => stream.host().local_addr(),
            Self::Tcp(stream) => stream.local_addr(),
        }
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Wide(stream) => Ok(stream.peer_addr()),
            Self::Tpa(stream) => Ok(stream.peer_addr()),
            Self::Tcp(stream) => stream.peer_addr(),
        }
    }

    pub(crate) fn info(&self) -> io::Result<Info> {
        Ok(match self {
            Self::Wide(stream) => Info::Wide(Box::new(stream.info())),
            Self::Tpa(stream) => Info::Tpa(Box::new(stream.info())),
            Self::Tcp(stream) => Info::Tcp(stream.info()?),
        })
    }

    /// Returns whether the peer has received all data and has ended its direction. It may be gone already, so that an end of
    /// this direction would not be acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Wide(stream) => {
                let info = stream.info();
                info.state == State::CloseWait && info.unacknowledged == 0
            }
            Self::Tpa(stream) => {
                let info = stream.info();
                info.state == State::CloseWait && info.unacknowledged == 0
            }
            Self::Tcp(_) => false,
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Wide(stream) => stream.as_fd(),
            Self::Tpa(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}
