//! Connections that have not sent a request yet. Their number is limited; at the limit, a newcomer replaces one of them.
//!
//! ```
//! use hopline_streams::admission::Admission;
//!
//! let admission = Admission::new(1);
//! let first = admission.enter([192, 0, 2, 1].into());
//! let second = admission.enter([192, 0, 2, 2].into());
//! assert!(first.is_evicted() && !second.is_evicted());
//! ```

use hopline_core::PreAuthLimit;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Limit on connections without a request, by [`PreAuthLimit`].
#[derive(Debug)]
pub struct Admission {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    limit: PreAuthLimit,
    /// Wakers of connections that may lose their place, by number.
    wakers: BTreeMap<u64, Option<Waker>>,
}

/// A place of a connection, until it is dropped or given to a newcomer. A connection that has lost its place has to be
/// closed.
#[derive(Debug)]
pub struct AdmissionSlot {
    admission: Arc<Admission>,
    number: u64,
}

impl Admission {
    /// Creates a limit of `places`, at least one.
    pub fn new(places: usize) -> Arc<Self> {
        let inside = Inner { limit: PreAuthLimit::new(places), wakers: BTreeMap::new() };
        Arc::new(Self { inner: Mutex::new(inside) })
    }

    /// Returns a place for a connection from `address`, if necessary that of another connection.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> AdmissionSlot {
        let mut inside = self.lock();
        let (number, gone) = inside.limit.admit(address);
        inside.wakers.insert(number, None);
        let waker = gone.and_then(|gone| inside.wakers.remove(&gone)).flatten();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
        AdmissionSlot { admission: Arc::clone(self), number }
    }

    /// Records that an authenticated peer is at `address`. A quarter of the places is reserved for such addresses.
    pub fn remember(&self, address: IpAddr) {
        self.lock().limit.trust_host(address);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionSlot {
    /// Returns whether the place was given to a newcomer.
    pub fn is_evicted(&self) -> bool {
        !self.admission.lock().wakers.contains_key(&self.number)
    }

    /// Registers `waker` for the loss of the place; it is woken at once if the place is lost already. Only the latest
    /// waker is kept.
    pub fn wake_on_eviction(&self, waker: &Waker) {
        match self.admission.lock().wakers.get_mut(&self.number) {
            Some(woken) => *woken = Some(waker.clone()),
            None => waker.wake_by_ref(),
        }
    }

    /// Waits until the place is lost.
    pub async fn evicted(&self) {
        std::future::poll_fn(|context| {
            self.wake_on_eviction(context.waker());
            if self.is_evicted() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Drop for AdmissionSlot {
    fn drop(&mut self) {
        let mut inside = self.admission.lock();
        inside.limit.remove(self.number);
        inside.wakers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Wake;

    #[derive(Default)]
    struct FlagWaker(AtomicUsize);

    impl Wake for FlagWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_new_connection_evicts_one_and_notifies_it() {
        let admission = Admission::new(4);
        let enter = |address: &str| admission.enter(address.parse().unwrap());
        let flood = [enter("127.0.0.2"), enter("127.0.0.2"), enter("127.0.0.3"), enter("127.0.0.3")];
        let woken = [(); 4].map(|()| Arc::<FlagWaker>::default());
        flood.iter().zip(&woken).for_each(|(place, woken)| place.wake_on_eviction(&Arc::clone(woken).into()));
        let newcomer = enter("10.0.0.1");
        assert_eq!(flood.each_ref().map(AdmissionSlot::is_evicted), [true, false, false, false]);
        assert_eq!(woken.each_ref().map(|woken| woken.0.load(Relaxed)), [1, 0, 0, 0]);
        assert!(!newcomer.is_evicted());
        let late = Arc::<FlagWaker>::default();
        flood[0].wake_on_eviction(&Arc::clone(&late).into());
        assert_eq!(late.0.load(Relaxed), 1, "it is lost already");
    }

    #[test]
    fn closed_connections_leave_no_state() {
        let admission = Admission::new(2);
        let places: Vec<_> = (0..5).map(|_| admission.enter([10, 0, 0, 1].into())).collect();
        assert_eq!(places.iter().filter(|place| place.is_evicted()).count(), 3);
        drop(places);
        assert!(admission.lock().limit.is_empty() && admission.lock().wakers.is_empty());
    }

    #[test]
    fn eviction_wakes_the_waiting_task() {
        let admission = Admission::new(1);
        let first = admission.enter([10, 0, 0, 1].into());
        let woken = Arc::<FlagWaker>::default();
        let waker = Arc::clone(&woken).into();
        let mut context = std::task::Context::from_waker(&waker);
        let mut lost = std::pin::pin!(first.evicted());
        assert_eq!(lost.as_mut().poll(&mut context), Poll::Pending);
        let _second = admission.enter([10, 0, 0, 2].into());
        assert_eq!(woken.0.load(Relaxed), 1);
        assert_eq!(lost.as_mut().poll(&mut context), Poll::Ready(()));
    }
}
