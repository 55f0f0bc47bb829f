//! Timed dialogues.

mod beneath;
mod trains;
