//! TPA announcements in the handshakes of the kernel's TCP (TPA §6): the [state machine](hopline_proxy::announce) behind
//! an [NFQUEUE](crate::nfqueue).
//!
//! Firewall rules queue only SYNs and SYN-ACKs. For connections of this host:
//!
//! ```text
//! iptables -A OUTPUT -o wlan0 -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num 7 --queue-bypass
//! iptables -A INPUT -i wlan0 -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num 7 --queue-bypass
//! ```
//!
//! For hosts behind this one, use the same rules in `FORWARD`; for IPv6, use `ip6tables`. With `--queue-bypass`,
//! handshakes pass unchanged when this process does not run. Code that opens connections asks [`Known`], which costs one
//! lock that only handshakes contend for.

mod figures;

use crate::nfqueue::{self, Gate, Passing};
use crate::service::{Ledger, Notice, Service, Tone};
use figures::Counts;
use hopline_core::Instant;
use hopline_linux::Error;
use hopline_linux::pace::{Clock, Woken, Written};
use hopline_linux::watched::Watched;
use hopline_proxy::Fate;
use hopline_proxy::announce::{self as machine, Announcer, Done, Towards};
pub use hopline_proxy::announce::{Role, Speaks};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Configuration of the announcement service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Interface that leads to the peer. Packets that do not cross it, or that come in and leave by it, pass unchanged.
    pub interface: String,
    /// Number of the NFQUEUE, as in the rules: 0 to 65,535.
    pub queue: u16,
    /// Maximum number of handshake packets in the queue, 1 or more. Further ones pass unchanged. Default 1024.
    pub queue_length: u32,
    /// Configuration of the state machine, including the side on which it runs.
    pub machine: machine::Config,
}

impl Config {
    /// Returns the defaults for this side, interface and queue.
    #[must_use]
    pub fn new(role: Role, interface: impl Into<String>, queue: u16) -> Self {
        Self { interface: interface.into(), queue, queue_length: 1024, machine: machine::Config::new(role) }
    }
}

/// Service that marks and reads handshakes.
#[derive(Debug)]
pub struct Announcements {
    gate: Gate,
    known: Known,
    /// The interface that leads to the peer.
    watched: Watched,
    /// Index of the interface, while it exists.
    index: Option<u32>,
    counts: Counts,
}

/// Knowledge about the protocols of hosts. Clones share it.
#[derive(Clone, Debug)]
pub struct Known {
    announcer: Arc<Mutex<Announcer>>,
    clock: Clock,
}

impl Announcements {
    /// Binds the queue, in the calling thread's namespace. From now on handshakes wait until the service runs.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`, without NFQUEUE in the kernel, or if another process has bound the
    /// queue; [`Error::NoSuchInterface`].
    pub fn open(config: &Config) -> Result<Self, Error> {
        let Config { interface, queue, queue_length, machine } = config.clone();
        let queue = nfqueue::Config { length: queue_length, ..nfqueue::Config::new(queue, "") };
        let gate = Gate::open(&queue)?;
        let watched = Watched::new([interface.as_str()])?;
        let index = watched.first_number();
        let known = Known { announcer: Arc::new(Mutex::new(Announcer::new(machine))), clock: Clock::start() };
        Ok(Self { gate, known, watched, index, counts: Counts::default() })
    }

    /// Returns the shared knowledge, for code that opens connections.
    #[must_use]
    pub fn known(&self) -> Known {
        self.known.clone()
    }

    fn work(&mut self, now: Instant) -> io::Result<()> {
        for mut passing in self.gate.receive()? {
            let fate = self.judge(now, &mut passing);
            self.gate.conclude(&passing, &fate);
        }
        self.gate.flush()
    }

    fn judge(&mut self, now: Instant, passing: &mut Passing) -> Fate {
        let (Some(towards), Some(packet)) = (self.towards(passing), &mut passing.packet) else {
            self.counts.unseen += 1;
            return Fate::Pass;
        };
        let done = self.known.lock().pass(now, towards, packet);
        self.counts.note(done);
        match done {
            Done::Announced | Done::Heard | Done::Answered | Done::Learned(..) => {
                Fate::Replace(std::mem::take(packet))
            }
            Done::Untouched => Fate::Pass,
        }
    }

    /// Returns the direction of a packet. `None` if it does not cross the interface.
    fn towards(&self, passing: &Passing) -> Option<Towards> {
        let is_ours = |interface: Option<u32>| interface.is_some() && interface == self.index;
        match (is_ours(passing.came_by), is_ours(passing.leaves_by)) {
            (false, true) => Some(Towards::Path),
            (true, false) => Some(Towards::Hosts),
            _ => None,
        }
    }

    /// Follows the interface when it disappears and returns. Connections and knowledge are kept meanwhile.
    fn look_for_interface(&mut self, ledger: &Ledger) {
        let index = self.watched.first_number();
        if index == self.index {
            return;
        }
        self.index = index;
        let (tone, text) = match self.watched.check() {
            Err(gone) if index.is_none() => (Tone::Bad, gone.to_string()),
            _ => (Tone::Good, "the interface of announcements is there again".to_owned()),
        };
        ledger.say(Notice { about: "interface".into(), tone, text });
    }

    fn turn(&mut self, written: &mut Written, ledger: &Ledger) -> io::Result<()> {
        let now = self.known.clock.now();
        self.work(now)?;
        if written.is_due(now) {
            ledger.write(self.counts.figures(self.gate.troubles()));
            self.look_for_interface(ledger);
        }
        Ok(())
    }
}

impl Service for Announcements {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, ledger: &Ledger) -> io::Result<()> {
        let mut written = Written::default();
        let ended = loop {
            if let Err(error) = self.turn(&mut written, ledger) {
                break Err(error);
            }
            match self.known.clock.wait([self.gate.as_fd(), stop], stop, None) {
                Ok(Woken::ToWork) => {}
                Ok(Woken::ToStop) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        ledger.write(self.counts.figures(self.gate.troubles()));
        ended
    }
}

impl Known {
    /// Returns the protocols of `host`. `None` if they are unknown, or if the knowledge has expired.
    #[must_use]
    pub fn speaks(&self, host: IpAddr) -> Option<Speaks> {
        self.lock().speaks(self.clock.now(), host)
    }

    fn lock(&self) -> MutexGuard<'_, Announcer> {
        self.announcer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
