//! Timed, scripted tests of one machine and of small networks.

mod dialogue;
mod discovery;
mod errors;
mod hello;
mod in_step;
mod loops;
mod network;
mod ns2;
mod one_way;
mod repair;
mod replies;
mod requests;
