//! Forwarding thread of the link.

use super::damage::Damage;
use super::fragmentation;
use super::lateness::LatenessRecorder;
use super::nat::{Nat, NatVerdict};
use super::{Drops, LinkStats, Setup};
use hopline_core::Instant;
use hopline_link::{CopyState, Direction, NatPortPolicy, Side};
use hopline_linux::{Error, Tun, sched};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::{io, iter};

/// Packets read from one side before due packets are delivered.
const BATCH: usize = 64;
/// Maximum bytes of an IP packet.
const MAX_PACKET: usize = 65_535;

/// Handle of the thread; stops it when dropped.
#[derive(Debug)]
pub(super) struct Forwarder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the thread and its handle.
#[derive(Debug)]
struct Shared {
    clock: Clock,
    /// Becomes readable when the thread has to end.
    stop: OwnedFd,
    link: Mutex<Link>,
}

/// Shared state other than the packets in flight.
#[derive(Debug)]
struct Link {
    directions: [Direction; 2],
    damage: Damage,
    nats: [Nat; 2],
    lateness: LatenessRecorder,
    priority: sched::Priority,
    /// Drops in each direction, without those of the interface.
    drops: [Drops; 2],
    path_mtu: u16,
}

impl Forwarder {
    pub(super) fn start(ends: [Tun; 2], setup: Setup) -> Result<Self, Error> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| system("making an eventfd", e.into()))?;
        let shared = Arc::new(Shared { clock: Clock::start(), stop, link: Mutex::new(Link::new(setup)) });
        let seen = Arc::clone(&shared);
        let carrier =
            LinkThread { ends, is_gone: [false; 2], shared: seen, in_flight: BTreeMap::new(), received: 0 };
        let thread = thread::Builder::new()
            .name("link".into())
            .spawn(move || carrier.run())
            .map_err(|e| system("starting a thread", e))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    pub(super) fn stats(&self) -> LinkStats {
        let link = self.shared.link();
        LinkStats {
            forward: link.directions[Side::A as usize].stats(),
            reverse: link.directions[Side::B as usize].stats(),
            drops: link.drops,
            lateness: link.lateness.lateness(),
            priority: link.priority,
        }
    }

    pub(super) fn rebind(&self, side: Side, old: NatPortPolicy) {
        self.shared.link().nats[side as usize].rebind(old);
    }
}

fn system(doing: &str, source: io::Error) -> Error {
    Error::System { doing: doing.into(), source }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // The write cannot fail: the counter was never written.
        let written = rustix::io::write(&self.shared.stop, &1u64.to_ne_bytes());
        if let (Some(thread), Ok(_)) = (self.thread.take(), written) {
            // A thread that panicked has reported so on stderr, and a test without a link fails by itself.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().expect("nobody panics while holding the link")
    }
}

impl Link {
    fn new(setup: Setup) -> Self {
        let direction = |emulation, side| Direction::new(emulation, setup.seed, side as u64);
        Self {
            directions: [direction(setup.forward, Side::A), direction(setup.reverse, Side::B)],
            damage: setup.damage,
            nats: Default::default(),
            lateness: LatenessRecorder::default(),
            priority: sched::Priority::Ordinary,
            drops: Default::default(),
            path_mtu: setup.path_mtu.unwrap_or(u16::MAX),
        }
    }
}

