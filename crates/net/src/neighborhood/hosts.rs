//! Which neighbour has which address: frames say who sent them by that of the link layer alone.

use hopline_core::{Duration, Instant};
use hopline_wire::dot11::MacAddr;
use std::net::Ipv4Addr;

/// How long a neighbour has the address that it last said. A forger with one radio is one neighbour so.
const HOLDS: Duration = Duration::from_secs(60);

/// Neighbours by their address at the link layer, a bounded number.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    entries: Vec<Host>,
    limit: usize,
    /// Who was silent for so long makes room.
    memory: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Host {
    mac: MacAddr,
    ip: Ipv4Addr,
    said: Instant,
    heard: Instant,
}

impl Hosts {
    pub(super) const fn new(limit: usize, memory: Duration) -> Self {
        Self { entries: Vec::new(), limit, memory }
    }

    /// A frame of `mac` says that it has the address `ip`. Another one than before counts when that has not been said for a minute.
    pub(super) fn claim(&mut self, now: Instant, mac: MacAddr, ip: Ipv4Addr) {
        match self.entries.iter_mut().find(|host| host.mac == mac) {
            Some(host) if host.ip != ip && now.since(host.said) < HOLDS => {}
            Some(host) => (host.ip, host.said) = (ip, now),
            None => {
                if self.entries.len() < self.limit || self.make_room(now) {
                    self.entries.push(Host { mac, ip, said: now, heard: now });
                }
            }
        }
    }

    /// A frame of `mac` was heard: its address, if it has said one.
    pub(super) fn hear(&mut self, now: Instant, mac: MacAddr) -> Option<Ipv4Addr> {
        let host = self.entries.iter_mut().find(|host| host.mac == mac)?;
        host.heard = now;
        Some(host.ip)
    }

    /// Who has the address.
    pub(super) fn mac_of(&self, ip: Ipv4Addr) -> Option<MacAddr> {
        self.entries.iter().find(|host| host.ip == ip).map(|host| host.mac)
    }

    /// Forgets who has been silent for the longest time, unless that one is active.
    fn make_room(&mut self, now: Instant) -> bool {
        let oldest = self.entries.iter().enumerate().min_by_key(|(_, host)| host.heard);
        match oldest {
            Some((at, host)) if now.since(host.heard) > self.memory => {
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
    fn one_radio_has_one_address() {
        let mut hosts = Hosts::new(4, Duration::from_secs(1));
        assert_eq!(hosts.hear(at(0), mac(1)), None);
        hosts.claim(at(0), mac(1), ip(1));
        hosts.claim(at(1), mac(1), ip(9));
        assert_eq!((hosts.hear(at(1), mac(1)), hosts.mac_of(ip(9))), (Some(ip(1)), None));
        // Said again, it holds for longer; not said for a minute, another one does.
        hosts.claim(at(50), mac(1), ip(1));
        hosts.claim(at(100), mac(1), ip(9));
        assert_eq!(hosts.mac_of(ip(1)), Some(mac(1)));
        hosts.claim(at(110), mac(1), ip(9));
        assert_eq!((hosts.mac_of(ip(1)), hosts.mac_of(ip(9))), (None, Some(mac(1))));
    }

    #[test]
    fn many_radios_drive_nobody_out_who_is_heard() {
        let mut hosts = Hosts::new(2, Duration::from_secs(1));
        hosts.claim(at(0), mac(1), ip(1));
        for n in 2..200 {
            hosts.hear(at(n.into()), mac(1));
            hosts.claim(at(n.into()), mac(n), ip(n));
            assert_eq!(hosts.mac_of(ip(1)), Some(mac(1)));
            assert!(hosts.entries.len() <= 2);
        }
    }
}
