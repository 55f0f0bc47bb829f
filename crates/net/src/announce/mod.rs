//! TPA announced in the handshakes of the kernel's TCP (TPA §6): the [machine](hopline_proxy::announce) behind an [NFQUEUE](crate::nfqueue).
//!
//! Rules bring what begins a connection, and nothing else: SYNs, and the SYNs with ACK that answer them. Where hosts of this machine
//! call, or are called:
//!
//! ```text
//! iptables -A OUTPUT -o wlan0 -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num 7 --queue-bypass
//! iptables -A INPUT -i wlan0 -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num 7 --queue-bypass
//! ```
//!
//! The same in `FORWARD` for hosts behind it, and with `ip6tables` for IPv6. With `--queue-bypass` handshakes pass as they are when this
//! process has gone. Whoever opens connections asks [`Known`]: it costs a lock that handshakes alone contend for.

mod figures;

use crate::error::Error;
use crate::nfqueue::{self, Gate, Passing};
use crate::pace::{Clock, Woken, Written};
use crate::service::{Ledger, Notice, Service, Tone};
use crate::watched::Watched;
use figures::Counts;
use hopline_core::Instant;
use hopline_proxy::Fate;
use hopline_proxy::announce::{self as machine, Announcer, Done, Towards};
pub use hopline_proxy::announce::{Role, Speaks};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is to stand where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The interface that leads to the other end. What passes it neither in nor out, and what comes in and leaves by it, passes.
    pub interface: String,
    /// Number of the NFQUEUE, as in the rules: 0 to 65,535.
    pub queue: u16,
    /// Most handshakes that wait in it, 1 or more; what finds it full passes as it is. Default 1024.
    pub queue_length: u32,
    /// The machine, and at which end it stands.
    pub machine: machine::Config,
}

impl Config {
    /// The defaults at this end, before this interface, with the packets of this queue.
    #[must_use]
    pub fn new(role: Role, interface: impl Into<String>, queue: u16) -> Self {
        Self { interface: interface.into(), queue, queue_length: 1024, machine: machine::Config::new(role) }
    }
}

/// Marks and reads handshakes, ready to run.
#[derive(Debug)]
pub struct Announcements {
    gate: Gate,
    known: Known,
    /// The interface that leads to the other end.
    watched: Watched,
    /// Its number, while it is there.
    index: Option<u32>,
    counts: Counts,
}

/// What has been learned of hosts. Clones know the same.
#[derive(Clone, Debug)]
pub struct Known {
    announcer: Arc<Mutex<Announcer>>,
    clock: Clock,
}

impl Announcements {
    /// Takes the queue, in the calling thread's namespace. From now on handshakes wait for it to run.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without `CAP_NET_ADMIN`, without NFQUEUE in the kernel, or if somebody else has the queue;
    /// [`Error::NoSuchInterface`].
    pub fn open(config: &Config) -> Result<Self, Error> {
        let Config { interface, queue, queue_length, machine } = config.clone();
        let queue = nfqueue::Config { length: queue_length, ..nfqueue::Config::new(queue, "") };
        let gate = Gate::open(&queue)?;
        let watched = Watched::new([interface.as_str()])?;
        let index = watched.first_number();
        let known = Known { announcer: Arc::new(Mutex::new(Announcer::new(machine))), clock: Clock::start() };
        Ok(Self { gate, known, watched, index, counts: Counts::default() })
    }

    /// What it learns, for whoever opens connections.
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

    /// Where a packet goes; `None` if it does not cross the interface.
    fn towards(&self, passing: &Passing) -> Option<Towards> {
        let is_ours = |interface: Option<u32>| interface.is_some() && interface == self.index;
        match (is_ours(passing.came_by), is_ours(passing.leaves_by)) {
            (false, true) => Some(Towards::Path),
            (true, false) => Some(Towards::Hosts),
            _ => None,
        }
    }

    /// Follows the interface when it vanishes and returns: the connections beside it, and what was learned, stay meanwhile.
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
    /// What `host` speaks; `None` if that is not known, or not any more.
    #[must_use]
    pub fn speaks(&self, host: IpAddr) -> Option<Speaks> {
        self.lock().speaks(self.clock.now(), host)
    }

    fn lock(&self) -> MutexGuard<'_, Announcer> {
        self.announcer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
