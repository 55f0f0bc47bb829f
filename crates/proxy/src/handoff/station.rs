//! A base station: it forwards to some mobile hosts, and keeps the last packets for others.

use super::key::{self, is_genuine};
use super::{BEACON_INTERVAL, BUFFER_PACKETS, Identity, Transmit};
use hopline_core::{Duration, Instant, RandomStream};
use hopline_wire::handoff::{
    Message, MessageBody, PacketId, PriorReception, RecentPackets, RequestAction, RequestKind, TaggedMessage,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Configuration of a [`Station`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// Its identity.
    pub identity: Identity,
    /// Address of the home agent, to which registrations go.
    pub home_agent: Ipv4Addr,
    /// Time between two beacons. Default 1 s (§4).
    pub beacon_interval: Duration,
    /// Packets kept for a host. Default 12 (§4).
    pub buffer_packets: u16,
    /// Treatment of buffered packets that the host has received already. Default [`StartState::Cold`]: they are discarded.
    pub start_state: StartState,
    /// Most mobile hosts that it serves. Default 1024. Any further host is refused, to protect the hosts that are served.
    pub max_mobiles: u32,
}

/// Initial state of middleboxes at a station to which a host comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartState {
    /// They see what is sent from now on (§4: "cannot have seen" more).
    Cold,
    /// They are shown the kept packets that the host has received already: what is lost of those can be sent again from here.
    Warm,
}

impl StationConfig {
    /// A station as the paper has it.
    #[must_use]
    pub const fn new(identity: Identity, home_agent: Ipv4Addr) -> Self {
        let (beacon_interval, buffer_packets) = (BEACON_INTERVAL, BUFFER_PACKETS);
        Self {
            identity,
            home_agent,
            beacon_interval,
            buffer_packets,
            start_state: StartState::Cold,
            max_mobiles: 1024,
        }
    }
}

/// A base station. `K`: a packet in the form in which the caller keeps it.
#[derive(Debug)]
pub struct Station<K> {
    config: StationConfig,
    members: BTreeMap<Ipv4Addr, Member<K>>,
    /// Not later than the first end of a membership.
    next_expiry: Instant,
    next_beacon: Instant,
    last_number: u64,
    actions: VecDeque<StationAction<K>>,
    stats: StationStats,
}

/// Action of a [`Station`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StationAction<K> {
    /// It sends a message.
    Send(Transmit),
    /// It sends a packet on to the mobile host.
    Deliver(K),
    /// It shows a packet, which the mobile host has already, to whatever is in the path to it, and lets go of it.
    ShowToMiddleboxes(K),
    /// It lets go of a packet that it has kept.
    Release(K),
    /// It has no host to send a packet to.
    Refuse(K),
    /// A mobile host has come: if it has a past, what machines in the path are to know of its connections may be on its way here.
    HostArrived(Ipv4Addr, PriorReception),
    /// It sends nothing on to a mobile host any more: what machines in the path know of the host's connections is no longer true.
    HostLeft(Ipv4Addr),
    /// It becomes a member of the group of a mobile host.
    JoinGroup(Ipv4Addr),
    /// It is one no longer.
    LeaveGroup(Ipv4Addr),
}

/// Counters of a [`Station`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// Beacons sent.
    pub beacons: u64,
    /// Hosts that were not forwarded to, and then were.
    pub taken_over: u64,
    /// Kept packets sent on.
    pub sent_from_buffer: u64,
    /// Kept packets that made room for others.
    pub overwritten: u64,
    /// Packets for hosts that are not here.
    pub unwanted: u64,
    /// Memberships that ended because the host was silent.
    pub expired: u64,
    /// Requests refused because there are too many hosts.
    pub refused: u64,
    /// Messages without the right proof, or from another address than that of the host which they are about.
    pub forged: u64,
    /// Messages with a number that is not above the last one.
    pub replayed: u64,
    /// Messages that are none of its concern.
    pub unexpected: u64,
}

/// A mobile host near the station.
#[derive(Debug)]
struct Member<K> {
    role: Role,
    /// Of its last request.
    last_request: u64,
    expires: Instant,
    buffered: VecDeque<(PacketId, K)>,
}

/// Role of the station for a mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It sends on.
    Forwarding,
    /// It keeps.
    Buffering,
    /// Its home agent has not answered yet.
    Registering(PriorReception),
}

impl<K> Station<K> {
    /// Returns a station that serves no host yet. `random` decides the time of its first beacon.
    #[must_use]
    pub fn new(config: StationConfig, now: Instant, random: &mut RandomStream) -> Self {
        let phase = random.duration_below(config.beacon_interval);
        Self {
            config,
            members: BTreeMap::new(),
            next_expiry: Instant::FAR_FUTURE,
            next_beacon: now + phase,
            last_number: 0,
            actions: VecDeque::new(),
            stats: StationStats::default(),
        }
    }

