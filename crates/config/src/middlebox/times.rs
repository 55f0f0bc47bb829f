//! Times that keys give in seconds.

use crate::schema::Section;
use hopline_core::Duration;

pub(super) fn seconds(section: &Section<'_>, key: &str) -> Option<Duration> {
    section.number(key).map(Duration::from_secs_f64)
}
