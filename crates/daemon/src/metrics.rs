//! Figures as Prometheus reads them (text format 0.0.4).
//!
//! The server is a few lines of our own: one page, one request at a time, nothing kept of who asks. A library would bring a runtime.

use crate::status::{Condition, ReadingKind, Status};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// How long who asks may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request that is read.
const LONGEST_REQUEST: usize = 4096;

/// Answers whoever asks, one after another, until the listener breaks.
pub(crate) fn serve(listener: &TcpListener, status: impl Fn() -> Status) -> io::Result<()> {
    loop {
        match listener.accept() {
            // Who asks badly, or goes, has no answer.
            Ok((mut stream, _)) => drop(answer(&mut stream, &status)),
            Err(error) if passes(&error) => std::thread::sleep(Duration::from_millis(100)),
            Err(error) => return Err(error),
        }
    }
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

fn answer(stream: &mut TcpStream, status: impl Fn() -> Status) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = request(stream)?;
    let (code, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", page(&status()))
    } else {
        ("404 Not Found", "figures are at /metrics\n".to_owned())
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {code}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// What is asked, to the end of its head.
fn request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (mut request, mut buffer) = (Vec::new(), [0; 512]);
    #[expect(clippy::disallowed_methods, reason = "a daemon is in real time")]
    let start = std::time::Instant::now();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer)?;
        // A byte a second would keep others waiting as well.
        if read == 0 || request.len() + read > LONGEST_REQUEST || start.elapsed() > PATIENCE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request.extend_from_slice(&buffer[..read]);
    }
    Ok(request)
}

/// Whether an error of `accept` says nothing of the next one.
fn passes(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidInput)
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