/// Real-time clock that starts with the link.
#[derive(Clone, Copy, Debug)]
struct Clock(std::time::Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this link is in real time")]
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn now(self) -> Instant {
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
}

struct LinkThread {
    ends: [Tun; 2],
    /// `true` once the interface was deleted: it is always readable then, but has no packet.
    is_gone: [bool; 2],
    shared: Arc<Shared>,
    /// Packets in flight with their destination, by time of arrival and order of sending.
    in_flight: BTreeMap<(Instant, u64), (Side, Vec<u8>)>,
    received: u64,
}

impl LinkThread {
    fn run(mut self) {
        self.shared.link().priority = sched::request_real_time();
        let mut buffer = vec![0; MAX_PACKET];
        while self.wait() {
            for side in [Side::A, Side::B] {
                self.receive_from(side, &mut buffer);
            }
            self.deliver_due();
        }
    }

    /// Waits until a packet arrives or is due. Returns `false` at the end.
    fn wait(&self) -> bool {
        let timeout = self.in_flight.keys().next().map(|&(due, _)| {
            let left = due.since(self.shared.clock.now()).as_nanos();
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }
        });
        let there = self.ends.iter().zip(self.is_gone).filter(|&(_, is_gone)| !is_gone);
        let mut fds: Vec<_> = iter::once(self.shared.stop.as_fd())
            .chain(there.map(|(end, _)| end.as_fd()))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => fds[0].revents().is_empty(),
            Err(error) => panic!("the link cannot wait for packets: {error}"),
        }
    }

    fn receive_from(&mut self, from: Side, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            let len = match self.ends[from as usize].receive(buffer) {
                Ok(Some(len)) => len,
                Ok(None) => return,
                // The host sees a dead link.
                Err(error) => {
                    self.is_gone[from as usize] |= Errno::from_io_error(&error) == Some(Errno::BADFD);
                    return;
                }
            };
            let packet = &mut buffer[..len];
            match not_carried_reason(packet) {
                None => self.forward(from, packet),
                Some(reason) => {
                    let drops = &mut self.shared.link().drops[from as usize];
                    match reason {
                        NotCarried::Membership => drops.memberships += 1,
                        NotCarried::NotIp => drops.not_ip += 1,
                    }
                }
            }
        }
    }

    fn forward(&mut self, from: Side, packet: &mut [u8]) {
        let now = self.shared.clock.now();
        let mut link = self.shared.link.lock().expect("nobody panics while holding the link");
        link.nats[from as usize].translate_outgoing(packet);
        let damage = link.damage;
        let pieces = fragmentation::forward(packet, link.path_mtu);
        link.drops[from as usize].too_long += u64::from(pieces.is_empty());
        let direction = &mut link.directions[from as usize];
        for piece in pieces {
            for (at, fate) in direction.transmit(now, piece.len()).into_iter().flatten() {
                let mut copy = piece.clone();
                if fate == CopyState::Corrupted {
                    damage.corrupt(&mut copy, &mut direction.random);
                }
                self.in_flight.insert((at, self.received), (from.other(), copy));
                self.received += 1;
            }
        }
    }

    fn deliver_due(&mut self) {
        while let Some(next) = self.in_flight.first_entry() {
            let (due, now) = (next.key().0, self.shared.clock.now());
            if due > now {
                return;
            }
            let (to, mut packet) = next.remove();
            let mut link = self.shared.link();
            link.lateness.record(now - due);
            let passage = link.nats[to as usize].translate_incoming(&mut packet);
            link.drops[to.other() as usize].unknown_port += u64::from(passage == NatVerdict::Drop);
            drop(link);
            if passage == NatVerdict::Accept && self.ends[to as usize].send(&packet).is_err() {
                self.shared.link().drops[to.other() as usize].refused += 1;
            }
        }
    }
}

/// Reason that the link does not carry a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotCarried {
    /// Membership report, which kernels send by themselves (RFC 3376 §4, RFC 3810 §5).
    Membership,
    /// Neither IPv4 nor IPv6.
    NotIp,
}

/// Returns the reason that `packet` is not carried; `None` if it is.
fn not_carried_reason(packet: &[u8]) -> Option<NotCarried> {
    const IGMP: u8 = 2;
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.get(9) == Some(&IGMP) => Some(NotCarried::Membership),
        Some(6) if is_listener_report(packet) => Some(NotCarried::Membership),
        Some(4 | 6) => None,
        _ => Some(NotCarried::NotIp),
    }
}

/// Returns whether an IPv6 `packet` is an MLD report: ICMPv6 behind a header with the option Router Alert (RFC 3810 §5).
fn is_listener_report(packet: &[u8]) -> bool {
    const HEADER: usize = 40;
    const HOP_BY_HOP: u8 = 0;
    const ICMP: u8 = 58;
    // RFC 2710 §3.1, RFC 3810 §5.2.
    const REPORTS: [u8; 3] = [131, 132, 143];
    let (Some(&HOP_BY_HOP), Some(&ICMP), Some(&eights)) =
        (packet.get(6), packet.get(HEADER), packet.get(HEADER + 1))
    else {
        return false;
    };
    let icmp = HEADER + 8 * (usize::from(eights) + 1);
    packet.get(icmp).is_some_and(|kind| REPORTS.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_both_ip_versions_are_carried_except_membership_reports() {
        let of = |version: u8, changes: &[(usize, u8)]| {
            let mut packet = vec![0; 60];
            packet[0] = version << 4;
            changes.iter().for_each(|&(at, byte)| packet[at] = byte);
            not_carried_reason(&packet)
        };
        assert_eq!((of(4, &[]), of(6, &[(6, 17)])), (None, None));
        assert_eq!(of(6, &[(24, 0xff), (6, 17)]), None, "a datagram to a group");
        assert_eq!(of(4, &[(9, 2)]), Some(NotCarried::Membership));
        let hop_by_hop = |next: u8, kind: u8| of(6, &[(24, 0xff), (6, 0), (40, next), (48, kind)]);
        assert_eq!(hop_by_hop(58, 143), Some(NotCarried::Membership));
        assert_eq!(hop_by_hop(58, 130), None, "a router asks");
        assert_eq!(hop_by_hop(58, 128), None, "an echo request with an option");
        assert_eq!(hop_by_hop(17, 143), None, "a datagram with an option");
        assert_eq!((of(5, &[]), not_carried_reason(&[])), (Some(NotCarried::NotIp), Some(NotCarried::NotIp)));
    }
}
