//! A host: the process of a kernel, its clock and its network devices.

use crate::channel::Channel;
use crate::clock::{HostClock, HostState};
use crate::error::Error;
use crate::kernel::last_line;
use crate::shared_time::{self, SharedTime};
use crate::time_travel::{MESSAGE_LEN, Message, Operation};
use crate::vhost::device::{Interrupt, NetDevice, RECEIVE, Work};
use crate::vhost::message::{self, HEADER_LEN, Header};
use bytes::Bytes;
use hopline_core::{Instant, NodeId};
use hopline_sim::Medium;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

/// Interval between checks of whether the caller wants the end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Next step of a host.
#[derive(Debug)]
pub(crate) enum Step {
    /// It waits for its turn or an interrupt.
    Waits,
    /// It sends frames over the port of this number, at this time. [`Host::finish_transmission`] lets it go on.
    Transmits(usize, Instant),
    /// It has been switched off.
    Ended,
}

/// Connection that has a message.
#[derive(Clone, Copy)]
enum Source {
    Time,
    /// The port of this number.
    Net(usize),
}

/// Interface of a host: the network device of its kernel.
struct Port {
    /// The only medium of its frames; `None`: all interfaces of the node.
    medium: Option<Medium>,
    device: NetDevice,
    channel: Channel,
}

/// Waiting for a running host.
#[derive(Clone, Copy)]
pub(crate) struct Patience<'a> {
    /// Real time for which a host may compute without a message.
    pub(crate) limit: Duration,
    /// Is told the virtual time; `false` interrupts the emulation.
    pub(crate) proceed: &'a dyn Fn(Instant) -> bool,
}

/// Host at a node.
pub(crate) struct Host {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    /// Its files.
    pub(crate) folder: PathBuf,
    process: Child,
    pub(crate) clock: HostClock,
    /// Memory for its times, once it has started.
    memory: Option<SharedTime>,
    time: Channel,
    ports: Vec<Port>,
    has_ended: bool,
    /// Port of the kick under way, and the reply to it.
    kick: Option<(usize, Vec<u8>)>,
}

impl Host {
    /// Takes over the process of a kernel, which will connect.
    pub(crate) fn new(
        (node, name): (NodeId, &str),
        folder: PathBuf,
        process: Child,
        mac: [u8; 6],
        time: Channel,
        media: Vec<(Option<Medium>, Channel)>,
    ) -> Self {
        let port = |(medium, channel)| Port { medium, device: NetDevice::new(mac), channel };
        Self {
            node,
            name: name.to_owned(),
            folder,
            process,
            clock: HostClock::default(),
            memory: None,
            time,
            ports: media.into_iter().map(port).collect(),
            has_ended: false,
            kick: None,
        }
    }

