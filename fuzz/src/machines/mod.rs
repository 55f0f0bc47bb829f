//! Machines, driven by any bytes.
//!
//! An input is a script: a few bytes choose the next operation, the following bytes are its arguments.

mod announce;
mod aodv;
mod arq;
mod dproxy;
mod dsr;
mod handoff;
mod host_stack;
mod mac;
mod neighborhood_red;
mod olsr;
mod proxies;
mod receiver;
mod tcp;
mod tpa;
mod tpa_listener;
mod tunnel;

pub use announce::announce;
pub use aodv::aodv_machine;
pub use arq::arq;
pub use dproxy::{dproxy_machine, dproxy_opaque};
pub use dsr::dsr_machine;
pub use handoff::handoff_machine;
pub use host_stack::host_stack;
pub use mac::mac;
pub use neighborhood_red::neighborhood_red_machine;
pub use olsr::olsr_machine;
pub use proxies::{mtcp, nack, snoop, split};
pub use receiver::receiver;
pub use tcp::tcp_endpoint;
pub use tpa::tpa_endpoint;
pub use tpa_listener::tpa_listener;
pub use tunnel::tunnel;

use hopline_core::{Duration, Instant, NodeId};
use std::net::Ipv4Addr;

/// Bytes as a sequence of choices; zeros without end once they are used up.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    /// Returns whether the bytes are used up.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Returns the next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Returns the next four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Returns one of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// Returns mostly the address of one of the first `nodes` nodes; sometimes an address of no host.
    fn address(&mut self, nodes: u8) -> Ipv4Addr {
        match self.byte() {
            255 => Ipv4Addr::BROADCAST,
            254 => Ipv4Addr::UNSPECIFIED,
            253 => Ipv4Addr::new(224, 0, 0, 1),
            byte => NodeId(u32::from(byte % nodes)).ipv4(),
        }
    }
}

/// Most timers at one instant before the machine is considered stuck.
const MOST_WAKES_AT_ONCE: u32 = 100;

/// Machine with a clock of its own.
pub trait Life {
    /// Returns the clock.
    fn now(&mut self) -> &mut Instant;

    /// Returns the time of the next timer.
    fn due(&self) -> Option<Instant>;

    /// Processes the timers that are due.
    fn wake(&mut self);

    /// Lets time pass, and calls the machine at each timer.
    ///
    /// # Panics
    /// If it sets timers repeatedly without progress in time.
    fn pass(&mut self, time: Duration) {
        let end = *self.now() + time;
        let mut wakes = 0;
        while let Some(due) = self.due().filter(|due| *due <= end) {
            let now = self.now();
            wakes = if due > *now { 0 } else { wakes + 1 };
            assert!(wakes < MOST_WAKES_AT_ONCE, "time stands still at {due}");
            *now = due.max(*now);
            self.wake();
        }
        *self.now() = end;
    }
}
