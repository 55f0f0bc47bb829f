//! Timed dialogues.

mod acknowledging;
pub(super) mod bottleneck;
mod bursts;
mod controllers;
mod lower_handshake;
mod memory;
mod opening;
mod over_link;
pub(super) mod trajectories;
