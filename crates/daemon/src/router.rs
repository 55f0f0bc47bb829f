//! Inspection of the router for settings that hide packets from proxies.

use crate::config::{Config, Proxy, Subnet, Task};
use crate::rules::{Family, Ipv6Support, Program, Tracking};
use hopline_linux::policy::{self, Rule};
use hopline_linux::route_lookup::{Route, Routes};
use hopline_middlebox::announce::Role;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

/// Obstacles to proxies, and possible ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Reasons why proxies cannot work: one sentence each, with advice.
    pub obstacles: Vec<String>,
    /// Reasons why proxies may have no effect: one sentence each, with advice.
    pub warnings: Vec<String>,
}

/// Flowtable of nftables: packets of its connections are forwarded past all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flowtable {
    /// Table that contains it, such as `inet fw4`.
    pub table: String,
    /// Name.
    pub name: String,
    /// Interfaces of the flowtable.
    pub devices: Vec<String>,
}

/// Packets that a proxy receives by chains of iptables.
#[derive(Clone, Debug)]
struct ProxyPackets {
    proxy: String,
    interface: String,
    /// Served hosts; empty: all.
    subnets: Vec<Subnet>,
    /// IP versions of the proxy.
    families: Vec<Family>,
    is_forwarded: bool,
}

impl ProxyPackets {
    /// Returns whether there can be traffic of an IP version: a configured subnet of that version is sufficient.
    fn has(&self, family: Family, addressed: &BTreeSet<String>) -> bool {
        let has_traffic = match family {
            Family::V4 => true,
            Family::V6 => !self.subnets.is_empty() || addressed.contains(&self.interface),
        };
        self.families.contains(&family) && has_traffic
    }
}

/// Inspects rules and settings of this machine. Those that cannot be read, for lack of privileges or programs, are not
/// reported.
#[must_use]
pub fn inspect(config: &Config) -> Report {
    let (shown, ipv6) = (packets_of_proxies(config), Ipv6Support::detect());
    let addressed = addressed(&fs::read_to_string("/proc/net/if_inet6").unwrap_or_default());
    let mut report =
        Report { warnings: ipv6_warnings(config, &shown, ipv6, &addressed), ..Report::default() };
    report.warnings.extend(reverse_path_filter_warnings(config));
    report.warnings.extend(policy_routing_warnings(config, &policy::rules().unwrap_or_default()));
    let forwarded: Vec<&ProxyPackets> = shown.iter().filter(|shown| shown.is_forwarded).collect();
    if forwarded.is_empty() {
        return report;
    }
    let interfaces = forwarded.iter().map(|shown| shown.interface.clone()).collect();
    let of_flowtables = flowtable_report(&interfaces, &flowtables().unwrap_or_default());
    report.obstacles.extend(of_flowtables.obstacles);
    report.warnings.extend(of_flowtables.warnings);
    for program in ipv6.families_of_chains().iter().map(|family| family.iptables()) {
        if offloads_by(program) {
            report.obstacles.push(format!(
                "a rule of {program} has the target FLOWOFFLOAD: packets of established connections pass this router unseen; delete that rule"
            ));
        }
    }
    for &family in ipv6.families_of_chains() {
        let seen = forwarded.iter().filter(|shown| shown.has(family, &addressed));
        let interfaces: BTreeSet<&String> = seen.map(|shown| &shown.interface).collect();
        let silent = interfaces.into_iter().filter(|interface| !is_forwarding(family, interface));
        report.warnings.extend(silent.map(|interface| forwarding_warning(family, interface)));
    }
    report
}

