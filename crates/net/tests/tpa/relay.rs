//! Something between client and server that can be told to misbehave.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Forwards datagrams of one client to a server and back, until dropped.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    mode: Mode,
    outside: Arc<UdpSocket>,
    /// What the client sent.
    recorded: Vec<Vec<u8>>,
    /// Longer datagrams vanish.
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
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
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

    /// From now on the client seems to be elsewhere, and what is sent to where it was is lost.
    pub(crate) fn rebind(&self) {
        self.state.lock().unwrap().outside = Arc::new(socket());
    }

    /// From now on nothing longer than that passes, and nobody is told.
    pub(crate) fn narrow(&self, room: usize) {
        self.state.lock().unwrap().room = room;
    }

    /// From now on another server is there.
    pub(crate) fn lead_to(&self, server: SocketAddr) {
        self.state.lock().unwrap().server = server;
    }

    /// From now on nothing passes.
    pub(crate) fn cut(&self) {
        self.state.lock().unwrap().mode = Mode::Swallow;
    }

    /// Sends everything that the client ever sent once more.
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
        let received = inside.recv_from(&mut buffer);
        let (mode, outside, room, server) = {
            let mut state = state.lock().unwrap();
            if let Ok((len, _)) = received {
                state.recorded.push(buffer[..len].to_vec());
            }
            (state.mode, Arc::clone(&state.outside), state.room, state.server)
        };
        if mode == Mode::End {
            return;
        }
        if let Ok((len, from)) = received {
            client = Some(from);
            if mode == Mode::Forward && len <= room {
                outside.send_to(&buffer[..len], server).unwrap();
            }
        }
        while let (Ok(len), Some(client)) = (outside.recv(&mut buffer), client) {
            if mode == Mode::Forward && len <= room {
                inside.send_to(&buffer[..len], client).unwrap();
            }
        }
    }
}
