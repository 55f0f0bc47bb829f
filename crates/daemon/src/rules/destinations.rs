//! Destination NAT of connections that the daemon diverts to this machine.
//!
//! If the router has a destination NAT, a SYN that waits after the firewall has the server's address already, and conntrack
//! forgets the connection with that SYN. Answers of the listener need the address that the client called. So the SYN that is
//! sent to this machine gets the called address back before conntrack sees it. A rule of the hook `output` then translates
//! it again, as those of `prerouting` did. These chains record both addresses when the SYN is forwarded. They identify it by
//! its sequence number, which a client chooses at random, and its ports: nftables programs of 2022 cannot combine these with
//! an IPv6 address.
//!
//! The source is not changed: rules that masquerade leaving packets do not apply to packets that stay here.

use super::family::Family;
use hopline_middlebox::diversion::MAJOR;
use std::fmt::Write;

/// Most recorded connections, and their lifetime: longer than a server may take to answer by default.
const MAX_ENTRIES: u32 = 65_536;
const TIMEOUT: &str = "2m";
/// Priority after the firewall, and before the chain that marks connections.
const PRIORITY: i32 = i32::MAX - 2;
/// Priority before the administrator's destination NAT (`dstnat`, -100).
const PRIORITY_BEFORE_DNAT: i32 = -101;
/// Fields that identify a SYN.
const KEY: &str = "tcp sequence . tcp sport . tcp dport";

/// Returns maps and chains of the table.
pub(super) fn chains(families: &[Family]) -> String {
    let mut text: String = families.iter().map(|family| maps(*family)).collect();
    let mut chain = |name: &str, kind: String, rules: fn(Family) -> String| {
        let rules: String = families.iter().map(|family| rules(*family)).collect();
        let _ = write!(text, "  chain {name} {{\n    type {kind}; policy accept;\n{rules}  }}\n");
    };
    chain("noted", format!("filter hook forward priority {PRIORITY}"), recording_rules);
    chain("called", "filter hook output priority raw".into(), reply_rules);
    chain("meant", format!("nat hook output priority {PRIORITY_BEFORE_DNAT}"), translating_rules);
    chain("kept", "nat hook postrouting priority srcnat - 1".into(), keeping_rules);
    text
}

/// Returns the ending of the names of its maps: a map has addresses of one length.
const fn suffix(family: Family) -> &'static str {
    match family {
        Family::V4 => "",
        Family::V6 => "6",
    }
}

fn maps(family: Family) -> String {
    let (ip, suffix) = (family.header(), suffix(family));
    let map = |name: &str, value: &str| {
        format!(
            "  map {name}{suffix} {{\n    typeof {KEY} : {value}\n    flags dynamic,timeout\n    size {MAX_ENTRIES}\n    \
             timeout {TIMEOUT}\n  }}\n"
        )
    };
    let address = format!("{ip} daddr");
    ["called", "server"]
        .map(|of| map(&format!("{of}_address"), &address) + &map(&format!("{of}_port"), "tcp dport"))
        .concat()
}

fn recording_rules(family: Family) -> String {
    let (ip, protocol, suffix) = (family.header(), family.protocol(), suffix(family));
    let called = KEY.replace("tcp dport", "ct original proto-dst");
    format!(
        "    meta nfproto {protocol} tcp flags & (fin | syn | rst | ack) == syn ct direction original ct status dnat \
         update @called_address{suffix} {{ {KEY} : ct original {ip} daddr }} \
         update @called_port{suffix} {{ {KEY} : ct original proto-dst }} \
         update @server_address{suffix} {{ {called} : {ip} daddr }} \
         update @server_port{suffix} {{ {called} : tcp dport }}\n"
    )
}

fn reply_rules(family: Family) -> String {
    let (ours, ip, suffix) = (own_packets(family), family.header(), suffix(family));
    format!(
        "    {ours} {ip} daddr set {KEY} map @called_address{suffix}\n    {ours} tcp dport set {KEY} map @called_port{suffix}\n"
    )
}

/// Returns the translating rules. The second one keeps rules of the administrator from translating a connection that was not
/// translated when it arrived.
fn translating_rules(family: Family) -> String {
    let (ours, ip, suffix) = (own_packets(family), family.header(), suffix(family));
    format!(
        "    {ours} dnat {ip} to {KEY} map @server_address{suffix} : {KEY} map @server_port{suffix}\n    \
         {ours} dnat {ip} to {ip} daddr\n"
    )
}

fn keeping_rules(family: Family) -> String {
    let ip = family.header();
    format!("    {} snat {ip} to {ip} saddr\n", own_packets(family))
}

/// Returns the match of packets that the daemon sends to this machine.
fn own_packets(family: Family) -> String {
    let major = u32::from(MAJOR) << 16;
    format!("meta priority & 0xffff0000 == {major:#010x} meta nfproto {} meta l4proto tcp", family.protocol())
}
