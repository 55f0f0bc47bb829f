//! Retransmitted packets of a middlebox, and conntrack, on a router with NAT.
//!
//! A retransmitted packet leaves by the hook `output`, with the addresses that the middlebox saw when it was forwarded.
//! Conntrack identifies a connection by the addresses on the wire at both of its ends. On a router with NAT the addresses
//! that the middlebox saw can be neither: a reply of a masqueraded connection has the client's address again, and a
//! connection by destination NAT has the server's already. Conntrack would treat such a packet as a new connection that
//! clashes with the old one, and rewrite its port.
//!
//! These rules record the addresses of such packets when they are forwarded, and exempt packets with the middlebox's mark
//! and the same addresses from conntrack (`notrack`). All other packets stay tracked: an acknowledgment towards the server
//! must be translated. A packet with a translated source and destination (hairpin NAT) has no right form here; it stays
//! tracked.

use super::diverted::Queued;
use super::family::Family;
use std::fmt::Write;

/// Most recorded connections, and their lifetime after the last packet: a packet is repaired within seconds of another one.
const MAX_ENTRIES: u32 = 65_536;
const TIMEOUT: &str = "2m";
/// Priority before packets are queued (`security`, 50), and after the firewall (`filter`, 0).
const PRIORITY: i32 = 45;

/// Returns sets and chains of the table; none if no packets are queued.
pub(super) fn chains(families: &[Family], queued: &[&Queued]) -> String {
    let mut text = String::new();
    if queued.is_empty() {
        return text;
    }
    let seen = |family: &&Family| queued.iter().any(|queued| queued.applies_to(**family));
    let families: Vec<Family> = families.iter().filter(seen).copied().collect();
    for family in &families {
        let (set, address) = (set(*family), address(*family));
        let _ = writeln!(
            text,
            "  set {set} {{\n    type {address} . inet_service . {address} . inet_service\n    \
             flags dynamic,timeout\n    size {MAX_ENTRIES}\n    timeout {TIMEOUT}\n  }}"
        );
    }
    let _ = writeln!(
        text,
        // Each forwarded packet comes here: packets of other traffic leave at once.
        "  chain forward {{\n    type filter hook forward priority {PRIORITY}; policy accept;\n    \
         meta l4proto != tcp accept\n    ct status & (snat | dnat) == 0 accept"
    );
    for queued in queued {
        for family in families.iter().filter(|family| queued.applies_to(**family)) {
            write_recording_rules(&mut text, &queued.interface, *family);
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

/// Writes rules that record packets that cross an interface with one translated address, after the translation.
fn write_recording_rules(text: &mut String, interface: &str, family: Family) {
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

/// Returns the name of a set, which has addresses of one length.
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
