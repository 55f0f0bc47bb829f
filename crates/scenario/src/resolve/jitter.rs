//! Delays before broadcasts that nodes originate, where no key says one (RFC 5148 §5.2).

use super::super::schema::Section;
use super::seconds;
use hopline_core::Duration;
use hopline_radio::mac::config::FirstAccess;

/// Default of ns-3.
const DEFAULT_THRESHOLD: Duration = Duration::from_millis(10);

/// Returns the jitter that `key` of `section` says, or by default that of the preset.
///
/// Presets of ns-2 have none, as its MAC draws a back-off before each frame. Over a MAC that sends at once
/// where the medium is idle, broadcasts of neighbours that act at the same instant would collide at each
/// attempt: there the default is the usual one.
pub(super) fn of(
    section: &Section<'_>,
    key: &str,
    of_preset: Duration,
    first_access: Option<FirstAccess>,
) -> Duration {
    let sends_at_once = first_access.is_some_and(|access| access != FirstAccess::AlwaysBackoff);
    let usual = if of_preset.is_zero() && sends_at_once { DEFAULT_THRESHOLD } else { of_preset };
    seconds(section, key).unwrap_or(usual)
}
