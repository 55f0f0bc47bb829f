//! The TAP interfaces of all hosts, and waiting for frames of any of them.

use hopline_core::NodeId;
use hopline_linux::{Error, Tun};
use hopline_sim::Medium;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

/// Number that stands for the end in place of that of a TAP.
const END: u64 = u64::MAX;
/// TAPs that are reported at a time. Those left are reported by the next call.
const AT_ONCE: usize = 64;

/// TAP interfaces by number, from 0.
pub(crate) struct TapSet {
    taps: Vec<HostTap>,
    /// Numbers of the TAPs of each node, in a row.
    numbers: Vec<Range<usize>>,
    /// A list in the kernel: with many TAPs, asking each of them would take longer than the events of the network.
    epoll: OwnedFd,
}

/// TAP of a host.
#[derive(Debug)]
pub(crate) struct HostTap {
    node: NodeId,
    /// The only medium of its frames, if there is one.
    medium: Option<Medium>,
    tap: Tun,
    /// Frames that its kernel refused.
    refused: u64,
}

impl HostTap {
    pub(crate) fn new(node: NodeId, medium: Option<Medium>, tap: Tun) -> Self {
        Self { node, medium, tap, refused: 0 }
    }
}

/// Reason that a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Frames, or the time.
    Continue,
    /// The emulation has to end.
    End,
}

/// Signal to end a wait.
#[derive(Debug)]
pub(crate) struct StopSignal(OwnedFd);

impl StopSignal {
    pub(crate) fn send(&self) {
        // The write cannot fail: the counter is far from its limit.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl TapSet {
    /// Creates the set of the TAPs of some of `nodes` nodes, in the order of the nodes, and the signal that ends each wait.
    pub(crate) fn new(taps: Vec<HostTap>, nodes: usize) -> Result<(Self, StopSignal), Error> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| Error::new("making an eventfd", e))?;
        let failed = |e: Errno| Error::new("making an epoll", e);
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(failed)?;
        epoll::add(&epoll, &stop, EventData::new_u64(END), EventFlags::IN).map_err(failed)?;
        let mut numbers = vec![0..0; nodes];
        for (number, tap) in taps.iter().enumerate() {
            epoll::add(&epoll, tap.tap.as_fd(), EventData::new_u64(number as u64), EventFlags::IN)
                .map_err(failed)?;
            let of_node: &mut Range<usize> = &mut numbers[tap.node.index()];
            if of_node.end == 0 {
                of_node.start = number;
            }
            of_node.end = number + 1;
        }
        Ok((Self { taps, numbers, epoll }, StopSignal(stop)))
    }

    /// Waits until a frame arrives, the time is over, or the emulation has to end. Adds the numbers of the TAPs with
    /// frames to `ready`.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn wait(&self, most: Option<Timespec>, ready: &mut Vec<usize>) -> Result<Wake, Errno> {
        // Its time is in nanoseconds; that of epoll_wait(2) is in milliseconds.
        match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let mut events = [const { MaybeUninit::uninit() }; AT_ONCE];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let (events, _) = match epoll::wait(&self.epoll, &mut events, Some(&now)) {
            Err(Errno::INTR) => return Ok(Wake::Continue),
            reported => reported?,
        };
        let mut wake = Wake::Continue;
        for event in events {
            match event.data.u64() {
                END => wake = Wake::End,
                number => ready.push(number as usize),
            }
        }
        Ok(wake)
    }

    /// Receives a frame of a TAP. Returns its length; `None` if there is none now.
    pub(crate) fn receive(&mut self, number: usize, buffer: &mut [u8]) -> Option<usize> {
        let tap = &self.taps[number].tap;
        match tap.receive(buffer) {
            Ok(len) => len,
            Err(error) => {
                // A deleted interface is always readable, but has no frame.
                if Errno::from_io_error(&error) == Some(Errno::BADFD) {
                    let _ = epoll::delete(&self.epoll, tap.as_fd());
                }
                None
            }
        }
    }

    /// Hands a frame that came by a medium to the kernel of a node, if it has a TAP for it.
    pub(crate) fn send(&mut self, node: NodeId, medium: Medium, frame: &[u8]) {
        let mut of_node = self.taps[self.numbers[node.index()].clone()].iter_mut();
        if let Some(tap) = of_node.find(|tap| tap.medium.is_none_or(|only| only == medium)) {
            tap.refused += u64::from(tap.tap.send(frame).is_err());
        }
    }

    /// Returns the node of a TAP, and the only medium of its frames, if there is one.
    pub(crate) fn place(&self, number: usize) -> (NodeId, Option<Medium>) {
        (self.taps[number].node, self.taps[number].medium)
    }

    /// Returns the nodes, and the frames that their kernels refused.
    pub(crate) fn refused(&self) -> BTreeMap<NodeId, u64> {
        let mut refused = BTreeMap::new();
        for tap in &self.taps {
            *refused.entry(tap.node).or_default() += tap.refused;
        }
        refused
    }
}
