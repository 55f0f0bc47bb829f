//! Asynchronous interface. It needs no particular runtime: the host's thread wakes the tasks.

use super::host::{Host, unspecified};
use super::listener::Listener;
use super::notice::WaiterRole;
use super::protocol::Protocol;
use super::stream::Stream;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A [`Stream`] for asynchronous code. One task may read and one may write at the same time.
///
/// `poll_flush` sends the written data at once and does not wait for their arrival; `poll_shutdown` ends writing.
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
                user.notice.register_waker(WaiterRole::Reader, context);
                user.poll_opened(endpoint)
            })
        })
        .await?;
        Ok(stream)
    }

    /// Ends writing and waits until the peer has everything. Received data that were not read are lost.
    ///
    /// # Errors
    /// If the connection failed before: the peer may not have everything.
    pub async fn close(self) -> io::Result<()> {
        // If the connection has ended already, the following reports the result.
        let _ = self.0.shutdown(Shutdown::Write);
        poll_fn(|context| {
            self.0.call(|user, endpoint, _| {
                user.notice.register_waker(WaiterRole::Writer, context);
                user.delivered(endpoint)
            })
        })
        .await?;
        self.0.shutdown(Shutdown::Both).or(Ok(()))
    }

    /// Becomes ready once the peer has everything including the end of the stream, or the connection has failed. The task
    /// is woken when that may have changed.
    pub fn poll_delivered(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        self.0.call(|user, endpoint, _| {
            user.notice.register_waker(WaiterRole::Writer, context);
            user.delivered(endpoint)
        })
    }

    /// Returns the stream, for operations that do not wait.
    #[must_use]
    pub fn get_ref(&self) -> &Stream<P> {
        &self.0
    }

    /// Returns the blocking stream.
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
            table.user(key).notice.register_waker(WaiterRole::Reader, context);
            self.0.try_read(buffer.initialize_unfilled(), table, io)
        });
        read.map_ok(|len| buffer.advance(len))
    }
}

impl<P: Protocol> AsyncWrite for AsyncStream<P> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.0.with(|table, key, io| {
            table.user(key).notice.register_waker(WaiterRole::Writer, context);
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

    /// Returns the next connection and the address of its peer. Several tasks may wait; each connection goes to one of
    /// them.
    ///
    /// # Errors
    /// None at present.
    pub async fn accept(&self) -> io::Result<(AsyncStream<P>, SocketAddr)> {
        poll_fn(|context| {
            self.0.host().with(|table, _| {
                let queue = table.queue.as_mut().expect("a queue stays as long as its listener");
                queue.notice.register_waker(WaiterRole::Acceptor, context);
            });
            match self.0.accept() {
                Ok((stream, peer)) => Poll::Ready(Ok((stream.into(), peer))),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// Returns the listener, for operations that do not wait.
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
