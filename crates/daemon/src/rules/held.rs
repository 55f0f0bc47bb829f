//! Rules for calls that a listener takes once the router's firewall has let them through.
//!
//! A SYN is forwarded. A chain of nftables behind all others of the hook `forward` knows which listener it is for, and marks it. The kernel
//! need not have a queue of nftables. So a rule of iptables brings it to the queue, in `mangle`, the only table behind `forward` before
//! sources are translated. From there the daemon sends it to this machine, with the listener in its priority: nothing makes use of that on
//! the way to a socket, while rules of the administrator may change marks.

use super::Captured;
use super::chain::to_queue;
use super::family::Family;
use super::table::calls;
use hopline_net::diversion::MAJOR;
use hopline_net::split::Refusal;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Behind all other chains of `forward`.
const LAST: i32 = i32::MAX - 1;
/// Before the firewall (`filter`, 0): a refusal is no call to this machine.
const BEFORE: i32 = -1;

/// Queues by the ports of listeners.
fn queues(captured: &[Captured]) -> BTreeMap<u16, u16> {
    captured.iter().map(|captured| (captured.port, captured.queue)).collect()
}

/// The rules of the hook `prerouting` that hand SYNs to listeners.
pub(super) fn taken(captured: &[Captured], families: &[Family], marked: &str) -> String {
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

/// The chains of nftables that know calls, and that refuse them.
pub(super) fn chains(captured: &[Captured], families: &[Family]) -> String {
    let mut text = format!(
        "  chain forwarded {{\n    type filter hook forward priority {LAST}; policy accept;\n    \
         meta l4proto != tcp accept\n    tcp flags & (fin | syn | rst | ack) != syn accept\n"
    );
    for captured in captured {
        for family in families {
            if let Some(calls) = calls(captured, *family) {
                let mark = mark(captured.port);
                let _ =
                    writeln!(text, "    {calls} meta mark set meta mark & 0x0000ffff | {mark:#010x} accept");
            }
        }
    }
    let _ = write!(
        text,
        "  }}\n  chain refused {{\n    type filter hook input priority {BEFORE}; policy accept;\n"
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

/// The rules of iptables that lead to the queues.
pub(super) fn rules(captured: &[Captured]) -> Vec<String> {
    let rule = |(port, queue)| {
        format!("-p tcp --syn -m mark --mark {:#x}/0xffff0000 {}", mark(port), to_queue(queue))
    };
    queues(captured).into_iter().map(rule).collect()
}

/// Priority of packets that the daemon sends to this machine, as nft writes it.
fn priority(code: u16) -> String {
    format!("{MAJOR:x}:{code:x}")
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
