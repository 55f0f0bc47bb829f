//! The thread that holds SYNs while servers are called.

use super::connector::Connector;
use super::pending::{PendingConnections, Removed, SynState};
use super::refusal::{Icmp, Refusal};
use super::worker::now;
use super::{BaseStation, ConnectOrder, Shared};
use crate::diversion::{Diversion, DivertResult as Diverted, Loopback, SYN_ACK_TIMEOUT, divert};
use crate::endpoints::FlowEndpoints;
use crate::nfqueue::{PacketQueue, QueuedPacket};
use crate::own_routes::{Halves, OwnRoutes};
use hopline_linux::Error;
use hopline_proxy::PacketVerdict;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Calls that wait for a server or a client, seen by the thread that holds them and by the one that accepts them.
#[derive(Debug)]
pub(super) struct PendingTable(Mutex<PendingConnections<QueuedPacket, TcpStream>>);

/// A queue of SYNs, and what tells the thread that reads it to end.
#[derive(Debug)]
pub(super) struct Queue {
    packets: PacketQueue,
    listener: Loopback,
    /// Send SYNs to a rule that refuses them, in the order of [`Refusal::ALL`].
    refusing: Vec<Loopback>,
    icmp: Icmp,
    own_routes: OwnRoutes,
    end: OwnedFd,
}

#[derive(Debug)]
pub(super) struct SynHolder<'a> {
    shared: &'a Shared,
    queue: Queue,
    connector: Connector<'a>,
    epoll: OwnedFd,
}

/// Numbers among events that no call has.
const QUEUE_EVENT: u64 = u64::MAX;
const END_EVENT: u64 = u64::MAX - 1;
/// Most events that are taken at once.
const MAX_EVENTS: usize = 256;

impl PendingTable {
    /// No more than half of the connections wait for a server: a flood of calls leaves room for those that are there.
    pub(super) fn new(max_connections: usize) -> Self {
        Self(Mutex::new(PendingConnections::new(max_connections / 2)))
    }

    /// The onward connection of a call that was held before it was accepted.
    pub(super) fn take_accepted(&self, ends: FlowEndpoints) -> Option<TcpStream> {
        self.lock().take_accepted(ends)
    }

    pub(super) fn len(&self) -> u64 {
        self.lock().len() as u64
    }

    fn lock(&self) -> MutexGuard<'_, PendingConnections<QueuedPacket, TcpStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Takes the queue, in the calling thread's namespace.
    pub(super) fn open(
        diversion: Diversion,
        max_connections: usize,
        beside: Option<&BaseStation>,
    ) -> Result<Self, Error> {
        let refusing = Refusal::ALL.iter().map(|refusal| diversion.with_code(refusal.code()));
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self {
            packets: diversion.open_queue(max_connections / 2)?,
            listener: diversion.to_listener()?,
            refusing: refusing.collect::<Result<_, _>>()?,
            icmp: Icmp::open()?,
            own_routes: OwnRoutes::open(diversion, Halves::Both, beside)?,
            end: end.map_err(|e| Error::system("making an eventfd", e))?,
        })
    }

    /// Descriptor that ends the thread when something is written to it.
    pub(super) fn end(&self) -> io::Result<OwnedFd> {
        self.end.try_clone()
    }
}

