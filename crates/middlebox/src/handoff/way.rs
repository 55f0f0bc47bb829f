//! The way from a station's TUN interface to its radio.

use super::StationConfig;
use hopline_linux::Error;
use hopline_linux::routing::{Concerned, DefaultRoute, Routes, Rule, To};
use std::io;

/// Rules that lead to a table of routes, and the table: to the radio; where there is none, nowhere. What went on to other tables would
/// come back by the home agent, again and again.
#[derive(Debug)]
pub(super) struct Way {
    routes: Routes,
    ends: Ends,
}

/// Between what it leads, and for whom.
#[derive(Debug)]
struct Ends {
    tun: String,
    config: StationConfig,
}

impl Way {
    pub(super) fn open(tun: &str, config: &StationConfig) -> Result<Self, Error> {
        let ends = Ends { tun: tun.into(), config: config.clone() };
        let mut way = Self { routes: Routes::open()?, ends };
        // What goes wrong from here on takes all of it back.
        let Self { routes, ends } = &mut way;
        let to = format!("to {} by table {}", config.wireless, config.table);
        for route in [ends.last_resort(), ends.route()] {
            routes.replace(&route).map_err(|e| Error::new(format!("adding a route {to}"), e))?;
        }
        for rule in ends.rules() {
            routes.add_rule(&rule).map_err(|e| Error::new(format!("adding a rule that leads {to}"), e))?;
        }
        Ok(way)
    }

    /// Makes the route again if the interface has been down.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        self.routes.replace(&self.ends.route())
    }
}

impl Ends {
    fn route(&self) -> DefaultRoute<'_> {
        let StationConfig { wireless, table, .. } = &self.config;
        DefaultRoute { to: To::Neighbours(wireless), metric: 0, table: *table }
    }

    const fn last_resort(&self) -> DefaultRoute<'_> {
        DefaultRoute { to: To::Nowhere, metric: u32::MAX, table: self.config.table }
    }

    /// For what comes out of the tunnel, and for what a machine in the path sends to mobile hosts.
    fn rules(&self) -> impl Iterator<Item = Rule<'_>> {
        let StationConfig { network, mark, table, rule_priority: priority, .. } = self.config;
        let sent_here = (mark != 0).then_some(Concerned::Marked { mark, to: network });
        let concerned = [Concerned::ComesBy(&self.tun)].into_iter().chain(sent_here);
        concerned.map(move |concerned| Rule { concerned, table, priority })
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        // Without the interface the rules are of no effect, and without them the table.
        for rule in self.ends.rules() {
            let _ = self.routes.remove_rule(&rule);
        }
        for route in [self.ends.route(), self.ends.last_resort()] {
            let _ = self.routes.remove(&route);
        }
    }
}
