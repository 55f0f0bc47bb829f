//! Timed dialogues with one machine and with small networks of them.

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
