//! A socket that is taken out.

use super::syscalls::{
    HAS_SACK, HAS_TIMESTAMPS, HAS_WINDOW_SCALE, Queue, RepairExit, TCP_REPAIR, TCP_REPAIR_QUEUE,
    block_packets, get, is_established, sequence, set, set_windows, timestamp_clock, unblock_packets,
    windows, with_repair_mode,
};
use super::{Dump, State, Windows};
use crate::sys;
use rustix::io::ioctl_fionread;
use rustix::net::{RecvFlags, recv};
use socket2::SockRef;
use std::io::{self, ErrorKind};
use std::net::TcpStream;

/// Times that state is read that changes meanwhile: by packets that were past the filter, or timers of the socket.
const MAX_READINGS: usize = 8;
/// Bytes beyond those that are not acknowledged which the send queue may begin with: of a segment acknowledged in part.
const SLACK: usize = 1 << 17;

/// A socket for which nothing comes and which sends nothing new. Dropped, it resets, unless it was [retired](Frozen::retire).
#[derive(Debug)]
pub struct Frozen {
    stream: TcpStream,
    windows: Windows,
    snapshot: Snapshot,
}

/// Numbers of a socket that must not change between its reading and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Snapshot {
    next: u32,
    written: u32,
    unacknowledged: u64,
    not_sent: u64,
    unread: u64,
    windows: Windows,
}

impl Frozen {
    /// Stops a socket and reads its state.
    ///
    /// # Errors
    /// Error of the system, with the socket, which goes on: without `CAP_NET_ADMIN`, if it is not established ([`ErrorKind::NotConnected`]), or if it
    /// changes all the time or has urgent data ([`ErrorKind::ResourceBusy`]).
    pub fn freeze(stream: TcpStream) -> Result<(Self, Dump), (TcpStream, io::Error)> {
        let mut told = WindowState::default();
        match Self::try_freeze(&stream, &mut told) {
            Ok((seen, dump)) => Ok((Self { stream, windows: told.original, snapshot: seen }, dump)),
            Err(error) => {
                // What fails here has failed before: the socket is at the end of its life.
                let _ = thaw(&stream, told.send_window.map(|_| told.original));
                Err((stream, error))
            }
        }
    }

    fn try_freeze(stream: &TcpStream, told: &mut WindowState) -> io::Result<(Snapshot, Dump)> {
        block_packets(stream)?;
        for _ in 0..MAX_READINGS {
            let read = with_repair_mode(stream, RepairExit::WithoutProbe, || {
                is_established(stream)?;
                let before = narrow_send_window(stream, told)?;
                let dump = dump(stream, &before)?;
                // While the send queue is open to reading, timers may count bytes as sent that were not.
                Ok(Snapshot::of(stream)?.matches(&before).then_some((before, dump)))
            })?;
            if let Some((seen, mut dump)) = read {
                dump.state.windows = told.original;
                return Ok((seen, dump));
            }
        }
        Err(ErrorKind::ResourceBusy.into())
    }

    /// Returns the socket.
    #[must_use]
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns the clock of timestamps now, if the socket still is as it was read.
    ///
    /// # Errors
    /// [`ErrorKind::ResourceBusy`] if it is not; why it has ended.
    pub fn check(&self) -> io::Result<Option<u32>> {
        with_repair_mode(&self.stream, RepairExit::WithoutProbe, || {
            is_established(&self.stream)?;
            if !Snapshot::of(&self.stream)?.matches(&self.snapshot) {
                return Err(ErrorKind::ResourceBusy.into());
            }
            timestamp_clock(&self.stream)
        })
    }

    /// Lets the socket go on as it was, without `SO_KEEPALIVE`: the caller sets the options of its half again.
    ///
    /// # Errors
    /// Error of the system; the connection is reset then.
    pub fn thaw(self) -> io::Result<TcpStream> {
        thaw(&self.stream, Some(self.windows))?;
        Ok(self.stream)
    }

    /// Gives up a connection that another machine has. It sends no reset. Rules (`-m socket --transparent`) do not find the socket any more, so that packets
    /// are forwarded and not answered by a reset. It is to be dropped a moment later: packets may be between the rule and the socket.
    #[must_use]
    pub fn retire(self) -> Retired {
        let stream = self.stream;
        let off = if is_v4(&stream) {
            sys::set_option(&stream, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 0)
        } else {
            sys::set_option(&stream, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 0)
        };
        // In repair mode `close` sends nothing. Both only fail without a socket or without the capability that `freeze` took.
        let silent = off.and_then(|()| set(&stream, TCP_REPAIR, 1));
        debug_assert!(silent.is_ok(), "{silent:?}");
        Retired(stream)
    }
}

