//! Ethernet frames from outside, as timed dialogues: frames come in at taps, and leave at those that a radio or a wire
//! reaches.

mod addresses;
mod delivery;
mod limits;
mod losses;
mod neighbours;

use crate::support::{SpecBuilder, disk, standing};
use bytes::Bytes;
use hopline_core::{Instant, NodeId};
use hopline_radio::mac;
use hopline_sim::spec::RadioSpec;
use hopline_sim::{EgressFrame, NoTrace, Outcome, Spec, World};
use hopline_wire::dot11::MacAddr;

/// EtherType for experiments (IEEE Std 802-2014 §9.2.3).
const EXPERIMENT: u16 = 0x88b5;

/// A frame with this payload.
fn frame(from: MacAddr, to: MacAddr, ethertype: u16, payload: &[u8]) -> Bytes {
    [&to.0[..], &from.0, &ethertype.to_be_bytes(), payload].concat().into()
}

/// Address of the tap of node `n`.
fn tap(n: u32) -> MacAddr {
    MacAddr::of_node(NodeId(n))
}

/// Address of a host that is no node.
fn host(n: u8) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0, 0, n])
}

/// A frame for an experiment, from one host to another, with `len` bytes of payload.
fn experiment(from: MacAddr, to: MacAddr, len: usize) -> Bytes {
    frame(from, to, EXPERIMENT, &vec![0x5a; len])
}

/// Nodes in a row, 200 m apart, that decode and sense one another over 250 m, each with a tap. The MAC is that of 802.11b.
fn row(nodes: u32) -> Spec {
    let positions: Vec<_> = (0..nodes).map(|n| (200.0 * f64::from(n), 0.0)).collect();
    let radio = RadioSpec { mac: mac::Config::dot11b(), ..disk(250.0) };
    standing(&positions).change(|spec| spec.radio = Some(radio)).ethernet_taps(0..nodes)
}

/// Nodes that all hear one another, each with a tap.
fn near(nodes: u32) -> Spec {
    let positions: Vec<_> = (0..nodes).map(|n| (10.0 * f64::from(n), 0.0)).collect();
    standing(&positions).change(|spec| spec.radio = Some(disk(250.0))).ethernet_taps(0..nodes)
}

/// A world and what has left it.
struct Dialogue {
    world: World<NoTrace>,
    /// Frames that have left and were not looked at.
    left: Vec<EgressFrame>,
}

impl Dialogue {
    fn new(spec: &Spec) -> Self {
        Self { world: World::new(spec, 1, NoTrace), left: Vec::new() }
    }

    /// Brings a frame in at a node, at a time in milliseconds.
    fn inject(&mut self, at_ms: u64, node: u32, frame: &Bytes) {
        self.run_until(at_ms);
        self.world.inject_frame(NodeId(node), frame).expect("a good frame");
    }

    fn run_until(&mut self, at_ms: u64) {
        self.world.run_until(Instant::from_millis(at_ms));
        self.left.extend(core::iter::from_fn(|| self.world.poll_frame()));
    }

    /// Runs until then, and returns the nodes at which frames have left since the last call, with these frames.
    fn left(&mut self, until_ms: u64) -> Vec<(u32, Bytes)> {
        self.run_until(until_ms);
        self.left.drain(..).map(|left| (left.node.0, left.frame)).collect()
    }

    /// Runs until then, and returns the nodes alone.
    fn left_at(&mut self, until_ms: u64) -> Vec<u32> {
        self.left(until_ms).into_iter().map(|(node, _)| node).collect()
    }

    fn finish(self) -> Outcome {
        self.world.finish().0
    }
}
