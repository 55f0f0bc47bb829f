//! Timed dialogues, one file for each concern.

mod acks;
mod blocks;
mod close;
mod config;
mod flow;
mod freeze;
mod hostile;
mod life;
mod listener;
mod opening;
mod pacing;
mod rounds;
mod rtt;
mod script;
mod trouble;
