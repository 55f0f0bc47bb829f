//! Sources that know of a broken link.

use hopline_core::Instant;
use hopline_wire::dsr::Addresses;
use std::net::Ipv4Addr;

/// Sources informed of the link that broke last, at that instant (§3.4.2).
#[derive(Clone, Debug, Default)]
pub(super) struct Broken {
    link: Option<(Instant, Ipv4Addr)>,
    told: Addresses,
}

impl Broken {
    /// Returns whether `source` is informed for the first time that the link to `neighbour` broke `now`.
    pub(super) fn is_news(&mut self, now: Instant, neighbour: Ipv4Addr, source: Ipv4Addr) -> bool {
        if self.link != Some((now, neighbour)) {
            self.link = Some((now, neighbour));
            self.told.clear();
        }
        let news = !self.told.contains(&source);
        if news {
            self.told.push(source);
        }
        news
    }
}
