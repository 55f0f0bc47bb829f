//! A uniform cell grid: who is within a distance of a point.
