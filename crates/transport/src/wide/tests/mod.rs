//! Timed dialogues.

mod acknowledging;
mod beneath;
mod opening;
mod over_link;
mod trains;
