//! Timed dialogues, one file for each concern.

mod acking;
mod close;
mod config;
mod congestion;
mod cubic;
mod door;
mod dsack;
mod ecn;
mod hostile;
mod newreno;
mod open;
mod pacing;
mod persist;
mod prr;
mod rack;
mod reno;
mod reset;
mod rto;
mod sack;
mod script;
mod sending;
mod timestamps;
mod tlp;
mod transmissions;
mod undo;
mod window;
