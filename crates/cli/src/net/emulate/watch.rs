//! Page on this machine that shows the network on its map while it runs.
//!
//! It has two addresses: `/`, the page, and `/events`, which sends server-sent events (HTML Living Standard §9.2). The
//! server listens on the loopback interface only, and answers only requests for it, so that no other page of a browser can
//! read it under a name of its own (DNS rebinding).

use crate::net::clock;
use crate::problems::{Failure, print_error_line};
use hopline_lab::animation::{Watched, WatchedNetwork};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Most connections at a time: browsers open some per page.
const MAX_CONNECTIONS: usize = 32;
/// Longest request that is read, bytes.
const MAX_REQUEST: u64 = 16 * 1024;
/// Time that a client has to send its request, and to take a part of the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Messages that may wait for a client. One that takes them more slowly is disconnected, and connects again.
const WAITING: usize = 64;
/// Time without events after which clients are told the time.
const TICK: Duration = Duration::from_millis(250);
/// Events may come this much later than they happen.
const EVENT_DELAY: Duration = Duration::from_millis(300);

/// The server. It ends with the process.
#[derive(Debug)]
pub(super) struct Watch {
    clients: Clients,
}

type Clients = Arc<Mutex<Vec<SyncSender<Arc<str>>>>>;

impl Watch {
    /// Serves `page` and the events of `network` from now on, at this port of the loopback interface; 0: any.
    pub(super) fn start(port: u16, page: String, network: WatchedNetwork) -> Result<Self, Failure> {
        let failed = |e: io::Error| Failure::Other(format!("--watch: port {port} of 127.0.0.1: {e}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let clients = Clients::default();
        let (theirs, since) = (Arc::clone(&clients), clock::now());
        let spawn = |name: &str, what: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.into()).spawn(what).map(|_| ()).map_err(failed)
        };
        spawn("watch", Box::new(move || send_events(&network, &theirs, since)))?;
        let theirs = Arc::clone(&clients);
        spawn("http", Box::new(move || accept(&listener, port, &page.into(), &theirs)))?;
        print_error_line(&format!("watch it at http://127.0.0.1:{port}/"));
        Ok(Self { clients })
    }

    /// Tells all clients that the emulation has ended.
    pub(super) fn end(self) {
        send(&self.clients, "event: end\ndata:\n\n");
        // Their threads write what is pending.
        thread::sleep(Duration::from_millis(50));
    }
}

fn send_events(network: &WatchedNetwork, clients: &Clients, since: Instant) {
    loop {
        match network.next(TICK) {
            Watched::Events(json) => send(clients, &format!("data: {json}\n\n")),
            Watched::Nothing => {
                let until = since.elapsed().saturating_sub(EVENT_DELAY).as_micros();
                send(clients, &format!("data: {{\"until\":{until}}}\n\n"));
            }
            Watched::End => return,
        }
    }
}

fn send(clients: &Clients, message: &str) {
    let message: Arc<str> = message.into();
    let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
    clients.retain(|client| client.try_send(Arc::clone(&message)).is_ok());
}

fn accept(listener: &TcpListener, port: u16, page: &Arc<str>, clients: &Clients) {
    let connections = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        if connections.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
            continue;
        }
        connections.fetch_add(1, Ordering::Relaxed);
        let (page, clients, counted) = (Arc::clone(page), Arc::clone(clients), Arc::clone(&connections));
        let serve = move || {
            // A client that has gone needs no answer.
            let _ = serve(&stream, port, &page, &clients);
            counted.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("client".into()).spawn(serve).is_err() {
            connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn serve(stream: &TcpStream, port: u16, page: &str, clients: &Clients) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut out = stream;
    match answer(BufReader::new(stream.take(MAX_REQUEST)), port)? {
        Answer::Page => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n";
            write!(out, "{head}Content-Length: {}\r\nConnection: close\r\n\r\n{page}", page.len())
        }
        Answer::Events => {
            let (sender, messages): (_, Receiver<Arc<str>>) = sync_channel(WAITING);
            clients.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n";
            write!(out, "{head}Connection: close\r\n\r\nretry: 1000\n\n")?;
            messages.iter().try_for_each(|message| out.write_all(message.as_bytes()))
        }
        Answer::Refused(status) => {
            write!(out, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
    }
}

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Page,
    Events,
    /// Status line of HTTP, without the version.
    Refused(&'static str),
}

/// Reads a request of HTTP/1.1 without a body (RFC 9112).
fn answer(request: impl BufRead, port: u16) -> io::Result<Answer> {
    let mut lines = request
        .split(b'\n')
        .map(|line| line.map(|line| String::from_utf8_lossy(&line).trim_end().to_owned()));
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut host = None;
    loop {
        let Some(line) = lines.next().transpose()? else { return Ok(Answer::Refused("400 Bad Request")) };
        if line.is_empty() {
            break;
        }
        if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("host")) {
            host = Some(value.trim().to_ascii_lowercase());
        }
    }
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    if !host.is_some_and(|host| own.contains(&host)) {
        return Ok(Answer::Refused("403 Forbidden"));
    }
    Ok(match first.split(' ').collect::<Vec<_>>()[..] {
        ["GET", "/", _] => Answer::Page,
        ["GET", "/events", _] => Answer::Events,
        ["GET", ..] => Answer::Refused("404 Not Found"),
        _ => Answer::Refused("405 Method Not Allowed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_this_machine_alone_are_answered() {
        let of = |request: &str| answer(request.as_bytes(), 8080).unwrap();
        let get = |path: &str, host: &str| {
            of(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n"))
        };
        assert_eq!(get("/", "127.0.0.1:8080"), Answer::Page);
        assert_eq!(get("/events", "LOCALHOST:8080"), Answer::Events);
        assert_eq!(get("/favicon.ico", "localhost:8080"), Answer::Refused("404 Not Found"));
        for host in ["example.org:8080", "127.0.0.1:8081", "127.0.0.1", ""] {
            assert_eq!(get("/", host), Answer::Refused("403 Forbidden"), "{host}");
        }
        assert_eq!(of("GET / HTTP/1.1\r\n\r\n"), Answer::Refused("403 Forbidden"));
        assert_eq!(
            of("POST / HTTP/1.1\r\nhost: localhost:8080\r\n\r\n"),
            Answer::Refused("405 Method Not Allowed")
        );
    }

    #[test]
    fn whatever_comes_is_answered_or_refused() {
        for request in ["", "\n", "GET", "GET / HTTP/1.1\r\nHost: localhost:1", "\0\r\n\r\n", ":::\n:\n\n"] {
            assert!(matches!(answer(request.as_bytes(), 1).unwrap(), Answer::Refused(_)), "{request:?}");
        }
        let mut state = 1u32;
        let mut noise = [0; 4096];
        for byte in &mut noise {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        (0..noise.len()).for_each(|at| _ = answer(&noise[at..], 1).unwrap());
    }
}
