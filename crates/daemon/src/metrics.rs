//! Figures as Prometheus reads them (text format 0.0.4).

use crate::server::{self, Opening};
use crate::status::{Condition, ReadingKind, Status};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::TcpListener;

/// Answers whoever asks, until the listener breaks.
pub(crate) fn serve(listener: &TcpListener, status: impl Fn() -> Status) -> io::Result<()> {
    server::serve(listener, Opening::Request, |request| answer(request, &status))
}

/// The answer to what a client sends before it hangs up, as the server reads it: what a fuzz target calls.
///
/// # Errors
/// Why there is none.
#[doc(hidden)]
pub fn answer_to(client: &mut impl Read, status: &Status) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    while server::read(client, &mut request)? == server::Step::Waits {}
    Ok(answer(&request, || status.clone()))
}

/// The page.
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

/// Samples by metric: all of one stand together.
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
    let (code, body) = if request.starts_with(b"GET /metrics ") {
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

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
