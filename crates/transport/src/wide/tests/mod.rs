//! Timed dialogues.

mod acknowledging;
mod beneath;
mod memory;
mod opening;
mod over_link;
mod trains;
