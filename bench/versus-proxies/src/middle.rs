//! The compared proxies: their daemons on the router and on the mobile host. The files are those of
//! docs/proxy.md.

use crate::condition::{Addresses, Bottleneck, Condition};
use crate::world::{CABLE, LINK, MOBILE, MOBILE_BY_TUNNEL, Place, ROUTER, ROUTER_BY_TUNNEL, SENDERS};
use std::net::Ipv4Addr;
use std::path::Path;

/// Proxy in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Middle {
    /// None.
    Plain,
    /// Snoop by the paper's rules.
    SnoopPublished,
    /// Snoop for today's senders.
    SnoopModern,
    /// Split connections, with this congestion control towards the mobile host.
    Split(&'static str),
    /// Gateways at both ends of the last hop, TPA between them.
    SplitTpa,
    /// D-Proxy at both ends, reading TCP.
    DProxy,
    /// D-Proxy at both ends, numbering all packets itself.
    Opaque,
    /// PEPsal, with the kernel's default congestion control: it has no option for another.
    PepSal,
}

/// A daemon: its name, its host, its configuration file.
pub(crate) struct Daemon {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) file: String,
}

impl Middle {
    /// All proxies, in the order of the tables.
    pub(crate) const ALL: [Self; 9] = [
        Self::Plain,
        Self::SnoopPublished,
        Self::SnoopModern,
        Self::Split("cubic"),
        Self::Split("bbr"),
        Self::SplitTpa,
        Self::DProxy,
        Self::Opaque,
        Self::PepSal,
    ];

    /// Returns its name in tables.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Plain => "plain".into(),
            Self::SnoopPublished => "snoop published".into(),
            Self::SnoopModern => "snoop modern".into(),
            Self::Split(control) => format!("split {control}"),
            Self::SplitTpa => "split tpa".into(),
            Self::DProxy => "d-proxy".into(),
            Self::Opaque => "d-proxy opaque".into(),
            Self::PepSal => "pepsal".into(),
        }
    }

    /// Returns the address of the mobile host to which the sender connects.
    pub(crate) const fn target(self) -> Ipv4Addr {
        match self {
            Self::Opaque => MOBILE_BY_TUNNEL,
            _ => MOBILE,
        }
    }

    /// Returns whether it serves connections that are opened from this side. The gateways here accept
    /// connections from the sender only.
    pub(crate) fn serves(self, addresses: Addresses) -> bool {
        self != Self::SplitTpa || addresses == Addresses::Routed
    }

    /// Returns its daemons over a last hop, the router's first; their secret is in the file `key`.
    pub(crate) fn daemons(self, condition: &Condition, key: &Path) -> Vec<Daemon> {
        let key = key.display();
        let near = |file: String| Daemon { name: "near", place: Place::Router, file };
        let far = |file: String| Daemon { name: "far", place: Place::Mobile, file };
        let snoop = |preset: &str| {
            vec![near(format!(
                "[[proxy]]\nkind = \"snoop\"\ninterface = \"{LINK}\"\npreset = \"{preset}\"\n"
            ))]
        };
        match self {
            Self::Plain | Self::PepSal => Vec::new(),
            Self::SnoopPublished => snoop("published"),
            Self::SnoopModern => snoop("modern"),
            Self::Split(control) => vec![near(format!(
                "[[proxy]]\nkind = \"split\"\ninterface = \"{LINK}\"\nmobile_congestion = \"{control}\"\n"
            ))],
            Self::SplitTpa => vec![
                near(format!(
                    "[[proxy]]\nkind = \"gateway\"\ndivert = \"{CABLE}\"\nexit = \"{MOBILE}:7172\"\nidentity = \"near\"\nkey_file = \"{key}\"\ncongestion = \"cubic\"\n"
                )),
                far(format!(
                    "[[proxy]]\nkind = \"gateway-exit\"\npeers = [\"near = {key}\"]\nallowed = [\"{MOBILE} 1-65535\"]\ncongestion = \"cubic\"\n"
                )),
            ],
            Self::DProxy => {
                let end = |local: Ipv4Addr, peer: Ipv4Addr, stands: &str| {
                    format!(
                        "[[proxy]]\nkind = \"d-proxy\"\ninterface = \"{LINK}\"\nlocal = \"{local}\"\npeer = \"{peer}\"\nkey_file = \"{key}\"\nstands = \"{stands}\"\n"
                    )
                };
                vec![near(end(ROUTER, MOBILE, "router")), far(end(MOBILE, ROUTER, "host"))]
            }
            Self::Opaque => {
                // A router that sees its queue needs none of its own.
                let shaped = match condition.bottleneck {
                    Bottleneck::Router => String::new(),
                    Bottleneck::Link => format!("rate_mbps = {}\n", condition.mbps as f64 * SHAPED),
                };
                let end = |local: Ipv4Addr, peer: Ipv4Addr, own: Ipv4Addr, more: &str| {
                    format!(
                        "[[proxy]]\nkind = \"opaque\"\nlocal = \"{local}\"\npeer = \"{peer}\"\nkey_file = \"{key}\"\ntun_addresses = [\"{own}/24\"]\n{shaped}{more}"
                    )
                };
                vec![
                    near(end(ROUTER, MOBILE, ROUTER_BY_TUNNEL, "")),
                    far(end(MOBILE, ROUTER, MOBILE_BY_TUNNEL, &format!("routes = [\"{SENDERS}\"]\n"))),
                ]
            }
        }
    }
}

/// Share of the last hop's rate at which a tunnel with its own queue is shaped.
const SHAPED: f64 = 0.975;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use hopline_daemon::Config;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn every_file_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        fs::write(&key, "5a".repeat(32)).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let everywhere = Plan::full(10.0, 1).conditions;
        for (middle, condition) in
            Middle::ALL.iter().flat_map(|middle| everywhere.iter().map(move |c| (middle, c)))
        {
            for daemon in middle.daemons(condition, &key) {
                let file = folder.path().join("proxy.toml");
                fs::write(&file, &daemon.file).unwrap();
                let config = Config::load(&file);
                assert!(config.is_ok(), "{}: {:?}", middle.name(), config.err());
            }
        }
    }

    #[test]
    fn no_two_have_the_same_name() {
        let names = Middle::ALL.map(Middle::name);
        for (index, name) in names.iter().enumerate() {
            assert!(!names[index + 1..].contains(name));
        }
    }
}
