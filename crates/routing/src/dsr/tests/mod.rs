//! Timed dialogues with one machine and with small networks of them.

mod cached_replies;
mod dialogue;
mod discovery;
mod forwarding;
mod maintenance;
mod network;
mod ns2;
mod requests;
mod tap;
mod uncached;
mod whole;
