//! Transports over UDP for programs that send data over lossy paths: [TPA](tpa), [TPA-wide](wide), and TPA
//! [with TCP as a fallback](fallback).
//!
//! Programs start with [`wide`]: a listener and a stream, encrypted, with keys of [`key_files`]. The crate is empty on
//! systems other than Linux.

#![cfg(target_os = "linux")]

pub mod admission;
pub mod fallback;
pub mod key_files;
pub mod streams;
pub mod tpa;
pub mod wide;

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
