//! A socket that is put in.

use super::syscalls::{
    MAX_MSS, MSS, Queue, RepairExit, SACK_PERMITTED, SO_BUF_LOCK, TCP_QUEUE_SEQ, TCP_REPAIR,
    TCP_REPAIR_OPTIONS, TCP_REPAIR_QUEUE, TCP_TIMESTAMP, TIMESTAMPS, WINDOW_SCALE, block_packets, bytes_of,
    end_repair_mode, set, set_at, set_windows, unblock_packets,
};
use super::{Marking, State};
use crate::sys;
use crate::transparent::{LegOptions, mark_onward, transparent_socket};
use rustix::net::{SendFlags, send};
use socket2::Socket;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

/// A socket with the state of another one, in repair mode: it does not answer, and dropped, it ends silently.
#[derive(Debug)]
pub struct Restored(TcpStream);

impl Restored {
    /// Makes a socket from `local` to `peer`, of which neither need be an address of this machine, with this state. It takes no packet yet.
    ///
    /// # Errors
    /// Error of the system: without `CAP_NET_ADMIN`; [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable) if there is a connection between these addresses here;
    /// without a route to `peer`.
    pub fn restore(
        local: SocketAddr,
        peer: SocketAddr,
        state: &State,
        options: &LegOptions,
        marked: Marking,
    ) -> io::Result<Self> {
        let socket = transparent_socket(local)?;
        set(&socket, TCP_REPAIR, 1)?;
        block_packets(&socket)?;
        options.apply(&socket)?;
        // It counts for segments from the connection's first moment on; `TCP_REPAIR_OPTIONS` has no effect on them.
        sys::set_option(&socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, state.mss.min(MAX_MSS) as i32)?;
        if marked == Marking::Onward {
            mark_onward(&socket, options)?;
        }
        grow_buffers(&socket, options, state)?;
        let first_unread = state.next.wrapping_sub(state.unread.len() as u32);
        for (queue, number) in [(Queue::Send, state.unacknowledged), (Queue::Receive, first_unread)] {
            set(&socket, TCP_REPAIR_QUEUE, queue as i32)?;
            set(&socket, TCP_QUEUE_SEQ, number as i32)?;
        }
        set(&socket, TCP_REPAIR_QUEUE, 0)?;
        socket.bind(&local.into())?;
        // In repair mode no SYN is sent: the socket is established.
        socket.connect(&peer.into())?;
        set_options(&socket, state)?;
        for (queue, mut left) in [(Queue::Receive, &state.unread[..]), (Queue::Send, &state.sent)] {
            set(&socket, TCP_REPAIR_QUEUE, queue as i32)?;
            while !left.is_empty() {
                let taken = send(&socket, left, SendFlags::DONTWAIT)?;
                left = &left[taken..];
            }
        }
        set(&socket, TCP_REPAIR_QUEUE, 0)?;
        set_windows(&socket, state.windows)?;
        Ok(Self(TcpStream::from(OwnedFd::from(socket))))
    }

    /// Has the connection go on from here. `timestamp`: the clock as the frozen socket has it in the end. The caller reads what is unread, by which
    /// the kernel announces room to a peer that saw a closed window, and then [probes](super::probe_peer).
    ///
    /// # Errors
    /// Error of the system; the connection is reset then.
    pub fn activate(self, timestamp: Option<u32>) -> io::Result<TcpStream> {
        let stream = self.0;
        let go_on = || {
            if let Some(timestamp) = timestamp {
                set(&stream, TCP_TIMESTAMP, timestamp as i32)?;
            }
            unblock_packets(&stream)
        };
        let gone_on = go_on();
        // From here on a drop resets.
        end_repair_mode(&stream, RepairExit::WithoutProbe)?;
        gone_on.map(|()| stream)
    }
}

/// Has buffers hold what is put into them; then the kernel adapts them again.
fn grow_buffers(socket: &Socket, options: &LegOptions, state: &State) -> io::Result<()> {
    let wanted = [
        (options.send_buffer, libc::SO_SNDBUFFORCE, state.buffer_sizes[0].max(2 * state.sent.len() as u32)),
        (options.receive_buffer, libc::SO_RCVBUFFORCE, state.buffer_sizes[1]),
    ];
    let mut adapts = false;
    for (_, option, bytes) in wanted.into_iter().filter(|(limit, ..)| limit.is_none()) {
        // The kernel takes twice what is asked for (socket(7)).
        set_at(socket, libc::SOL_SOCKET, option, (bytes / 2).min(i32::MAX as u32) as i32)?;
        adapts = true;
    }
    if adapts && options.send_buffer.is_none() && options.receive_buffer.is_none() {
        // Before Linux 5.14 they stay as they are.
        let _ = set_at(socket, libc::SOL_SOCKET, SO_BUF_LOCK, 0);
    }
    Ok(())
}

fn set_options(socket: &Socket, state: &State) -> io::Result<()> {
    // Without this option the socket would scale as if it had sent a SYN that was answered in kind.
    let (peers, ours) = state.scales.unwrap_or((0, 0));
    let options = [
        Some((MSS, state.mss)),
        Some((WINDOW_SCALE, u32::from(peers) | u32::from(ours) << 16)),
        state.sack.then_some((SACK_PERMITTED, 0)),
        state.timestamp.map(|_| (TIMESTAMPS, 0)),
    ];
    let numbers = options.into_iter().flatten().flat_map(|(code, value)| [code, value]);
    sys::set_option_bytes(socket, libc::IPPROTO_TCP, TCP_REPAIR_OPTIONS, &bytes_of(numbers))?;
    state.timestamp.map_or(Ok(()), |timestamp| set(socket, TCP_TIMESTAMP, timestamp as i32))
}
