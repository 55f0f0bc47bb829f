//! Durations and instants that keys give in seconds.

use crate::field::Field;
use crate::schema::Section;
use hopline_core::{Duration, Instant};

pub(super) fn seconds_of(section: &Section<'_>, key: Field<f64>) -> Duration {
    Duration::from_secs_f64(section.get(key))
}

pub(super) fn instant_of(section: &Section<'_>, key: Field<f64>) -> Instant {
    Instant::ZERO + seconds_of(section, key)
}

pub(super) fn seconds(section: &Section<'_>, key: &str) -> Option<Duration> {
    section.number(key).map(Duration::from_secs_f64)
}

pub(super) fn instant(section: &Section<'_>, key: &str) -> Option<Instant> {
    seconds(section, key).map(|d| Instant::ZERO + d)
}