/// Returns why split connections cannot move where connections are tracked. `None` if they can, or are not to.
#[must_use]
pub fn tracked_moves_warning(config: &Config, tracking: Tracking) -> Option<String> {
    let moves = |proxy: &&Proxy| matches!(&proxy.task, Task::Split(task) if task.connection_moves.is_some());
    let proxy = config.proxies.iter().find(moves).filter(|_| tracking == Tracking::InUse)?;
    Some(format!(
        "connection tracking is in use on this machine, and what it does to the packets of a connection stays here when the connection \
         moves to another station: leave out `moves` of the proxy \"{}\", or remove the rules of NAT and `ct` (`nft list ruleset`, \
         `iptables-save`)",
        proxy.name
    ))
}

/// Warns of tunnels with routes that contain the other end, if strict reverse-path filters drop packets from there because
/// their way back is the tunnel.
fn reverse_path_filter_warnings(config: &Config) -> Vec<String> {
    let swallowing = config.proxies.iter().filter_map(|proxy| match &proxy.task {
        Task::Tunnel(task) => Some((proxy, task.config.peer)).filter(|_| task.has_route_to_peer()),
        _ => None,
    });
    let strict = |(proxy, peer): (&Proxy, IpAddr)| {
        let interface = interface_towards(peer).filter(|_| peer.is_ipv4())?;
        // The larger of both is in effect (Documentation/networking/ip-sysctl.rst); 2 is the loose mode.
        let of = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter")).ok()?;
            text.trim().parse::<u8>().ok()
        };
        let is_strict = of("all").max(of(&interface)) == Some(1);
        is_strict.then(|| {
            format!(
                "`routes` of the proxy \"{}\" contain its `peer` {peer}, and {interface} drops packets whose way back is another one: \
                 sysctl -w net.ipv4.conf.{interface}.rp_filter=2",
                proxy.name
            )
        })
    };
    swallowing.filter_map(strict).collect()
}

/// Warns of policy routing rules that depend on more than the destination: packets of the daemon have no incoming interface.
fn policy_routing_warnings(config: &Config, rules: &[Rule]) -> Vec<String> {
    let is_own = |rule: &&Rule| rule.is_from_daemon(config.diversion.mark);
    let looking = rules.iter().filter(|rule| rule.has_other_criteria() && !is_own(rule));
    let listed: BTreeSet<String> = looking.map(|rule| format!("`{rule}`")).collect();
    let Some(first) = listed.first() else { return Vec::new() };
    let listed = match listed.len() {
        1 => first.clone(),
        more => format!("{first} and {} more", more - 1),
    };
    let warned = |Proxy { name, task }: &Proxy| {
        let effect = if task.queued().is_some() {
            "packets that its own could not follow pass unseen, and `unfollowed_packets` of its status counts them".to_owned()
        } else if let Task::Split(_) = task {
            "calls that would take another way then pass unsplit, and `unfollowed_connects` of its status counts them".to_owned()
        } else if !task.captured().is_empty() {
            "calls that would take another way then pass it, and `unfollowed_syns` of its status counts them; with `fallback = \"refuse\"` they are reset (`refused_syns`)"
                .to_owned()
        } else {
            let tun = task.tun()?;
            format!(
                "what comes out of the tunnel has come by {tun}; `ip rule add iif {tun} lookup TABLE` where it needs a table of its own"
            )
        };
        Some(format!(
            "rules of routing look at more than the destination ({listed}): of the proxy \"{name}\", {effect}"
        ))
    };
    config.proxies.iter().filter_map(warned).collect()
}

/// Returns the present outgoing interface for an address.
fn interface_towards(address: IpAddr) -> Option<String> {
    let mut routes = Routes::open().ok()?;
    let Route::Remote(index) = routes.lookup(address).ok()?? else { return None };
    routes.name_of(index)
}

/// Returns a warning that an interface does not forward.
fn forwarding_warning(family: Family, interface: &str) -> String {
    match family {
        Family::V4 => format!(
            "{interface} does not forward IPv4: nothing crosses this router; sysctl -w net.ipv4.ip_forward=1"
        ),
        Family::V6 => format!(
            "{interface} does not forward IPv6: nothing of it crosses this router; sysctl -w net.ipv6.conf.all.forwarding=1"
        ),
    }
}

