//! The last ACKs of a mobile host, repeated when a handoff is over ([`hopline_proxy::fast_retransmit`]).

use super::BATCH;
use crate::error::Error;
use crate::nfqueue::Injector;
use crate::sys;
use hopline_core::{Instant, Length};
use hopline_proxy::fast_retransmit::{Config, FastRetransmit};
use hopline_proxy::{BareAck, Injected, Packet, Turn};
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::Segment;
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU8;
use std::os::fd::{AsFd, BorrowedFd};

/// The longest headers of IPv4 and TCP.
const SEEN: usize = 60 + 60;
/// Packets looked at before others have their turn.
const MOST: usize = 2048;
/// Mark of what is sent, as other packets of daemons have it: no queue of this host sees them.
const MARK: u32 = 0x686f;

/// Repeats what this host has acknowledged last, of each connection.
#[derive(Debug)]
pub(super) struct Repeats {
    machine: FastRetransmit,
    injector: Injector,
    unsent: u64,
}

impl Repeats {
    /// One that repeats each ACK so many times.
    pub(super) fn open(duplicates: NonZeroU8) -> Result<Self, Error> {
        let machine = FastRetransmit::new(Config { duplicates, ..Config::default() });
        Ok(Self { machine, injector: Injector::new(MARK)?, unsent: 0 })
    }

    /// Takes the headers of a packet that this host has sent.
    fn take(&mut self, now: Instant, packet: &[u8]) {
        if let Ok((ip, segment)) = Segment::parse_headers(packet) {
            self.machine.pass_out(now, Packet::<Length>::new(&ip, &segment));
        }
    }

    /// The host is at another station, and its packets go by that: repeats its ACKs.
    pub(super) fn moved(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        self.machine.moved();
        while let Some(ack) = self.machine.poll_transmit() {
            self.unsent += u64::from(self.injector.send(Turn::First, &made(&ack)) != Injected::Sent);
        }
    }

    /// ACKs that were repeated, and of those the ones that the system did not take.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.machine.stats().acks_made, self.unsent]
    }
}

/// The packet.
fn made(ack: &BareAck) -> Vec<u8> {
    let ip = Header::between(ack.connection.mobile.0, ack.connection.fixed.0, Protocol::Tcp);
    let segment = ack.segment::<bytes::Bytes>();
    let mut packet = Vec::with_capacity(ip.min_len() + segment.wire_len());
    ip.emit(segment.wire_len(), &mut packet);
    segment.emit(&ip, &mut packet);
    packet
}

/// Sees the headers of the segments of TCP that leave by an interface, from one address: packet(7).
#[derive(Debug)]
pub(super) struct AckTap {
    socket: Socket,
    buffers: Vec<Box<[u8]>>,
}

impl AckTap {
    /// Begins to look.
    pub(super) fn open(interface: &str, host: Ipv4Addr) -> Result<Self, Error> {
        let open = || {
            // Of no protocol yet: nothing comes before the filter is there.
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
            socket.set_nonblocking(true)?;
            sys::attach_filter(&socket, &mut segments_of(host))?;
            let index = name_to_index(&socket, interface)?;
            // What leaves is shown to sockets of all protocols alone.
            sys::bind_to_interface(&socket, index, libc::ETH_P_ALL as u16)?;
            Ok(socket)
        };
        let doing = || format!("looking at what leaves by {interface} (CAP_NET_RAW)");
        let refused = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENODEV) => Error::of_interface(interface, error),
            _ => Error::new(doing(), error),
        };
        let socket = open().map_err(refused)?;
        Ok(Self { socket, buffers: (0..BATCH).map(|_| vec![0; SEEN].into()).collect() })
    }

    /// Gives `repeats` the packets that have left, oldest first, 2,048 at most.
    pub(super) fn receive(&mut self, now: Instant, repeats: &mut Repeats) -> io::Result<()> {
        for _ in 0..MOST / BATCH {
            let datagrams = match sys::receive_many(&self.socket, &mut self.buffers) {
                Ok(datagrams) => datagrams,
                // The interface is down; it may come up again.
                Err(e) if e.raw_os_error() == Some(libc::ENETDOWN) => return Ok(()),
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    return Ok(());
                }
                Err(e) => return Err(e),
            };
            for (buffer, datagram) in self.buffers.iter().zip(&datagrams) {
                repeats.take(now, &buffer[..datagram.len]);
            }
            if datagrams.len() < BATCH {
                break;
            }
        }
        Ok(())
    }
}

impl AsFd for AckTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A program that lets through the headers of TCP over IPv4 that leave, from `host`. Packets begin with their IP headers here.
fn segments_of(host: Ipv4Addr) -> [libc::sock_filter; 10] {
    let load = |size: u32, at: u32| (libc::BPF_LD | size | libc::BPF_ABS, at);
    // What the kernel knows of a packet beside its bytes (linux/filter.h).
    let known = |what: i32| load(libc::BPF_W, (libc::SKF_AD_OFF + what).cast_unsigned());
    let is = |value: u32| (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value);
    let take = |bytes: u32| (libc::BPF_RET | libc::BPF_K, bytes);
    let steps = [
        known(libc::SKF_AD_PKTTYPE),
        is(libc::PACKET_OUTGOING.into()),
        known(libc::SKF_AD_PROTOCOL),
        is(libc::ETH_P_IP as u32),
        load(libc::BPF_W, 12),
        is(host.to_bits()),
        load(libc::BPF_B, 9),
        is(libc::IPPROTO_TCP as u32),
        take(SEEN as u32),
        take(0),
    ];
    let jump = |at: usize, code: u32| {
        // To the last step.
        if code & 0x07 == libc::BPF_JMP { (steps.len() - 2 - at) as u8 } else { 0 }
    };
    std::array::from_fn(|at| {
        let (code, k) = steps[at];
        libc::sock_filter { code: code as u16, jt: 0, jf: jump(at, code), k }
    })
}
