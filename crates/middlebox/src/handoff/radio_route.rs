//! The way from a station's TUN interface to its radio.

use super::StationConfig;
use hopline_linux::Error;
use hopline_linux::route_config::{DefaultRoute, NextHop, Routes, Rule, RuleSelector};
use std::io;

/// Rules that lead to a table of routes, and the table: to the radio; where there is none, nowhere. What went on to other tables would
/// come back by the home agent, again and again.
#[derive(Debug)]
pub(super) struct RadioRoute {
    routes: Routes,
    parameters: RouteParameters,
}

/// Between what it leads, and for whom.
#[derive(Debug)]
struct RouteParameters {
    tun: String,
    config: StationConfig,
}

impl RadioRoute {
    pub(super) fn open(tun: &str, config: &StationConfig) -> Result<Self, Error> {
        let ends = RouteParameters { tun: tun.into(), config: config.clone() };
        let mut way = Self { routes: Routes::open()?, parameters: ends };
        // What goes wrong from here on takes all of it back.
        let Self { routes, parameters: ends } = &mut way;
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
    pub(super) fn refresh(&mut self) -> io::Result<()> {
        self.routes.replace(&self.parameters.route())
    }
}

impl RouteParameters {
    fn route(&self) -> DefaultRoute<'_> {
        let StationConfig { wireless, table, .. } = &self.config;
        DefaultRoute { to: NextHop::Neighbours(wireless), metric: 0, table: *table }
    }

    const fn last_resort(&self) -> DefaultRoute<'_> {
        DefaultRoute { to: NextHop::Unreachable, metric: u32::MAX, table: self.config.table }
    }

    /// For what comes out of the tunnel, and for what a machine in the path sends to mobile hosts.
    fn rules(&self) -> impl Iterator<Item = Rule<'_>> {
        let StationConfig { network, mark, table, rule_priority: priority, .. } = self.config;
        let sent_here = (mark != 0).then_some(RuleSelector::Marked { mark, to: network });
        let concerned = [RuleSelector::IncomingInterface(&self.tun)].into_iter().chain(sent_here);
        concerned.map(move |concerned| Rule { selector: concerned, table, priority })
    }
}

impl Drop for RadioRoute {
    fn drop(&mut self) {
        // Without the interface the rules are of no effect, and without them the table.
        for rule in self.parameters.rules() {
            let _ = self.routes.remove_rule(&rule);
        }
        for route in [self.parameters.route(), self.parameters.last_resort()] {
            let _ = self.routes.remove(&route);
        }
    }
}
