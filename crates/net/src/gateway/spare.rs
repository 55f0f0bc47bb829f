//! Streams to the exit that are kept ready: a new connection then needs no handshake.

use super::leg::{Leg, TrunkLeg};
use crate::streams::Protocol;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::sync::Notify;

/// Streams on which nothing has been said.
#[derive(Debug)]
pub(super) struct Spare<P: Protocol> {
    most: usize,
    ready: Mutex<VecDeque<TrunkLeg<P>>>,
    /// One was taken.
    taken: Notify,
}

/// Reason for which a stream is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// There are fewer than there may be.
    More,
    /// One has broken.
    InPlace,
}

impl<P: Protocol> Spare<P> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ready: Mutex::default(), taken: Notify::new() }
    }

    /// Takes the stream that has waited longest and has not broken.
    pub(super) async fn take(&self) -> Option<TrunkLeg<P>> {
        self.discard_broken().await;
        let taken = self.ready().pop_front();
        self.taken.notify_one();
        taken
    }

    /// Waits until there is room for another one, and returns why.
    pub(super) async fn wanted(&self) -> Wanted {
        loop {
            let mut taken = pin!(self.taken.notified());
            let wanted = poll_fn(|context| {
                let mut ready = self.ready();
                let before = ready.len();
                // Each wakes this task when it breaks; `take` may have another task woken in its place, and notifies.
                ready.retain_mut(|leg| leg.poll_broken(context).is_pending());
                match (ready.len() < before, ready.len() < self.most) {
                    (true, _) => Poll::Ready(Some(Wanted::InPlace)),
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
