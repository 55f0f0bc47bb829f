//! A base station: it forwards to some mobile hosts, and keeps the last packets for others.

use super::key::{self, is_genuine};
use super::{BEACON_INTERVAL, BUFFER_PACKETS, Identity, Transmit};
use hopline_core::{Duration, Instant, Stream};
use hopline_wire::handoff::{Asks, Kind, Latest, Message, PacketId, Past, Says, Tagged};
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
    /// Treatment of buffered packets that the host has received already. Default [`Cold::Yes`]: they are discarded.
    pub cold: Cold,
    /// Most mobile hosts that it serves. Default 1024. Any further host is refused, to protect the hosts that are served.
    pub mobiles: u32,
}

/// Initial state of middleboxes at a station to which a host comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// They see what is sent from now on (§4: "cannot have seen" more).
    Yes,
    /// They are shown the kept packets that the host has received already: what is lost of those can be sent again from here.
    No,
}

impl StationConfig {
    /// A station as the paper has it.
    #[must_use]
    pub const fn new(identity: Identity, home_agent: Ipv4Addr) -> Self {
        let (beacon_interval, buffer_packets) = (BEACON_INTERVAL, BUFFER_PACKETS);
        Self { identity, home_agent, beacon_interval, buffer_packets, cold: Cold::Yes, mobiles: 1024 }
    }
}

/// A base station. `K`: a packet in the form in which the caller keeps it.
#[derive(Debug)]
pub struct Station<K> {
    config: StationConfig,
    members: BTreeMap<Ipv4Addr, Member<K>>,
    /// Not later than the first end of a membership.
    first_end: Instant,
    next_beacon: Instant,
    number: u64,
    out: VecDeque<Does<K>>,
    stats: StationStats,
}

/// Action of a [`Station`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does<K> {
    /// It sends a message.
    Sends(Transmit),
    /// It sends a packet on to the mobile host.
    Delivers(K),
    /// It shows a packet, which the mobile host has already, to whatever is in the path to it, and lets go of it.
    Shows(K),
    /// It lets go of a packet that it has kept.
    Discards(K),
    /// It has no host to send a packet to.
    Refuses(K),
    /// A mobile host has come: if it has a past, what machines in the path are to know of its connections may be on its way here.
    Receives(Ipv4Addr, Past),
    /// It sends nothing on to a mobile host any more: what machines in the path know of the host's connections is no longer true.
    Parts(Ipv4Addr),
    /// It becomes a member of the group of a mobile host.
    Joins(Ipv4Addr),
    /// It is one no longer.
    Leaves(Ipv4Addr),
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
    pub foreign: u64,
}

/// A mobile host near the station.
#[derive(Debug)]
struct Member<K> {
    role: Role,
    /// Of its last request.
    number: u64,
    expires: Instant,
    kept: VecDeque<(PacketId, K)>,
}

/// Role of the station for a mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It sends on.
    Forwarding,
    /// It keeps.
    Buffering,
    /// Its home agent has not answered yet.
    Registering(Past),
}

impl<K> Station<K> {
    /// Returns a station that serves no host yet. `random` decides the time of its first beacon.
    #[must_use]
    pub fn new(config: StationConfig, now: Instant, random: &mut Stream) -> Self {
        let phase = random.duration_below(config.beacon_interval);
        Self {
            config,
            members: BTreeMap::new(),
            first_end: Instant::FAR_FUTURE,
            next_beacon: now + phase,
            number: 0,
            out: VecDeque::new(),
            stats: StationStats::default(),
        }
    }

