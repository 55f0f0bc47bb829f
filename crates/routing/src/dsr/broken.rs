//! Sources that know of a broken link.

use hopline_core::Instant;
use hopline_wire::dsr::Addresses;
use std::net::Ipv4Addr;

/// Sources informed of the link that broke last, at that instant (§3.4.2).
#[derive(Clone, Debug, Default)]
pub(super) struct LinkErrorLog {
    link: Option<(Instant, Ipv4Addr)>,
    informed: Addresses,
}

impl LinkErrorLog {
    /// Returns whether `source` is informed for the first time that the link to `neighbour` broke `now`.
    pub(super) fn is_first_report(&mut self, now: Instant, neighbour: Ipv4Addr, source: Ipv4Addr) -> bool {
        if self.link != Some((now, neighbour)) {
            self.link = Some((now, neighbour));
            self.informed.clear();
        }
        let news = !self.informed.contains(&source);
        if news {
            self.informed.push(source);
        }
        news
    }
}
