//! [TPA-wide](hopline_streams::wide), [TPA as published](hopline_streams::tpa), and the latter [with TCP](hopline_streams::fallback) for
//! C, as BSD sockets. The functions begin with `tpa_`.
//!
//! The installed library is `libhopline`, with the header `hopline.h`, which is generated from this crate. `docs/c.md`
//! describes its use. The crate adds no protocol: connections are those of `hopline_streams`, keys are those of `hopline send`
//! and `recv`.
//!
//! All arguments are checked before use: a wrong handle, pointer or length is an error, and so is a call in the wrong state.
//! A panic is caught at the boundary and becomes the error `EIO`.
//!
//! | file | content |
//! |---|---|
//! | `abi` | constants and structures of the C interface |
//! | `ffi` | functions, and every `unsafe`; `ffi/memory`: memory of the caller; `ffi/signals`: signal mask |
//! | `table` | handles |
//! | `socket` | socket: its state and calls |
//! | `protocol` | protocol of a socket, and its parameters |
//! | `transport` | protocols below a socket; `tcp`: TCP connection |
//! | `report` | contents of `tpa_info` |
//! | `options` | socket options |
//! | `identity` | own keys, and authentication of peers |
//! | `key_files` | key files: access rights, reading and writing |
//! | `readiness` | waiting for many sockets |
//! | `clock` | real time |
//! | `error` | `errno`, and messages for people |

#![cfg(target_os = "linux")]

pub mod abi;
mod clock;
mod error;
pub mod ffi;
mod identity;
mod key_files;
mod options;
mod protocol;
mod readiness;
mod report;
mod socket;
mod table;
mod tcp;
mod transport;
