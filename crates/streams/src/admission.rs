//! Connections that have not sent a request yet. Their number is limited; at the limit, a newcomer replaces one of them.
//!
//! ```
//! use hopline_streams::admission::Admission;
//!
//! let admission = Admission::new(1);
//! let first = admission.enter([192, 0, 2, 1].into());
//! let second = admission.enter([192, 0, 2, 2].into());
//! assert!(first.is_lost() && !second.is_lost());
//! ```

use hopline_core::PreAuthLimit;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Limit on connections without a request, by [`PreAuthLimit`].
#[derive(Debug)]
pub struct Admission {
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    limit: PreAuthLimit,
    /// Wakers of connections that may lose their place, by number.
    wakers: BTreeMap<u64, Option<Waker>>,
}

/// A place of a connection, until it is dropped or given to a newcomer. A connection that has lost its place has to be
/// closed.
#[derive(Debug)]
pub struct Place {
    admission: Arc<Admission>,
    number: u64,
}

impl Admission {
    /// Creates a limit of `places`, at least one.
    pub fn new(places: usize) -> Arc<Self> {
        let inside = Inside { limit: PreAuthLimit::new(places), wakers: BTreeMap::new() };
        Arc::new(Self { inside: Mutex::new(inside) })
    }

    /// Returns a place for a connection from `address`, if necessary that of another connection.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Place {
        let mut inside = self.inside();
        let (number, gone) = inside.limit.admit(address);
        inside.wakers.insert(number, None);
        let waker = gone.and_then(|gone| inside.wakers.remove(&gone)).flatten();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
        Place { admission: Arc::clone(self), number }
    }

    /// Records that an authenticated peer is at `address`. A quarter of the places is reserved for such addresses.
    pub fn remember(&self, address: IpAddr) {
        self.inside().limit.remember(address);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Returns whether the place was given to a newcomer.
    pub fn is_lost(&self) -> bool {
        !self.admission.inside().wakers.contains_key(&self.number)
    }

    /// Registers `waker` for the loss of the place; it is woken at once if the place is lost already. Only the latest
    /// waker is kept.
    pub fn wake_when_lost(&self, waker: &Waker) {
        match self.admission.inside().wakers.get_mut(&self.number) {
            Some(woken) => *woken = Some(waker.clone()),
            None => waker.wake_by_ref(),
        }
    }

    /// Waits until the place is lost.
    pub async fn lost(&self) {
        std::future::poll_fn(|context| {
            self.wake_when_lost(context.waker());
            if self.is_lost() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.admission.inside();
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
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_newcomer_gets_in_and_the_connection_that_gives_way_is_told() {
        let admission = Admission::new(4);
        let enter = |address: &str| admission.enter(address.parse().unwrap());
        let flood = [enter("127.0.0.2"), enter("127.0.0.2"), enter("127.0.0.3"), enter("127.0.0.3")];
        let woken = [(); 4].map(|()| Arc::<Woken>::default());
        flood.iter().zip(&woken).for_each(|(place, woken)| place.wake_when_lost(&Arc::clone(woken).into()));
        let newcomer = enter("10.0.0.1");
        assert_eq!(flood.each_ref().map(Place::is_lost), [true, false, false, false]);
        assert_eq!(woken.each_ref().map(|woken| woken.0.load(Relaxed)), [1, 0, 0, 0]);
        assert!(!newcomer.is_lost());
        let late = Arc::<Woken>::default();
        flood[0].wake_when_lost(&Arc::clone(&late).into());
        assert_eq!(late.0.load(Relaxed), 1, "it is lost already");
    }

    #[test]
    fn nothing_is_left_of_connections_that_have_gone() {
        let admission = Admission::new(2);
        let places: Vec<_> = (0..5).map(|_| admission.enter([10, 0, 0, 1].into())).collect();
        assert_eq!(places.iter().filter(|place| place.is_lost()).count(), 3);
        drop(places);
        assert!(admission.inside().limit.is_empty() && admission.inside().wakers.is_empty());
    }

    #[test]
    fn a_task_that_waits_for_the_loss_of_its_place_hears_of_it() {
        let admission = Admission::new(1);
        let first = admission.enter([10, 0, 0, 1].into());
        let woken = Arc::<Woken>::default();
        let waker = Arc::clone(&woken).into();
        let mut context = std::task::Context::from_waker(&waker);
        let mut lost = std::pin::pin!(first.lost());
        assert_eq!(lost.as_mut().poll(&mut context), Poll::Pending);
        let _second = admission.enter([10, 0, 0, 2].into());
        assert_eq!(woken.0.load(Relaxed), 1);
        assert_eq!(lost.as_mut().poll(&mut context), Poll::Ready(()));
    }
}
