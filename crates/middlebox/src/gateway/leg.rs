//! One side of a connection through a gateway: TCP, or a stream of the trunk.

use super::exit_state::LastHeard;
use hopline_linux::transparent::LegOptions;
use hopline_streams::{AsyncStream, Protocol};
use socket2::SockRef;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// One side of a connection. Dropping it resets the connection in any state; only [`close`](Self::close) closes it
/// cleanly. A truncated stream therefore never looks like a complete one.
pub(crate) trait Leg: Send {
    /// Reads bytes. Returns 0 at the end of the stream.
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes as many bytes as there is room for.
    fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>>;

    /// Sends buffered bytes at once, as no more follow for now.
    fn push(&mut self);

    /// Closes the sending direction.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Becomes ready once the connection is broken, even without a read or write.
    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error>;

    /// Becomes ready once all data and the end of the stream need no further care: at once for TCP, on acknowledgement
    /// for TPA.
    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Closes the connection cleanly.
    fn close(self);
}

/// A TCP connection of the kernel.
pub(crate) struct TcpLeg {
    stream: Arc<TcpStream>,
    broken: Pin<Box<dyn Future<Output = io::Error> + Send>>,
}

impl TcpLeg {
    /// Creates a leg. From now on the end of the process also resets the connection.
    pub(crate) fn new(stream: TcpStream, options: &LegOptions) -> io::Result<Self> {
        let socket = SockRef::from(&stream);
        // On exit, the kernel resets an open connection instead of sending a FIN for an incomplete stream.
        socket.set_linger(Some(Duration::ZERO))?;
        socket.set_out_of_band_inline(true)?;
        options.apply(&stream)?;
        let stream = Arc::new(stream);
        Ok(Self { broken: Box::pin(socket_error(Arc::clone(&stream))), stream })
    }

    /// Reads bytes. Returns 0 at the end of the stream.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_read(context, buffer)).await
    }

    pub(crate) async fn write_all(&mut self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let written = poll_fn(|context| self.poll_write(context, data)).await?;
            data = &data[written..];
        }
        Ok(())
    }

    /// Has the kernel deliver the last bytes written instead of resetting the connection.
    pub(crate) fn mark_delivered(&self) {
        // The kernel sends its buffered data after the socket is closed.
        let _ = SockRef::from(&*self.stream).set_linger(None);
    }
}

/// Waits for an error of the socket, without reads or writes.
async fn socket_error(stream: Arc<TcpStream>) -> io::Error {
    match stream.ready(Interest::ERROR).await {
        Ok(_) => stream.take_error().ok().flatten().unwrap_or_else(|| ErrorKind::ConnectionReset.into()),
        Err(error) => error,
    }
}

impl Leg for TcpLeg {
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            std::task::ready!(self.stream.poll_read_ready(context))?;
            match self.stream.try_read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            std::task::ready!(self.stream.poll_write_ready(context))?;
            match self.stream.try_write(data) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn push(&mut self) {}

    fn poll_end(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.stream).shutdown(std::net::Shutdown::Write))
    }

    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.broken.as_mut().poll(context)
    }

    fn poll_settled(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn close(self) {
        self.mark_delivered();
    }
}

/// A stream of the trunk.
#[derive(Debug)]
pub(crate) struct TrunkLeg<P: Protocol> {
    stream: Option<AsyncStream<P>>,
    /// Records the time of every receipt.
    last_heard: Option<Arc<LastHeard>>,
}

impl<P: Protocol> TrunkLeg<P> {
    pub(crate) fn new(stream: AsyncStream<P>) -> Self {
        Self { stream: Some(stream), last_heard: None }
    }

    /// Creates a leg that records received bytes as signs of life.
    pub(super) fn with_last_heard(stream: AsyncStream<P>, pulse: Arc<LastHeard>) -> Self {
        Self { stream: Some(stream), last_heard: Some(pulse) }
    }

    /// Returns the stream, for messages of the gateways.
    pub(crate) fn stream(&mut self) -> &mut AsyncStream<P> {
        self.stream.as_mut().expect("only `leave` takes the stream, and the leg with it")
    }

    /// Closes the sending direction and reads until the peer gateway has closed its own, so that it receives the last
    /// message written.
    pub(crate) async fn close_and_drain(mut self) {
        if poll_fn(|context| self.poll_end(context)).await.is_err() {
            return;
        }
        let mut unread = [0; 4096];
        while let Ok(1..) = poll_fn(|context| self.poll_read(context, &mut unread)).await {}
        self.close();
    }
}

impl<P: Protocol> Leg for TrunkLeg<P> {
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        std::task::ready!(Pin::new(self.stream()).poll_read(context, &mut buffer))?;
        let read = buffer.filled().len();
        if let Some(pulse) = self.last_heard.as_ref().filter(|_| read > 0) {
            pulse.record();
        }
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.stream()).poll_write(context, data)
    }

    fn push(&mut self) {
        let mut stream = self.stream().get_ref();
        stream.flush().expect("it only sets data off");
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()).poll_shutdown(context)
    }

    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        match self.stream().poll_delivered(context) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            _ => Poll::Pending,
        }
    }

    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_delivered(context)
    }

    fn close(mut self) {
        drop(self.stream.take());
    }
}

impl<P: Protocol> Drop for TrunkLeg<P> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.get_ref().abort();
        }
    }
}
