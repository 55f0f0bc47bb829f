//! Spare streams to the exit, so that a new connection needs no handshake.

use super::leg::{Leg, TrunkLeg};
use hopline_streams::Protocol;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::sync::Notify;

/// Streams on which nothing has been sent.
#[derive(Debug)]
pub(super) struct SparePool<P: Protocol> {
    max: usize,
    ready: Mutex<VecDeque<TrunkLeg<P>>>,
    /// Signals that one was taken.
    taken: Notify,
}

/// Reason for opening a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// There are fewer than permitted.
    More,
    /// One has broken.
    Replacement,
}

impl<P: Protocol> SparePool<P> {
    pub(super) fn new(most: usize) -> Self {
        Self { max: most, ready: Mutex::default(), taken: Notify::new() }
    }

    /// Takes the oldest stream that has not broken.
    pub(super) async fn take(&self) -> Option<TrunkLeg<P>> {
        self.discard_broken().await;
        let taken = self.ready().pop_front();
        self.taken.notify_one();
        taken
    }

    /// Waits until another stream is needed, and returns the reason.
    pub(super) async fn wanted(&self) -> Wanted {
        loop {
            let mut taken = pin!(self.taken.notified());
            let wanted = poll_fn(|context| {
                let mut ready = self.ready();
                let before = ready.len();
                // Each wakes this task when it breaks. `take` may register another task instead, and therefore notifies
                // this one.
                ready.retain_mut(|leg| leg.poll_broken(context).is_pending());
                match (ready.len() < before, ready.len() < self.max) {
                    (true, _) => Poll::Ready(Some(Wanted::Replacement)),
                    (false, true) => Poll::Ready(Some(Wanted::More)),
                    (false, false) => taken.as_mut().poll(context).map(|()| None),
                }
            });
            if let Some(wanted) = wanted.await {
                return wanted;
            }
        }
    }

    pub(super) fn put(&self, leg: TrunkLeg<P>) {
        self.ready().push_back(leg);
    }

    pub(super) fn clear(&self) {
        self.ready().clear();
    }

    async fn discard_broken(&self) {
        poll_fn(|context| {
            self.ready().retain_mut(|leg| leg.poll_broken(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }

    fn ready(&self) -> MutexGuard<'_, VecDeque<TrunkLeg<P>>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
