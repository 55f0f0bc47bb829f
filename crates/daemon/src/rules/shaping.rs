//! Queue of an interface with a configured rate. Packets are queued in this host then, so that retransmitted packets can
//! have priority and drops are detected.
//!
//! A token bucket (tbf) sets the rate, with the kernel's three bands (pfifo_fast) below it: retransmitted packets use the
//! first band. The capacity of a band is the queue length of the interface.

use super::diverted::ShapedInterface;
use super::program::Program;
use serde::{Deserialize, Serialize};

/// Queueing discipline of the daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shaper {
    interface: String,
    /// Queue length of the interface before, if it was known.
    length_before: Option<u32>,
}

/// The former length does not matter for equality.
impl PartialEq for Shaper {
    fn eq(&self, other: &Self) -> bool {
        self.interface == other.interface
    }
}

impl Eq for Shaper {}

/// Handle of the daemon's discipline among those of an interface.
const HANDLE: &str = "686f:";
/// Queueing delay of a full queue, seconds: what CUBIC with its factor of 0.7 needs to fill paths of 100 ms.
const MAX_WAIT_S: f64 = 0.05;
/// Size of a packet for this calculation, bytes.
const PACKET_BYTES: f64 = 1500.0;
/// Least queue length, packets.
const MIN_PACKETS: f64 = 50.0;
/// Longest idle time that the token bucket compensates for, seconds.
const BURST_S: f64 = 0.002;

impl Shaper {
    /// Returns the discipline of an interface in its present state.
    pub(super) fn at(interface: &str) -> Self {
        Self { interface: interface.to_owned(), length_before: length(interface) }
    }

    /// Returns the interface.
    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns whether it exists.
    pub(super) fn exists(&self) -> bool {
        root(&self.interface).is_some_and(|root| root.contains(&format!("qdisc tbf {HANDLE} ")))
    }

    /// Returns the discipline of another program at this interface; `None` if it is the default.
    pub(super) fn other_discipline(&self) -> Option<String> {
        let root = root(&self.interface)?;
        let mut words = root.split_whitespace().skip(1);
        let (kind, handle) = (words.next()?, words.next()?);
        // The default has no handle.
        (handle != "0:" && handle != HANDLE).then(|| kind.to_owned())
    }

    /// Returns the programs that remove it: the interface gets its default discipline again.
    pub(super) fn removal(&self) -> Vec<Program> {
        let interface = &self.interface;
        let length = self.length_before.map(|before| set_length(interface, before));
        let root = Program::new("tc", &format!("qdisc del dev {interface} root handle {HANDLE}"));
        length.into_iter().chain([root]).collect()
    }
}

/// Returns the programs that make or change the discipline. Bands get the queue length of the interface when they are made.
pub(super) fn programs(shaped: &ShapedInterface) -> Vec<Program> {
    let ShapedInterface { interface, rate_bps } = shaped;
    let bytes_per_s = *rate_bps as f64 / 8.0;
    let burst = (bytes_per_s * BURST_S).max(2.0 * PACKET_BYTES + 100.0) as u64;
    let packets = (bytes_per_s * MAX_WAIT_S / PACKET_BYTES).max(MIN_PACKETS) as u32;
    let set = format!("qdisc replace dev {interface}");
    let disciplines = Program::new("tc", "-batch -").with_input(format!(
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
