//! Peers that answer over TCP but not over TPA.

use hopline_core::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Consecutive connections without an answer over TPA, after which it is not tried. One may be due to lost datagrams.
const MAX_MISSES: u32 = 2;
/// Time for which TPA is not tried.
const SKIP_TIME: Duration = Duration::from_secs(600);
/// Maximum number of remembered peers; beyond it, the one with the oldest miss is forgotten.
const MAX_PEERS: usize = 1024;

/// Memory of peers that answer over TCP but not over TPA.
///
/// An entry belongs to an address and a port, since programs of a host may differ. After two consecutive misses, TPA is
/// not tried for ten minutes. Afterwards one more miss suffices for the next ten. An answer over TPA removes the entry. A
/// single miss is forgotten after ten minutes.
#[derive(Clone, Debug, Default)]
pub struct SilentPeers {
    peers: BTreeMap<SocketAddr, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    misses: u32,
    last: Instant,
}

impl SilentPeers {
    /// Returns whether TPA is not to be tried at present.
    #[must_use]
    pub fn contains(&self, now: Instant, peer: SocketAddr) -> bool {
        self.peers.get(&peer).is_some_and(|entry| entry.misses >= MAX_MISSES && now < entry.last + SKIP_TIME)
    }

    /// Records a connection for which TCP was chosen.
    pub fn record_miss(&mut self, now: Instant, peer: SocketAddr) {
        let before = self.peers.get(&peer).copied();
        let counts = before.filter(|entry| entry.misses >= MAX_MISSES || now < entry.last + SKIP_TIME);
        let misses = counts.map_or(0, |entry| entry.misses).saturating_add(1);
        if before.is_none() && self.peers.len() >= MAX_PEERS {
            self.forget_oldest();
        }
        self.peers.insert(peer, Entry { misses, last: now });
    }

    /// Records an answer over TPA.
    pub fn record_answer(&mut self, peer: SocketAddr) {
        self.peers.remove(&peer);
    }

    fn forget_oldest(&mut self) {
        if let Some(&oldest) = self.peers.iter().min_by_key(|(_, entry)| entry.last).map(|(peer, _)| peer) {
            self.peers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn the_third_connection_does_not_try_tpa() {
        let mut silent = SilentPeers::default();
        silent.record_miss(at(1), peer(80));
        assert!(!silent.contains(at(2), peer(80)), "one miss may be a loss");
        silent.record_miss(at(2), peer(80));
        assert!(silent.contains(at(3), peer(80)));
        assert!(!silent.contains(at(3), peer(81)), "another program");
    }

    #[test]
    fn after_ten_minutes_one_connection_tries_again() {
        let mut silent = SilentPeers::default();
        silent.record_miss(at(1), peer(80));
        silent.record_miss(at(2), peer(80));
        assert!(silent.contains(at(601), peer(80)));
        assert!(!silent.contains(at(602), peer(80)));
        silent.record_miss(at(700), peer(80));
        assert!(silent.contains(at(701), peer(80)));
    }

    #[test]
    fn an_answer_over_tpa_clears_the_misses() {
        let mut silent = SilentPeers::default();
        silent.record_miss(at(1), peer(80));
        silent.record_answer(peer(80));
        silent.record_miss(at(2), peer(80));
        assert!(!silent.contains(at(3), peer(80)));
    }

    #[test]
    fn an_old_single_miss_does_not_count() {
        let mut silent = SilentPeers::default();
        silent.record_miss(at(1), peer(80));
        silent.record_miss(at(700), peer(80));
        assert!(!silent.contains(at(701), peer(80)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut silent = SilentPeers::default();
        for port in 1..=3000 {
            silent.record_miss(at(port.into()), peer(port));
        }
        assert_eq!(silent.peers.len(), MAX_PEERS);
        silent.record_miss(at(3001), peer(3000));
        assert!(silent.contains(at(3002), peer(3000)));
    }
}
