//! The queue of an interface whose rate is known: packets wait in this host then, where those that are sent again can go first, and where
//! drops are seen.

use super::Shaped;
use super::program::Program;

/// Ours among the queueing disciplines of an interface.
const HANDLE: &str = "686f:";
/// Below it: two bands, the first for what is sent again.
const BANDS: &str = "6870:";
/// Priorities 6 and 7, interactive and control, are of the first band (linux/pkt_sched.h).
const PRIORITIES: &str = "1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1";
/// How long packets wait that find the queue full: what a sender with CUBIC's factor of 0.7 needs to keep paths of 100 ms busy.
const LONGEST_WAIT_S: f64 = 0.05;
/// Bytes of a packet that counts.
const PACKET_BYTES: f64 = 1500.0;
/// Fewest packets that may wait.
const FEWEST: f64 = 50.0;
/// Longest time of silence that the rate makes up for.
const BURST_S: f64 = 0.002;

/// What tc reads to make the queue, or to change it.
pub(super) fn program(shaped: &Shaped) -> Program {
    let Shaped { interface, rate_bps } = shaped;
    let bytes_per_s = *rate_bps as f64 / 8.0;
    let burst = (bytes_per_s * BURST_S).max(2.0 * PACKET_BYTES + 100.0) as u64;
    let packets = (bytes_per_s * LONGEST_WAIT_S / PACKET_BYTES).max(FEWEST) as u64;
    let set = format!("qdisc replace dev {interface}");
    Program::new("tc", "-batch -").reading(format!(
        "{set} root handle {HANDLE} tbf rate {rate_bps}bit burst {burst} limit 100000000\n\
         {set} parent {HANDLE}1 handle {BANDS} prio bands 2 priomap {PRIORITIES}\n\
         {set} parent {BANDS}1 pfifo limit {packets}\n\
         {set} parent {BANDS}2 pfifo limit {packets}\n"
    ))
}

/// Whether it is at the root of an interface, and ours.
pub(super) fn is_at(interface: &str) -> bool {
    let listed = Program::new("tc", &format!("qdisc show dev {interface} root")).run();
    listed.is_ok_and(|listed| listed.contains(&format!("qdisc tbf {HANDLE} ")))
}

/// What takes it away: the interface has its default again.
pub(super) fn unmaking(interface: &str) -> Program {
    Program::new("tc", &format!("qdisc del dev {interface} root handle {HANDLE}"))
}

/// The discipline at the root of an interface that somebody has set up; `None` if it is the default.
pub(super) fn of_others(interface: &str) -> Option<String> {
    let listed = Program::new("tc", &format!("qdisc show dev {interface} root")).run().ok()?;
    let mut words = listed.split_whitespace().skip(1);
    let (kind, handle) = (words.next()?, words.next()?);
    // The default has no handle.
    (handle != "0:" && handle != HANDLE).then(|| kind.to_owned())
}
