//! Cases in real time, on whatever has sockets.

use super::NamespaceLink;
use crate::cases::{Case, Ground, Outcome};
use crate::oracle::InOrder;
use bytes::Bytes;
use hopline_core::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// How often one looks whether it is time.
const LOOK: Duration = Duration::from_millis(5);
const PORT: u16 = 5201;
const CHUNK: u64 = 1 << 14;

/// A transport over sockets of the calling thread's namespace, as applications use it.
pub trait Sockets: Sync {
    /// Listens at `talk.address`, says so (`talk.listening()`), accepts one connection, gives what arrives to `take`, and
    /// returns when the peer has ended its stream, or fails once `talk.is_too_late()`.
    ///
    /// # Errors
    /// If the connection failed.
    fn receive(&self, talk: &Talk<'_>, take: &mut dyn FnMut(&Bytes)) -> io::Result<()>;

    /// Connects to `talk.address`, sends what `next` gives until it gives nothing, and ends the stream; returns when the
    /// peer has all of it, or fails once `talk.is_too_late()`.
    ///
    /// # Errors
    /// If the connection failed.
    fn send(&self, talk: &Talk<'_>, next: &mut dyn FnMut() -> Option<Bytes>) -> io::Result<()>;
}

/// What both sides of a transfer know.
#[derive(Debug)]
pub struct Talk<'a> {
    /// Where B listens.
    pub address: SocketAddr,
    link: &'a NamespaceLink,
    deadline: Instant,
    ready: Sender<()>,
}

impl Talk<'_> {
    /// B can be connected to.
    pub fn listening(&self) {
        // Nobody waits any more if A gave up.
        let _ = self.ready.send(());
    }

    /// Whether to give up.
    #[must_use]
    pub fn is_too_late(&self) -> bool {
        self.link.now() > self.deadline
    }
}

/// The kernel's sockets, or ours, over a [`NamespaceLink`].
#[derive(Clone, Copy, Debug)]
pub struct OverSockets<S>(pub S);

impl<S: Sockets> Ground for OverSockets<S> {
    /// Panics where there can be no link: only tests that [`run_tests`](super::run_tests) runs use it.
    fn transfer(&self, case: &Case) -> Outcome {
        let link = NamespaceLink::new(case.forth.clone(), case.back.clone(), case.seed)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let address = SocketAddr::from((link.address_b(), PORT));
        let (ready, is_ready) = channel();
        let talk = Talk { address, link: &link, deadline: case.deadline, ready };
        let mut oracle = InOrder::default();
        let (mut handed, mut at) = (0, Instant::ZERO);
        let (sent, received) = thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let received = link.run_in_b(|| self.0.receive(&talk, &mut |data| oracle.take(data)));
                at = link.now();
                received
            });
            while is_ready.recv_timeout(LOOK).is_err() && !receiver.is_finished() && !talk.is_too_late() {}
            if let Some((when, old)) = case.rebind {
                let link = &link;
                scope.spawn(move || {
                    while link.now() < when {
                        thread::sleep(LOOK);
                    }
                    link.rebind(old);
                });
            }
            let sent = link.run_in_a(|| self.0.send(&talk, &mut || next(&mut handed, case.bytes)));
            (sent, receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let stats = link.stats();
        let ended = match (&sent, &received) {
            (Ok(()), Ok(())) => true,
            failed => {
                super::harness::say(&format!("{}: {failed:?}, {}", case.name, stats.lateness));
                false
            }
        };
        Outcome { received: oracle.received(), ended, at, counts: [stats.forth, stats.back] }
    }
}

fn next(handed: &mut u64, total: u64) -> Option<Bytes> {
    let len = CHUNK.min(total - *handed);
    let data = (len > 0).then(|| InOrder::bytes(*handed, len as usize));
    *handed += len;
    data
}