/// Warns if proxies are to handle IPv6, and this machine has none, or no chains for it.
fn ipv6_warnings(
    config: &Config,
    shown: &[ProxyPackets],
    ipv6: Ipv6Support,
    addressed: &BTreeSet<String>,
) -> Vec<String> {
    match ipv6 {
        Ipv6Support::Present => Vec::new(),
        Ipv6Support::Absent => {
            let named = config.proxies.iter().filter_map(|proxy| Some((proxy, subnet_of_ipv6(proxy)?)));
            let text = |(proxy, subnet): (&Proxy, Subnet)| {
                format!(
                    "the proxy \"{}\" is to serve {}, and this machine has no IPv6, as with ipv6.disable=1 or disable_ipv6: it serves IPv4 alone",
                    proxy.name, subnet.0
                )
            };
            named.map(text).collect()
        }
        Ipv6Support::WithoutChains => {
            let blind = shown.iter().filter(|shown| shown.has(Family::V6, addressed));
            let text = |shown: &ProxyPackets| {
                format!(
                    "packets of IPv6 pass the proxy \"{}\" unseen, for there is no program `ip6tables`: on Debian, apt-get install iptables; \
                     on OpenWrt, ip6tables-nft",
                    shown.proxy
                )
            };
            blind.map(text).collect()
        }
    }
}

/// Returns an IPv6 subnet in the configuration of a proxy.
fn subnet_of_ipv6(proxy: &Proxy) -> Option<Subnet> {
    let queued = proxy.task.queued().map(|queued| queued.subnets).unwrap_or_default();
    let captured = proxy.task.captured();
    let captured = captured.iter().flat_map(|captured| captured.connections.subnets());
    queued.iter().chain(captured).find(|subnet| Family::V6.has(subnet)).copied()
}

/// Parses /proc/net/if_inet6: interfaces with an address other than a link-local one.
fn addressed(text: &str) -> BTreeSet<String> {
    // RT_SCOPE_HOST of the loopback address, and link-local (include/net/ipv6.h).
    const LOCAL: [&str; 2] = ["10", "20"];
    let interface = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, scope, _, name] = columns.as_slice() else { return None };
        (!LOCAL.contains(scope)).then(|| (*name).to_owned())
    };
    text.lines().filter_map(interface).collect()
}

/// Returns the flowtables of this machine; `None` if nft does not list them.
#[must_use]
pub fn flowtables() -> Option<Vec<Flowtable>> {
    parse(&Program::new("nft", "--json list flowtables").run().ok()?)
}

/// Returns the packets that the proxies of `config` receive.
fn packets_of_proxies(config: &Config) -> Vec<ProxyPackets> {
    const BOTH: [Family; 2] = [Family::V4, Family::V6];
    let shown = |Proxy { name, task }: &Proxy| {
        let of = |interface, is_forwarded| ProxyPackets {
            proxy: name.clone(),
            interface,
            subnets: Vec::new(),
            families: BOTH.into(),
            is_forwarded,
        };
        let queued = task.queued().map(|queued| ProxyPackets {
            families: BOTH.into_iter().filter(|family| queued.applies_to(*family)).collect(),
            subnets: queued.subnets.clone(),
            ..of(queued.interface.clone(), queued.is_forwarded())
        });
        let offered = task.offered().map(|offered| of(offered.interface, false));
        let announced = task.announced().map(|one| of(one.interface, one.role == Role::Server));
        [queued, offered, announced].into_iter().flatten().collect::<Vec<_>>()
    };
    config.proxies.iter().flat_map(shown).collect()
}

