//! Keys of middleboxes, which scenarios and files of daemons share.

mod handoff;
mod links;
mod neighborhood;
mod proxies;

pub use handoff::{cells, mobile};
pub use links::{ARQ, ArqKind, arq};
pub use neighborhood::{NEIGHBORHOOD_RED, neighborhood_red};
pub use proxies::{SnoopPreset, proxy};

/// Longest time that a key takes, in seconds: about 116 days.
pub const MAX_S: f64 = 1e7;
