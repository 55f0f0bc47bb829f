//! The physical layer: how far a signal carries, what of it is received, and what is corrupted.

pub mod errors;
pub mod grid;
pub mod propagation;
