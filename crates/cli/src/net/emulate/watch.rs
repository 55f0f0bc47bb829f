//! Page on this machine that shows the network on its map while it runs.
//!
//! It has two addresses: `/`, the page, and `/events`, which sends server-sent events (HTML Living Standard §9.2). The
//! server listens on the loopback interface only, and answers only requests for it, so that no other page of a browser can
//! read it under a name of its own (DNS rebinding).

use crate::net::clock;
use crate::problems::{Failure, print_error_line};
use hopline_emulate::{PageAnswer, answer_to_request};
use hopline_lab::animation::{Watched, WatchedNetwork};
use std::io::{self, BufReader, Read, Write};
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
    match answer_to_request(BufReader::new(stream.take(MAX_REQUEST)), port)? {
        PageAnswer::Page => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n";
            write!(out, "{head}Content-Length: {}\r\nConnection: close\r\n\r\n{page}", page.len())
        }
        PageAnswer::Events => {
            let (sender, messages): (_, Receiver<Arc<str>>) = sync_channel(WAITING);
            clients.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n";
            write!(out, "{head}Connection: close\r\n\r\nretry: 1000\n\n")?;
            messages.iter().try_for_each(|message| out.write_all(message.as_bytes()))
        }
        PageAnswer::Refused(status) => {
            write!(out, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
    }
}
