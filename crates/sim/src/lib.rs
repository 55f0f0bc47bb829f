//! The packet simulator: state machines of every kind, driven through one contract, in virtual time.
//!
//! [`World::new`] builds a network from a [`Spec`]; [`World::run_until`] advances it; [`World::finish`] yields the
//! [`Outcome`]. [`simulate`] does all three. A world is single-threaded and deterministic: equal specification, seed
//! and run number give an equal trajectory, as the outcome's fingerprint shows.

mod agent;
mod air;
mod alarm;
mod cells;
pub mod custom;
mod distribution;
mod drops;
mod engine;
mod ethernet;
mod event;
mod external;
mod fingerprint;
mod flow;
mod forwarding;
mod ids;
mod kernel;
mod middlebox;
mod middlebox_actions;
mod middlebox_slot;
mod neighborhood;
mod node;
mod notice_flood;
mod outage;
pub mod outcome;
mod packet;
mod packet_accounting;
mod proxy;
mod queue_access;
mod route_notification;
pub mod routes;
mod scheduler;
pub mod spec;
mod stack;
pub mod trace;
mod traffic;
mod wired;
mod world;

pub use ethernet::{EgressFrame, FrameError, HostInterface, MAX_FRAME_LEN, Medium, TapCounts};
pub use external::{Egress, InjectError};
pub use outcome::Outcome;
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
        panic!("{}", failure.describe(spec));
    }
    world.finish().0
}
