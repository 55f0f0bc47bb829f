//! Linux kernels at simulated nodes, in virtual time.
//!
//! [`emulation::run`] starts a user-mode Linux kernel for each node of a network. The simulated
//! [`World`](hopline_sim::World) is their scheduler: a kernel runs only when nothing else is due before, and a frame
//! enters the network at the virtual time at which the kernel sends it. Nothing depends on the real clock, so that equal
//! inputs give equal results. It needs no privileges.
//!
//! | module | contents |
//! |---|---|
//! | [`time_travel`], [`clock`], `shared_time` | protocol between the scheduler and a kernel |
//! | `boot` | boot of all kernels at the same time |
//! | [`agenda`] | order of the hosts and of the network |
//! | [`vhost`] | network device of a kernel |
//! | [`kernel`] | image of the kernel, and its command line |
//! | [`guest`] | first process inside the kernel, which runs the programs of a node |
//! | [`emulation`], [`report`] | a run as a whole, and its results |
//!
//! The crate is empty on systems other than Linux.

#![cfg(target_os = "linux")]

pub mod agenda;
mod boot;
mod channel;
pub mod clock;
pub mod emulation;
mod error;
pub mod guest;
mod host;
pub mod kernel;
pub mod report;
mod shared_time;
pub mod time_travel;
pub mod vhost;

pub use error::Error;
