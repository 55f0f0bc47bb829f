//! QUIC over emulated links and in the simulator, in virtual time.

mod controllers;
mod dialogues;
mod hostile;
mod s2n;
mod simulated;
mod support;
mod transfers;
