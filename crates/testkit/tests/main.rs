//! Acceptance tests of transports in virtual time.

mod virtual_tcp;
mod virtual_tpa;
mod virtual_wide;
