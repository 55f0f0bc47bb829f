//! Status of a daemon, and malformed queries.

use crate::proxy::start::BOTH;
use crate::proxy::transfer::in_a_thread;
use crate::proxy::world::{Daemon, Ground, PATIENCE, hopline, secret, signal, until_or};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::{Value as Json, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PAGE: &str = "127.0.0.1:9464";

fn start(ground: &Ground) -> Daemon {
    ground.start(&format!("metrics = \"{PAGE}\"\n{BOTH}"))
}

fn connect(ground: &Ground) -> TcpStream {
    let stream = ground.router.run(|| TcpStream::connect(PAGE)).unwrap().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns the answer to these bytes.
fn answer(ground: &Ground, asked: &[u8]) -> String {
    let mut stream = connect(ground);
    stream.write_all(asked).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn page(ground: &Ground) -> String {
    let answer = answer(ground, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    body.to_owned()
}

pub(crate) fn the_status_is_json_and_text() {
    let ground = Ground::new();
    let daemon = start(&ground);
    let ask = |options: &[&str]| {
        let mut command = hopline();
        command.args(["proxy", "status"]).args(options).arg(ground.folder.path().join("proxy.toml"));
        let output = ground.ends(command);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let status: serde_json::Value = serde_json::from_str(&ask(&["--json"])).unwrap();
    assert_eq!(status["name"], "hopline");
    assert_eq!(status["process"], daemon.process.id());
    let sandbox = &status["sandbox"];
    assert_eq!(sandbox["capabilities"], json!(["CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW"]));
    let said = sandbox["unrestricted"].to_string();
    assert_eq!(sandbox["landlock"].is_null(), said.contains("no Landlock"), "{sandbox}");
    assert!(sandbox["user"] != 0 || said.contains("files of root may be read"), "{sandbox}");
    let proxies = status["proxies"].as_array().unwrap();
    assert_eq!(proxies.len(), 2);
    for proxy in proxies {
        assert_eq!((&proxy["state"], &proxy["why"]), (&"running".into(), &serde_json::Value::Null));
    }
    until_or(
        || panic!("no figures: {}", daemon.status()),
        || {
            let status = daemon.status();
            status["proxies"]
                .as_array()
                .unwrap()
                .iter()
                .all(|proxy| !proxy["figures"].as_array().unwrap().is_empty())
        },
    );
    for figure in daemon.status()["proxies"][0]["figures"].as_array().unwrap() {
        assert!(figure["value"].is_u64() && figure["doc"].is_string(), "{figure}");
        assert!(["counter", "gauge"].contains(&figure["kind"].as_str().unwrap()), "{figure}");
    }
    let text = ask(&[]);
    assert!(text.contains("snoop: running for") && text.contains("split: running for"), "{text}");
}

/// Returns the output of `hopline proxy` as another user, and its exit code.
fn as_nobody(ground: &Ground, group: &str, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", &format!("--regid={group}"), "--clear-groups"]);
    command.arg(env!("CARGO_BIN_EXE_hopline")).arg("proxy").args(words);
    let output = ground.ends(command);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// Creates a ground with a folder that other users may enter, and the path of its configuration file.
fn open_ground() -> (Ground, PathBuf) {
    let ground = Ground::new();
    fs::set_permissions(ground.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = ground.folder.path().join("proxy.toml");
    (ground, file)
}

pub(crate) fn every_user_may_query_the_status_and_only_the_owner_may_change_it() {
    let (ground, file) = open_ground();
    // A file that other users may not read, and that status does not need.
    let key = ground.folder.path().join("link.key");
    secret(&key, &"07".repeat(32));
    let exit = format!("[[proxy]]\nkind = \"gateway-exit\"\npeers = [\"a = {}\"]\n", key.display());
    let mut daemon = ground.start(&format!("{BOTH}{exit}"));
    let path = file.to_str().unwrap();
    for words in [vec!["status", path], vec!["top", "--once", path]] {
        let (code, said) = as_nobody(&ground, "65534", &words);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("snoop") && said.contains("gateway-exit"), "{said}");
    }
    for words in [["run", path], ["undo", path], ["setup", path]] {
        let (code, said) = as_nobody(&ground, "65534", &words);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("ermission denied") || said.contains("may not read"), "{said}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let (code, said) = as_nobody(&ground, "65534", &["status", path]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("this user may not read it") && said.contains("--name NAME"), "{said}");
    assert!(daemon.ended_by("TERM").success());
}

pub(crate) fn members_of_the_configured_group_may_query_the_status() {
    let (ground, file) = open_ground();
    // Group 1 is called daemon on every Linux.
    let mut daemon = ground.start(&format!("status_group = \"daemon\"\n{BOTH}"));
    let path = file.to_str().unwrap();
    let (code, said) = as_nobody(&ground, "1", &["status", path]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = as_nobody(&ground, "65534", &["status", path]);
    assert_eq!(code, Some(1), "{said}");
    for words in ["user 65534 may not ask", "usermod -aG daemon USER", "sudo hopline proxy"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(daemon.ended_by("TERM").success());
    let file = ground.write(&format!("status_group = \"no-such-group\"\n{BOTH}"));
    let output = ground.proxy("check", &file);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no group \"no-such-group\"") && said.contains("groupadd"), "{said}");
}

pub(crate) fn top_shows_the_rates_of_each_proxy() {
    let ground = Ground::new();
    let mut daemon = start(&ground);
    let file = ground.folder.path().join("proxy.toml");
    let top = |words: &[&str]| {
        let mut command = hopline();
        command.args(["proxy", "top"]).args(words).arg(&file);
        let output = ground.ends(command);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // Output to a file: one table, without control sequences.
    let table = top(&[]);
    assert!(!table.contains('\x1b'), "{table:?}");
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for words in ["kind", "state", "out pkt/s", "repairs/s", "drops/s", "conns"] {
        assert!(row("proxy").contains(words), "{table}");
    }
    assert!(row("snoop").contains("running") && row("split").contains("running"), "{table}");
    let line: Json = serde_json::from_str(top(&["--once", "--json"]).trim_end()).unwrap();
    assert_eq!((&line["name"], &line["process"]), (&"hopline".into(), &daemon.process.id().into()));
    let snoop = &line["proxies"][0];
    assert_eq!((&snoop["kind"], &snoop["state"]), (&"snoop".into(), &"running".into()));
    assert!(snoop["out_bytes_per_s"].is_null(), "{snoop}: Snoop counts no bytes");
    // One line each second, until a signal.
    let mut command = hopline();
    command.args(["proxy", "top", "--json"]).arg(&file).stdout(Stdio::piped());
    let mut running = ground.router.spawn(command).unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line: Json = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["proxies"].as_array().unwrap().len(), 2);
    }
    signal(running.id(), "INT");
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert!(daemon.ended_by("TERM").success());
}

pub(crate) fn top_on_a_terminal_ends_with_q_and_restores_it() {
    let ground = Ground::new();
    let mut daemon = start(&ground);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let near = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let before = tcgetattr(&near).unwrap().local_modes;
    assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
    let mut command = hopline();
    command.args(["proxy", "top"]).arg(ground.folder.path().join("proxy.toml"));
    command.stdin(near.try_clone().unwrap()).stdout(near.try_clone().unwrap());
    let mut top = ground.router.spawn(command).unwrap();
    rustix::io::ioctl_fionbio(&terminal, true).unwrap();
    let mut terminal = fs::File::from(terminal);
    let mut shown = Vec::new();
    // The second screen overwrites the first.
    let is_shown = || {
        let _ = terminal.read_to_end(&mut shown);
        String::from_utf8_lossy(&shown).matches("q: end").count() == 2
    };
    until_or(|| panic!("it shows nothing"), is_shown);
    assert!(!tcgetattr(&near).unwrap().local_modes.contains(LocalModes::ICANON));
    terminal.write_all(b"xq").unwrap();
    assert_eq!(top.wait().unwrap().code(), Some(0));
    assert_eq!(tcgetattr(&near).unwrap().local_modes, before);
    let shown = String::from_utf8(shown).unwrap();
    assert!(
        shown.starts_with("\x1b[H") && shown.contains("snoop") && shown.contains("repairs/s"),
        "{shown:?}"
    );
    assert!(daemon.ended_by("TERM").success());
}

pub(crate) fn files_have_the_same_permissions_with_any_umask() {
    for umask in ["0000", "0077"] {
        let (ground, _) = open_ground();
        let file = ground.write(BOTH);
        let script = format!("umask {umask}; exec \"$@\"");
        let mut daemon = ground.begin_by(&["sh", "-c", &script, "sh"], &file);
        daemon.wait_until("it runs", |status| status["proxies"][0]["state"] == "running");
        let mode = |name: &str| fs::metadata(ground.state().join(name)).unwrap().mode() & 0o7777;
        let modes = ["", "hopline.sock", "hopline.lock", "hopline.rules"].map(mode);
        assert_eq!(modes, [0o755, 0o666, 0o600, 0o600], "umask {umask}");
        assert!(daemon.ended_by("TERM").success());
    }
}

pub(crate) fn the_metrics_page_is_valid_prometheus_text() {
    let ground = Ground::new();
    let daemon = start(&ground);
    until_or(|| panic!("{}", page(&ground)), || page(&ground).contains("kind=\"split\"} 0"));
    let page = page(&ground);
    let (mut described, mut typed, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, doc) = help.split_once(' ').unwrap();
            assert!(!described.contains(&name), "{name} is described twice");
            assert!(!doc.is_empty(), "{name}");
            described.push(name);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(described.last(), Some(&name));
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            typed.push(name);
        } else {
            let (name, rest) = line.split_once('{').unwrap_or_else(|| panic!("{line}"));
            let (labels, value) = rest.rsplit_once("} ").unwrap();
            assert_eq!(typed.last(), Some(&name), "samples of a metric stand together");
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{name}"
            );
            assert!(
                labels.split(',').all(|label| label.split_once("=\"").is_some_and(|(_, v)| v.ends_with('"'))),
                "{labels}"
            );
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(!samples.contains(&(name, labels)), "{name}{{{labels}}} twice");
            samples.push((name, labels));
        }
    }
    let up = "daemon=\"hopline\",proxy=\"snoop\",kind=\"snoop\"";
    assert!(samples.contains(&("hopline_proxy_up", up)), "{page}");
    drop(daemon);
}

pub(crate) fn malformed_requests_are_rejected_and_delay_no_other() {
    let ground = Ground::new();
    let mut daemon = start(&ground);
    assert!(answer(&ground, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(answer(&ground, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    for junk in [&[0xff; 100_000][..], &[b'\n'; 9000], b"GET /metrics HTTP/1.1\r\n"] {
        let mut stream = connect(&ground);
        // The connection may be reset before all is written.
        let _ = stream.write_all(junk);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answered = Vec::new();
        let _ = stream.read_to_end(&mut answered);
        assert!(answered.is_empty(), "{}", String::from_utf8_lossy(&answered));
    }
    // A thousand clients that connect and send nothing, or never read.
    let silent: Vec<TcpStream> = (0..1000)
        .map(|i| {
            let mut stream = connect(&ground);
            if i % 2 == 0 {
                stream.write_all(b"GET /metrics HT").unwrap();
            }
            stream
        })
        .collect();
    let slow = in_a_thread({
        let mut stream = connect(&ground);
        move || {
            for byte in b"GET /metrics HTTP/1.1\r\nslow: aaaaaaaaaaaaaa" {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
    });
    assert!(page(&ground).contains("hopline_proxy_up"));
    let socket = ground.state().join("hopline.sock");
    let unread: Vec<UnixStream> = (0..1000)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            let _ = stream.write_all(&[0xff; 1000]);
            stream
        })
        .collect();
    assert_eq!(daemon.status()["process"], daemon.process.id());
    assert!(page(&ground).contains("hopline_proxy_up"));
    drop((silent, unread));
    slow.join().unwrap();
    assert!(daemon.resident() < 100 << 20, "{} bytes", daemon.resident());
    assert!(daemon.ended_by("TERM").success());
}
