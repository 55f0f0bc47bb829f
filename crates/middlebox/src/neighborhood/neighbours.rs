//! IP addresses of neighbours. Frames identify their transmitter by its MAC address only.

use hopline_core::{Duration, Instant};
use hopline_wire::dot11::MacAddr;
use std::net::Ipv4Addr;

/// Time for which a claimed address belongs to a neighbour. An attacker with one radio therefore counts as one neighbour.
const CLAIM_LIFETIME: Duration = Duration::from_secs(60);

/// Neighbours by MAC address, bounded in number.
#[derive(Clone, Debug)]
pub(super) struct NeighbourTable {
    entries: Vec<Neighbour>,
    limit: usize,
    /// Silence after which an entry may be replaced.
    memory: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    mac: MacAddr,
    ip: Ipv4Addr,
    claimed_at: Instant,
    last_heard: Instant,
}

impl NeighbourTable {
    pub(super) const fn new(limit: usize, memory: Duration) -> Self {
        Self { entries: Vec::new(), limit, memory }
    }

    /// Records the claim of the IP address `ip` by `mac`. A claim by another neighbour counts once the previous one has
    /// been silent for a minute.
    pub(super) fn claim(&mut self, now: Instant, mac: MacAddr, ip: Ipv4Addr) {
        match self.entries.iter_mut().find(|host| host.mac == mac) {
            Some(host) if host.ip != ip && now.since(host.claimed_at) < CLAIM_LIFETIME => {}
            Some(host) => (host.ip, host.claimed_at) = (ip, now),
            None => {
                if self.entries.len() < self.limit || self.make_room(now) {
                    self.entries.push(Neighbour { mac, ip, claimed_at: now, last_heard: now });
                }
            }
        }
    }

    /// Records a frame of `mac`, and returns its IP address if it is known.
    pub(super) fn record_frame(&mut self, now: Instant, mac: MacAddr) -> Option<Ipv4Addr> {
        let host = self.entries.iter_mut().find(|host| host.mac == mac)?;
        host.last_heard = now;
        Some(host.ip)
    }

    /// Returns the MAC address of the neighbour with the IP address `ip`.
    pub(super) fn mac_of(&self, ip: Ipv4Addr) -> Option<MacAddr> {
        self.entries.iter().find(|host| host.ip == ip).map(|host| host.mac)
    }

    /// Removes the neighbour that has been silent for longest, unless it is active. Returns whether there is room now.
    fn make_room(&mut self, now: Instant) -> bool {
        let oldest = self.entries.iter().enumerate().min_by_key(|(_, host)| host.last_heard);
        match oldest {
            Some((at, host)) if now.since(host.last_heard) > self.memory => {
                self.entries.swap_remove(at);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    const fn mac(n: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, n])
    }

    const fn ip(n: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, n)
    }

    #[test]
    fn one_radio_holds_one_address() {
        let mut hosts = NeighbourTable::new(4, Duration::from_secs(1));
        assert_eq!(hosts.record_frame(at(0), mac(1)), None);
        hosts.claim(at(0), mac(1), ip(1));
        hosts.claim(at(1), mac(1), ip(9));
        assert_eq!((hosts.record_frame(at(1), mac(1)), hosts.mac_of(ip(9))), (Some(ip(1)), None));
        // A repeated claim holds for longer; without one for a minute, another claim succeeds.
        hosts.claim(at(50), mac(1), ip(1));
        hosts.claim(at(100), mac(1), ip(9));
        assert_eq!(hosts.mac_of(ip(1)), Some(mac(1)));
        hosts.claim(at(110), mac(1), ip(9));
        assert_eq!((hosts.mac_of(ip(1)), hosts.mac_of(ip(9))), (None, Some(mac(1))));
    }

    #[test]
    fn many_radios_do_not_evict_an_active_neighbour() {
        let mut hosts = NeighbourTable::new(2, Duration::from_secs(1));
        hosts.claim(at(0), mac(1), ip(1));
        for n in 2..200 {
            hosts.record_frame(at(n.into()), mac(1));
            hosts.claim(at(n.into()), mac(n), ip(n));
            assert_eq!(hosts.mac_of(ip(1)), Some(mac(1)));
            assert!(hosts.entries.len() <= 2);
        }
    }
}
