//! Relay between two legs, until both directions have ended or one leg breaks.

use super::leg::Leg;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

/// Bytes relayed in each direction.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    pub(crate) out: AtomicU64,
    pub(crate) back: AtomicU64,
}

/// Relays bytes, ends of streams and back-pressure between `near` and `far`, with a buffer of `buffer` bytes for each
/// direction. If one leg breaks, both are reset at once. `first`: bytes that were read from `near` before.
pub(crate) async fn relay(
    mut near: impl Leg,
    mut far: impl Leg,
    first: Vec<u8>,
    buffer: usize,
    moved: &Moved,
) -> io::Result<()> {
    let (mut out, mut back) =
        (Direction::with_initial(first, buffer), Direction::with_initial(Vec::new(), buffer));
    let both = poll_fn(|context| {
        for leg in [&mut near as &mut dyn ObjectSafeLeg, &mut far] {
            if let Poll::Ready(error) = leg.is_broken(context) {
                return Poll::Ready(Err(error));
            }
        }
        let out = out.poll(context, &mut near, &mut far, &moved.out)?;
        let back = back.poll(context, &mut far, &mut near, &moved.back)?;
        if out.is_pending() || back.is_pending() {
            return Poll::Pending;
        }
        ready!(near.poll_settled(context))?;
        far.poll_settled(context)
    });
    both.await?;
    near.close();
    far.close();
    Ok(())
}

/// Returns the result of `work`. `None` if `over` is ready first.
pub(crate) async fn run_until<T>(work: impl Future<Output = T>, over: impl Future<Output = ()>) -> Option<T> {
    let (mut work, mut over) = (pin!(work), pin!(over));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => over.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Object-safe part of [`Leg`].
trait ObjectSafeLeg {
    fn is_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error>;
}

impl<L: Leg> ObjectSafeLeg for L {
    fn is_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.poll_broken(context)
    }
}

/// One direction of the relay.
struct Direction {
    buffer: Box<[u8]>,
    /// Range of the buffer that has been read and not yet written.
    pending: Range<usize>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The source leg is open.
    Open,
    /// The source leg has ended; the other leg is not yet closed.
    Ended,
    /// The other leg is closed.
    Closed,
}

impl Direction {
    /// Creates a direction for which `first` has already been read.
    fn with_initial(mut first: Vec<u8>, buffer: usize) -> Self {
        let waits = 0..first.len();
        first.resize(buffer.max(first.len()), 0);
        Self { buffer: first.into(), pending: waits, stage: Stage::Open }
    }

    /// Relays bytes. Becomes ready when the direction has ended.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut impl Leg,
        to: &mut impl Leg,
        moved: &AtomicU64,
    ) -> Poll<io::Result<()>> {
        loop {
            if !self.pending.is_empty() {
                let written = ready!(to.poll_write(context, &self.buffer[self.pending.clone()]))?;
                if written == 0 {
                    return Poll::Ready(Err(ErrorKind::WriteZero.into()));
                }
                self.pending.start += written;
                moved.fetch_add(written as u64, Relaxed);
                continue;
            }
            match self.stage {
                Stage::Open => match from.poll_read(context, &mut self.buffer) {
                    Poll::Ready(Ok(0)) => self.stage = Stage::Ended,
                    Poll::Ready(Ok(read)) => self.pending = 0..read,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        to.push();
                        return Poll::Pending;
                    }
                },
                Stage::Ended => {
                    ready!(to.poll_end(context))?;
                    self.stage = Stage::Closed;
                }
                Stage::Closed => return Poll::Ready(Ok(())),
            }
        }
    }
}
