//! Conntrack and packets that a middlebox sends again on a router that translates addresses.
//!
//! A repaired packet leaves by the hook `output`, with the addresses that the middlebox saw when it was forwarded. Conntrack knows
//! a connection by the addresses on the wire at both of its ends. Where the router translates, those that the middlebox saw can be
//! neither: a reply of a masqueraded connection has got the client's address back, and a call by destination NAT has the server's
//! already. Conntrack would take such a packet for a new connection that clashes with the old one, and rewrite its port.
//!
//! These rules note the addresses of such packets when they are forwarded, and exempt packets with the middlebox's mark and the same
//! addresses from conntrack (`notrack`). All others stay tracked: an acknowledgment towards the server must be translated.
//! A packet whose source and destination are both translated (hairpin NAT) has no right form here; it stays tracked.

use super::Queued;
use super::family::Family;
use std::fmt::Write;

/// Connections that are noted, and how long after their last packet: a packet is repaired within seconds of another one.
const SIZE: u32 = 65_536;
const TIMEOUT: &str = "2m";
/// Before packets are queued (`security`, 50), and behind the firewall (`filter`, 0).
const PRIORITY: i32 = 45;

/// Sets and chains of the table; none where no packets are queued.
pub(super) fn chains(families: &[Family], queued: &[&Queued]) -> String {
    let mut text = String::new();
    if queued.is_empty() {
        return text;
    }
    let seen = |family: &&Family| queued.iter().any(|queued| queued.sees(**family));
    let families: Vec<Family> = families.iter().filter(seen).copied().collect();
    for family in &families {
        let (set, address) = (set(*family), address(*family));
        let _ = writeln!(
            text,
            "  set {set} {{\n    type {address} . inet_service . {address} . inet_service\n    \
             flags dynamic,timeout\n    size {SIZE}\n    timeout {TIMEOUT}\n  }}"
        );
    }
    let _ = writeln!(
        text,
        // Each packet that is forwarded comes here: what is none of ours leaves at once.
        "  chain forward {{\n    type filter hook forward priority {PRIORITY}; policy accept;\n    \
         meta l4proto != tcp accept\n    ct status & (snat | dnat) == 0 accept"
    );
    for queued in queued {
        for family in families.iter().filter(|family| queued.sees(**family)) {
            note(&mut text, &queued.interface, *family);
        }
    }
    text.push_str("  }\n  chain output {\n    type filter hook output priority raw; policy accept;\n");
    let mut marks: Vec<u32> = queued.iter().map(|queued| queued.mark).collect();
    marks.sort_unstable();
    marks.dedup();
    for mark in marks {
        for family in &families {
            let (set, flow) = (set(*family), flow(*family));
            let _ = writeln!(text, "    meta mark {mark:#x} meta l4proto tcp {flow} @{set} notrack");
        }
    }
    text.push_str("  }\n");
    text
}

/// Notes packets that cross an interface and of which one address is translated, behind the translation.
fn note(text: &mut String, interface: &str, family: Family) {
    let (set, flow, protocol) = (set(family), flow(family), family.protocol());
    for way in ["iifname", "oifname"] {
        for (direction, status) in [("reply", "snat"), ("original", "dnat")] {
            let _ = writeln!(
                text,
                "    {way} \"{interface}\" meta nfproto {protocol} ct direction {direction} \
                 ct status & (snat | dnat) == {status} update @{set} {{ {flow} }}"
            );
        }
    }
}

/// A set has addresses of one length.
const fn set(family: Family) -> &'static str {
    match family {
        Family::V4 => "translated",
        Family::V6 => "translated6",
    }
}

const fn address(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4_addr",
        Family::V6 => "ipv6_addr",
    }
}

fn flow(family: Family) -> String {
    let header = family.header();
    format!("{header} saddr . tcp sport . {header} daddr . tcp dport")
}
