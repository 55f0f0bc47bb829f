//! Limits that several tables share.

/// Farthest coordinate: a thousand kilometres from the origin.
pub(super) const MAX_COORDINATE_M: f64 = 1e6;

/// Whole numbers that TOML can write.
pub(super) const MAX_INTEGER: u64 = i64::MAX as u64;

/// Most nodes of a network, however they are placed; bounds memory. A node takes 3 to 4 KB before it sends
/// anything (measured: 200,000 nodes of a grid in 630 to 700 MB), so that these take some 3.5 GB. As many as
/// a movement file may have.
pub const MAX_NODES: u64 = 1 << 20;
