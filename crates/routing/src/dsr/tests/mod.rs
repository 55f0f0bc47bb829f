//! Timed, scripted tests of one machine and of small networks.

mod cached_replies;
mod dialogue;
mod discovery;
mod forwarding;
mod in_step;
mod maintenance;
mod network;
mod ns2;
mod requests;
mod tap;
mod uncached;
mod whole;