    /// A packet for a mobile host has come through the tunnel. `id`: by what the host names it.
    pub fn handle_packet(&mut self, mobile: Ipv4Addr, id: PacketId, packet: K) {
        let Some(member) = self.members.get_mut(&mobile) else {
            self.stats.unwanted += 1;
            return self.actions.push_back(StationAction::Refuse(packet));
        };
        match member.role {
            Role::Forwarding => self.actions.push_back(StationAction::Deliver(packet)),
            Role::Registering(_) => {
                self.stats.unwanted += 1;
                self.actions.push_back(StationAction::Refuse(packet));
            }
            Role::Buffering => {
                member.buffered.push_back((id, packet));
                if member.buffered.len() > usize::from(self.config.buffer_packets)
                    && let Some((_, oldest)) = member.buffered.pop_front()
                {
                    self.stats.overwritten += 1;
                    self.actions.push_back(StationAction::Release(oldest));
                }
            }
        }
    }

    /// Takes a message that came from the address `from`.
    pub fn handle_message(&mut self, now: Instant, from: Ipv4Addr, tagged: &TaggedMessage) {
        if !is_genuine(self.config.identity.key.as_ref(), tagged) {
            self.stats.forged += 1;
            return;
        }
        let number = tagged.message.number;
        match tagged.message.body {
            MessageBody::Request { mobile, .. } if mobile != from => self.stats.forged += 1,
            MessageBody::Request { mobile, lifetime, action: asks } => {
                self.handle_request(now, (mobile, number, lifetime), asks, tagged);
            }
            MessageBody::Reply { mobile, lifetime, kind: RequestKind::Register }
                if from == self.config.home_agent =>
            {
                self.handle_registration_reply(now, (mobile, number, lifetime), tagged);
            }
            MessageBody::Stale { mobile, requested: asked } if from == self.config.home_agent => {
                if self.members.get(&mobile).is_some_and(|member| member.last_request == asked) {
                    self.actions.push_back(StationAction::Send(Transmit { to: mobile, message: *tagged }));
                } else {
                    self.stats.unexpected += 1;
                }
            }
            MessageBody::Beacon { .. } | MessageBody::Reply { .. } | MessageBody::Stale { .. } => {
                self.stats.unexpected += 1
            }
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_beacon <= now {
            self.next_beacon = now + self.config.beacon_interval;
            self.last_number = self.config.identity.number(now, self.last_number);
            let says = MessageBody::Beacon { station: self.config.identity.address };
            self.stats.beacons += 1;
            self.send(Ipv4Addr::BROADCAST, Message { number: self.last_number, body: says });
        }
        if self.next_expiry <= now {
            let ended = |member: &Member<K>| member.expires <= now;
            let over: Vec<_> = self.members.iter().filter(|(_, m)| ended(m)).map(|(at, _)| *at).collect();
            self.stats.expired += over.len() as u64;
            over.into_iter().for_each(|mobile| self.remove_member(mobile));
            let ends = self.members.values().map(|member| member.expires);
            self.next_expiry = ends.min().unwrap_or(Instant::FAR_FUTURE);
        }
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<StationAction<K>> {
        self.actions.pop_front()
    }

    /// Returns the time at which [`Station::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.next_beacon.min(self.next_expiry)
    }

    /// Number of packets that it keeps for mobile hosts.
    #[must_use]
    pub fn buffered_packets(&self) -> usize {
        self.members.values().map(|member| member.buffered.len()).sum()
    }

    /// Returns its counters.
    #[must_use]
    pub const fn stats(&self) -> &StationStats {
        &self.stats
    }

    /// Returns whether this station forwards packets to the host.
    #[must_use]
    pub fn forwards_to(&self, mobile: Ipv4Addr) -> bool {
        self.members.get(&mobile).is_some_and(|member| member.role == Role::Forwarding)
    }

    /// Returns the number of the last request of a host to which it forwards.
    #[must_use]
    pub fn forwarding_request(&self, mobile: Ipv4Addr) -> Option<u64> {
        self.members
            .get(&mobile)
            .filter(|member| member.role == Role::Forwarding)
            .map(|member| member.last_request)
    }

    /// Mobile hosts that it serves.
    #[must_use]
    pub fn mobiles(&self) -> usize {
        self.members.len()
    }

    fn handle_request(
        &mut self,
        now: Instant,
        (mobile, number, lifetime): (Ipv4Addr, u64, Duration),
        asks: RequestAction,
        tagged: &TaggedMessage,
    ) {
        let known = self.members.get(&mobile).map(|member| member.last_request);
        let answer = Message { number, body: MessageBody::Reply { mobile, lifetime, kind: asks.kind() } };
        match known {
            Some(last) if number < last => {
                self.stats.replayed += 1;
                let key = self.config.identity.key.as_ref();
                if let Some(message) = key::stale_number_reply(key, last, (mobile, number)) {
                    self.actions.push_back(StationAction::Send(Transmit { to: mobile, message }));
                }
            }
            // The answer was lost.
            Some(last) if number == last && !matches!(asks, RequestAction::Register { .. }) => {
                self.send(mobile, answer);
            }
            None if asks != RequestAction::Stop && self.members.len() >= self.config.max_mobiles as usize => {
                self.stats.refused += 1;
            }
            _ => {
                let until = now + lifetime;
                match asks {
                    RequestAction::Forward(latest) => {
                        self.send(mobile, answer);
                        self.start_forwarding(mobile, number, until, &latest);
                    }
                    RequestAction::Buffer => {
                        let member = self.renew_member(mobile, number, until);
                        if core::mem::replace(&mut member.role, Role::Buffering) == Role::Forwarding {
                            self.actions.push_back(StationAction::HostLeft(mobile));
                        }
                        self.send(mobile, answer);
                    }
                    RequestAction::Stop => {
                        self.remove_member(mobile);
                        self.send(mobile, answer);
                    }
                    RequestAction::Register { prior_reception: past, .. } => {
                        let member = self.renew_member(mobile, number, until);
                        if member.role != Role::Forwarding {
                            member.role = Role::Registering(past);
                        }
                        let to = self.config.home_agent;
                        self.actions.push_back(StationAction::Send(Transmit { to, message: *tagged }));
                    }
                }
            }
        }
    }

    /// The home agent has registered a host here.
    fn handle_registration_reply(
        &mut self,
        now: Instant,
        (mobile, number, lifetime): (Ipv4Addr, u64, Duration),
        tagged: &TaggedMessage,
    ) {
        let Some(member) = self.members.get_mut(&mobile).filter(|member| member.last_request == number)
        else {
            self.stats.unexpected += 1;
            return;
        };
        if let Role::Registering(past) = core::mem::replace(&mut member.role, Role::Forwarding) {
            self.stats.taken_over += 1;
            self.actions.push_back(StationAction::HostArrived(mobile, past));
        }
        member.expires = now + lifetime;
        self.actions.push_back(StationAction::Send(Transmit { to: mobile, message: *tagged }));
    }

    /// From now on what comes is sent on, after what was kept and is not among the `latest`.
    fn start_forwarding(&mut self, mobile: Ipv4Addr, number: u64, until: Instant, latest: &RecentPackets) {
        let member = self.renew_member(mobile, number, until);
        let before = core::mem::replace(&mut member.role, Role::Forwarding);
        let kept = core::mem::take(&mut member.buffered);
        if before != Role::Forwarding {
            self.stats.taken_over += 1;
            self.actions.push_back(StationAction::HostArrived(mobile, latest.prior_reception()));
        }
        // The host has all packets before the first one that is found. If none is found, it is unknown what the host has,
        // and all are sent (§4).
        let has = |id: &PacketId| latest.as_slice().contains(id);
        let first = kept.iter().position(|(id, _)| has(id)).unwrap_or(0);
        for (at, (id, packet)) in kept.into_iter().enumerate() {
            let does = if at >= first && !has(&id) {
                self.stats.sent_from_buffer += 1;
                StationAction::Deliver(packet)
            } else if self.config.start_state == StartState::Warm {
                StationAction::ShowToMiddleboxes(packet)
            } else {
                StationAction::Release(packet)
            };
            self.actions.push_back(does);
        }
    }

    /// The host, which is a member from now on, until then.
    fn renew_member(&mut self, mobile: Ipv4Addr, number: u64, until: Instant) -> &mut Member<K> {
        self.next_expiry = self.next_expiry.min(until);
        let out = &mut self.actions;
        let member = self.members.entry(mobile).or_insert_with(|| {
            out.push_back(StationAction::JoinGroup(mobile));
            Member {
                role: Role::Registering(PriorReception::Received),
                last_request: number,
                expires: until,
                buffered: VecDeque::new(),
            }
        });
        (member.last_request, member.expires) = (number, until);
        member
    }

    fn remove_member(&mut self, mobile: Ipv4Addr) {
        if let Some(member) = self.members.remove(&mobile) {
            if member.role == Role::Forwarding {
                self.actions.push_back(StationAction::HostLeft(mobile));
            }
            self.actions
                .extend(member.buffered.into_iter().map(|(_, packet)| StationAction::Release(packet)));
            self.actions.push_back(StationAction::LeaveGroup(mobile));
        }
    }

    fn send(&mut self, to: Ipv4Addr, message: Message) {
        let message = key::seal(self.config.identity.key.as_ref(), message);
        self.actions.push_back(StationAction::Send(Transmit { to, message }));
    }
}
