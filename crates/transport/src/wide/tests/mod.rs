//! Timed dialogues.

mod beneath;
mod opening;
mod trains;
