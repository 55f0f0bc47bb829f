//! Contract of sans-I/O state machines.
//!
//! A transport endpoint, a proxy, a routing agent, a queue controller and a MAC are *state machines*: plain values driven
//! through `&mut self`. A state machine opens no socket, reads no clock, spawns no thread, holds no lock and makes no
//! callbacks. The simulator and the Linux daemons drive the same state machine through the same methods.
//!
//! # Method families
//!
//! | family | methods | rule |
//! |---|---|---|
//! | inputs | `handle_packet`, `handle_timeout`, `handle_signal` | never fail, never panic, whatever the peer sends |
//! | application calls | its own (`connect`, `send`, `close`, …) | return its own small error enum |
//! | outputs | `poll_transmit`, `poll_event`, `poll_timeout` | drained after every input or application call |
//! | getters | `state`, `stats`, … | change nothing |
//!
//! # The loop
//!
//! 1. Give the state machine **one** input or application call, with the current `now`.
//! 2. Call `poll_transmit(now)` until it returns `None`; send each packet.
//! 3. Call `poll_event()` until it returns `None`; act on each event. Acting may be a new call: go to 2.
//! 4. Ask `poll_timeout()`; arrange to call `handle_timeout` at that instant, in place of any earlier arrangement.
//! 5. Wait for a packet, a signal or that instant; go to 1.
//!
//! # Rules
//!
//! * **Time does not go backwards.** Each `now` is at least the one before.
//! * **A late or repeated `handle_timeout` is harmless**: a timer that is not due does nothing.
//! * **A hostile packet is a counted event**, with its reason. It is never an `Err` and never a panic.
//! * **Memory is bounded** by its configuration, not by its peer.
//! * **Same inputs, same outputs**, to the bit: no randomness but the [`RandomStream`](crate::RandomStream) that it was given.
//!
//! # Example
//!
//! Steps 2 to 4 of the loop, for any state machine. `examples/heartbeat.rs` implements one.
//!
//! ```
//! use hopline_core::{Instant, StateMachine};
//!
//! /// Drains the outputs. Returns the packets to send, and the time of the next call to `handle_timeout`.
//! fn drain<M: StateMachine>(machine: &mut M, now: Instant) -> (Vec<M::Transmit>, Option<Instant>) {
//!     let mut packets = Vec::new();
//!     loop {
//!         packets.extend(std::iter::from_fn(|| machine.poll_transmit(now)));
//!         match machine.poll_event() {
//!             Some(_event) => {} // Acting on the event may be a new call, with new packets.
//!             None => return (packets, machine.poll_timeout().map(|(at, _)| at)),
//!         }
//!     }
//! }
//! ```
//!
//! # Buffers
//!
//! A state machine owns what it has accepted, and bounds it by its configuration. Payload is a parameter
//! ([`Payload`](crate::Payload)): bytes behind sockets, lengths in the simulator, so that no layer copies data. A caller that
//! has no room for output stops polling; nothing is lost by that.
//!
//! # Other traits of the contract
//!
//! Traits for one kind of state machine add typed inputs to the same rules: `handle_*` takes an input, `poll_*` returns an
//! output, `poll_timeout` the next wake-up, and every call that depends on time has `now`. Queues and congestion control
//! algorithms are passive: their calls return decisions, and they have no wake-ups. `tools/check-contract` keeps this table
//! true.
//!
//! | trait | implementers |
//! |---|---|
//! | `StateMachine`, `hopline_core` | `queue::NeighborhoodRed`, `radio::Mac`, `routing::Aodv`, `routing::Dsr`, `routing::Olsr`, `quic::Endpoint`, `transport::Endpoint` |
//! | `Router`, `hopline_routing` | `routing::Agent`, `routing::Aodv`, `routing::Dsr`, `routing::Olsr` |
//! | `Pep`, `hopline_proxy` | `middlebox::NotifiedMiddlebox`, `proxy::HopWindow`, `proxy::Mtcp`, `proxy::NackStation`, `proxy::Snoop` |
//! | `Middlebox`, `hopline_sim` | `sim::AckPacingMiddlebox`, `sim::DProxyMiddlebox`, `sim::FastRetransmitMiddlebox`, `sim::FilterMiddlebox`, `sim::LinkMiddlebox`, `sim::Neighborhood`, `sim::SplitMiddlebox` |
//! | `Protocol`, `hopline_streams` | `streams::Tpa`, `streams::Wide` |
//! | `Controller`, `hopline_transport` | `transport::BbrController`, `transport::Box`, `transport::CubicController`, `transport::RateController` |
//!
//! State machines with other inputs keep the same words without a trait: `hopline_sealed::Host` (datagrams and connections),
//! the handshakes and paths of `hopline_secure`, and D-Proxy, the tunnel, ACK pacing, ARQ and handoff in `hopline_proxy`.

use crate::id::LinkId;
use crate::time::Instant;

/// A sans-IO protocol machine; see the [module](self) for the contract.
pub trait StateMachine {
    /// Input packet: a parsed header with its payload.
    type Packet;
    /// Output packet with its destination.
    type Transmit;
    /// Report from a neighbouring layer: a failed link, a lost or found route, a congestion mark.
    type Signal;
    /// Event for its user.
    type Event;
    /// Reason for which it asks to be woken.
    type Timer: Copy + core::fmt::Debug;

    /// Handles a packet that arrived over `link`.
    fn handle_packet(&mut self, now: Instant, link: LinkId, packet: Self::Packet);

    /// Handles the passing of time: fires the timers that are due at `now`, if any.
    fn handle_timeout(&mut self, now: Instant);

    /// Handles a report of a neighbouring layer.
    fn handle_signal(&mut self, now: Instant, signal: Self::Signal);

    /// Returns the next packet to send, if there is one.
    #[must_use]
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Transmit>;

    /// Returns the time of the next call to `handle_timeout`, with its reason. `None`: nothing will happen without another
    /// input.
    #[must_use]
    fn poll_timeout(&self) -> Option<(Instant, Self::Timer)>;

    /// Returns the next event for the user, if there is one.
    #[must_use]
    fn poll_event(&mut self) -> Option<Self::Event>;
}
