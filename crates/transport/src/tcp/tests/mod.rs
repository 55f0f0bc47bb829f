//! Timed dialogues, one file for each concern.

mod acking;
mod close;
mod config;
mod congestion;
mod hostile;
mod newreno;
mod open;
mod pacing;
mod persist;
mod reno;
mod reset;
mod rto;
mod sack;
mod script;
mod sending;
mod timestamps;
mod undo;
mod window;
