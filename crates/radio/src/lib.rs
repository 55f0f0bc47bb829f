//! The radio: propagation, reception, errors, the 802.11 MAC and mobility.

pub mod mobility;
pub mod phy;
