//! The same for asynchronous code. No runtime is needed: tasks are woken by the host's thread.

use super::host::{Host, unspecified};
use super::listener::Listener;
use super::notice::Who;
use super::protocol::Protocol;
use super::stream::Stream;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A [`Stream`] for asynchronous code. One task may read and one write at the same time.
///
/// `poll_flush` lets what was written leave at once and does not wait for its arrival; `poll_shutdown` ends writing.
#[derive(Debug)]
pub struct AsyncStream<P: Protocol>(Stream<P>);

impl<P: Protocol> AsyncStream<P> {
    /// Connects to `peer` from a socket of its own.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub async fn connect(peer: SocketAddr, config: &P::Config) -> io::Result<Self> {
        Self::connect_from(&Host::bind(unspecified(peer))?, peer, config).await
    }

    /// Connects to `peer` from `host`.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub async fn connect_from(host: &Host<P>, peer: SocketAddr, config: &P::Config) -> io::Result<Self> {
        let stream = Self(host.begin_connect(peer, config)?);
        poll_fn(|context| {
            stream.0.call(|user, endpoint, _| {
                user.notice.wake_later(Who::Reader, context);
                user.see_opened(endpoint)
            })
        })
        .await?;
        Ok(stream)
    }

    /// Ends writing and waits until the peer has everything. Received data that was not read is lost.
    ///
    /// # Errors
    /// If the connection failed before: the peer may lack something.
    pub async fn close(self) -> io::Result<()> {
        // If it is over already, the following says how it ended.
        let _ = self.0.shutdown(Shutdown::Write);
        poll_fn(|context| {
            self.0.call(|user, endpoint, _| {
                user.notice.wake_later(Who::Writer, context);
                user.delivered(endpoint)
            })
        })
        .await?;
        self.0.shutdown(Shutdown::Both).or(Ok(()))
    }

    /// Whether the peer has everything, the end included, or why it never will. The task is woken when that may have changed.
    #[cfg(feature = "gateway")]
    pub(crate) fn poll_delivered(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        self.0.call(|user, endpoint, _| {
            user.notice.wake_later(Who::Writer, context);
            user.delivered(endpoint)
        })
    }

    /// The stream, for what needs no waiting.
    #[must_use]
    pub fn get_ref(&self) -> &Stream<P> {
        &self.0
    }

    /// The stream, for code that waits.
    #[must_use]
    pub fn into_inner(self) -> Stream<P> {
        self.0
    }
}

impl<P: Protocol> From<Stream<P>> for AsyncStream<P> {
    fn from(stream: Stream<P>) -> Self {
        Self(stream)
    }
}

impl<P: Protocol> AsyncRead for AsyncStream<P> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.with(|table, key, io| {
            table.user(key).notice.wake_later(Who::Reader, context);
            self.0.try_read(buffer.initialize_unfilled(), table, io)
        });
        read.map_ok(|len| buffer.advance(len))
    }
}

impl<P: Protocol> AsyncWrite for AsyncStream<P> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.0.with(|table, key, io| {
            table.user(key).notice.wake_later(Who::Writer, context);
            self.0.try_write(data, table, io)
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.push();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown(Shutdown::Write))
    }
}

/// A [`Listener`] for asynchronous code.
#[derive(Debug)]
pub struct AsyncListener<P: Protocol>(Listener<P>);

impl<P: Protocol> AsyncListener<P> {
    /// Listens at `address` with a socket of its own.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    pub fn bind(address: impl ToSocketAddrs, config: &P::Config) -> io::Result<Self> {
        Listener::bind(address, config).map(Self::from)
    }

    /// The next connection, and where it came from. Several tasks may wait, and each connection is one's.
    ///
    /// # Errors
    /// None today.
    pub async fn accept(&self) -> io::Result<(AsyncStream<P>, SocketAddr)> {
        poll_fn(|context| {
            self.0.host().with(|table, _| {
                let queue = table.queue.as_mut().expect("a queue stays as long as its listener");
                queue.notice.wake_later(Who::Acceptor, context);
            });
            match self.0.accept() {
                Ok((stream, peer)) => Poll::Ready(Ok((stream.into(), peer))),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// The listener, for what needs no waiting.
    #[must_use]
    pub fn get_ref(&self) -> &Listener<P> {
        &self.0
    }
}

impl<P: Protocol> From<Listener<P>> for AsyncListener<P> {
    fn from(listener: Listener<P>) -> Self {
        listener.set_nonblocking(true);
        Self(listener)
    }
}
