//! The calls of repair mode.

use crate::sys;
use socket2::SockRef;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::AsFd;

/// Windows of a socket (`struct tcp_repair_window`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Sequence number of the segment that last changed the send window.
    pub update: u32,
    /// Send window, in bytes.
    pub send: u32,
    /// Largest send window so far.
    pub largest: u32,
    /// Receive window as it was announced last.
    pub receive: u32,
    /// Next byte to receive when that was.
    pub announced: u32,
}

/// Options of linux/tcp.h and asm/socket.h, which libc lacks.
pub(super) const TCP_REPAIR: i32 = 19;
pub(super) const TCP_REPAIR_QUEUE: i32 = 20;
pub(super) const TCP_QUEUE_SEQ: i32 = 21;
pub(super) const TCP_REPAIR_OPTIONS: i32 = 22;
pub(super) const TCP_TIMESTAMP: i32 = 24;
pub(super) const TCP_REPAIR_WINDOW: i32 = 29;
pub(super) const SO_BUF_LOCK: i32 = 72;

/// Numbers of TCP options (RFC 9293 §3.2, RFC 7323, RFC 2018), by which `TCP_REPAIR_OPTIONS` names them.
pub(super) const MSS: u32 = 2;
pub(super) const WINDOW_SCALE: u32 = 3;
pub(super) const SACK_PERMITTED: u32 = 4;
pub(super) const TIMESTAMPS: u32 = 8;

/// Bits of `tcpi_options` (linux/tcp.h).
pub(super) const HAS_TIMESTAMPS: u8 = 1;
pub(super) const HAS_SACK: u8 = 2;
pub(super) const HAS_WINDOW_SCALE: u8 = 4;

/// Largest segment that `TCP_MAXSEG` takes (`MAX_TCP_WINDOW` of net/tcp.h).
pub(super) const MAX_MSS: u32 = 32_767;

/// Queue of a socket in repair mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Receive = 1,
    Send = 2,
}

/// Way out of repair mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepairExit {
    /// With a window probe. The answer acknowledges the data that the peer has received (RFC 9293 §3.8.6.1).
    WithProbe = 0,
    WithoutProbe = -1,
}

/// Lets no packet come to the socket, and has no timer of its own end it.
pub(super) fn block_packets<S: AsFd>(socket: &S) -> io::Result<()> {
    // BPF_RET | BPF_K, 0: nothing of any packet passes.
    let mut nothing = [libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 }];
    sys::attach_filter(socket, &mut nothing)?;
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 0)
}

pub(super) fn unblock_packets(stream: &TcpStream) -> io::Result<()> {
    sys::set_option(stream, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0)
}

/// Does something in repair mode. Leaves it in any case.
pub(super) fn with_repair_mode<T>(
    stream: &TcpStream,
    leave: RepairExit,
    what: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    set(stream, TCP_REPAIR, 1)?;
    let done = what();
    end_repair_mode(stream, leave)?;
    done
}

pub(super) fn end_repair_mode(stream: &TcpStream, leave: RepairExit) -> io::Result<()> {
    set(stream, TCP_REPAIR, leave as i32)?;
    // Repair mode ends with addresses that no other socket may use, while those of one client may lead to many servers.
    SockRef::from(stream).set_reuse_address(true)
}

pub(super) fn is_established(stream: &TcpStream) -> io::Result<()> {
    /// Number of the state (linux/tcp.h, `TCP_ESTABLISHED`).
    const ESTABLISHED: u8 = 1;
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    let is = sys::tcp_info(stream)?.tcpi_state == ESTABLISHED;
    if is { Ok(()) } else { Err(ErrorKind::NotConnected.into()) }
}

pub(super) fn windows(stream: &TcpStream) -> io::Result<Windows> {
    let mut bytes = [0; 20];
    sys::option_bytes(stream, libc::IPPROTO_TCP, TCP_REPAIR_WINDOW, &mut bytes)?;
    let (numbers, _) = bytes.as_chunks();
    let number = |at: usize| u32::from_ne_bytes(numbers[at]);
    Ok(Windows {
        update: number(0),
        send: number(1),
        largest: number(2),
        receive: number(3),
        announced: number(4),
    })
}

pub(super) fn set_windows<S: AsFd>(socket: &S, windows: Windows) -> io::Result<()> {
    let Windows { update, send, largest, receive, announced } = windows;
    let bytes = bytes_of([update, send, largest, receive, announced]);
    sys::set_option_bytes(socket, libc::IPPROTO_TCP, TCP_REPAIR_WINDOW, &bytes)
}

pub(super) fn bytes_of(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_ne_bytes).collect()
}

pub(super) fn sequence(stream: &TcpStream, queue: Queue) -> io::Result<u32> {
    set(stream, TCP_REPAIR_QUEUE, queue as i32)?;
    get(stream, libc::IPPROTO_TCP, TCP_QUEUE_SEQ)
}

/// Clock of timestamps of a connection that has them.
pub(super) fn timestamp_clock(stream: &TcpStream) -> io::Result<Option<u32>> {
    let has = sys::tcp_info(stream)?.tcpi_options & HAS_TIMESTAMPS != 0;
    has.then(|| get(stream, libc::IPPROTO_TCP, TCP_TIMESTAMP)).transpose()
}

pub(super) fn get(stream: &TcpStream, level: i32, option: i32) -> io::Result<u32> {
    let mut bytes = [0; 4];
    sys::option_bytes(stream, level, option, &mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

pub(super) fn set<S: AsFd>(socket: &S, option: i32, value: i32) -> io::Result<()> {
    set_at(socket, libc::IPPROTO_TCP, option, value)
}

pub(super) fn set_at<S: AsFd>(socket: &S, level: i32, option: i32, value: i32) -> io::Result<()> {
    sys::set_option(socket, level, option, value)
}
