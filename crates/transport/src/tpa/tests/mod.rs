//! Timed dialogues, one file for each concern.

mod acks;
mod blocks;
mod close;
mod config;
mod congestion;
mod flow;
mod freeze;
mod hostile;
mod keep_alive;
mod listener;
mod opening;
mod pacing;
mod rounds;
mod rtt_samples;
mod script;
