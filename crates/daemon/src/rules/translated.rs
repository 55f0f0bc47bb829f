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
use std::fmt::Write;

/// Name of the table of a daemon.
pub(super) fn name(owner: &str) -> String {
    format!("hopline-{owner}-nat")
}

/// Connections that are noted, and how long after their last packet.
const SIZE: u32 = 65_536;
const TIMEOUT: &str = "2h";
/// Before packets are queued (`security`, 50), and behind the firewall (`filter`, 0).
const PRIORITY: i32 = 45;

/// Text that nft reads.
pub(super) fn text(table: &str, queued: &[&Queued]) -> String {
    const FLOW: &str = "ip saddr . tcp sport . ip daddr . tcp dport";
    let mut text = format!(
        "table inet {table} {{\n  set translated {{\n    type ipv4_addr . inet_service . ipv4_addr . inet_service\n    \
         flags dynamic,timeout\n    size {SIZE}\n    timeout {TIMEOUT}\n  }}\n  chain forward {{\n    \
         type filter hook forward priority {PRIORITY}; policy accept;\n"
    );
    for Queued { interface, .. } in queued {
        for way in ["iifname", "oifname"] {
            for (direction, status) in [("reply", "snat"), ("original", "dnat")] {
                let _ = writeln!(
                    text,
                    "    {way} \"{interface}\" meta nfproto ipv4 meta l4proto tcp ct direction {direction} \
                     ct status & (snat | dnat) == {status} update @translated {{ {FLOW} }}"
                );
            }
        }
    }
    text.push_str("  }\n  chain output {\n    type filter hook output priority raw; policy accept;\n");
    let mut marks: Vec<u32> = queued.iter().map(|queued| queued.mark).collect();
    marks.sort_unstable();
    marks.dedup();
    for mark in marks {
        let _ = writeln!(text, "    meta mark {mark:#x} meta l4proto tcp {FLOW} @translated notrack");
    }
    text.push_str("  }\n}\n");
    text
}
