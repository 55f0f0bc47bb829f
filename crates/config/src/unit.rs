//! Units of keys. The end of a key's name is its unit; tests list the numeric keys without one.

/// Ends of names, each with the unit.
const UNITS: [(&str, &str); 15] = [
    ("s", "s"),
    ("ms", "ms"),
    ("us", "µs"),
    ("m", "m"),
    ("mps", "m/s"),
    ("kbps", "kb/s"),
    ("mbps", "Mb/s"),
    ("hz", "Hz"),
    ("mhz", "MHz"),
    ("w", "W"),
    ("db", "dB"),
    ("dbm", "dBm"),
    ("pct", "%"),
    ("bytes", "bytes"),
    ("packets", "packets"),
];

/// Returns the unit of the key called `name`; `None` if it is a number of things, a ratio or a factor.
///
/// ```
/// use hopline_config::unit;
///
/// assert_eq!(unit::of("max_rto_s"), Some("s"));
/// assert_eq!(unit::of("cwnd_max"), None);
/// ```
#[must_use]
pub fn of(name: &str) -> Option<&'static str> {
    let end = name.rsplit('_').next()?;
    // A name may be a unit, such as `bytes`, but not a symbol: `g` and `h` are weights.
    let is_symbol = end == name && end.len() < 3;
    UNITS.iter().find(|(of_name, _)| *of_name == end && !is_symbol).map(|(_, unit)| *unit)
}
