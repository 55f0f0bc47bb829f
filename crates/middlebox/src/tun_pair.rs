//! Path between two TUN interfaces: IP packets that the kernel sends through one leave the other.
//!
//! The interfaces may be in different namespaces or in one; routes select the packets. No firewall rules and no NFQUEUE
//! are needed. Packets are as on a wire, since a TUN interface carries neither GSO groups nor packets with incomplete
//! checksums. Limitations: no packet waits here, so that none can be prioritised; the fate of packets behind the
//! interfaces is not reported.

use bytes::Bytes;
use hopline_linux::Error;
use hopline_linux::tun::Tun;
use hopline_proxy::{Arrival, InjectResult, PacketIo, PacketVerdict, Postpone, QueuePosition, Side};
use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Maximum bytes of an IP packet.
const MAX_PACKET: usize = 65_535;

/// Two TUN interfaces and the path between them. Their MTUs should be equal.
#[derive(Debug)]
pub struct TunPair {
    interfaces: Interfaces,
    /// Readable when either interface is.
    readable: OwnedFd,
    /// Side to be read next.
    next_side: Side,
    buffer: Box<[u8]>,
    counts: Counts,
}

/// Counters of a [`TunPair`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets received from either interface.
    pub packets: u64,
    /// Packets that the kernel rejected, for instance because the interface was down. They are lost.
    pub refused: u64,
}

impl TunPair {
    /// Creates a path between the interface that leads to the fixed hosts and the one that leads to the mobile ones.
    ///
    /// # Errors
    /// If the system has no descriptor for waiting.
    pub fn new(fixed: Tun, mobile: Tun) -> Result<Self, Error> {
        let either = either(&fixed, &mobile).map_err(|e| Error::system("waiting for two interfaces", e))?;
        let buffer = vec![0; MAX_PACKET].into_boxed_slice();
        Ok(Self {
            interfaces: Interfaces { fixed, mobile },
            readable: either,
            next_side: Side::Fixed,
            buffer,
            counts: Counts::default(),
        })
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the next packet from a side.
    fn receive_from(&mut self, from: Side) -> io::Result<Option<Arrival>> {
        let Some(len) = self.interfaces.at(from).receive(&mut self.buffer)? else { return Ok(None) };
        let id = self.counts.packets;
        self.counts.packets += 1;
        Ok(Some(Arrival { id, from, packet: Bytes::copy_from_slice(&self.buffer[..len]) }))
    }

    fn send(&mut self, to: Side, packet: &[u8]) -> io::Result<InjectResult> {
        match self.interfaces.at(to).send(packet) {
            Ok(()) => Ok(InjectResult::Sent),
            // The interface was removed with its namespace.
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Err(error),
            Err(_) => {
                self.counts.refused += 1;
                Ok(InjectResult::NoRoute)
            }
        }
    }
}

#[derive(Debug)]
struct Interfaces {
    fixed: Tun,
    mobile: Tun,
}

impl Interfaces {
    const fn at(&self, side: Side) -> &Tun {
        match side {
            Side::Fixed => &self.fixed,
            Side::Mobile => &self.mobile,
        }
    }
}

fn either(a: &Tun, b: &Tun) -> rustix::io::Result<OwnedFd> {
    let either = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for tun in [a, b] {
        epoll::add(&either, tun, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(either)
}

impl PacketIo for TunPair {
    type Error = io::Error;

    /// Alternates between the sides while both have packets.
    fn receive(&mut self) -> io::Result<Option<Arrival>> {
        for _ in 0..2 {
            let from = self.next_side;
            self.next_side = from.other();
            if let Some(arrival) = self.receive_from(from)? {
                return Ok(Some(arrival));
            }
        }
        Ok(None)
    }

    fn set_verdict(&mut self, arrival: Arrival, fate: PacketVerdict) -> io::Result<()> {
        let to = arrival.from.other();
        let packet = match fate {
            PacketVerdict::Forward => arrival.packet,
            PacketVerdict::Replace(packet) => packet.into(),
            PacketVerdict::Drop => return Ok(()),
        };
        match self.send(to, &packet)? {
            InjectResult::Sent | InjectResult::QueueFull | InjectResult::NoRoute => Ok(()),
        }
    }

    fn inject(&mut self, to: Side, _turn: QueuePosition, packet: &[u8]) -> io::Result<InjectResult> {
        self.send(to, packet)
    }

    /// Does nothing: every operation takes effect at once.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Postpone for TunPair {
    /// Does nothing: the arrival already contains the packet.
    fn postpone(&mut self, _arrival: &Arrival) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for TunPair {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}
