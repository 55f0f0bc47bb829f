//! The packet simulator: state machines of every kind, driven through one contract, in virtual time.
//!
//! [`World::new`] builds a network from a [`Spec`]; [`World::run_until`] advances it; [`World::finish`] yields the
//! [`Outcome`]. [`simulate`] does all three. A world is single-threaded and deterministic: equal specification, seed
//! and run number give an equal trajectory, as the outcome's fingerprint shows.

mod accounts;
mod agent;
mod air;
mod alarm;
mod cells;
mod draw;
mod engine;
mod event;
mod fingerprint;
mod flood;
mod flow;
mod forwarding;
mod ids;
mod in_path;
mod kernel;
mod neighborhood;
mod node;
mod notify;
mod outage;
pub mod outcome;
mod outside;
pub mod own;
mod packet;
mod path;
mod proxy;
mod queueing;
pub mod routes;
mod scheduler;
mod seat;
pub mod spec;
mod stack;
pub mod trace;
mod traffic;
mod wired;
mod world;

pub use outcome::Outcome;
pub use outside::{Egress, InjectError};
pub use spec::Spec;
pub use trace::{NoTrace, Tracer};
pub use world::World;

/// Runs `spec` from start to end as run number `run`, without a trace.
///
/// # Panics
/// If a user-defined algorithm fails. A caller with such algorithms drives a [`World`], and asks it for its
/// [failure](World::failure).
#[must_use]
pub fn simulate(spec: &Spec, run: u64) -> Outcome {
    let mut world = World::new(spec, run, NoTrace);
    world.run_until(hopline_core::Instant::ZERO + spec.duration);
    if let Some(failure) = world.failure() {
        panic!("{}", failure.text(spec));
    }
    world.finish().0
}
