//! SYNs that wait in a queue between the rules that capture them and the listener.
//!
//! The kernel need not have a queue of nftables. So the rule that captures a SYN notes the listener in the packet's priority, of which
//! nothing makes use on the way to a socket. Behind the firewall this becomes a mark, by which a rule of iptables knows the queue. What the
//! daemon refuses comes out of the queue with a mark that says how, and is refused by the next chain.

use super::Captured;
use super::chain::{Place, to_queue};
use hopline_net::split::Refusal;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Major number of priorities that name a listener.
const MAJOR: u16 = 0x686f;
/// Before the queue, and behind it: the table `security` has priority 50, and 150 where iptables speaks to nftables.
const BEFORE: i32 = 49;
const BEHIND: i32 = 151;
/// Queues by the ports of listeners.
fn queues(captured: &[Captured]) -> BTreeMap<u16, u16> {
    captured.iter().filter_map(|captured| Some((captured.port, captured.held?))).collect()
}

/// The words by which a rule that captures notes the listener.
pub(super) fn noted(captured: &Captured) -> String {
    captured.held.map_or_else(String::new, |_| format!(" meta priority set {MAJOR:x}:{:x}", captured.port))
}

/// The chains of nftables before and behind the queue.
pub(super) fn chains(captured: &[Captured]) -> String {
    let queues = queues(captured);
    if queues.is_empty() {
        return String::new();
    }
    let mut text = format!("  chain held {{\n    type filter hook input priority {BEFORE}; policy accept;\n");
    for port in queues.keys() {
        let _ = writeln!(
            text,
            "    meta priority {MAJOR:x}:{port:x} meta mark set meta mark & 0x0000ffff | {:#010x}",
            mark(*port)
        );
    }
    let _ = write!(
        text,
        "  }}\n  chain refused {{\n    type filter hook input priority {BEHIND}; policy accept;\n"
    );
    for port in queues.keys() {
        for refusal in Refusal::ALL {
            let _ = writeln!(
                text,
                "    meta priority {MAJOR:x}:{port:x} meta l4proto tcp meta mark {:#x} reject with {}",
                refusal.mark(),
                answer(refusal)
            );
        }
    }
    text.push_str("  }\n");
    text
}

/// The rules of iptables that lead to the queues.
pub(super) fn rules(captured: &[Captured], place: Place) -> Vec<String> {
    if place != Place::Input {
        return Vec::new();
    }
    let rule = |(port, queue)| {
        format!("-p tcp --syn -m mark --mark {:#x}/0xffff0000 {}", mark(port), to_queue(queue))
    };
    queues(captured).into_iter().map(rule).collect()
}

/// Mark of SYNs for the listener at a port, in the upper half: behind routing it decides nothing else.
const fn mark(port: u16) -> u32 {
    (port as u32) << 16
}

const fn answer(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Reset => "tcp reset",
        Refusal::Host => "icmpx type host-unreachable",
        Refusal::Network => "icmpx type no-route",
        Refusal::Prohibited => "icmpx type admin-prohibited",
    }
}
