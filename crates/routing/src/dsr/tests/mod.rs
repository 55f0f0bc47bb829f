//! Timed dialogues with one machine and with small networks of them.

mod dialogue;
mod discovery;
mod network;
mod uncached;
mod whole;
