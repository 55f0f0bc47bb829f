//! Limits connections that have not sent a request yet, in total and per source address (of IPv6: per network of 64 bits).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places for connections without a request.
#[derive(Debug)]
pub(crate) struct Admission {
    places: usize,
    inside: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A place that is taken, until this goes.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    network: IpAddr,
}

impl Admission {
    /// A limit of `places`, at least one.
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places: places.max(1), inside: Mutex::default() })
    }

    /// A place for a connection from `address`, if there is one.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let network = network(address);
        let mut inside = self.inside();
        let taken: usize = inside.values().sum();
        let taken_here = inside.get(&network).copied().unwrap_or(0);
        if taken >= self.places || taken_here >= self.places.div_ceil(2) {
            return None;
        }
        inside.insert(network, taken_here + 1);
        Some(Place { admission: Arc::clone(self), network })
    }

    fn inside(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.admission.inside();
        match inside.get_mut(&self.network) {
            Some(taken_here) if *taken_here > 1 => *taken_here -= 1,
            _ => {
                inside.remove(&self.network);
            }
        }
    }
}

/// A host of IPv6 has all addresses of its network (RFC 4291 §2.5.4: 64 bits).
pub(crate) fn network(address: IpAddr) -> IpAddr {
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
        let admission = Admission::new(5);
        let enter = |address: &str| admission.enter(address.parse().unwrap());
        let mut first: Vec<_> = (0..3).map(|_| enter("10.0.0.1").unwrap()).collect();
        assert!(enter("10.0.0.1").is_none() && enter("::ffff:10.0.0.1").is_none());
        let rest = [enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap()];
        assert!(enter("10.0.0.2").is_none(), "all are taken");
        first.pop();
        assert!(enter("10.0.0.1").is_some());
        let third = enter("2001:db8::3").unwrap();
        drop(first);
        assert!(enter("2001:db8::4").is_none() && enter("2001:db8:0:1::").is_some());
        drop((rest, third));
        assert!(admission.inside().is_empty());
    }
}
