//! Received power as a function of distance.
