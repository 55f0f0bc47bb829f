//! The queue of an interface whose rate is known: packets wait in this host then, where those that are sent again can go first, and where
//! drops are seen.
//!
//! A token bucket (tbf) sets the rate, and the kernel's three bands (pfifo_fast) are below it: what is sent again is of the first. How many
//! packets a band takes is a matter of the interface.

use super::Shaped;
use super::program::Program;
use serde::{Deserialize, Serialize};

/// A queue of ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shaper {
    interface: String,
    /// Packets that waited at most before, if the interface said.
    length_before: Option<u32>,
}

/// What was before says nothing of what is there.
impl PartialEq for Shaper {
    fn eq(&self, other: &Self) -> bool {
        self.interface == other.interface
    }
}

impl Eq for Shaper {}

/// Ours among the queueing disciplines of an interface.
const HANDLE: &str = "686f:";
/// How long packets wait that find the queue full: what a sender with CUBIC's factor of 0.7 needs to keep paths of 100 ms busy.
const LONGEST_WAIT_S: f64 = 0.05;
/// Bytes of a packet that counts.
const PACKET_BYTES: f64 = 1500.0;
/// Fewest packets that may wait.
const FEWEST: f64 = 50.0;
/// Longest time of silence that the rate makes up for.
const BURST_S: f64 = 0.002;

impl Shaper {
    /// That of an interface as it is now.
    pub(super) fn at(interface: &str) -> Self {
        Self { interface: interface.to_owned(), length_before: length(interface) }
    }

    /// Where it is.
    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    /// Whether it is there.
    pub(super) fn is_there(&self) -> bool {
        root(&self.interface).is_some_and(|root| root.contains(&format!("qdisc tbf {HANDLE} ")))
    }

    /// The discipline that somebody else has set up there; `None` if it is the default.
    pub(super) fn in_its_place(&self) -> Option<String> {
        let root = root(&self.interface)?;
        let mut words = root.split_whitespace().skip(1);
        let (kind, handle) = (words.next()?, words.next()?);
        // The default has no handle.
        (handle != "0:" && handle != HANDLE).then(|| kind.to_owned())
    }

    /// What takes it away: the interface has its default again.
    pub(super) fn unmaking(&self) -> Vec<Program> {
        let interface = &self.interface;
        let length = self.length_before.map(|before| set_length(interface, before));
        let root = Program::new("tc", &format!("qdisc del dev {interface} root handle {HANDLE}"));
        length.into_iter().chain([root]).collect()
    }
}

/// What makes the queue, or changes it. Bands take as many packets as the interface says when they are made.
pub(super) fn programs(shaped: &Shaped) -> Vec<Program> {
    let Shaped { interface, rate_bps } = shaped;
    let bytes_per_s = *rate_bps as f64 / 8.0;
    let burst = (bytes_per_s * BURST_S).max(2.0 * PACKET_BYTES + 100.0) as u64;
    let packets = (bytes_per_s * LONGEST_WAIT_S / PACKET_BYTES).max(FEWEST) as u32;
    let set = format!("qdisc replace dev {interface}");
    let disciplines = Program::new("tc", "-batch -").reading(format!(
        "{set} root handle {HANDLE} tbf rate {rate_bps}bit burst {burst} limit 100000000\n\
         {set} parent {HANDLE}1 pfifo_fast\n"
    ));
    vec![set_length(interface, packets), disciplines]
}

fn set_length(interface: &str, packets: u32) -> Program {
    Program::new("ip", &format!("link set dev {interface} txqueuelen {packets}"))
}

fn root(interface: &str) -> Option<String> {
    Program::new("tc", &format!("qdisc show dev {interface} root")).run().ok()
}

fn length(interface: &str) -> Option<u32> {
    let listed = Program::new("ip", &format!("link show dev {interface}")).run().ok()?;
    let mut words = listed.split_whitespace().skip_while(|word| *word != "qlen").skip(1);
    words.next()?.parse().ok()
}
