//! Two legs joined: what comes on one leaves on the other, until both directions have ended or one leg breaks.

use super::leg::Leg;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

/// Which of two legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The one that the connection came in on.
    Near,
    /// The one that it leaves on.
    Far,
}

/// A leg that broke.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) side: Side,
    pub(super) error: io::Error,
}

/// Bytes that went each way.
#[derive(Debug, Default)]
pub(super) struct Moved {
    pub(super) out: AtomicU64,
    pub(super) back: AtomicU64,
}

/// Passes on bytes, ends and the lack of room between `near` and `far`, with `buffer` bytes for each direction. Where one leg breaks
/// both are reset, at once.
pub(super) async fn relay(
    mut near: impl Leg,
    mut far: impl Leg,
    buffer: usize,
    moved: &Moved,
) -> Result<(), Broken> {
    let (mut out, mut back) = (Flow::new(buffer), Flow::new(buffer));
    let both = poll_fn(|context| {
        for (side, leg) in [(Side::Near, &mut near as &mut dyn Polled), (Side::Far, &mut far)] {
            if let Poll::Ready(error) = leg.is_broken(context) {
                return Poll::Ready(Err(Broken { side, error }));
            }
        }
        let out = out.poll(context, (&mut near, Side::Near), (&mut far, Side::Far), &moved.out)?;
        let back = back.poll(context, (&mut far, Side::Far), (&mut near, Side::Near), &moved.back)?;
        if out.is_pending() || back.is_pending() {
            return Poll::Pending;
        }
        ready!(near.poll_settled(context)).map_err(|error| Broken { side: Side::Near, error })?;
        ready!(far.poll_settled(context)).map_err(|error| Broken { side: Side::Far, error })?;
        Poll::Ready(Ok(()))
    });
    both.await?;
    near.leave();
    far.leave();
    Ok(())
}

/// A leg of any kind.
trait Polled {
    fn is_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error>;
}

impl<L: Leg> Polled for L {
    fn is_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.poll_broken(context)
    }
}

/// One direction.
struct Flow {
    buffer: Box<[u8]>,
    /// What of the buffer has been read and not written.
    waits: Range<usize>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Bytes come.
    Open,
    /// They have ended, and the other leg does not know.
    Ended,
    /// It knows.
    Told,
}

impl Flow {
    fn new(buffer: usize) -> Self {
        Self { buffer: vec![0; buffer].into(), waits: 0..0, stage: Stage::Open }
    }

    /// Ready when the direction has ended.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        (from, from_side): (&mut impl Leg, Side),
        (to, to_side): (&mut impl Leg, Side),
        moved: &AtomicU64,
    ) -> Poll<Result<(), Broken>> {
        let broken = |side| move |error| Broken { side, error };
        loop {
            if !self.waits.is_empty() {
                let written = ready!(to.poll_write(context, &self.buffer[self.waits.clone()]))
                    .map_err(broken(to_side))?;
                if written == 0 {
                    return Poll::Ready(Err(broken(to_side)(ErrorKind::WriteZero.into())));
                }
                self.waits.start += written;
                moved.fetch_add(written as u64, Relaxed);
                continue;
            }
            match self.stage {
                Stage::Open => match from.poll_read(context, &mut self.buffer) {
                    Poll::Ready(Ok(0)) => self.stage = Stage::Ended,
                    Poll::Ready(Ok(read)) => self.waits = 0..read,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(from_side)(error))),
                    Poll::Pending => {
                        to.push();
                        return Poll::Pending;
                    }
                },
                Stage::Ended => {
                    ready!(to.poll_end(context)).map_err(broken(to_side))?;
                    self.stage = Stage::Told;
                }
                Stage::Told => return Poll::Ready(Ok(())),
            }
        }
    }
}
