//! The server of `server.rs` on one thread with a loop and a socket of its own: `event_loop ADDRESS:PORT SHARED_KEY_FILE`.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example")]

use bytes::Bytes;
use hopline_core::Instant;
use hopline_sealed::{ConnectionKey, Credentials, Ecn, Event, Host, HostEvent, Path, Seed, SendError};
use hopline_streams::key_files::{self, KeyInFile};
use hopline_streams::wide::{Wide, config};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

/// Bytes of a connection that are not echoed yet.
#[derive(Default)]
struct Client {
    unsent: Option<Bytes>,
    has_ended: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [address, key] = &args[..] else {
        return Err("usage: event_loop ADDRESS:PORT SHARED_KEY_FILE".into());
    };
    let KeyInFile::Shared(key) = key_files::load_key(key.as_ref())? else {
        return Err("this is a private key; `server` takes it".into());
    };
    let config = config(Credentials::Shared(key));
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?; // No two hosts may have the same.
    let mut host = Host::new(Wide::host_config()?, Seed::new(seed))?;
    host.listen(config.credentials().clone(), config.transport(), 128)?;

    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    println!("listening on {}", socket.local_addr()?);
    let start = std::time::Instant::now();
    let mut clients: BTreeMap<ConnectionKey, Client> = BTreeMap::new();
    let (mut datagram, mut out) = ([0; 2048], Vec::new());
    loop {
        // 1. Inputs: the time, and the datagrams that are there.
        let now = Instant::from_nanos(start.elapsed().as_nanos() as u64);
        host.handle_timeout(now);
        for _ in 0..64 {
            match socket.recv_from(&mut datagram) {
                Ok((len, peer)) => {
                    host.handle_datagram(now, Path::to(peer), Ecn::NotCapable, &mut datagram[..len]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        // 2. What has happened, and the calls that follow from it.
        while let Some(event) = host.poll_event() {
            match event {
                HostEvent::Accepted(key) => {
                    host.mark_accepted(key);
                    clients.insert(key, Client::default());
                }
                HostEvent::Connection(key, Event::Closed(reason)) => {
                    println!("closed: {reason:?}");
                    clients.remove(&key);
                    host.remove(key);
                }
                HostEvent::Connection(key, event) => {
                    let Some(client) = clients.get_mut(&key) else { continue };
                    client.has_ended |= event == Event::PeerClosed;
                    echo(&mut host, key, client, now);
                }
                _ => {}
            }
        }
        // 3. Outputs: datagrams that leave now. The socket may drop one: it counts as lost.
        while let Some(transmit) = host.poll_transmit(now, &mut out) {
            let _ = socket.send_to(&out, transmit.path.peer);
            out.clear();
        }
        // 4. Waiting, for a datagram or for the time that the host names. Other descriptors go here, too.
        let wait = host.poll_timeout().map(|at| Duration::from_nanos(at.since(now).as_nanos()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        poll(&mut [PollFd::new(&socket, PollFlags::IN)], wait.as_ref())?;
    }
}

/// Hands back what a client has sent, and closes when all of it is handed back.
fn echo(host: &mut Host, key: ConnectionKey, client: &mut Client, now: Instant) {
    let Some(connection) = host.connection_mut(key) else { return };
    while let Some(data) = client.unsent.take().or_else(|| connection.recv()) {
        if let Err(SendError::Full { .. }) = connection.send(now, data.clone()) {
            client.unsent = Some(data); // `Event::Writable` comes when there is room.
            return;
        }
    }
    if client.has_ended {
        let _ = connection.close(now); // Closed already: nothing is left to do.
    }
}
