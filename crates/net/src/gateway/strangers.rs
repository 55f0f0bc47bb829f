//! Limits connections that have not sent a request yet, in total and per source address (of IPv6: per network of 64 bits).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places for connections without a request.
#[derive(Debug)]
pub(super) struct Strangers {
    places: usize,
    inside: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A place that is taken, until this goes.
#[derive(Debug)]
pub(super) struct Place {
    strangers: Arc<Strangers>,
    network: IpAddr,
}

impl Strangers {
    /// `places`, at least one.
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places: places.max(1), inside: Mutex::default() })
    }

    /// A place for a connection from `address`, if there is one.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let network = network(address);
        let mut inside = self.inside();
        let taken: usize = inside.values().sum();
        let theirs = inside.get(&network).copied().unwrap_or(0);
        if taken >= self.places || theirs >= self.places.div_ceil(2) {
            return None;
        }
        inside.insert(network, theirs + 1);
        Some(Place { strangers: Arc::clone(self), network })
    }

    fn inside(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.strangers.inside();
        match inside.get_mut(&self.network) {
            Some(theirs) if *theirs > 1 => *theirs -= 1,
            _ => {
                inside.remove(&self.network);
            }
        }
    }
}

/// A host of IPv6 has all addresses of its network (RFC 4291 §2.5.4: 64 bits).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_half_of_the_places_at_most() {
        let strangers = Strangers::new(5);
        let enter = |address: &str| strangers.enter(address.parse().unwrap());
        let mut first: Vec<_> = (0..3).map(|_| enter("10.0.0.1").unwrap()).collect();
        assert!(enter("10.0.0.1").is_none() && enter("::ffff:10.0.0.1").is_none());
        let others = [enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap()];
        assert!(enter("10.0.0.2").is_none(), "all are taken");
        first.pop();
        assert!(enter("10.0.0.1").is_some());
        let third = enter("2001:db8::3").unwrap();
        drop(first);
        assert!(enter("2001:db8::4").is_none() && enter("2001:db8:0:1::").is_some());
        drop((others, third));
        assert!(strangers.inside().is_empty());
    }
}
