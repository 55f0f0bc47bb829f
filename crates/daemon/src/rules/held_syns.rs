//! Rules for connections that a listener accepts once the router's firewall has permitted them.
//!
//! A SYN is forwarded. A chain of nftables after all others of the hook `forward` identifies its listener, and marks the
//! SYN. The kernel may lack queues of nftables. So a rule of iptables queues it, in `mangle`, the only table after `forward`
//! and before source NAT. From there the daemon sends it to this machine, with the listener in its priority: nothing uses
//! the priority on the way to a socket, while rules of the administrator may change marks.

use super::chain::queue_target;
use super::diverted::{DivertedConnections, UnforwardedPackets};
use super::family::Family;
use super::matches::{between_mobile_hosts, match_connections, match_unknown_connections};
use hopline_middlebox::diversion::MAJOR;
use hopline_middlebox::split::Refusal;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Priority after all other chains of `forward`.
const PRIORITY_LAST: i32 = i32::MAX - 1;
/// Priority before the firewall (`filter`, 0): a refused connection is none to this machine.
const PRIORITY_BEFORE_FILTER: i32 = -1;

/// Returns queues by the ports of listeners.
fn queues(captured: &[DivertedConnections]) -> BTreeMap<u16, u16> {
    captured.iter().map(|captured| (captured.port, captured.queue)).collect()
}

/// Returns the rules of the hook `prerouting` that pass SYNs to listeners.
pub(super) fn listener_rules(captured: &[DivertedConnections], families: &[Family], marked: &str) -> String {
    let mut text = String::new();
    for port in queues(captured).keys() {
        for family in families {
            let _ = writeln!(
                text,
                "    iifname \"lo\" meta priority {} meta nfproto {} meta l4proto tcp tproxy {} to {} {marked}",
                priority(*port),
                family.protocol(),
                family.header(),
                family.listener(*port)
            );
        }
    }
    text
}

/// Returns the chains of nftables that identify connections, and that reject them.
pub(super) fn chains(
    captured: &[DivertedConnections],
    guarded: &[UnforwardedPackets],
    families: &[Family],
) -> String {
    let mut text = format!(
        "  chain forwarded {{\n    type filter hook forward priority {PRIORITY_LAST}; policy accept;\n    \
         meta l4proto != tcp accept\n"
    );
    for guarded in guarded {
        for passing in families.iter().filter_map(|family| between_mobile_hosts(guarded, *family)) {
            let _ = writeln!(text, "    {passing} accept");
        }
        for stray in families.iter().flat_map(|family| match_unknown_connections(guarded, *family)) {
            let _ = writeln!(text, "    tcp flags & (fin | syn | rst | ack) != syn {stray} drop");
        }
    }
    text.push_str("    tcp flags & (fin | syn | rst | ack) != syn accept\n");
    for captured in captured {
        for family in families {
            if let Some(calls) = match_connections(captured, *family) {
                let mark = mark(captured.port);
                let _ =
                    writeln!(text, "    {calls} meta mark set meta mark & 0x0000ffff | {mark:#010x} accept");
            }
        }
    }
    let _ = write!(
        text,
        "  }}\n  chain refused {{\n    type filter hook input priority {PRIORITY_BEFORE_FILTER}; policy accept;\n"
    );
    for refusal in Refusal::ALL {
        let (priority, answer) = (priority(refusal.code()), answer(refusal));
        let _ = writeln!(
            text,
            "    iifname \"lo\" meta priority {priority} meta l4proto tcp reject with {answer}"
        );
    }
    text.push_str("  }\n");
    text
}

/// Returns the rules of iptables that lead to the queues.
pub(super) fn rules(captured: &[DivertedConnections]) -> Vec<String> {
    let rule = |(port, queue)| {
        format!("-p tcp --syn -m mark --mark {:#x}/0xffff0000 {}", mark(port), queue_target(queue))
    };
    queues(captured).into_iter().map(rule).collect()
}

/// Returns the priority of packets that the daemon sends to this machine, as nft writes it.
fn priority(code: u16) -> String {
    format!("{MAJOR:x}:{code:x}")
}

/// Returns the mark of SYNs for the listener at a port, in the upper half: after routing it has no other effect.
const fn mark(port: u16) -> u32 {
    (port as u32) << 16
}

const fn answer(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Reset => "tcp reset",
        Refusal::HostUnreachable => "icmpx type host-unreachable",
        Refusal::NetworkUnreachable => "icmpx type no-route",
        Refusal::Prohibited => "icmpx type admin-prohibited",
    }
}