    /// A packet for a mobile host has come through the tunnel. `id`: by what the host names it.
    pub fn handle_packet(&mut self, mobile: Ipv4Addr, id: PacketId, packet: K) {
        let Some(member) = self.members.get_mut(&mobile) else {
            self.stats.unwanted += 1;
            return self.out.push_back(Does::Refuses(packet));
        };
        match member.role {
            Role::Forwarding => self.out.push_back(Does::Delivers(packet)),
            Role::Registering(_) => {
                self.stats.unwanted += 1;
                self.out.push_back(Does::Refuses(packet));
            }
            Role::Buffering => {
                member.kept.push_back((id, packet));
                if member.kept.len() > usize::from(self.config.buffer_packets)
                    && let Some((_, oldest)) = member.kept.pop_front()
                {
                    self.stats.overwritten += 1;
                    self.out.push_back(Does::Discards(oldest));
                }
            }
        }
    }

    /// Takes a message that came from the address `from`.
    pub fn handle_message(&mut self, now: Instant, from: Ipv4Addr, tagged: &Tagged) {
        if !is_genuine(self.config.identity.key.as_ref(), tagged) {
            self.stats.forged += 1;
            return;
        }
        let number = tagged.message.number;
        match tagged.message.says {
            Says::Request { mobile, .. } if mobile != from => self.stats.forged += 1,
            Says::Request { mobile, lifetime, asks } => {
                self.handle_request(now, (mobile, number, lifetime), asks, tagged);
            }
            Says::Answer { mobile, lifetime, to: Kind::Register } if from == self.config.home_agent => {
                self.registered(now, (mobile, number, lifetime), tagged);
            }
            Says::Behind { mobile, asked } if from == self.config.home_agent => {
                if self.members.get(&mobile).is_some_and(|member| member.number == asked) {
                    self.out.push_back(Does::Sends(Transmit { to: mobile, message: *tagged }));
                } else {
                    self.stats.foreign += 1;
                }
            }
            Says::Beacon { .. } | Says::Answer { .. } | Says::Behind { .. } => self.stats.foreign += 1,
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_beacon <= now {
            self.next_beacon = now + self.config.beacon_interval;
            self.number = self.config.identity.number(now, self.number);
            let says = Says::Beacon { station: self.config.identity.address };
            self.stats.beacons += 1;
            self.send(Ipv4Addr::BROADCAST, Message { number: self.number, says });
        }
        if self.first_end <= now {
            let ended = |member: &Member<K>| member.expires <= now;
            let over: Vec<_> = self.members.iter().filter(|(_, m)| ended(m)).map(|(at, _)| *at).collect();
            self.stats.expired += over.len() as u64;
            over.into_iter().for_each(|mobile| self.leave(mobile));
            let ends = self.members.values().map(|member| member.expires);
            self.first_end = ends.min().unwrap_or(Instant::FAR_FUTURE);
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Does<K>> {
        self.out.pop_front()
    }

    /// Returns the time at which [`Station::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.next_beacon.min(self.first_end)
    }

    /// Number of packets that it keeps for mobile hosts.
    #[must_use]
    pub fn held(&self) -> usize {
        self.members.values().map(|member| member.kept.len()).sum()
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
    pub fn forwards_by(&self, mobile: Ipv4Addr) -> Option<u64> {
        self.members.get(&mobile).filter(|member| member.role == Role::Forwarding).map(|member| member.number)
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
        asks: Asks,
        tagged: &Tagged,
    ) {
        let known = self.members.get(&mobile).map(|member| member.number);
        let answer = Message { number, says: Says::Answer { mobile, lifetime, to: asks.kind() } };
        match known {
            Some(last) if number < last => {
                self.stats.replayed += 1;
                let key = self.config.identity.key.as_ref();
                if let Some(message) = key::behind(key, last, (mobile, number)) {
                    self.out.push_back(Does::Sends(Transmit { to: mobile, message }));
                }
            }
            // The answer was lost.
            Some(last) if number == last && !matches!(asks, Asks::Register { .. }) => {
                self.send(mobile, answer);
            }
            None if asks != Asks::Stop && self.members.len() >= self.config.mobiles as usize => {
                self.stats.refused += 1;
            }
            _ => {
                let until = now + lifetime;
                match asks {
                    Asks::Forward(latest) => {
                        self.send(mobile, answer);
                        self.forward(mobile, number, until, &latest);
                    }
                    Asks::Buffer => {
                        let member = self.enlist(mobile, number, until);
                        if core::mem::replace(&mut member.role, Role::Buffering) == Role::Forwarding {
                            self.out.push_back(Does::Parts(mobile));
                        }
                        self.send(mobile, answer);
                    }
                    Asks::Stop => {
                        self.leave(mobile);
                        self.send(mobile, answer);
                    }
                    Asks::Register { past, .. } => {
                        let member = self.enlist(mobile, number, until);
                        if member.role != Role::Forwarding {
                            member.role = Role::Registering(past);
                        }
                        let to = self.config.home_agent;
                        self.out.push_back(Does::Sends(Transmit { to, message: *tagged }));
                    }
                }
            }
        }
    }

    /// The home agent has registered a host here.
    fn registered(
        &mut self,
        now: Instant,
        (mobile, number, lifetime): (Ipv4Addr, u64, Duration),
        tagged: &Tagged,
    ) {
        let Some(member) = self.members.get_mut(&mobile).filter(|member| member.number == number) else {
            self.stats.foreign += 1;
            return;
        };
        if let Role::Registering(past) = core::mem::replace(&mut member.role, Role::Forwarding) {
            self.stats.taken_over += 1;
            self.out.push_back(Does::Receives(mobile, past));
        }
        member.expires = now + lifetime;
        self.out.push_back(Does::Sends(Transmit { to: mobile, message: *tagged }));
    }

    /// From now on what comes is sent on, after what was kept and is not among the `latest`.
    fn forward(&mut self, mobile: Ipv4Addr, number: u64, until: Instant, latest: &Latest) {
        let member = self.enlist(mobile, number, until);
        let before = core::mem::replace(&mut member.role, Role::Forwarding);
        let kept = core::mem::take(&mut member.kept);
        if before != Role::Forwarding {
            self.stats.taken_over += 1;
            self.out.push_back(Does::Receives(mobile, latest.past()));
        }
        // The host has all packets before the first one that is found. If none is found, it is unknown what the host has,
        // and all are sent (§4).
        let has = |id: &PacketId| latest.as_slice().contains(id);
        let first = kept.iter().position(|(id, _)| has(id)).unwrap_or(0);
        for (at, (id, packet)) in kept.into_iter().enumerate() {
            let does = if at >= first && !has(&id) {
                self.stats.sent_from_buffer += 1;
                Does::Delivers(packet)
            } else if self.config.cold == Cold::No {
                Does::Shows(packet)
            } else {
                Does::Discards(packet)
            };
            self.out.push_back(does);
        }
    }

    /// The host, which is a member from now on, until then.
    fn enlist(&mut self, mobile: Ipv4Addr, number: u64, until: Instant) -> &mut Member<K> {
        self.first_end = self.first_end.min(until);
        let out = &mut self.out;
        let member = self.members.entry(mobile).or_insert_with(|| {
            out.push_back(Does::Joins(mobile));
            Member { role: Role::Registering(Past::Some), number, expires: until, kept: VecDeque::new() }
        });
        (member.number, member.expires) = (number, until);
        member
    }

    fn leave(&mut self, mobile: Ipv4Addr) {
        if let Some(member) = self.members.remove(&mobile) {
            if member.role == Role::Forwarding {
                self.out.push_back(Does::Parts(mobile));
            }
            self.out.extend(member.kept.into_iter().map(|(_, packet)| Does::Discards(packet)));
            self.out.push_back(Does::Leaves(mobile));
        }
    }

    fn send(&mut self, to: Ipv4Addr, message: Message) {
        let message = key::seal(self.config.identity.key.as_ref(), message);
        self.out.push_back(Does::Sends(Transmit { to, message }));
    }
}
