//! The contract that every protocol machine keeps.
//!
//! A transport endpoint, a proxy, a routing agent, a queue controller and a MAC are all *machines*: plain values
//! driven through `&mut self`. A machine opens no socket, reads no clock, spawns no thread, holds no lock and makes no
//! callbacks. The simulator and the Linux daemons drive the same machine through the same methods.
//!
//! # Method families
//!
//! | family | methods | rule |
//! |---|---|---|
//! | inputs | `handle_packet`, `handle_timeout`, `handle_signal` | never fail, never panic, whatever the peer sends |
//! | application calls | the machine's own (`connect`, `send`, `close`, …) | return the machine's own small error enum |
//! | outputs | `poll_transmit`, `poll_event`, `poll_timeout` | drained after every input or application call |
//! | getters | `state`, `stats`, … | change nothing |
//!
//! # The loop
//!
//! 1. Give the machine **one** input or application call, with the current `now`.
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
//! * **Memory is bounded** by the machine's configuration, not by its peer.
//! * **Same inputs, same outputs**, to the bit: no randomness but the [`RandomStream`](crate::RandomStream) that it was given.
//!
//! # Example
//!
//! Steps 2 to 4 of the loop, for any machine. `examples/heartbeat.rs` implements one.
//!
//! ```
//! use hopline_core::{Instant, Machine};
//!
//! /// Drains the outputs. Returns the packets to send, and the time of the next call to `handle_timeout`.
//! fn drain<M: Machine>(machine: &mut M, now: Instant) -> (Vec<M::Transmit>, Option<Instant>) {
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
    /// Event for the user of the machine.
    type Event;
    /// Reason for which the machine asks to be woken.
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