fn flowtable_report(interfaces: &BTreeSet<String>, flowtables: &[Flowtable]) -> Report {
    let mut report = Report::default();
    for Flowtable { table, name, devices } in flowtables {
        for interface in interfaces {
            if devices.contains(interface) {
                report.obstacles.push(format!(
                    "the flowtable {name} of table {table} has the interface {interface}: packets of established connections pass \
                     this router unseen; take {interface} out of it (OpenWrt: flow_offloading '0' in /etc/config/firewall)"
                ));
            } else if !devices.is_empty() {
                report.warnings.push(format!(
                    "packets that come by {} may pass the proxies of {interface} unseen, by the flowtable {name} of table {table}; \
                     have it leave out connections by {interface}",
                    devices.join(", ")
                ));
            }
        }
    }
    report
}

/// Parses the output of `nft --json list flowtables` (libnftables-json(5)).
fn parse(text: &str) -> Option<Vec<Flowtable>> {
    let listed: Json = serde_json::from_str(text).ok()?;
    let tables = listed["nftables"].as_array()?.iter().filter_map(|entry| entry.get("flowtable"));
    Some(tables.map(flowtable).collect())
}

fn flowtable(json: &Json) -> Flowtable {
    let word = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let devices = match &json["dev"] {
        Json::Array(devices) => devices.iter().map(word).collect(),
        Json::Null => Vec::new(),
        device => vec![word(device)],
    };
    let table = format!("{} {}", word(&json["family"]), word(&json["table"]));
    Flowtable { table, name: word(&json["name"]), devices }
}

fn offloads_by(iptables: &str) -> bool {
    let rules = Program::new(iptables, "--wait --list-rules").run();
    rules.is_ok_and(|rules| rules.lines().any(|rule| rule.contains("-j FLOWOFFLOAD")))
}

