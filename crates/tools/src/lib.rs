//! Tools over streams and emulated links, as the hopline command runs them: [file transfer](transfer), [throughput
//! measurement](mod@bench), and [emulated links](link) between network namespaces.
//!
//! The crate is empty on systems other than Linux.

#![cfg(target_os = "linux")]

pub mod bench;
pub mod link;
mod printable;
pub mod transfer;
