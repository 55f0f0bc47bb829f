//! Decoding of captures by tshark, the command-line decoder of Wireshark, as an independent check.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Fields that tshark prints of every packet, in this order.
const FIELDS: [&str; 6] = [
    "frame.protocols",
    "_ws.malformed",
    "wlan.fcs.status",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
];
/// Enables the checks that are off by default; frames of interface type 105 end in a frame check sequence. Each packet is
/// judged by itself: a capture holds a segment once for every node that sent or heard it.
const PREFERENCES: [&str; 7] = [
    "wlan.check_fcs:TRUE",
    "wlan.check_checksum:TRUE",
    "ip.check_checksum:TRUE",
    "tcp.check_checksum:TRUE",
    "udp.check_checksum:TRUE",
    "tcp.analyze_sequence_numbers:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
];
/// Status that tshark prints for a correct checksum.
const VALID: &str = "1";

/// Packet that tshark decoded without complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Protocols from the outside in, as in `wlan:llc:ip:tcp`.
    pub protocols: String,
}

/// Requirement of tests that use tshark.
pub const TSHARK: crate::Need = crate::Need::Program("tshark");

/// Decodes every packet of `capture` with tshark and returns the results, in order.
///
/// # Panics
/// If tshark cannot be run, fails, finds a packet malformed, or finds a wrong checksum or frame check sequence.
pub fn assert_well_formed(capture: &Path) -> Vec<Decoded> {
    let lines = fields(capture, &FIELDS);
    lines.iter().enumerate().map(|(index, line)| check_packet(index + 1, line)).collect()
}

/// Returns the values of the fields `names`, as [`Capture::fields`].
///
/// # Panics
/// If tshark cannot be run, or fails.
#[must_use]
pub fn fields(capture: &Path, names: &[&str]) -> Vec<Vec<String>> {
    Capture::of(capture).fields(names)
}

/// Capture, with the options of tshark to read it.
#[derive(Clone, Debug)]
pub struct Capture<'a> {
    capture: &'a Path,
    arguments: Vec<OsString>,
}

impl<'a> Capture<'a> {
    /// Reads `capture` as stock tshark does, with the checks done that are off by default.
    #[must_use]
    pub fn of(capture: &'a Path) -> Self {
        let preferences = PREFERENCES.iter().flat_map(|&preference| ["-o".into(), preference.into()]);
        Self { capture, arguments: preferences.collect() }
    }

    /// Adds a script in Lua, such as a dissector. If tshark runs as root, it runs scripts only if
    /// `run_user_scripts_when_superuser` is true in its `init.lua`, which is the default.
    #[must_use]
    pub fn with_script(self, script: &Path) -> Self {
        let mut value = OsString::from("lua_script:");
        value.push(script);
        self.with("-X", value)
    }

    /// Adds a preference, as in `tpa.udp_port:9000`.
    #[must_use]
    pub fn with_preference(self, preference: &str) -> Self {
        self.with("-o", preference)
    }

    /// Adds a rule that selects a protocol, as in `udp.port==9000,tpa`.
    #[must_use]
    pub fn decoding_as(self, rule: &str) -> Self {
        self.with("-d", rule)
    }

    fn with(mut self, option: &str, value: impl Into<OsString>) -> Self {
        self.arguments.extend([option.into(), value.into()]);
        self
    }

    /// Returns the values of the fields `names` (see `tshark -G fields`), one row for each packet. Several values of a field
    /// in a packet are separated by commas.
    ///
    /// # Panics
    /// If tshark cannot be run, or fails, or has something to say about a script.
    #[must_use]
    pub fn fields(&self, names: &[&str]) -> Vec<Vec<String>> {
        let mut command = Command::new("tshark");
        // The user's own Wireshark profile must not matter.
        command.env("WIRESHARK_CONFIG_DIR", "/nonexistent").args(&self.arguments);
        command.args(["-n", "-T", "fields", "-r"]).arg(self.capture);
        command.args(names.iter().flat_map(|name| ["-e", name]));
        let output = command.output().expect("tshark runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        let well = output.status.success() && !errors.contains("Lua");
        assert!(well, "tshark failed on {}: {errors}", self.capture.display());
        let rows = String::from_utf8_lossy(&output.stdout);
        rows.lines().map(|row| row.split('\t').map(str::to_owned).collect()).collect()
    }
}

/// Returns the packet with this 1-based number, if nothing is wrong with it.
fn check_packet(number: usize, values: &[String]) -> Decoded {
    assert_eq!(values.len(), FIELDS.len(), "packet {number}: {values:?}");
    let protocols = &values[0];
    for (name, value) in FIELDS.iter().zip(values).skip(2) {
        // A packet that quotes another has a value for each.
        let good = value.split(',').all(|value| value.is_empty() || value == VALID);
        assert!(good, "packet {number} ({protocols}): {name} is {value}");
    }
    assert!(values[1].is_empty(), "packet {number} ({protocols}) is malformed");
    Decoded { protocols: protocols.clone() }
}
