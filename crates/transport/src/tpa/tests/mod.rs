//! Timed dialogues, one file for each concern.

mod acks;
mod blocks;
mod close;
mod flow;
mod freeze;
mod hostile;
mod life;
mod listener;
mod opening;
mod rounds;
mod rtt;
mod script;
mod trouble;
