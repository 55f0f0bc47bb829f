//! Timed dialogues with one machine and with small networks of them.

mod convergence;
mod dialogue;
mod flooding;
mod hostile;
mod hysteresis;
mod network;
mod sensing;
mod telling;
