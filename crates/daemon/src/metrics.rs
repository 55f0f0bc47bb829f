//! Metrics in the text format of Prometheus (0.0.4).

use crate::server::{self, RequestKind};
use crate::status::{Condition, ReadingKind, Status};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

/// Answers clients, until the listener fails.
pub(crate) fn serve(listener: &TcpListener, status: impl Fn() -> Status) -> io::Result<()> {
    server::serve(listener, RequestKind::Request, |request| answer(request, &status))
}

/// Returns the answer to a client's input until it closes, as the server reads it; for a fuzz target.
///
/// # Errors
/// The reason why there is no answer.
#[doc(hidden)]
pub fn answer_to(client: &mut impl Read, status: &Status) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    while server::read(client, &mut request)? == server::Progress::Blocked {}
    Ok(answer(&request, || status.clone()))
}

/// Returns the page of metrics.
pub(crate) fn page(status: &Status) -> String {
    let mut page = Page::default();
    let of_daemon = format!("daemon=\"{}\"", status.name);
    page.add("running_seconds", "For how long the daemon has run.", "gauge", &of_daemon, status.running_s);
    page.add("reloads_total", "How often its file was read again.", "counter", &of_daemon, status.reloads);
    for proxy in &status.proxies {
        let labels = format!("{of_daemon},proxy=\"{}\",kind=\"{}\"", escaped(&proxy.name), proxy.kind);
        let up = u64::from(proxy.state == Condition::Running);
        page.add("proxy_up", "Whether the proxy works.", "gauge", &labels, up);
        page.add(
            "proxy_restarts_total",
            "How often it was started again.",
            "counter",
            &labels,
            proxy.restarts,
        );
        for figure in &proxy.figures {
            let (name, kind) = match figure.kind {
                ReadingKind::Counter => (format!("{}_total", figure.name), "counter"),
                ReadingKind::Gauge => (figure.name.clone(), "gauge"),
            };
            page.add(&name, &figure.doc, kind, &labels, figure.value);
        }
    }
    page.text()
}

/// Samples by metric: those of a metric have to be contiguous.
#[derive(Default)]
struct Page(BTreeMap<String, String>);

impl Page {
    fn add(&mut self, name: &str, doc: &str, kind: &str, labels: &str, value: u64) {
        let metric = self.0.entry(name.to_owned()).or_insert_with(|| {
            format!(
                "# HELP hopline_{name} {}\n# TYPE hopline_{name} {kind}\n",
                doc.replace('\\', "\\\\").replace('\n', "\\n")
            )
        });
        let _ = writeln!(metric, "hopline_{name}{{{labels}}} {value}");
    }

    fn text(self) -> String {
        self.0.into_values().collect()
    }
}

fn answer(request: &[u8], status: impl Fn() -> Status) -> Vec<u8> {
    let (code, body) = if !is_for_this_host(request) {
        (
            "421 Misdirected Request",
            "ask by address, as localhost or by the name of this machine\n".to_owned(),
        )
    } else if request.starts_with(b"GET /metrics ") {
        ("200 OK", page(&status()))
    } else {
        ("404 Not Found", "figures are at /metrics\n".to_owned())
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {code}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Returns whether a request names this machine. A page in a browser may use its own name, which its DNS server resolves to
/// this machine (DNS rebinding).
fn is_for_this_host(request: &[u8]) -> bool {
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    names(&String::from_utf8_lossy(request), hostname.trim())
}

/// Returns whether all `Host` fields of a request have an address, `localhost`, or this name (RFC 9110 §7.2). Programs may
/// send none.
fn names(request: &str, hostname: &str) -> bool {
    let fields = request.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut hosts =
        fields.filter(|(name, _)| name.trim().eq_ignore_ascii_case("host")).map(|(_, host)| host.trim());
    hosts.all(|host| {
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let name = match host.rsplit_once(':') {
            Some((name, port)) if is_port(port) && (name.ends_with(']') || !name.contains(':')) => name,
            _ => host,
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        bare.map_or_else(|| name.parse::<Ipv4Addr>().is_ok(), |v6| v6.parse::<Ipv6Addr>().is_ok())
            || name.eq_ignore_ascii_case("localhost")
            || (!hostname.is_empty() && name.eq_ignore_ascii_case(hostname))
    })
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_another_host_name_is_rejected() {
        let is =
            |host: &str| names(&format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\n{host}\r\n\r\n"), "router");
        for host in [
            "Host: 127.0.0.1:9464",
            "host: 192.0.2.1",
            "HOST:[::1]:9464",
            "Host: [fd00::1]",
            "Host: LocalHost:9464",
            "Host: Router:9464",
            "X: y",
        ] {
            assert!(is(host), "{host}");
        }
        for host in [
            "Host: attacker.example:9464",
            "Host: router.attacker.example",
            "Host: localhost.attacker.example",
            "Host: 127.0.0.1.attacker.example",
            "Host: 127.0.0.1\r\nHost: attacker.example",
            "Host: fd00::1",
            "Host:",
        ] {
            assert!(!is(host), "{host}");
        }
        assert!(!names("GET /metrics HTTP/1.1\r\nHost: \r\n\r\n", ""));
    }
}
