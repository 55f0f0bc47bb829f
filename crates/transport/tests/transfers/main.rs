//! Two endpoints over a bad link: every byte arrives once and in order, both ways, and both sides come to rest.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dead_ack_path;
mod door;
mod feedback;
mod state_machine;
mod tcp;
mod tpa;
mod wide;

use hopline_core::Duration;
use hopline_testkit::Emulation;
use proptest::prelude::*;

/// Anything from perfect to hardly usable.
fn any_link() -> impl Strategy<Value = Emulation> {
    let rate = prop_oneof![Just(None), (50_000u64..10_000_000).prop_map(Some)];
    (0u64..200, rate, 0.0..0.25f64, 0.0..0.3f64, 0.0..0.1f64, 0.0..0.1f64, 0u64..300).prop_map(
        |(latency, rate, loss, reorder, duplicate, corrupt, extra)| {
            Emulation::default()
                .with_latency(Duration::from_millis(latency))
                .with_rate(rate)
                .with_loss(loss)
                .with_reorder(reorder)
                .with_duplicate(duplicate)
                .with_corrupt(corrupt)
                .with_extra_delay(Duration::from_millis(extra))
        },
    )
}
