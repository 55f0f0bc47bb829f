//! One side of a connection through a gateway: TCP, or what carries the trunk.

use super::presence::Pulse;
use crate::streams::{AsyncStream, Protocol};
use crate::transparent::LegOptions;
use socket2::SockRef;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// One side of a connection. Dropping it resets the connection, whatever state it is in; only [`leave`](Self::leave) ends it well. So a
/// stream that was cut off never looks like one that has ended.
pub(crate) trait Leg: Send {
    /// Bytes that came; 0 at their end.
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Takes bytes as far as there is room.
    fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>>;

    /// Nothing more comes for now: what was taken is to leave.
    fn push(&mut self);

    /// Nothing more comes, ever.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ready once the connection is broken, even if nobody reads or writes.
    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error>;

    /// Whether everything that it was given, and the end, has been taken care of.
    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends the connection in peace.
    fn leave(self);
}

/// A connection of the kernel.
pub(crate) struct TcpLeg {
    stream: Arc<TcpStream>,
    broken: Pin<Box<dyn Future<Output = io::Error> + Send>>,
}

impl TcpLeg {
    /// From now on the end of the process, too, resets the connection.
    pub(crate) fn new(stream: TcpStream, options: &LegOptions) -> io::Result<Self> {
        let socket = SockRef::from(&stream);
        // The kernel answers what is left open with a reset, and not with a FIN for a stream of which something is missing.
        socket.set_linger(Some(Duration::ZERO))?;
        socket.set_out_of_band_inline(true)?;
        options.apply(&stream)?;
        let stream = Arc::new(stream);
        Ok(Self { broken: Box::pin(broken(Arc::clone(&stream))), stream })
    }

    /// The next bytes; 0 at their end.
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

    /// What was written last is the last word: the peer is to hear it, and no reset.
    pub(crate) fn is_heard(&self) {
        // The kernel sends what it has, though nobody waits for it.
        let _ = SockRef::from(&*self.stream).set_linger(None);
    }
}

/// Waits for an error of the socket, which is told whether somebody reads or not.
async fn broken(stream: Arc<TcpStream>) -> io::Error {
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

    fn leave(self) {
        self.is_heard();
    }
}

/// A connection of ours.
#[derive(Debug)]
pub(crate) struct TrunkLeg<P: Protocol> {
    stream: Option<AsyncStream<P>>,
    /// Beats with all that comes.
    pulse: Option<Arc<Pulse>>,
}

impl<P: Protocol> TrunkLeg<P> {
    pub(crate) fn new(stream: AsyncStream<P>) -> Self {
        Self { stream: Some(stream), pulse: None }
    }

    /// A leg whose bytes are signs of life.
    pub(super) fn that_beats(stream: AsyncStream<P>, pulse: Arc<Pulse>) -> Self {
        Self { stream: Some(stream), pulse: Some(pulse) }
    }

    /// The stream, for messages of the gateways.
    pub(crate) fn stream(&mut self) -> &mut AsyncStream<P> {
        self.stream.as_mut().expect("only `leave` takes the stream, and the leg with it")
    }

    /// Ends writing, and reads until the other gateway has ended, too: so it hears what was written last, whatever it says meanwhile.
    pub(crate) async fn part(mut self) {
        if poll_fn(|context| self.poll_end(context)).await.is_err() {
            return;
        }
        let mut unread = [0; 4096];
        while let Ok(1..) = poll_fn(|context| self.poll_read(context, &mut unread)).await {}
        self.leave();
    }
}

impl<P: Protocol> Leg for TrunkLeg<P> {
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        std::task::ready!(Pin::new(self.stream()).poll_read(context, &mut buffer))?;
        let read = buffer.filled().len();
        if let Some(pulse) = self.pulse.as_ref().filter(|_| read > 0) {
            pulse.beat();
        }
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.stream()).poll_write(context, data)
    }

    fn push(&mut self) {
        self.stream().get_ref().push();
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

    fn leave(mut self) {
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