    /// Returns the time at which it wants its turn.
    pub(crate) fn request(&self) -> Option<Instant> {
        self.clock.request().filter(|_| !self.has_ended && self.clock.state() == HostState::Waiting)
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Frames that were dropped since the kernel had no buffers.
    pub(crate) fn overflow(&self) -> u64 {
        self.ports.iter().map(|port| port.device.overflow()).sum()
    }

    /// Returns the only medium of a port; `None`: all interfaces of the node.
    pub(crate) fn medium(&self, port: usize) -> Option<Medium> {
        self.ports[port].medium
    }

    /// Lets the host run from `now` on, freely up to `free_until`.
    pub(crate) fn run(&mut self, now: Instant, free_until: Instant) -> Result<(), Error> {
        let messages: Vec<u8> = self.clock.run(now, free_until).flat_map(|message| message.emit()).collect();
        if let Some(memory) = self.shared() {
            memory.grant(now, free_until).map_err(|e| self.failure(e))?;
        }
        self.time.send(&messages).map_err(|e| self.failure(e))
    }

    /// Follows the running host until it waits, sends frames, or ends.
    pub(crate) fn follow(&mut self, now: Instant, patience: Patience<'_>) -> Result<Step, Error> {
        loop {
            match self.wait(now, patience)? {
                None => {
                    self.has_ended = true;
                    return Ok(Step::Ended);
                }
                Some(Source::Time) => {
                    self.handle_time(now)?;
                    if self.clock.state() == HostState::Waiting {
                        return Ok(Step::Waits);
                    }
                }
                Some(Source::Net(port)) => {
                    if let Work::Transmit = self.handle_net(port)? {
                        self.note_reached()?;
                        return Ok(Step::Transmits(port, self.clock.reached()));
                    }
                }
            }
        }
    }

    /// Takes the next frame that the host sends over a port.
    pub(crate) fn take_frame(&mut self, port: usize) -> Result<Option<Bytes>, Error> {
        let frame = self.ports[port].device.take_frame();
        frame.map_err(|source| Error::Device { node: self.name.clone(), source })
    }

    /// Takes back free time beyond `free_until`, and lets the host go on after it has sent frames.
    pub(crate) fn finish_transmission(
        &mut self,
        now: Instant,
        free_until: Instant,
        patience: Patience<'_>,
    ) -> Result<(), Error> {
        if let Some(message) = self.clock.shorten(free_until) {
            self.time.send(&message.emit()).map_err(|e| self.failure(e))?;
            // A kernel looks at its network before it looks at its time: without the ACK it could miss the message.
            while self.clock.owes_ack() {
                self.wait_for_time(now, patience)?;
                self.handle_time(now)?;
            }
        }
        if let Some(memory) = self.shared() {
            memory.set_free_until(self.clock.free_until()).map_err(|e| self.failure(e))?;
        }
        match self.kick.take() {
            Some((port, reply)) => self.ports[port].channel.send(&reply).map_err(|e| self.failure(e)),
            None => Ok(()),
        }
    }

    /// Hands a frame that came by a medium to the waiting host.
    pub(crate) fn deliver(
        &mut self,
        now: Instant,
        medium: Medium,
        frame: Bytes,
        patience: Patience<'_>,
    ) -> Result<(), Error> {
        let is_of = |port: &Port| port.medium.is_none_or(|only| only == medium);
        let Some(index) = self.ports.iter().position(is_of) else { return Ok(()) };
        let device = &mut self.ports[index].device;
        if self.has_ended || device.requests().is_none() {
            return Ok(());
        }
        let interrupt = device.deliver(frame);
        self.interrupt(now, index, interrupt, patience)
    }

    /// Tries again to hand over frames for which a waiting host had no buffers.
    pub(crate) fn deliver_backlog(&mut self, now: Instant, patience: Patience<'_>) -> Result<(), Error> {
        for index in 0..self.ports.len() {
            let device = &mut self.ports[index].device;
            if !self.has_ended && device.has_backlog() {
                let interrupt = device.deliver_backlog();
                self.interrupt(now, index, interrupt, patience)?;
            }
        }
        Ok(())
    }

    fn interrupt(
        &mut self,
        now: Instant,
        port: usize,
        interrupt: Result<Interrupt, crate::vhost::device::DeviceError>,
        patience: Patience<'_>,
    ) -> Result<(), Error> {
        match interrupt.map_err(|source| Error::Device { node: self.name.clone(), source })? {
            Interrupt::None => Ok(()),
            Interrupt::Receive => self.call(now, port, patience),
        }
    }

    /// Interrupts the waiting host, and serves it until it has noted the interrupt: it asks for the time, and requests to run now.
    fn call(&mut self, now: Instant, port: usize, patience: Patience<'_>) -> Result<(), Error> {
        let Some(requests) = self.ports[port].device.requests() else { return Ok(()) };
        let requests = Arc::clone(requests);
        if let Some(memory) = self.shared() {
            memory.set_now(now).map_err(|e| self.failure(e))?;
        }
        write_all(&requests, &message::vring_call(RECEIVE as u32)).map_err(|e| self.failure(e))?;
        loop {
            let fds = [self.time.as_fd(), requests.as_fd()];
            match wait_for((&mut self.process, &self.name), &fds, now, patience)? {
                None => return Err(self.failure(io::ErrorKind::UnexpectedEof.into())),
                Some(0) => self.handle_time(now)?,
                Some(_) => {
                    self.read_reply(&requests)?;
                    return self.note_request();
                }
            }
        }
    }

    fn read_reply(&self, requests: &OwnedFd) -> Result<(), Error> {
        let mut reply = [0; HEADER_LEN + 8];
        let mut filled = 0;
        while filled < reply.len() {
            match rustix::io::read(requests, &mut reply[filled..]) {
                Ok(0) => return Err(self.failure(io::ErrorKind::UnexpectedEof.into())),
                Ok(len) => filled += len,
                Err(Errno::INTR) => {}
                Err(e) => return Err(self.failure(e.into())),
            }
        }
        Ok(())
    }

    fn handle_time(&mut self, now: Instant) -> Result<(), Error> {
        let mut bytes = [0; MESSAGE_LEN];
        self.time.receive(&mut bytes).map_err(|e| self.failure(e))?;
        let message = Message::parse(&bytes).map_err(|_| Error::Garbled { node: self.name.clone() })?;
        self.note_sharing(message.operation)?;
        let answer = self.clock.handle(now, message);
        let answer = answer.map_err(|source| Error::Protocol { node: self.name.clone(), source })?;
        if message.operation == Operation::Wait {
            self.note_request()?;
        }
        let Some(answer) = answer else { return Ok(()) };
        let sent = match message.operation {
            Operation::Start => self.acknowledge_start(answer),
            _ => self.time.send(&answer.emit()),
        };
        sent.map_err(|e| self.failure(e))
    }

    /// Linux 6.12 reads two descriptors with this ACK whether they were sent or not.
    fn acknowledge_start(&mut self, ack: Message) -> io::Result<()> {
        let memory = SharedTime::create()?;
        let log = memfd_create("hopline-log", MemfdFlags::CLOEXEC)?;
        let ack = Message { time: shared_time::KERNEL.into(), ..ack };
        self.time.send_with(&ack.emit(), &[memory.as_fd(), log.as_fd()])?;
        self.memory = Some(memory);
        Ok(())
    }

    /// Returns the memory that the kernel has its times in; `None` if it sends them in messages.
    fn shared(&self) -> Option<&SharedTime> {
        self.memory.as_ref().filter(|_| self.clock.is_shared())
    }

    /// Notes whether the kernel shares memory: kernels before Linux 6.11 do not.
    fn note_sharing(&mut self, operation: Operation) -> Result<(), Error> {
        // Its first message after START shows it. Those that follow do not change it.
        let is_first = operation != Operation::Start && self.clock.state() == HostState::Running;
        if let Some(memory) = self.memory.as_ref().filter(|_| is_first && !self.clock.is_shared())
            && memory.is_used().map_err(|e| self.failure(e))?
        {
            self.clock.share();
        }
        Ok(())
    }

    /// Reads the request of a kernel with shared memory that has begun to wait, or was interrupted.
    fn note_request(&mut self) -> Result<(), Error> {
        if let Some(memory) = self.shared() {
            let request = memory.request().map_err(|e| self.failure(e))?;
            self.clock.set_request(request);
        }
        Ok(())
    }

    /// Reads the time that a kernel with shared memory has reached.
    fn note_reached(&mut self) -> Result<(), Error> {
        let Some(memory) = self.shared() else { return Ok(()) };
        let time = memory.reached().map_err(|e| self.failure(e))?;
        let noted = self.clock.reach(time);
        noted.map_err(|source| Error::Protocol { node: self.name.clone(), source })
    }

    fn handle_net(&mut self, index: usize) -> Result<Work, Error> {
        let mut bytes = [0; HEADER_LEN];
        let port = &mut self.ports[index];
        let received = port.channel.receive_with(&mut bytes);
        let descriptors = received.map_err(|e| self.failure(e))?;
        let header = Header::parse(&bytes).ok_or_else(|| Error::Garbled { node: self.name.clone() })?;
        let mut payload = vec![0; header.len as usize];
        self.ports[index].channel.receive(&mut payload).map_err(|e| self.failure(e))?;
        let answer = self.ports[index].device.handle(header, &payload, descriptors);
        let answer = answer.map_err(|source| Error::Device { node: self.name.clone(), source })?;
        match (answer.work, answer.reply) {
            (Work::Transmit, reply) => {
                self.kick = reply.map(|reply| (index, reply));
                return Ok(Work::Transmit);
            }
            (Work::None, Some(reply)) => {
                self.ports[index].channel.send(&reply).map_err(|e| self.failure(e))?
            }
            (Work::None, None) => {}
        }
        Ok(Work::None)
    }

    /// Waits for a message of the running host; `None` if its kernel has ended.
    fn wait(&mut self, now: Instant, patience: Patience<'_>) -> Result<Option<Source>, Error> {
        loop {
            let nets = self.ports.iter().map(|port| port.channel.as_fd());
            let fds: Vec<_> = [self.time.as_fd()].into_iter().chain(nets).collect();
            let ready = match wait_for((&mut self.process, &self.name), &fds, now, patience)? {
                None => return Ok(None),
                Some(0) => Source::Time,
                Some(number) => Source::Net(number - 1),
            };
            let channel = match ready {
                Source::Time => &mut self.time,
                Source::Net(port) => &mut self.ports[port].channel,
            };
            if let Channel::Listening(_) = channel {
                channel.accept().map_err(Error::system("accepting a kernel"))?;
                continue;
            }
            return Ok(match is_closed(channel) {
                true => None,
                false => Some(ready),
            });
        }
    }

    fn wait_for_time(&mut self, now: Instant, patience: Patience<'_>) -> Result<(), Error> {
        match wait_for((&mut self.process, &self.name), &[self.time.as_fd()], now, patience)? {
            Some(_) => Ok(()),
            None => Err(self.failure(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Returns the error of a connection that broke: the kernel has ended.
    fn failure(&self, error: io::Error) -> Error {
        match self.console().exists() {
            true => self.has_ended_early(),
            false => Error::system(format!("talking to the kernel of node {}", self.name))(error),
        }
    }

    /// Returns the error that the kernel has ended before its time.
    pub(crate) fn has_ended_early(&self) -> Error {
        let last = last_line(&self.console()).unwrap_or_default();
        Error::KernelEnded { node: self.name.clone(), last }
    }

    fn console(&self) -> PathBuf {
        self.folder.join("console")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until one of the descriptors has something to read, and returns its number; `None` if the process has ended.
fn wait_for(
    (process, name): (&mut Child, &str),
    fds: &[BorrowedFd<'_>],
    now: Instant,
    patience: Patience<'_>,
) -> Result<Option<usize>, Error> {
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let interval = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.as_nanos() as i64 };
    let mut waited = Duration::ZERO;
    loop {
        match poll(&mut fds, Some(&interval)) {
            Ok(0) | Err(Errno::INTR) => waited += POLL_INTERVAL,
            Ok(_) => return Ok(fds.iter().position(|fd| !fd.revents().is_empty())),
            Err(e) => return Err(Error::system("waiting for a kernel")(e)),
        }
        if !(patience.proceed)(now) {
            return Err(Error::Interrupted);
        }
        if matches!(process.try_wait(), Ok(Some(_))) {
            return Ok(None);
        }
        if waited >= patience.limit {
            return Err(Error::Stuck { node: name.to_owned(), patience: patience.limit });
        }
    }
}

/// Returns whether the other side has closed a connection that is ready.
fn is_closed(channel: &Channel) -> bool {
    use rustix::net::{RecvFlags, recv};
    let Ok(stream) = channel.stream() else { return false };
    let mut byte = [0u8; 1];
    matches!(
        recv(stream, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT),
        Ok((_, 0)) | Err(Errno::CONNRESET)
    )
}

fn write_all(descriptor: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
