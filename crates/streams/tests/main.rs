//! Sockets on the loopback interface. Tests that need more than that are in `real.rs`.

mod both;
mod fallback;
mod streams;
mod tpa;
mod wide;
