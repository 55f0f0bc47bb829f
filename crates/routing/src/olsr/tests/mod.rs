//! Timed, scripted tests of one machine and of small networks.

mod convergence;
mod dialogue;
mod flooding;
mod hostile;
mod hysteresis;
mod network;
mod sensing;
mod telling;
