//! What the fuzz targets do with their input, as plain functions: libFuzzer calls them under `targets/`, and
//! `tests/replay.rs` calls them on stable with the committed seeds and with seeded random inputs.
#![forbid(unsafe_code)]

pub mod wire;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target, of its file under `targets/` and of its folder under `seeds/`.
    pub name: &'static str,
    /// Takes any bytes; panics if a promise is broken.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "ipv4", run: wire::ipv4 },
    Target { name: "tcp", run: wire::tcp },
    Target { name: "udp", run: wire::udp },
    Target { name: "dot11", run: wire::dot11 },
    Target { name: "aodv", run: wire::aodv },
];
