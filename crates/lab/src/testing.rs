//! Helpers shared by the tests of this crate.

use crate::run::Observer;
use hopline_config::source::Source;
use hopline_core::Duration;
use hopline_scenario::Scenario;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Scenario with two hops; long enough for losses to differ between runs.
pub(crate) const TWO_HOPS: &str = "\
name = \"two hops\"
duration_s = 5
runs = 4
[radio]
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[[flow]]
src = \"n0\"
dst = \"n2\"
";

pub(crate) fn source(name: &str, text: &str) -> Arc<Source> {
    Arc::new(Source { name: name.into(), text: text.into() })
}

pub(crate) fn scenario(text: &str) -> Scenario {
    Scenario::parse(source("test.toml", text), PathBuf::new(), &[]).unwrap()
}

/// Observer that counts simulated virtual time, and interrupts beyond a limit.
pub(crate) struct InterruptAfter {
    pub(crate) nanos: AtomicU64,
    pub(crate) limit: u64,
}

impl InterruptAfter {
    pub(crate) fn after_s(limit: u64) -> Self {
        Self { nanos: AtomicU64::new(0), limit: limit.saturating_mul(1_000_000_000) }
    }
}

impl Observer for InterruptAfter {
    fn advanced(&self, by: Duration, _events: u64) {
        self.nanos.fetch_add(by.as_nanos(), Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        self.nanos.load(Ordering::Relaxed) >= self.limit
    }
}