/// Returns whether packets from an interface are forwarded. A missing interface counts as forwarding.
fn is_forwarding(family: Family, interface: &str) -> bool {
    let is_on = |path: &str| Some(fs::read_to_string(path).ok()?.trim() != "0");
    match family {
        Family::V4 => is_on(&format!("/proc/sys/net/ipv4/conf/{interface}/forwarding")).unwrap_or(true),
        // `forwarding` of an interface only makes it a router's for neighbour discovery. That of `all` decides, and since
        // Linux 6.17 `force_forwarding` of the incoming interface (ip6_forward).
        Family::V6 => {
            is_on(&format!("/proc/sys/net/ipv6/conf/{interface}/force_forwarding")).unwrap_or(false)
                || is_on("/proc/sys/net/ipv6/conf/all/forwarding").unwrap_or(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_config::source::Source;
    use std::sync::Arc;

    /// Output of nft 1.0.
    const LISTED: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"flowtable": {"family": "inet", "name": "ft", "table": "fw4", "handle": 3, "hook": "ingress", "prio": 0, "dev": ["eth0", "wlan0"]}},
        {"flowtable": {"family": "ip", "name": "one", "table": "x", "handle": 4, "hook": "ingress", "prio": 0, "dev": "eth1"}}]}"#;

    fn report(interface: &str) -> Report {
        flowtable_report(&BTreeSet::from([interface.to_owned()]), &parse(LISTED).unwrap())
    }

    #[test]
    fn a_flowtable_with_the_interface_is_an_obstacle_and_another_one_a_warning() {
        let of_wlan0 = report("wlan0");
        assert_eq!((of_wlan0.obstacles.len(), of_wlan0.warnings.len()), (1, 1));
        assert!(of_wlan0.obstacles[0].contains("flowtable ft of table inet fw4"), "{of_wlan0:?}");
        assert!(of_wlan0.warnings[0].contains("come by eth1 "), "{of_wlan0:?}");
        assert_eq!(report("eth1").obstacles.len(), 1, "one device is no list");
    }

    const IF_INET6: &str = "\
fd090000000000000000000000000254 02 40 00 80     wlan0
fe800000000000000000000000000001 03 40 20 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
";

    fn read(proxies: &str) -> Config {
        Config::parse(&Arc::new(Source { name: "p.toml".into(), text: proxies.into() })).unwrap()
    }

    #[test]
    fn an_interface_has_ipv6_if_it_has_a_non_link_local_address() {
        assert_eq!(addressed(IF_INET6), BTreeSet::from(["wlan0".to_owned()]));
    }

    #[test]
    fn a_machine_without_ipv6_is_warned_about_if_a_proxy_handles_ipv6() {
        let config = read(
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"eth0\"\n\
             [[proxy]]\nkind = \"nack\"\ninterface = \"wlan0\"\nsubnets = [\"10.1.0.0/16\"]\n\
             [[proxy]]\nkind = \"mtcp\"\ninterface = \"wlan0\"\n\
             [[proxy]]\nname = \"six\"\nkind = \"nack\"\ninterface = \"eth1\"\nsubnets = [\"fd01::/48\"]\n\
             [[proxy]]\nkind = \"split\"\ninterface = \"eth0\"\nsubnets = [\"fd02::/48\"]\n",
        );
        let warned_of = |ipv6| {
            let warnings = ipv6_warnings(&config, &packets_of_proxies(&config), ipv6, &addressed(IF_INET6));
            let name = |warning: &String| warning.split('"').nth(1).unwrap().to_owned();
            warnings.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(warned_of(Ipv6Support::Present), Vec::<String>::new());
        assert_eq!(warned_of(Ipv6Support::WithoutChains), ["mtcp", "six"], "split needs no chain");
        assert_eq!(warned_of(Ipv6Support::Absent), ["six", "split"]);
    }

    #[test]
    fn a_routing_rule_with_further_criteria_is_reported_with_its_effect_on_each_kind() {
        let rule = |condition: &str, mark| Rule {
            priority: 50,
            table: 100,
            mark,
            matches_source: false,
            conditions: [condition].iter().filter(|text| !text.is_empty()).map(ToString::to_string).collect(),
        };
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        fs::write(&file, "07".repeat(32)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let key = format!("key_file = \"{}\"\n", file.display());
        let config = read(&format!(
            "[[proxy]]\nkind = \"snoop\"\ninterface = \"wlan0\"\n[[proxy]]\nkind = \"split\"\ninterface = \"eth0\"\n\
             [[proxy]]\nkind = \"gateway\"\ndivert = \"eth1\"\nexit = \"10.8.0.1:7172\"\nidentity = \"router\"\n{key}\
             [[proxy]]\nkind = \"opaque\"\nlocal = \"192.0.2.1\"\npeer = \"192.0.2.2\"\n{key}",
        ));
        let own = rule("fwmark 0x686f0000/0xffff0000", Some(u32::from(config.diversion.mark) << 16));
        assert_eq!(policy_routing_warnings(&config, &[rule("", None), own]), Vec::<String>::new());
        let warnings =
            policy_routing_warnings(&config, &[rule("iif eth0", None), rule("fwmark 0x1", Some(1))]);
        let expected = [
            ("\"snoop\"", "unfollowed_packets"),
            ("\"split\"", "unfollowed_connects"),
            ("\"gateway\"", "unfollowed_syns"),
            ("\"opaque\"", "`ip rule add iif dproxy0 lookup TABLE`"),
        ];
        assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
        for (warning, (name, figure)) in warnings.iter().zip(expected) {
            for words in ["`50: fwmark 0x1 lookup 100` and 1 more", name, figure] {
                assert!(warning.contains(words), "no {words}: {warning}");
            }
        }
    }

    #[test]
    fn without_flowtables_there_is_nothing_to_report() {
        let none = parse(r#"{"nftables": [{"metainfo": {"json_schema_version": 1}}]}"#).unwrap();
        assert_eq!(flowtable_report(&BTreeSet::from(["wlan0".to_owned()]), &none), Report::default());
        assert_eq!(parse("Error: no"), None);
    }
}
