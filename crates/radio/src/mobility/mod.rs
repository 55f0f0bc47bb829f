//! Where nodes are, and how they move.
