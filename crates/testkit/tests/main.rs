//! Transports in virtual time, through everything that a reliable transport must stand.

mod virtual_tcp;
mod virtual_tpa;
mod virtual_wide;
