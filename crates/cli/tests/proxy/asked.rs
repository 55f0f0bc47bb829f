//! What a daemon says of itself, and who asks badly.

use crate::proxy::start::BOTH;
use crate::proxy::transfer::in_a_thread;
use crate::proxy::world::{Daemon, Ground, PATIENCE, hopline, until_or};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

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

/// What is answered to these bytes.
fn answer(ground: &Ground, asked: &[u8]) -> String {
    let mut stream = connect(ground);
    stream.write_all(asked).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn page(ground: &Ground) -> String {
    let answer = answer(ground, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    body.to_owned()
}

pub(crate) fn its_status_is_json_and_text() {
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
    let kept = ["CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW"];
    assert_eq!(sandbox["capabilities"], serde_json::json!(kept));
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

pub(crate) fn its_page_is_what_prometheus_reads() {
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

pub(crate) fn who_asks_badly_gets_nothing_and_keeps_nobody_waiting() {
    let ground = Ground::new();
    let mut daemon = start(&ground);
    assert!(answer(&ground, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(answer(&ground, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    for junk in [&[0xff; 100_000][..], &[b'\n'; 9000], b"GET /metrics HTTP/1.1\r\n"] {
        let mut stream = connect(&ground);
        // It may be reset before all is written.
        let _ = stream.write_all(junk);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answered = Vec::new();
        let _ = stream.read_to_end(&mut answered);
        assert!(answered.is_empty(), "{}", String::from_utf8_lossy(&answered));
    }
    // A thousand who connect and say nothing, or never read.
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
