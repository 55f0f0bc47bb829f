//! [TPA-wide](hopline_net::wide), [TPA as published](hopline_net::tpa), and the latter [with TCP](hopline_net::fallback) for C: sockets as
//! BSD has them. Their functions begin with `tpa_`.
//!
//! Installed it is `libhopline` with the header `hopline.h`, which is made of this crate; `docs/c.md` says how to use it. It adds no
//! protocol: connections are those of `hopline_net`, keys are those of `hopline send` and `recv`.
//!
//! What callers hand over is looked at before it is used: a wrong handle, pointer or length is an error, and so is a call in the wrong
//! state. A panic ends at the boundary, as the error `EIO`.
//!
//! | file | idea |
//! |---|---|
//! | `abi` | what C sees: constants, structures |
//! | `ffi` | the functions, and every `unsafe`; `ffi/memory`: memory of callers |
//! | `table` | handles |
//! | `socket` | a socket: its state, and calls |
//! | `transport` | the protocols below a socket; `tcp`: a connection of TCP |
//! | `report` | what `tpa_info` tells |
//! | `options` | what is set for it |
//! | `identity` | who we are, and whom we believe |
//! | `key_files` | files of keys: who may read and write them |
//! | `readiness` | waiting for many sockets |
//! | `clock` | real time |
//! | `error` | `errno`, and words for people |

#![cfg(target_os = "linux")]

pub mod abi;
mod clock;
mod error;
pub mod ffi;
mod identity;
mod key_files;
mod options;
mod readiness;
mod report;
mod socket;
mod table;
mod tcp;
mod transport;