impl<'a> SynHolder<'a> {
    pub(super) fn new(shared: &'a Shared, queue: Queue) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (fd, number) in [(queue.packets.as_fd(), QUEUE_EVENT), (queue.end.as_fd(), END_EVENT)] {
            epoll::add(&epoll, fd, EventData::new_u64(number), EventFlags::IN)?;
        }
        let caller = Connector::new(shared).map_err(io::Error::other)?;
        Ok(Self { shared, queue, connector: caller, epoll })
    }

    /// Runs until it is told to end. Calls that wait then are forgotten: their SYNs are dropped with the queue.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        loop {
            events.clear();
            let wait = Timespec::try_from(self.wait()).ok();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), wait.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for &Event { data, .. } in &events {
                match data.u64() {
                    END_EVENT => return Ok(()),
                    QUEUE_EVENT => self.handle_syns()?,
                    number => self.handle_server_answer(number),
                }
            }
            self.expire();
            self.queue.packets.flush()?;
        }
    }

    fn wait(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(60);
        let due = self.shared.pending.lock().next_deadline();
        due.map_or(LONGEST, |due| due.saturating_duration_since(now()).min(LONGEST))
    }

    fn handle_syns(&mut self) -> io::Result<()> {
        for passing in self.queue.packets.receive()? {
            if !self.queue.own_routes.match_forwarded(&passing) {
                self.shared.counts.asymmetric.add(1);
                self.queue.packets.set_verdict(&passing, &PacketVerdict::Forward);
                continue;
            }
            self.queue.packets.postpone(&passing);
            match (self.shared.connect_order, passing.packet.as_deref().and_then(FlowEndpoints::of)) {
                (ConnectOrder::ClientFirst(_), _) => {
                    self.divert(&passing);
                }
                (ConnectOrder::ServerFirst(_), Some(ends)) => self.handle_syn(ends, passing),
                (ConnectOrder::ServerFirst(_), None) => self.divert_unheld(&passing),
            }
        }
        Ok(())
    }

    fn handle_syn(&mut self, ends: FlowEndpoints, passing: QueuedPacket) {
        let known = self.shared.pending.lock().handle_syn(ends, passing);
        match known {
            SynState::New(syn) => self.connect_server(ends, syn),
            SynState::Connecting(older) => self.queue.packets.set_verdict(&older, &PacketVerdict::Drop),
            SynState::Released(syn) => {
                self.divert(&syn);
            }
        }
    }

    /// Calls the server. A call that cannot be held for want of something here goes on as if it had not been.
    fn connect_server(&mut self, ends: FlowEndpoints, syn: QueuedPacket) {
        if self.shared.counts.open_connections.get() >= self.shared.max_connections as u64 {
            self.divert(&syn);
            return;
        }
        // The server is not called for a connection that would be forwarded.
        if !self.shared.unaccepted.has_room(now(), ends.client().ip()) {
            return self.forward(&syn);
        }
        match self.connector.connect(ends.client(), ends.server()) {
            Ok(Some(onward)) => self.insert(ends, syn, onward),
            Ok(None) => {
                self.divert(&syn);
            }
            Err(error) => match Refusal::from_error(&error) {
                Some(refusal) => {
                    self.shared.counts.failure_counter(&error).add(1);
                    self.refuse(&syn, refusal);
                }
                None => self.divert_unheld(&syn),
            },
        }
    }

    fn insert(&mut self, ends: FlowEndpoints, syn: QueuedPacket, onward: TcpStream) {
        let due = now() + self.shared.connect_timeout;
        let mut calls = self.shared.pending.lock();
        let (number, replaced) = calls.insert(ends, syn, onward, due);
        let data = EventData::new_u64(number);
        let added = calls.onward(number).map(|onward| epoll::add(&self.epoll, onward, data, EventFlags::OUT));
        drop(calls);
        self.shared.counts.open_connections.add(1);
        if let Some(removed) = replaced {
            self.shared.counts.dropped_held.add(1);
            self.drop_silently(&removed);
        }
        if let Some(Err(_)) = added {
            let removed = self.shared.pending.lock().remove(number);
            self.shared.counts.refused_descriptors.add(1);
            removed.iter().for_each(|removed| self.drop_silently(removed));
        }
    }

    /// Lets the SYN of a call go on to the listener if the server has accepted the connection.
    fn handle_server_answer(&mut self, number: u64) {
        let mut calls = self.shared.pending.lock();
        // It has left the table in the course of an event before this one.
        let Some(onward) = calls.onward(number) else { return };
        let _ = epoll::delete(&self.epoll, onward);
        match onward.take_error().and_then(|error| error.map_or(Ok(()), Err)) {
            Ok(()) => {
                let syn = calls.release(number, now() + SYN_ACK_TIMEOUT);
                drop(calls);
                syn.iter().for_each(|syn| self.release(number, syn));
            }
            Err(error) => {
                let removed = calls.remove(number);
                drop(calls);
                self.shared.counts.failure_counter(&error).add(1);
                removed.iter().for_each(|removed| self.end(removed, Refusal::from_error(&error)));
            }
        }
    }

    fn expire(&mut self) {
        loop {
            let due = self.shared.pending.lock().pop_expired(now());
            let Some(removed) = due else { return };
            let counts = &self.shared.counts;
            let count = if removed.syn.is_some() { &counts.failed_timeout } else { &counts.failed_other };
            count.add(1);
            self.drop_silently(&removed);
        }
    }

    fn end(&mut self, removed: &Removed<QueuedPacket, TcpStream>, refusal: Option<Refusal>) {
        match (&removed.syn, refusal) {
            (Some(syn), Some(refusal)) => {
                self.refuse(syn, refusal);
                self.shared.counts.open_connections.subtract(1);
            }
            _ => self.drop_silently(removed),
        }
    }

    /// Says nothing to the client, which asks again or gives up as it would without an answer of the network.
    fn drop_silently(&mut self, removed: &Removed<QueuedPacket, TcpStream>) {
        removed.syn.iter().for_each(|syn| self.queue.packets.set_verdict(syn, &PacketVerdict::Drop));
        self.shared.counts.open_connections.subtract(1);
    }

    /// Refuses a call. A client that cannot be told asks again.
    fn refuse(&mut self, syn: &QueuedPacket, refusal: Refusal) {
        let packet = syn.packet.as_deref().unwrap_or_default();
        let client = FlowEndpoints::of(packet).map(|ends| ends.client().ip());
        let is_told =
            client.is_some_and(|client| client.is_ipv4() && self.queue.icmp.send(refusal, client, packet));
        if !is_told {
            let _ = self.queue.refusing[refusal as usize].send(packet);
        }
        self.queue.packets.set_verdict(syn, &PacketVerdict::Drop);
    }

    /// Sends the SYN of a call that the server has accepted to the listener. If this machine does not let it, or there is no room, the server
    /// is told to forget the call, and the SYN is forwarded.
    fn release(&mut self, number: u64, syn: &QueuedPacket) {
        if self.divert(syn) == Diverted::Sent {
            return;
        }
        let removed = self.shared.pending.lock().remove(number);
        removed.iter().for_each(|removed| self.drop_silently(removed));
    }

    fn divert(&mut self, syn: &QueuedPacket) -> Diverted {
        let fate =
            divert(&mut self.queue.packets, &self.queue.listener, &self.shared.unaccepted, (now(), syn));
        match fate {
            Diverted::Sent => {}
            Diverted::Full => self.forward(syn),
            // The firewall has let it through.
            Diverted::Forbidden => {
                self.shared.counts.not_held.add(1);
                self.queue.packets.set_verdict(syn, &PacketVerdict::Forward);
            }
        }
        fate
    }

    /// Forwards a SYN for which the listener has no room: the connection goes on as without a proxy.
    fn forward(&mut self, syn: &QueuedPacket) {
        self.shared.counts.not_split.add(1);
        self.queue.packets.set_verdict(syn, &PacketVerdict::Forward);
    }

    fn divert_unheld(&mut self, syn: &QueuedPacket) {
        if self.divert(syn) == Diverted::Sent {
            self.shared.counts.not_held.add(1);
        }
    }
}

impl Drop for SynHolder<'_> {
    fn drop(&mut self) {
        let left = self.shared.pending.lock().clear() as u64;
        self.shared.counts.stopped.add(left);
        self.shared.counts.open_connections.subtract(left);
    }
}
