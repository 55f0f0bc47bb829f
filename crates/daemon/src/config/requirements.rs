//! Interfaces and local addresses that proxies need. They may appear after the start of the daemon, as interfaces of radios
//! do.

use super::keys::{gateway, handoff, in_path, pair};
use hopline_config::schema::Section;
use hopline_linux::route_lookup::Routes;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};

/// Interface or address that a proxy needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Name of the proxy.
    pub proxy: String,
    key: &'static str,
    resource: Resource,
    /// File, line and column.
    origin: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Resource {
    Interface(String),
    Address(IpAddr),
}

impl Requirement {
    /// Returns the interfaces and addresses that a proxy needs.
    pub(super) fn of(section: &Section<'_>, proxy: &str) -> Vec<Self> {
        let need = |key: &'static str, what: Resource| {
            let place = section.origin_of(key).to_string();
            Self { proxy: proxy.to_owned(), key, resource: what, origin: place }
        };
        let mut needs = Vec::new();
        for key in
            [in_path::INTERFACE.name, gateway::DIVERT.name, gateway::ANNOUNCE.name, handoff::WIRED.name]
        {
            needs.extend(section.word(key).map(|name| need(key, Resource::Interface(name.to_owned()))));
        }
        let key = handoff::INTERFACES.name;
        needs.extend(
            section.texts(key).into_iter().map(|name| need(key, Resource::Interface(name.to_owned()))),
        );
        let local = section.word(pair::LOCAL.name).and_then(|text| text.parse().ok());
        // A link-local address cannot be checked: its interface is not known here.
        let is_told = |address: &IpAddr| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        needs.extend(local.filter(is_told).map(|address| need(pair::LOCAL.name, Resource::Address(address))));
        needs
    }

    /// Returns whether this machine has the interface or address now; `true` if the system does not tell.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match &self.resource {
            Resource::Interface(name) => Routes::open().is_ok_and(|routes| routes.interface(name).is_some()),
            Resource::Address(address) => {
                let bound = UdpSocket::bind((*address, 0));
                bound.err().is_none_or(|error| error.kind() != ErrorKind::AddrNotAvailable)
            }
        }
    }
}

/// Writes that the requirement is not met.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { proxy, key, resource: what, origin: place } = self;
        match what {
            Resource::Interface(name) => {
                let there = interfaces(&fs::read_to_string("/proc/net/dev").unwrap_or_default()).join(", ");
                write!(f, "{place}: `{key}`: there is no interface `{name}` here now, there are: {there}")
            }
            Resource::Address(address) => {
                write!(
                    f,
                    "{place}: `{key}`: no interface here has the address {address} now, `ip address` lists those that are there"
                )
            }
        }?;
        write!(f, "; the proxy \"{proxy}\" waits for it")
    }
}

/// Parses the names of interfaces in the text of /proc/net/dev (proc(5)).
fn interfaces(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use hopline_config::source::Source;
    use std::sync::Arc;

    #[test]
    fn a_missing_resource_is_reported_with_its_key_and_the_existing_ones() {
        let text = "[[proxy]]\nkind = \"snoop\"\ninterface = \"wlan77\"\n[[proxy]]\nkind = \"mtcp\"\ninterface = \"lo\"\n";
        let config = Config::parse(&Arc::new(Source { name: "p.toml".into(), text: text.into() })).unwrap();
        let unmet: Vec<&Requirement> = config.requirements.iter().filter(|need| !need.is_met()).collect();
        let said = unmet.iter().map(|need| need.to_string()).collect::<Vec<_>>();
        assert_eq!(said.len(), 1, "{said:?}");
        for words in ["p.toml:3:13", "`interface`", "`wlan77`", "there are: ", "lo", "\"snoop\" waits"] {
            assert!(said[0].contains(words), "no {words}: {}", said[0]);
        }
    }

    #[test]
    fn interfaces_are_parsed_without_their_counters() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 12 0\n  eth0:7 1\n";
        assert_eq!(interfaces(text), ["lo", "eth0"]);
    }
}
