//! Timed, scripted tests of one machine and of small networks.

mod cached_replies;
mod discovery;
mod end_to_end;
mod forwarding;
mod harness;
mod jitter;
mod maintenance;
mod network;
mod no_cache;
mod ns2;
mod promiscuous;
mod requests;
