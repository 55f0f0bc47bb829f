//! A second opinion on captures: what tshark, the decoder of Wireshark, makes of them.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

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

/// What tests that ask it need.
pub const NEEDED: crate::Need = crate::Need::Program("tshark");

/// Has tshark decode every packet of `capture` and gives what it found, in order.
///
/// # Panics
/// If tshark cannot be run, fails, finds a packet malformed, or finds a checksum or frame check sequence that is not right.
pub fn assert_well_formed(capture: &Path) -> Vec<Decoded> {
    let lines = fields(capture, &FIELDS);
    lines.iter().enumerate().map(|(index, line)| judged(index + 1, line)).collect()
}

/// What tshark prints for `names`, as [`Reading::fields`] has it.
///
/// # Panics
/// If tshark cannot be run, or fails.
#[must_use]
pub fn fields(capture: &Path, names: &[&str]) -> Vec<Vec<String>> {
    Reading::of(capture).fields(names)
}

/// A capture, and how tshark is to read it.
#[derive(Clone, Debug)]
pub struct Reading<'a> {
    capture: &'a Path,
    arguments: Vec<OsString>,
}

impl<'a> Reading<'a> {
    /// Reads `capture` as stock tshark does, with the checks done that are off by default.
    #[must_use]
    pub fn of(capture: &'a Path) -> Self {
        let preferences = PREFERENCES.iter().flat_map(|&preference| ["-o".into(), preference.into()]);
        Self { capture, arguments: preferences.collect() }
    }

    /// With a script in Lua, such as a dissector. Where tshark runs as root, it runs scripts if
    /// `run_user_scripts_when_superuser` is true in its `init.lua`, as it is unless a distribution changed it.
    #[must_use]
    pub fn with_script(self, script: &Path) -> Self {
        let mut value = OsString::from("lua_script:");
        value.push(script);
        self.with("-X", value)
    }

    /// With a preference, as in `tpa.udp_port:9000`.
    #[must_use]
    pub fn with_preference(self, preference: &str) -> Self {
        self.with("-o", preference)
    }

    /// With a protocol chosen by hand, as in `udp.port==9000,tpa`.
    #[must_use]
    pub fn decoding_as(self, rule: &str) -> Self {
        self.with("-d", rule)
    }

    fn with(mut self, option: &str, value: impl Into<OsString>) -> Self {
        self.arguments.extend([option.into(), value.into()]);
        self
    }

    /// What tshark prints for `names` (see `tshark -G fields`), a row a packet. Of a field that occurs in a packet
    /// several times, all values separated by commas.
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

/// The packet with this 1-based number, if nothing is wrong with it.
fn judged(number: usize, values: &[String]) -> Decoded {
    assert_eq!(values.len(), FIELDS.len(), "packet {number}: {values:?}");
    let protocols = &values[0];
    for (name, value) in FIELDS.iter().zip(values).skip(2) {
        // A packet that quotes another has a value for each.
        let good = value.split(',').all(|value| value.is_empty() || value == GOOD);
        assert!(good, "packet {number} ({protocols}): {name} is {value}");
    }
    assert!(values[1].is_empty(), "packet {number} ({protocols}) is malformed");
    Decoded { protocols: protocols.clone() }
}
