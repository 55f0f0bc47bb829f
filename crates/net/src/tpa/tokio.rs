//! The same for asynchronous code. No runtime is needed: tasks are woken by the host's thread.

use super::host::{Host, unspecified};
use super::listener::TpaListener;
use super::notice::Who;
use super::stream::TpaStream;
use hopline_transport::tpa::Config;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A [`TpaStream`] for asynchronous code. One task may read and one write at the same time.
///
/// `poll_flush` lets what was written leave at once and does not wait for its arrival; `poll_shutdown` ends writing.
#[derive(Debug)]
pub struct AsyncStream(TpaStream);

impl AsyncStream {
    /// Connects to `peer` from a socket of its own.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub async fn connect(peer: SocketAddr, config: &Config) -> io::Result<Self> {
        Self::connect_from(&Host::bind(unspecified(peer))?, peer, config).await
    }

    /// Connects to `peer` from `host`.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub async fn connect_from(host: &Host, peer: SocketAddr, config: &Config) -> io::Result<Self> {
        let stream = Self(host.begin_connect(peer, config)?);
        poll_fn(|context| {
            stream.0.call(|connection, _| {
                connection.notice.wake_later(Who::Reader, context);
                connection.opened()
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
            self.0.call(|connection, _| {
                connection.notice.wake_later(Who::Writer, context);
                connection.delivered()
            })
        })
        .await?;
        self.0.shutdown(Shutdown::Both).or(Ok(()))
    }

    /// Whether the peer has everything, the end included, or why it never will. The task is woken when that may have changed.
    #[cfg(feature = "gateway")]
    pub(crate) fn poll_delivered(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        self.0.call(|connection, _| {
            connection.notice.wake_later(Who::Writer, context);
            connection.delivered()
        })
    }

    /// The stream, for what needs no waiting.
    #[must_use]
    pub fn get_ref(&self) -> &TpaStream {
        &self.0
    }

    /// The stream, for code that waits.
    #[must_use]
    pub fn into_inner(self) -> TpaStream {
        self.0
    }
}

impl From<TpaStream> for AsyncStream {
    fn from(stream: TpaStream) -> Self {
        Self(stream)
    }
}

impl AsyncRead for AsyncStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.with(|table, tag, io| {
            table.connection(tag).notice.wake_later(Who::Reader, context);
            self.0.try_read(buffer.initialize_unfilled(), table, io)
        });
        read.map_ok(|len| buffer.advance(len))
    }
}

impl AsyncWrite for AsyncStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.0.with(|table, tag, io| {
            table.connection(tag).notice.wake_later(Who::Writer, context);
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

/// A [`TpaListener`] for asynchronous code.
#[derive(Debug)]
pub struct AsyncListener(TpaListener);

impl AsyncListener {
    /// Listens at `address` with a socket of its own.
    ///
    /// # Errors
    /// As [`TpaListener::bind`].
    pub fn bind(address: impl ToSocketAddrs, config: &Config) -> io::Result<Self> {
        TpaListener::bind(address, config).map(Self::from)
    }

    /// The next connection, and where it came from. Several tasks may wait, and each connection is one's.
    ///
    /// # Errors
    /// None today.
    pub async fn accept(&self) -> io::Result<(AsyncStream, SocketAddr)> {
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
    pub fn get_ref(&self) -> &TpaListener {
        &self.0
    }
}

impl From<TpaListener> for AsyncListener {
    fn from(listener: TpaListener) -> Self {
        listener.set_nonblocking(true);
        Self(listener)
    }
}
