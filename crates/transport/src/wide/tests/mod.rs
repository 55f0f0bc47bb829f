//! Timed dialogues.

mod beneath;
