//! Relay between the gateways, which passes, drops or delays their datagrams, and reads them.

use crate::gateway::helpers::V4;
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Recognisable bytes of an application.
pub(crate) const SECRET: &[u8] = b"the secret of an application, in clear";
/// Delay of a datagram, longer than the entrance waits.
const DELAY: Duration = Duration::from_secs(1);

/// Treatment of datagrams by a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayMode {
    Pass,
    Drop,
    Delay,
}

const ALL: [RelayMode; 3] = [RelayMode::Pass, RelayMode::Drop, RelayMode::Delay];

/// Relay between entrance and exit that searches datagrams for [`SECRET`].
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    mode: AtomicU8,
    stopped: AtomicBool,
    passed: AtomicU64,
    in_clear: AtomicU64,
    /// Address of the entrance.
    entrance: Mutex<Option<SocketAddr>>,
}

impl Relay {
    pub(crate) fn before(exit: SocketAddr, does: RelayMode) -> Self {
        let (near, far) = (UdpSocket::bind((V4, 0)).unwrap(), UdpSocket::bind((V4, 0)).unwrap());
        far.connect(exit).unwrap();
        [&near, &far].into_iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let (address, state) = (near.local_addr().unwrap(), Arc::<State>::default());
        let seen = Arc::clone(&state);
        let thread = thread::Builder::new().spawn(move || seen.run(&near, &far)).unwrap();
        let relay = Self { address, state, thread: Some(thread) };
        relay.set(does);
        relay
    }

    pub(crate) fn set(&self, does: RelayMode) {
        self.state.mode.store(ALL.iter().position(|&one| one == does).unwrap() as u8, SeqCst);
    }

    pub(crate) fn in_clear(&self) -> u64 {
        self.state.in_clear.load(SeqCst)
    }

    /// Returns the number of datagrams passed on.
    pub(crate) fn passed(&self) -> u64 {
        self.state.passed.load(SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.stopped.store(true, SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl State {
    #[expect(clippy::disallowed_methods, reason = "a relay is in real time")]
    fn run(&self, near: &UdpSocket, far: &UdpSocket) {
        let mut held: VecDeque<(Instant, bool, Vec<u8>)> = VecDeque::new();
        let mut buffer = [0; 2048];
        while !self.stopped.load(SeqCst) {
            let now = Instant::now();
            let does = ALL[usize::from(self.mode.load(SeqCst))];
            let wait = if does == RelayMode::Delay { DELAY } else { Duration::ZERO };
            let mut came = Vec::new();
            while let Ok((len, from)) = near.recv_from(&mut buffer) {
                *self.entrance.lock().unwrap() = Some(from);
                came.push((now + wait, true, buffer[..len].to_vec()));
            }
            while let Ok(len) = far.recv(&mut buffer) {
                came.push((now + wait, false, buffer[..len].to_vec()));
            }
            for (_, _, datagram) in &came {
                let seen = datagram.windows(SECRET.len()).any(|part| part == SECRET);
                self.in_clear.fetch_add(u64::from(seen), SeqCst);
            }
            if does != RelayMode::Drop {
                held.extend(came);
            }
            while held.front().is_some_and(|(due, ..)| *due <= now) {
                let (_, forth, datagram) = held.pop_front().unwrap();
                self.passed.fetch_add(1, SeqCst);
                let entrance = *self.entrance.lock().unwrap();
                let _ = match entrance {
                    Some(entrance) if !forth => near.send_to(&datagram, entrance),
                    _ => far.send(&datagram),
                };
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}
