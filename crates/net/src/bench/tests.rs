//! Peers that do what they should not.
