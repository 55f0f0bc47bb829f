//! TUN interface of a daemon.

use super::program::Program;
use hopline_linux::route_lookup::Routes;
use ipnet::{AddrParseError, IpNet};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Daemon, and the folder of its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Name.
    pub name: String,
    /// Folder.
    pub folder: PathBuf,
}

/// Interface, with the addresses and routes that the daemon has given it. Any other state is not the daemon's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tun {
    pub(super) name: String,
    pub(super) addresses: Vec<Net>,
    /// Networks that are routed into it while the other end of the tunnel is present.
    routes: Vec<Net>,
}

/// Network, or an address with its prefix, as it is written. Nothing else can be parsed from a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Net(pub(super) IpNet);

impl TryFrom<String> for Net {
    type Error = AddrParseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl From<Net> for String {
    fn from(net: Net) -> Self {
        net.0.to_string()
    }
}

impl Tun {
    pub(crate) fn new(
        name: &str,
        addresses: impl IntoIterator<Item = IpNet>,
        routes: impl IntoIterator<Item = IpNet>,
    ) -> Self {
        let addresses = addresses.into_iter().map(Net).collect();
        Self { name: name.to_owned(), addresses, routes: routes.into_iter().map(Net).collect() }
    }

    pub(super) fn exists(&self) -> bool {
        Routes::open().is_ok_and(|routes| routes.interface(&self.name).is_some())
    }

    /// Removes the routes of a killed daemon: the tunnel leads nowhere without it.
    pub(super) fn remove_routes(&self) {
        for Net(route) in &self.routes {
            // Made like this by crates/middlebox/src/opaque/tunnel_routes.rs. A missing route is no error.
            let (version, which) = match route {
                IpNet::V4(_) => ("-4", "proto static scope link"),
                IpNet::V6(_) => ("-6", "proto static metric 1"),
            };
            let _ =
                Program::new("ip", &format!("{version} route del {route} dev {} {which}", self.name)).run();
        }
    }

    /// Returns the program that removes it. It removes no interface of another kind, and none that a process has open.
    pub(super) fn removal(&self) -> Program {
        Program::new("ip", &format!("tuntap del dev {} mode tun", self.name))
    }
}
