//! The radio: propagation, reception, errors, the 802.11 MAC and mobility.

pub mod mac;
pub mod mobility;
pub mod phy;
pub mod rate;

pub use rate::{Preamble, Rate};
