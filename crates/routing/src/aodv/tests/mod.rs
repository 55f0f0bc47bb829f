//! Timed, scripted tests of one machine and of small networks.

mod discovery;
mod errors;
mod harness;
mod hello;
mod jitter;
mod loops;
mod network;
mod ns2;
mod repair;
mod replies;
mod requests;
mod unidirectional;
