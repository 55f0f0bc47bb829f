//! Packet formats: conversion between bytes and values for every format that hopline uses.
//!
//! Protocol machines work on the values defined here and never see bytes. The simulator carries the values unchanged; Linux
//! drivers and pcapng files use `parse` and `emit`.
//!
//! `parse` takes the bytes of one packet and never panics: it returns a [`ParseError`] with the reason. Payloads are cut out
//! of the buffer without copying. `emit` appends to a `Vec<u8>`, so that nested formats are written one after the other:
//! frame, IP header, segment.

pub mod aodv;
pub mod arp;
pub mod arq;
pub mod checksum;
pub mod dot11;
pub mod dproxy;
pub mod dsr;
pub mod ethernet;
pub mod handoff;
pub mod icmp;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod ncn;
pub mod olsr;
pub mod pcapng;
pub mod secure;
pub mod tcp;
pub mod tpa;
pub mod udp;
pub mod wide;

mod emit;
mod error;
#[cfg(test)]
mod testing;

pub use emit::Emit;
pub use error::ParseError;

/// The example of README.md, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
