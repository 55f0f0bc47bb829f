//! `hopline send` and `hopline recv` with keys.

use crate::support::{command, hopline};
use crate::transfer::{Receiver, pattern};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Two users, each with own settings, and a file.
struct Users {
    folder: tempfile::TempDir,
}

impl Users {
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

    /// Starts a receiver with a key of its own, which it makes if it has none.
    fn receiver(&self, more: &[&str]) -> Receiver {
        Receiver::with_transport(
            "tpa-wide",
            &self.at("there"),
            &self.at("in"),
            &[&["--port", "0", "--once"], more].concat(),
        )
    }

    fn send(&self, receiver: &Receiver, more: &[&str]) -> Output {
        let mut send = command();
        send.env("XDG_CONFIG_HOME", self.at("here")).arg("send").arg(self.at("file")).arg(receiver.peer());
        if !more.contains(&"--patience") {
            send.args(["--patience", "5"]);
        }
        send.args(more).output().unwrap()
    }

    /// Returns the fingerprint of the receiver's key.
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
fn an_unknown_peer_gets_nothing_until_its_fingerprint_is_trusted() {
    let world = Users::new();
    let receiver = world.receiver(&["--anyone"]);
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
fn a_peer_trusted_on_first_use_must_keep_its_key() {
    let world = Users::new();
    let receiver = world.receiver(&["--anyone"]);
    let sent = world.send(&receiver, &["--trust-on-first-use"]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    let known = fs::read_to_string(world.at("here/hopline/known_peers")).unwrap();
    assert!(known.starts_with(&format!("{} public:", receiver.peer())), "{known}");
    let port = receiver.port.to_string();
    receiver.end();
    fs::remove_file(world.at("there/hopline/key")).unwrap();
    fs::remove_dir_all(world.at("in")).unwrap();
    let again = Receiver::with_transport(
        "tpa-wide",
        &world.at("there"),
        &world.at("in"),
        &["--anyone", "--port", &port],
    );
    for more in [&[][..], &["--trust-on-first-use"]] {
        let refused = world.send(&again, more);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).contains(&world.fingerprint()), "{}", said(&refused));
        assert!(said(&refused).contains("here/hopline/known_peers:1 has another key"), "{}", said(&refused));
    }
    assert!(!world.arrived());
    again.kill();
}

#[test]
fn a_shared_key_is_enough_for_both() {
    let world = Users::new();
    secret(&world.at("shared"), 7);
    let receiver = world.receiver(&["--psk", &world.text("shared")]);
    let sent = world.send(&receiver, &["--psk", &world.text("shared")]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    assert!(world.arrived());
}

#[test]
fn a_receiver_with_another_shared_key_does_not_answer_and_the_sender_explains() {
    let world = Users::new();
    secret(&world.at("ours"), 7);
    secret(&world.at("theirs"), 8);
    let receiver = world.receiver(&["--psk", &world.text("theirs")]);
    let refused = world.send(&receiver, &["--psk", &world.text("ours"), "--patience", "1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("or its --psk is another key"), "{}", said(&refused));
    receiver.kill();
}

#[test]
fn an_untrusted_receiver_does_not_learn_the_key_of_the_sender() {
    let world = Users::new();
    let mut receiver = world.receiver(&["--anyone"]);
    let refused = world.send(&receiver, &["--trust", "0000-0000-0000-0000-0000-0000-0000-0000"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    let shown = hopline(["key", "show", &world.text("here/hopline/key")]);
    assert_eq!(shown.status.code(), Some(0), "it has a key");
    // A receiver that accepts only this key is asked anyway.
    fs::write(
        world.at("senders"),
        format!("us {}", String::from_utf8(shown.stdout).unwrap().lines().next().unwrap()),
    )
    .unwrap();
    let strict = world.receiver(&["--known-peers", &world.text("senders")]);
    let sent = world.send(&strict, &["--trust-on-first-use"]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    assert_eq!(strict.end().0, Some(0));
    assert!(receiver.child.try_wait().unwrap().is_none(), "it has had no conversation");
    receiver.kill();
}

#[test]
fn a_receiver_with_known_senders_admits_no_other() {
    let world = Users::new();
    fs::write(world.at("nobody"), "").unwrap();
    let receiver = world.receiver(&["--known-peers", &world.text("nobody")]);
    let refused = world.send(&receiver, &["--trust-on-first-use", "--patience", "1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(!world.arrived());
    receiver.kill();
}

#[test]
fn a_receiver_without_a_choice_of_senders_explains_the_options_and_creates_nothing() {
    let world = Users::new();
    let output = world.text("in");
    for (transport, ways) in [
        ("tpa-wide", &["--known-peers FILE", "--psk FILE", "--anyone"][..]),
        ("tpa", &["--transport tpa --anyone"]),
    ] {
        let refused = hopline(["recv", "--transport", transport, "-o", &output, "--port", "0", "--once"]);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        for way in ways {
            assert!(
                said(&refused).contains(&format!("hopline recv -o {output} {way}")),
                "{}",
                said(&refused)
            );
        }
    }
    assert!(!world.at("in").exists() && !world.at("there").exists());
}

#[test]
fn a_receiver_without_a_home_directory_names_the_required_files() {
    let world = Users::new();
    let mut recv = command();
    recv.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    recv.args(["recv", "--anyone", "--port", "0", "--once", "-o"]).arg(world.at("in"));
    let refused = recv.output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    for part in ["HOME", "`hopline key new FILE`", "`--key FILE`"] {
        assert!(said(&refused).contains(part), "{}", said(&refused));
    }
}

#[test]
fn a_receiver_without_settings_creates_its_own_folder() {
    let world = Users::new();
    let mut recv = command();
    recv.current_dir(world.folder.path()).env("XDG_CONFIG_HOME", world.at("there"));
    recv.args(["recv", "--anyone", "--bind", "127.0.0.1", "--port", "0", "--once"]);
    let receiver = Receiver::spawn(recv);
    let sent = world.send(&receiver, &["--trust-on-first-use"]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    assert_eq!(fs::read(world.at("hopline-incoming/file")).unwrap(), pattern(500_000));
}

#[test]
fn a_known_sender_is_named_and_may_send_programs() {
    use std::os::unix::fs::PermissionsExt;
    let world = Users::new();
    fs::set_permissions(world.at("file"), fs::Permissions::from_mode(0o755)).unwrap();
    hopline(["key", "new", &world.text("mine")]);
    let shown = String::from_utf8(hopline(["key", "show", &world.text("mine")]).stdout).unwrap();
    fs::write(world.at("senders"), format!("drone-3 {}", shown.lines().next().unwrap())).unwrap();
    for (more, mode, name) in [
        (&["--known-peers", "senders"][..], 0o755, Some("drone-3")),
        (&["--known-peers", "senders", "--anyone"], 0o755, Some("drone-3")),
        (&["--anyone"], 0o644, None),
    ] {
        let more: Vec<_> = more
            .iter()
            .map(|word| if *word == "senders" { world.text("senders") } else { (*word).to_owned() })
            .collect();
        let more: Vec<_> = more.iter().map(String::as_str).chain(["--json"]).collect();
        let receiver = world.receiver(&more);
        let sent = world.send(&receiver, &["--key", &world.text("mine"), "--trust-on-first-use"]);
        assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
        let (_, out, said) = receiver.end();
        let lines = lines(&out);
        let from = &lines[0]["from"];
        assert!(lines.iter().all(|line| line["from"] == *from), "{out}");
        assert_eq!(from["name"].as_str(), name, "{out}");
        assert!(shown.contains(from["fingerprint"].as_str().unwrap()), "{out}");
        assert!(from["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{out}");
        assert!(
            said.contains(&format!("{} (127.0.0.1:", name.unwrap_or(from["fingerprint"].as_str().unwrap()))),
            "{said}"
        );
        assert_eq!(fs::metadata(world.at("in/file")).unwrap().permissions().mode() & 0o777, mode);
        fs::remove_dir_all(world.at("in")).unwrap();
    }
}

/// Parses the lines of `--json`.
fn lines(out: &str) -> Vec<serde_json::Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn contradictory_options_are_rejected() {
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
