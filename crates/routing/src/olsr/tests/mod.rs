//! Timed, scripted tests of one machine and of small networks.

mod convergence;
mod flooding;
mod harness;
mod hostile;
mod hysteresis;
mod link_sensing;
mod network;
mod topology_control;
