//! A second opinion on captures: what tshark, the decoder of Wireshark, makes of them.

use std::path::Path;
use std::process::{Command, Stdio};

/// What tshark is asked about every packet, in this order.
const FIELDS: [&str; 6] = [
    "frame.protocols",
    "_ws.malformed",
    "wlan.fcs.status",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
];
/// Have the checks done that are off by default; frames of interface type 105 end in a frame check sequence. Judge every
/// packet by itself: a capture holds a segment once for every node that sent or heard it.
const PREFERENCES: [&str; 7] = [
    "wlan.check_fcs:TRUE",
    "wlan.check_checksum:TRUE",
    "ip.check_checksum:TRUE",
    "tcp.check_checksum:TRUE",
    "udp.check_checksum:TRUE",
    "tcp.analyze_sequence_numbers:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
];
/// How tshark prints the status of a checksum that is right.
const GOOD: &str = "1";

/// A packet as tshark decoded it, without complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The protocols from the outside in, as in `wlan:llc:ip:tcp`.
    pub protocols: String,
}

/// Whether `tshark` can be run.
#[must_use]
pub fn installed() -> bool {
    let quiet = Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Has tshark decode every packet of `capture` and gives what it found, in order. `None`, said on stderr, where tshark
/// is not installed.
///
/// # Panics
/// If tshark fails, finds a packet malformed, or finds a checksum or frame check sequence that is not right.
#[must_use]
pub fn assert_well_formed(capture: &Path) -> Option<Vec<Decoded>> {
    if !installed() {
        say_skipped(capture);
        return None;
    }
    let lines = fields(capture, &FIELDS);
    let decoded = lines.iter().enumerate().map(|(index, line)| judged(index + 1, line));
    Some(decoded.collect())
}

/// What tshark prints for `names` (see `tshark -G fields`), a row a packet. Of a field that occurs in a packet several
/// times, all values separated by commas.
///
/// # Panics
/// If tshark cannot be run, or fails.
#[must_use]
pub fn fields(capture: &Path, names: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    // The user's own Wireshark profile must not matter.
    command.env("WIRESHARK_CONFIG_DIR", "/nonexistent").args(["-n", "-T", "fields", "-r"]).arg(capture);
    command.args(PREFERENCES.iter().flat_map(|preference| ["-o", preference]));
    command.args(names.iter().flat_map(|name| ["-e", name]));
    let output = command.output().expect("tshark runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark failed on {}: {errors}", capture.display());
    let rows = String::from_utf8_lossy(&output.stdout);
    rows.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect()
}

/// The packet with this 1-based number, if nothing is wrong with it.
fn judged(number: usize, values: &[String]) -> Decoded {
    assert_eq!(values.len(), FIELDS.len(), "packet {number}: {values:?}");
    let protocols = &values[0];
    for (name, value) in FIELDS.iter().zip(values).skip(2) {
        assert!(value.is_empty() || value == GOOD, "packet {number} ({protocols}): {name} is {value}");
    }
    assert!(values[1].is_empty(), "packet {number} ({protocols}) is malformed");
    Decoded { protocols: protocols.clone() }
}

#[allow(clippy::print_stderr, reason = "a test that did not look must say so")]
fn say_skipped(capture: &Path) {
    eprintln!("SKIPPED: tshark is not installed; nobody looked at {}", capture.display());
}
