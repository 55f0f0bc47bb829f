//! Timed dialogues.

mod acknowledging;
mod beneath;
pub(super) mod bottleneck;
mod controllers;
mod memory;
mod opening;
mod over_link;
mod trains;
pub(super) mod trajectories;
