//! Timed dialogues.
