//! Misbehaving relay between client and server.

#![allow(dead_code, reason = "each of the tests that have it uses a part")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Forwards datagrams of one client to a server and back, until dropped.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    mode: Mode,
    outside: Arc<UdpSocket>,
    /// Datagrams that the client has sent.
    recorded: Vec<Vec<u8>>,
    /// Maximum length of datagrams; longer ones are dropped.
    room: usize,
    server: SocketAddr,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Forward,
    Swallow,
    End,
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

impl Relay {
    pub(crate) fn to(server: SocketAddr) -> Self {
        let inside = socket();
        let address = inside.local_addr().unwrap();
        let state = State {
            mode: Mode::Forward,
            outside: Arc::new(socket()),
            recorded: Vec::new(),
            room: 65_535,
            server,
        };
        let state = Arc::new(Mutex::new(state));
        let seen = Arc::clone(&state);
        let thread = thread::Builder::new().spawn(move || run(&inside, &seen)).unwrap();
        Self { address, state, thread: Some(thread) }
    }

    /// Changes the client's address, as the server sees it. Datagrams to the old address are lost.
    pub(crate) fn rebind(&self) {
        self.state.lock().unwrap().outside = Arc::new(socket());
    }

    /// Drops datagrams longer than `room` from now on, without an ICMP message.
    pub(crate) fn narrow(&self, room: usize) {
        self.state.lock().unwrap().room = room;
    }

    /// Replaces the server.
    pub(crate) fn replace_server(&self, server: SocketAddr) {
        self.state.lock().unwrap().server = server;
    }

    /// Drops all datagrams from now on.
    pub(crate) fn drop_all(&self) {
        self.state.lock().unwrap().mode = Mode::Swallow;
    }

    /// Returns the last datagrams of the client, at most `most`.
    pub(crate) fn recorded(&self, most: usize) -> Vec<Vec<u8>> {
        let recorded = &self.state.lock().unwrap().recorded;
        recorded[recorded.len().saturating_sub(most)..].to_vec()
    }

    /// Replays all datagrams that the client has sent.
    pub(crate) fn replay(&self, server: SocketAddr) -> usize {
        let state = self.state.lock().unwrap();
        for datagram in &state.recorded {
            state.outside.send_to(datagram, server).unwrap();
        }
        state.recorded.len()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.lock().unwrap().mode = Mode::End;
        self.thread.take().unwrap().join().unwrap();
    }
}

fn run(inside: &UdpSocket, state: &Mutex<State>) {
    let mut client = None;
    let mut buffer = [0; 2048];
    loop {
        let outside = Arc::clone(&state.lock().unwrap().outside);
        wait(inside, &outside);
        while let Ok((len, from)) = inside.recv_from(&mut buffer) {
            client = Some(from);
            let mut state = state.lock().unwrap();
            state.recorded.push(buffer[..len].to_vec());
            if state.mode == Mode::Forward && len <= state.room {
                state.outside.send_to(&buffer[..len], state.server).unwrap();
            }
        }
        let state = state.lock().unwrap();
        if state.mode == Mode::End {
            return;
        }
        while let (Ok(len), Some(client)) = (state.outside.recv(&mut buffer), client) {
            if state.mode == Mode::Forward && len <= state.room {
                inside.send_to(&buffer[..len], client).unwrap();
            }
        }
    }
}

/// Waits for a datagram, or for long enough to get new instructions.
fn wait(inside: &UdpSocket, outside: &UdpSocket) {
    let mut fds = [inside, outside].map(|socket| PollFd::new(socket, PollFlags::IN));
    // After an early or late wake-up the caller checks again.
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 5_000_000 }));
}
