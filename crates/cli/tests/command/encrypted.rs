//! `hopline send` and `hopline recv` with keys.

use crate::support::{command, hopline};
use crate::transfer::{Receiver, pattern};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Two users, each with settings of its own, and a file.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(world.at("file"), pattern(500_000)).unwrap();
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// With a key of its own, which it makes if it has none.
    fn receiver(&self, more: &[&str]) -> Receiver {
        Receiver::speaking(
            "tpa-wide",
            &self.at("there"),
            &self.at("in"),
            &[&["--port", "0", "--once"], more].concat(),
        )
    }

    fn send(&self, receiver: &Receiver, more: &[&str]) -> Output {
        let mut send = command();
        send.env("XDG_CONFIG_HOME", self.at("here")).arg("send").arg(self.at("file")).arg(receiver.peer());
        send.args(["--patience", "5"]).args(more).output().unwrap()
    }

    /// The fingerprint of the receiver's key.
    fn fingerprint(&self) -> String {
        let shown = hopline(["key", "show", &self.text("there/hopline/key")]);
        let text = String::from_utf8(shown.stdout).unwrap();
        text.split("fingerprint ").nth(1).unwrap().trim().to_owned()
    }

    fn arrived(&self) -> bool {
        fs::read(self.at("in/file")).is_ok_and(|got| got == pattern(500_000))
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn who_is_not_known_gets_nothing_until_its_fingerprint_is_trusted() {
    let world = World::new();
    let receiver = world.receiver(&[]);
    let refused = world.send(&receiver, &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    let fingerprint = world.fingerprint();
    assert!(said(&refused).contains(&fingerprint), "{}", said(&refused));
    let other = world.send(&receiver, &["--trust", "0000-0000-0000-0000-0000-0000-0000-0000"]);
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    assert!(!world.arrived());
    let sent = world.send(&receiver, &["--trust", &fingerprint]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    assert_eq!(receiver.end().0, Some(0));
    assert!(world.arrived());
    assert!(!world.at("here/hopline/known_peers").exists(), "trusted once");
}

#[test]
fn who_was_believed_once_must_have_the_same_key_again() {
    let world = World::new();
    let receiver = world.receiver(&[]);
    let sent = world.send(&receiver, &["--trust-on-first-use"]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    let known = fs::read_to_string(world.at("here/hopline/known_peers")).unwrap();
    assert!(known.starts_with(&format!("{} public:", receiver.peer())), "{known}");
    let port = receiver.port.to_string();
    receiver.end();
    fs::remove_file(world.at("there/hopline/key")).unwrap();
    fs::remove_dir_all(world.at("in")).unwrap();
    let again = Receiver::speaking("tpa-wide", &world.at("there"), &world.at("in"), &["--port", &port]);
    for more in [&[][..], &["--trust-on-first-use"]] {
        let refused = world.send(&again, more);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).contains(&world.fingerprint()), "{}", said(&refused));
    }
    assert!(!world.arrived());
    again.kill();
}

#[test]
fn a_shared_key_is_enough_for_both() {
    let world = World::new();
    secret(&world.at("shared"), 7);
    let receiver = world.receiver(&["--psk", &world.text("shared")]);
    let sent = world.send(&receiver, &["--psk", &world.text("shared")]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    assert!(world.arrived());
}

#[test]
fn a_receiver_that_knows_its_senders_lets_nobody_else_in() {
    let world = World::new();
    fs::write(world.at("nobody"), "").unwrap();
    let receiver = world.receiver(&["--known-peers", &world.text("nobody")]);
    let refused = world.send(&receiver, &["--trust", &"0".repeat(4), "--patience", "1"]);
    assert_ne!(refused.status.code(), Some(0), "{}", said(&refused));
    assert!(!world.arrived());
    receiver.kill();
}

#[test]
fn options_that_contradict_each_other_are_wrong_input() {
    let file = ["send", "/etc/hostname", "127.0.0.1"];
    for more in [
        &["--transport", "tpa", "--psk", "x"][..],
        &["--transport", "tpa", "--trust", "x"],
        &["--psk", "x", "--key", "y"],
        &["--psk", "/no/such/file"],
        &["--key", "/no/such/file"],
        &["--transport", "udp"],
    ] {
        let wrong = hopline(file.iter().chain(more).copied());
        assert_eq!(wrong.status.code(), Some(2), "{more:?}: {}", said(&wrong));
    }
}

fn secret(path: &Path, byte: u8) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, format!("{byte:02x}").repeat(32)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