/// Socket of a connection that another machine has taken over.
#[derive(Debug)]
pub struct Retired(#[expect(dead_code, reason = "it is kept open for a moment")] TcpStream);

impl Snapshot {
    fn of(stream: &TcpStream) -> io::Result<Self> {
        let windows = windows(stream)?;
        let [next, written] = [Queue::Receive, Queue::Send].map(|queue| sequence(stream, queue));
        set(stream, TCP_REPAIR_QUEUE, 0)?;
        Ok(Self {
            next: next?,
            written: written?,
            unacknowledged: sys::unacknowledged(stream)?,
            not_sent: sys::not_sent(stream)?,
            unread: ioctl_fionread(stream)?,
            windows,
        })
    }

    /// Returns whether nothing has changed. The receive window may: an ACK that was delayed tells a new one.
    fn matches(&self, other: &Self) -> bool {
        let of_peer =
            |seen: &Self| Self { windows: Windows { receive: 0, announced: 0, ..seen.windows }, ..*seen };
        of_peer(self) == of_peer(other)
    }

    /// Bytes that were sent and not acknowledged.
    const fn outstanding(&self) -> u64 {
        self.unacknowledged.saturating_sub(self.not_sent)
    }
}

/// Windows of a socket that is being frozen.
#[derive(Debug, Default)]
struct WindowState {
    /// As both hosts have told them.
    original: Windows,
    /// Send window that was set in place of that.
    send_window: Option<u32>,
}

/// Has the send window end at the last byte that was sent: nothing new is sent, and a reset has the number that the peer expects.
fn narrow_send_window(stream: &TcpStream, told: &mut WindowState) -> io::Result<Snapshot> {
    let mut seen = Snapshot::of(stream)?;
    for _ in 0..MAX_READINGS {
        // A packet that was past the filter has told another one.
        if told.send_window != Some(seen.windows.send) {
            told.original = seen.windows;
        }
        let send = seen.outstanding() as u32;
        let windows = Windows { send, largest: seen.windows.largest.max(send), ..seen.windows };
        set_windows(stream, windows)?;
        told.send_window = Some(send);
        let now = Snapshot::of(stream)?;
        if now.matches(&Snapshot { windows, ..seen }) {
            return Ok(now);
        }
        seen = now;
    }
    Err(ErrorKind::ResourceBusy.into())
}

fn dump(stream: &TcpStream, seen: &Snapshot) -> io::Result<Dump> {
    set(stream, TCP_REPAIR_QUEUE, Queue::Receive as i32)?;
    let unread = peek(stream, seen.unread as usize, 0)?;
    set(stream, TCP_REPAIR_QUEUE, Queue::Send as i32)?;
    let mut sent = peek(stream, seen.unacknowledged as usize, SLACK)?;
    set(stream, TCP_REPAIR_QUEUE, 0)?;
    let unsent = sent.split_off(sent.len() - seen.not_sent as usize);
    let info = sys::tcp_info(stream)?;
    let has = |option: u8| info.tcpi_options & option != 0;
    // Two bit fields of four bits.
    let scales = (info.tcpi_snd_rcv_wscale & 0xf, info.tcpi_snd_rcv_wscale >> 4);
    let socket = SockRef::from(stream);
    let state = State {
        unacknowledged: seen.written.wrapping_sub(seen.unacknowledged as u32),
        sent,
        next: seen.next,
        unread,
        windows: seen.windows,
        mss: get(stream, libc::IPPROTO_TCP, libc::TCP_MAXSEG)?,
        scales: has(HAS_WINDOW_SCALE).then_some(scales),
        sack: has(HAS_SACK),
        timestamp: if has(HAS_TIMESTAMPS) { timestamp_clock(stream)? } else { None },
        buffer_sizes: [socket.send_buffer_size()? as u32, socket.recv_buffer_size()? as u32],
    };
    Ok(Dump { state, unsent })
}

/// Reads the last `len` bytes of the queue that was chosen. There may be up to `slack` before them.
fn peek(stream: &TcpStream, len: usize, slack: usize) -> io::Result<Vec<u8>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; len + slack];
    let (read, _) = recv(stream, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    if read < len {
        // It stops at urgent data (tcp(7)).
        return Err(ErrorKind::ResourceBusy.into());
    }
    bytes.truncate(read);
    Ok(bytes.split_off(read - len))
}

/// Resumes a socket, with its original windows if they were narrowed.
fn thaw(stream: &TcpStream, windows: Option<Windows>) -> io::Result<()> {
    with_repair_mode(stream, RepairExit::WithProbe, || {
        windows.map_or(Ok(()), |windows| set_windows(stream, windows))?;
        unblock_packets(stream)
    })
}

fn is_v4(stream: &TcpStream) -> bool {
    stream.local_addr().is_ok_and(|address| address.is_ipv4())
}
