//! HELLO messages (RFC 3626 §6): advertisement of a node's neighbours, and learning from their HELLOs.

use super::agent::{Olsr, OutdatedState};
use super::expiring_set::InsertResult;
use super::links::HelloInfo;
use super::stats::IgnoredReason;
use super::types::{LinkState, Timer};
use crate::is_host;
use hopline_core::{Instant, Seq16};
use hopline_wire::olsr::{Body, CodedTime, Hello, LinkCode, LinkMessage, LinkType, Message, NeighbourType};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

impl Olsr {
    pub(super) fn send_hello(&mut self, now: Instant) {
        let next = self.emission_interval(self.config.hello_interval);
        self.timers.set(Timer::Hello, now + next);
        let hello = Hello {
            interval: CodedTime::at_least(self.config.hello_interval),
            willingness: self.config.willingness,
            links: self.links_to_announce(now),
        };
        self.stats.hellos_sent += 1;
        self.originate(now, 1, self.config.neighbour_hold_time(), Body::Hello(hello));
    }

    /// Returns the links to advertise (§6.2).
    fn links_to_announce(&self, now: Instant) -> Vec<LinkMessage> {
        let mut by_code: BTreeMap<LinkCode, Vec<Ipv4Addr>> = BTreeMap::new();
        for view in self.links.iter(now) {
            let (link, neighbour) = match view.state {
                LinkState::Symmetric if self.mprs.contains(&view.neighbour) => {
                    (LinkType::Symmetric, NeighbourType::Mpr)
                }
                LinkState::Symmetric => (LinkType::Symmetric, NeighbourType::Symmetric),
                LinkState::Asymmetric => (LinkType::Asymmetric, NeighbourType::NotNeighbour),
                LinkState::Lost => (LinkType::Lost, NeighbourType::NotNeighbour),
                LinkState::Pending => continue,
            };
            by_code.entry(LinkCode::Valid { link, neighbour }).or_default().push(view.neighbour);
        }
        by_code.into_iter().map(|(code, neighbours)| LinkMessage { code, neighbours }).collect()
    }

    pub(super) fn handle_hello(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        packet_seq: Seq16,
        message: &Message,
        hello: &Hello,
    ) {
        // Without MID, a node has one address and sends its own messages only.
        if message.originator != from {
            return self.stats.ignore(IgnoredReason::OtherInterface);
        }
        let until = now + message.validity.duration();
        let mine = || valid_links(hello).filter(|(.., neighbours)| neighbours.contains(&self.address));
        let back = mine().map(|(link, ..)| link).filter(|link| *link != LinkType::Unspecified).last();
        let selects_me = mine().any(|(_, neighbour, _)| neighbour == NeighbourType::Mpr);
        let heard = HelloInfo {
            validity: message.validity.duration(),
            interval: hello.interval.duration(),
            willingness: hello.willingness,
            packet_seq,
            reverse_link: back,
        };
        match self.links.on_hello(now, from, heard) {
            Ok(Some(change)) => self.on_neighbour_change(now, from, change),
            Ok(None) => {}
            Err(_) => return self.stats.ignore(IgnoredReason::TableFull),
        }
        // §8.2.1. A selector that is no symmetric neighbour, which §8.4.1 does not rule out, would be advertised although
        // the link to it cannot be used.
        if self.links.is_symmetric(from) {
            self.learn_two_hops(from, hello, until);
            if selects_me && self.selectors.insert(from, until) == InsertResult::New {
                self.on_selectors_change(now);
            }
        }
    }

    /// Learns two-hop neighbours from a HELLO (§8.2.1).
    fn learn_two_hops(&mut self, from: Ipv4Addr, hello: &Hello, until: Instant) {
        let own = self.address;
        for link in &hello.links {
            let LinkCode::Valid { neighbour, .. } = link.code else {
                self.stats.ignore(IgnoredReason::BadLinkCode);
                continue;
            };
            for far in link.neighbours.iter().copied().filter(|far| *far != own) {
                if !is_host(far) {
                    self.stats.ignore(IgnoredReason::BadAddress);
                    continue;
                }
                let changed = match neighbour {
                    NeighbourType::NotNeighbour => self.two_hops.remove(&(from, far)),
                    NeighbourType::Symmetric | NeighbourType::Mpr => {
                        let noted = self.two_hops.insert((from, far), until);
                        if noted == InsertResult::Full {
                            self.stats.ignore(IgnoredReason::TableFull);
                        }
                        noted == InsertResult::New
                    }
                };
                if changed {
                    self.mark_outdated(OutdatedState::MprsAndTable);
                }
            }
        }
    }
}

/// Returns the neighbours listed under valid codes.
fn valid_links(hello: &Hello) -> impl Iterator<Item = (LinkType, NeighbourType, &[Ipv4Addr])> {
    hello.links.iter().filter_map(|message| match message.code {
        LinkCode::Valid { link, neighbour } => Some((link, neighbour, &message.neighbours[..])),
        LinkCode::Other(_) => None,
    })
}
