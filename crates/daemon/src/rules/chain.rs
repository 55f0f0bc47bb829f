//! The chain of iptables that leads packets to queues.

use super::Queued;
use super::program::{Program, RuleError};
use crate::config::Subnet;
use std::fmt::Write;

/// Behind `filter`, and yet with both interfaces known.
const TABLE: &str = "security";
/// Most ports of one rule (xt_multiport).
const PORTS: usize = 15;

/// The name of the chain of a daemon.
pub(super) fn name(owner: &str) -> String {
    format!("HOPLINE-{owner}")
}

/// What becomes of the jump to the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// It is added.
    Made,
    /// It is there.
    Left,
}

/// What iptables-restore reads: it does all or nothing. A chain that is there is emptied first.
pub(super) fn text(chain: &str, queued: &[Queued], jump: Jump) -> String {
    let mut text = format!("*{TABLE}\n:{chain} - [0:0]\n");
    for queued in queued {
        add(&mut text, chain, queued);
    }
    if jump == Jump::Made {
        let _ = writeln!(text, "-A FORWARD -j {chain}");
    }
    text.push_str("COMMIT\n");
    text
}

/// What iptables lists of the table.
pub(super) fn list() -> Result<String, RuleError> {
    Program::new("iptables", &format!("--wait --table {TABLE} --list-rules")).run()
}

/// Whether a listing has the chain.
pub(super) fn is_in(chain: &str, listing: &str) -> bool {
    listing.lines().any(|line| line == format!("-N {chain}"))
}

/// What iptables-restore reads to remove the chain, and every jump to it that there is.
pub(super) fn unmaking(chain: &str, listing: &str) -> String {
    let jump = format!("-j {chain}");
    let jumps = listing.lines().filter(|line| line.starts_with("-A ") && line.ends_with(&jump));
    let mut text = format!("*{TABLE}\n");
    for line in jumps {
        let _ = writeln!(text, "{}", line.replacen("-A", "-D", 1));
    }
    let _ = writeln!(text, "-F {chain}\n-X {chain}\nCOMMIT");
    text
}

fn add(text: &mut String, chain: &str, queued: &Queued) {
    let Queued { queue, interface, .. } = queued;
    // Machines read IPv4.
    let subnets: Vec<&Subnet> = queued.subnets.iter().filter(|subnet| subnet.is_ipv4()).collect();
    if subnets.is_empty() != queued.subnets.is_empty() {
        return;
    }
    let hosts = |option: &str| either(&subnets, |subnet| format!(" {option} {}", subnet.0));
    let chunks: Vec<&[u16]> = queued.ports.chunks(PORTS).collect();
    let ports = |option: &str| either(&chunks, |ports| format!(" -m multiport {option} {}", list_of(ports)));
    for (way, host, port) in [("-o", "-d", "--sports"), ("-i", "-s", "--dports")] {
        for host in hosts(host) {
            for port in ports(port) {
                let _ = writeln!(
                    text,
                    "-A {chain} {way} {interface}{host} -p tcp{port} -j NFQUEUE --queue-num {queue} --queue-bypass"
                );
            }
        }
    }
}

/// What is said of each, or nothing, once.
fn either<T>(these: &[T], say: impl Fn(&T) -> String) -> Vec<String> {
    if these.is_empty() { vec![String::new()] } else { these.iter().map(say).collect() }
}

fn list_of(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}
