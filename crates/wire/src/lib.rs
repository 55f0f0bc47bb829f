//! Bytes to values and back, for every format hopline speaks.
//!
//! Machines work on the values defined here and never see bytes; the simulator carries the values as they are;
//! Linux drivers and pcapng files use `parse` and `emit`.

pub mod aodv;
pub mod dot11;
pub mod ipv4;
pub mod tcp;
pub mod udp;
