//! Inspection of the router around the proxies: does it show them their packets?

use crate::config::Config;
use crate::rules::Program;
use hopline_net::announce::Role;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs;

/// Obstacles to proxies, and possible ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Reasons for which proxies cannot work: one sentence each, with the remedy.
    pub obstacles: Vec<String>,
    /// Reasons for which they may do nothing: one sentence each, with the remedy.
    pub warnings: Vec<String>,
}

/// A flowtable of nftables: packets of its connections are forwarded past all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flowtable {
    /// Table that has it, such as `inet fw4`.
    pub table: String,
    /// Its own name.
    pub name: String,
    /// Interfaces whose packets it takes.
    pub devices: Vec<String>,
}

/// Looks at the rules and settings of this machine. What cannot be read, for want of privileges or programs, is not reported.
#[must_use]
pub fn inspect(config: &Config) -> Report {
    let interfaces = forwarding_interfaces(config);
    if interfaces.is_empty() {
        return Report::default();
    }
    let mut report = of_flowtables(&interfaces, &flowtables().unwrap_or_default());
    if offloads_by_iptables() {
        report.obstacles.push(
            "a rule of iptables has the target FLOWOFFLOAD: packets of established connections pass this router unseen; delete that rule"
                .into(),
        );
    }
    report.warnings.extend(interfaces.iter().filter(|interface| !forwards(interface)).map(|interface| {
        format!(
            "{interface} does not forward IPv4: nothing crosses this router; sysctl -w net.ipv4.ip_forward=1"
        )
    }));
    report
}

/// Returns the flowtables of this machine; `None` if nft does not say.
#[must_use]
pub fn flowtables() -> Option<Vec<Flowtable>> {
    parse(&Program::new("nft", "--json list flowtables").run().ok()?)
}

/// Interfaces of proxies that see forwarded packets.
fn forwarding_interfaces(config: &Config) -> BTreeSet<String> {
    let tasks = || config.proxies.iter().map(|proxy| &proxy.task);
    let queued = tasks().filter_map(|task| task.queued()).filter(|queued| queued.is_forwarded());
    let announced = tasks().filter_map(|task| task.announced()).filter(|one| one.role == Role::Called);
    queued.map(|queued| queued.interface).chain(announced.map(|one| one.interface)).collect()
}

fn of_flowtables(interfaces: &BTreeSet<String>, flowtables: &[Flowtable]) -> Report {
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

/// Reads what `nft --json list flowtables` prints (libnftables-json(5)).
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

fn offloads_by_iptables() -> bool {
    let rules = Program::new("iptables", "--wait --list-rules").run();
    rules.is_ok_and(|rules| rules.lines().any(|rule| rule.contains("-j FLOWOFFLOAD")))
}

/// Returns whether an interface forwards IPv4; one that is not there yet says nothing.
fn forwards(interface: &str) -> bool {
    let setting = fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{interface}/forwarding"));
    setting.map_or(true, |setting| setting.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As nft 1.0 prints it.
    const LISTED: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"flowtable": {"family": "inet", "name": "ft", "table": "fw4", "handle": 3, "hook": "ingress", "prio": 0, "dev": ["eth0", "wlan0"]}},
        {"flowtable": {"family": "ip", "name": "one", "table": "x", "handle": 4, "hook": "ingress", "prio": 0, "dev": "eth1"}}]}"#;

    fn report(interface: &str) -> Report {
        of_flowtables(&BTreeSet::from([interface.to_owned()]), &parse(LISTED).unwrap())
    }

    #[test]
    fn a_flowtable_with_the_interface_is_an_obstacle_and_another_a_warning() {
        let of_wlan0 = report("wlan0");
        assert_eq!((of_wlan0.obstacles.len(), of_wlan0.warnings.len()), (1, 1));
        assert!(of_wlan0.obstacles[0].contains("flowtable ft of table inet fw4"), "{of_wlan0:?}");
        assert!(of_wlan0.warnings[0].contains("come by eth1 "), "{of_wlan0:?}");
        assert_eq!(report("eth1").obstacles.len(), 1, "one device is no list");
    }

    #[test]
    fn no_flowtable_is_nothing_to_report() {
        let none = parse(r#"{"nftables": [{"metainfo": {"json_schema_version": 1}}]}"#).unwrap();
        assert_eq!(of_flowtables(&BTreeSet::from(["wlan0".to_owned()]), &none), Report::default());
        assert_eq!(parse("Error: no"), None);
    }
}
