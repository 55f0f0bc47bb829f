//! systemd units of `hopline recv` and `hopline send`.

use crate::support::{command, hopline, names};
use crate::transfer::{Receiver, pattern};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Unit of this name, with the settings of its environment file. `/var/lib` and `/etc` are in `root`.
struct Unit<'a> {
    text: String,
    root: &'a Path,
    settings: BTreeMap<&'static str, String>,
}

impl<'a> Unit<'a> {
    fn new(kind: &str, root: &'a Path, settings: &[(&'static str, String)]) -> Self {
        let file = format!("../../tools/systemd/hopline-{kind}@.service");
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        Self { text, root, settings: settings.iter().cloned().collect() }
    }

    /// Returns the value of `key`, as systemd expands it for the instance `test`.
    fn set(&self, key: &str) -> String {
        let prefix = format!("{key}=");
        let line = self.text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
        let root = self.root.display();
        line.replace("%i", "test")
            .replace("/var/lib/", &format!("{root}/"))
            .replace("/etc/", &format!("{root}/"))
    }

    /// Returns the command of its `ExecStart`, with its environment.
    fn command(&self) -> Command {
        let words = self.set("ExecStart");
        let mut words = words.split(' ');
        assert_eq!(words.next(), Some("/usr/local/bin/hopline"));
        let mut command = command();
        let environment = self.set("Environment");
        let (name, value) = environment.split_once('=').unwrap();
        command.env_remove("HOME").env(name, value);
        for word in words {
            match word.strip_prefix('$') {
                // `${NAME}` is one word, `$NAME` any number of words.
                Some(name) if name.starts_with('{') => {
                    command.arg(&self.settings[name.trim_matches(['{', '}'])]);
                }
                Some(name) => {
                    command.args(self.settings[name].split(' '));
                }
                None => {
                    command.arg(word);
                }
            }
        }
        command
    }
}

#[test]
fn systemd_units_transfer_files_with_their_keys_and_stop_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("logs")).unwrap();
    fs::write(root.join("logs/a"), pattern(100_000)).unwrap();
    let options = "--anyone --port 0 --bind 127.0.0.1".to_owned();
    let recv = Unit::new("recv", root, &[("OPTIONS", options)]);
    let mut receiver = Receiver::spawn(recv.command());
    let settings = [
        ("OPTIONS", "--trust-on-first-use --patience 20".to_owned()),
        ("SOURCE", root.join("logs").display().to_string()),
        ("PEER", receiver.peer()),
    ];
    let sent = Unit::new("send", root, &settings).command().output().unwrap();
    assert_eq!(sent.status.code(), Some(0), "{}", String::from_utf8_lossy(&sent.stderr));
    assert_eq!(names(&root.join("hopline-recv/test")), ["files", "hopline"]);
    assert_eq!(fs::read(root.join("hopline-recv/test/files/logs/a")).unwrap(), pattern(100_000));
    assert_eq!(names(&root.join("hopline-send/test/hopline")), ["key", "known_peers"]);
    let pid = receiver.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(receiver.child.wait().unwrap().code(), Some(0));
    // The exit code of a stopped `send` is no failure there.
    let send = Unit::new("send", root, &[]);
    assert_eq!(
        (send.set("SuccessExitStatus"), send.set("StateDirectory")),
        ("130".into(), "hopline-send/test".into())
    );
    assert_eq!(recv.set("StateDirectory"), "hopline-recv/test");
}

#[test]
fn a_receiver_without_an_address_listens_on_ipv4_and_ipv6() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut recv = command();
    recv.args(["recv", "--transport", "tpa", "--anyone", "--port", "0", "--json", "-o"]).arg(to.path());
    let receiver = Receiver::spawn(recv);
    let port = receiver.port;
    // Some machines have no IPv6.
    let has_ipv6 = std::net::UdpSocket::bind("[::1]:0").is_ok();
    for (name, host) in [("four", "127.0.0.1"), ("six", "[::1]")] {
        if host.starts_with('[') && !has_ipv6 {
            continue;
        }
        let file = from.path().join(name);
        fs::write(&file, name).unwrap();
        let peer = format!("{host}:{port}");
        let sent = hopline(["send", "--transport", "tpa", file.to_str().unwrap(), &peer, "--patience", "10"]);
        assert_eq!(sent.status.code(), Some(0), "{}", String::from_utf8_lossy(&sent.stderr));
        assert_eq!(fs::read(to.path().join(name)).unwrap(), name.as_bytes());
    }
    let pid = receiver.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let (code, out, _) = receiver.end();
    assert_eq!(code, Some(0));
    assert!(out.contains("\"address\":\"127.0.0.1:"), "{out}");
    assert!(!has_ipv6 || out.contains("\"address\":\"[::1]:"), "{out}");
}
