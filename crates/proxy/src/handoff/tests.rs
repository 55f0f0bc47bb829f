//! Timed dialogues of stations, home agents and mobile hosts.

use super::*;
use hopline_core::{Purpose, RandomStream};
use hopline_wire::handoff::{
    Message, MessageBody, PacketId, PriorReception, RecentPackets, RequestAction, RequestKind,
};

const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const STATION_1: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const STATION_2: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const STATION_3: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 76);
const KEY: Key = Key::new([7; 16]);
const LIFETIME: Duration = Duration::from_secs(3);

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn tagged(number: u64, says: MessageBody) -> TaggedMessage {
    TaggedMessage { message: Message { number, body: says }, tag: [0; 16] }
}

fn request(number: u64, asks: RequestAction) -> TaggedMessage {
    tagged(number, MessageBody::Request { mobile: HOST, lifetime: LIFETIME, action: asks })
}

fn answer(number: u64, to: RequestKind) -> TaggedMessage {
    tagged(number, MessageBody::Reply { mobile: HOST, lifetime: LIFETIME, kind: to })
}

/// Returns the identifier of a packet; all have the same sender.
fn packet(id: u16) -> PacketId {
    PacketId { source: SENDER, id }
}

fn latest(ids: &[u16]) -> RecentPackets {
    let mut latest = RecentPackets::default();
    ids.iter().for_each(|&id| latest.push(packet(id)));
    latest
}

// ---- the station ----

fn station() -> Station<u16> {
    station_with(|_| {})
}

fn station_with(change: impl FnOnce(&mut StationConfig)) -> Station<u16> {
    let mut config = StationConfig::new(Identity::new(STATION_1), HOME);
    change(&mut config);
    Station::new(config, Instant::ZERO, &mut RandomStream::keyed(1, 0, 0, Purpose::Handoff))
}

fn actions(station: &mut Station<u16>) -> Vec<StationAction<u16>> {
    core::iter::from_fn(|| station.poll_action()).collect()
}

/// Returns the packets that are delivered.
fn delivered_packets(all: &[StationAction<u16>]) -> Vec<u16> {
    all.iter()
        .filter_map(|does| if let StationAction::Deliver(id) = does { Some(*id) } else { None })
        .collect()
}

/// Creates a station that buffers packets of the host, after these packets have arrived.
fn buffering_station(
    config: impl FnOnce(&mut StationConfig),
    ids: impl IntoIterator<Item = u16>,
) -> Station<u16> {
    let mut station = station_with(config);
    station.handle_message(ms(0), HOST, &request(1, RequestAction::Buffer));
    actions(&mut station);
    ids.into_iter().for_each(|id| station.handle_packet(HOST, packet(id), id));
    station
}

fn send_action(to: Ipv4Addr, message: TaggedMessage) -> StationAction<u16> {
    StationAction::Send(Transmit { to, message })
}

#[test]
fn new_station_sends_buffered_packets_that_the_host_lacks() {
    let mut station = buffering_station(|_| {}, 1..=6);
    station.handle_message(ms(9), HOST, &request(2, RequestAction::Forward(latest(&[2, 3, 4]))));
    let all = actions(&mut station);
    assert_eq!(all[0], send_action(HOST, answer(2, RequestKind::Forward)), "the answer goes first");
    assert_eq!(delivered_packets(&all), [5, 6]);
    assert_eq!(all.iter().filter(|does| matches!(does, StationAction::Release(_))).count(), 4);
    station.handle_packet(HOST, packet(7), 7);
    assert_eq!(actions(&mut station), [StationAction::Deliver(7)]);
    assert!(station.forwards_to(HOST));
}

#[test]
fn packets_lost_before_the_last_three_are_sent() {
    let mut station = buffering_station(|_| {}, 1..=6);
    station.handle_message(ms(9), HOST, &request(2, RequestAction::Forward(latest(&[2, 4, 5]))));
    assert_eq!(delivered_packets(&actions(&mut station)), [3, 6]);
}

#[test]
fn packets_are_identified_by_sender_and_identification() {
    let mut station = buffering_station(|_| {}, 1..=3);
    let other = |id| PacketId { source: Ipv4Addr::new(10, 0, 0, 77), id };
    for (id, kept) in [(2, 22), (3, 23), (4, 24)] {
        station.handle_packet(HOST, other(id), kept);
    }
    let mut received = RecentPackets::default();
    [packet(2), packet(3), other(2)].into_iter().for_each(|id| received.push(id));
    station.handle_message(ms(9), HOST, &request(2, RequestAction::Forward(received)));
    assert_eq!(delivered_packets(&actions(&mut station)), [23, 24]);
}

#[test]
fn all_buffered_packets_are_sent_if_none_was_received() {
    for ids in [&[][..], &[90, 91, 92]] {
        let mut station = buffering_station(|_| {}, 1..=4);
        station.handle_message(ms(9), HOST, &request(2, RequestAction::Forward(latest(ids))));
        assert_eq!(delivered_packets(&actions(&mut station)), [1, 2, 3, 4]);
    }
}

#[test]
fn full_buffer_drops_the_oldest_packet() {
    let mut station = buffering_station(|_| {}, 1..=15);
    assert_eq!(
        actions(&mut station),
        [StationAction::Release(1), StationAction::Release(2), StationAction::Release(3)]
    );
    station.handle_message(ms(9), HOST, &request(2, RequestAction::Forward(RecentPackets::default())));
    assert_eq!(delivered_packets(&actions(&mut station)), (4..=15).collect::<Vec<_>>());
    assert_eq!((station.stats().overwritten, station.stats().sent_from_buffer), (3, 12));
}

#[test]
fn station_with_zero_buffer_keeps_no_packets() {
    let mut station = buffering_station(|config| config.buffer_packets = 0, 1..=2);
    assert_eq!(actions(&mut station), [StationAction::Release(1), StationAction::Release(2)]);
}

#[test]
fn warm_start_shows_received_packets_to_middleboxes() {
    let mut station = buffering_station(|config| config.start_state = StartState::Warm, 1..=4);
    station.handle_message(ms(9), HOST, &request(2, RequestAction::Forward(latest(&[3]))));
    let rest = [
        StationAction::ShowToMiddleboxes(1),
        StationAction::ShowToMiddleboxes(2),
        StationAction::ShowToMiddleboxes(3),
        StationAction::Deliver(4),
    ];
    let all = actions(&mut station);
    assert_eq!(
        (&all[1], &all[2..]),
        (&StationAction::HostArrived(HOST, PriorReception::Received), &rest[..]),
        "the path is told first"
    );
}

#[test]
fn repeated_request_is_answered_and_older_one_is_not() {
    let mut station = buffering_station(|_| {}, 1..=2);
    let forward = request(5, RequestAction::Forward(RecentPackets::default()));
    station.handle_message(ms(9), HOST, &forward);
    actions(&mut station);
    station.handle_message(ms(60), HOST, &forward);
    assert_eq!(actions(&mut station), [send_action(HOST, answer(5, RequestKind::Forward))]);
    station.handle_message(ms(70), HOST, &request(4, RequestAction::Stop));
    assert_eq!(actions(&mut station), []);
    assert_eq!((station.stats().replayed, station.stats().taken_over), (1, 1));
    assert!(station.forwards_to(HOST));
}

#[test]
fn forwarding_station_becomes_buffering() {
    let mut station = station();
    station.handle_message(ms(0), HOST, &request(1, RequestAction::Forward(RecentPackets::default())));
    station.handle_message(ms(1), HOST, &request(2, RequestAction::Buffer));
    assert!(actions(&mut station).contains(&StationAction::HostLeft(HOST)), "the path is told");
    station.handle_packet(HOST, packet(1), 1);
    assert_eq!(actions(&mut station), []);
}

#[test]
fn silent_host_expires_with_its_buffer() {
    let mut station = buffering_station(|_| {}, 1..=2);
    station.handle_timeout(ms(2999));
    assert_eq!(station.mobiles(), 1);
    assert!(station.poll_timeout() <= ms(3000));
    station.handle_timeout(ms(3000));
    let all = actions(&mut station);
    assert_eq!(
        all[all.len() - 3..],
        [StationAction::Release(1), StationAction::Release(2), StationAction::LeaveGroup(HOST)]
    );
    assert_eq!((station.mobiles(), station.stats().expired), (0, 1));
    station.handle_packet(HOST, packet(3), 3);
    assert_eq!(actions(&mut station), [StationAction::Refuse(3)]);
    assert!(station.poll_timeout() > ms(3000), "only beacons are left");
}

#[test]
fn beacons_are_periodic_with_rising_numbers() {
    let mut station = station();
    let mut numbers = Vec::new();
    let first = station.poll_timeout();
    assert!(first < ms(1000));
    for _ in 0..3 {
        let at = station.poll_timeout();
        station.handle_timeout(at);
        for does in actions(&mut station) {
            let StationAction::Send(Transmit { to: Ipv4Addr::BROADCAST, message }) = does else {
                panic!("{does:?}")
            };
            assert_eq!(message.message.body, MessageBody::Beacon { station: STATION_1 });
            numbers.push((at.since(first), message.message.number));
        }
    }
    assert_eq!(numbers.iter().map(|(at, _)| at.as_millis()).collect::<Vec<_>>(), [0, 1000, 2000]);
    assert!(numbers.is_sorted_by(|a, b| a.1 < b.1));
}

#[test]
fn station_limits_hosts_and_keeps_served_ones() {
    let mut station = station_with(|config| config.max_mobiles = 1);
    station.handle_message(ms(0), HOST, &request(1, RequestAction::Buffer));
    let other = MessageBody::Request { mobile: STATION_2, lifetime: LIFETIME, action: RequestAction::Buffer };
    station.handle_message(ms(0), STATION_2, &tagged(1, other));
    assert_eq!((station.mobiles(), station.stats().refused), (1, 1));
    station.handle_message(ms(1), HOST, &request(2, RequestAction::Forward(RecentPackets::default())));
    assert!(station.forwards_to(HOST));
}

#[test]
fn forged_messages_change_nothing_and_are_counted() {
    let mut open = station();
    open.handle_message(ms(0), STATION_3, &request(1, RequestAction::Forward(RecentPackets::default())));
    assert_eq!((open.mobiles(), open.stats().forged), (0, 1), "in the name of another host");
    let mut keyed = station_with(|config| config.identity.key = Some(KEY));
    keyed.handle_message(ms(0), HOST, &request(1, RequestAction::Forward(RecentPackets::default())));
    assert_eq!((keyed.mobiles(), keyed.stats().forged), (0, 1), "without the key");
    let says = request(1, RequestAction::Buffer).message;
    keyed.handle_message(ms(0), HOST, &key::seal(Some(&KEY), says));
    assert_eq!((keyed.mobiles(), keyed.stats().forged), (1, 1));
    let mut damaged = key::seal(Some(&KEY), request(2, RequestAction::Stop).message);
    damaged.tag[15] ^= 1;
    keyed.handle_message(ms(0), HOST, &damaged);
    assert_eq!((keyed.mobiles(), keyed.stats().forged), (1, 2));
    assert_eq!(format!("{KEY:?}"), "Key", "a secret is not shown");
}

#[test]
fn unexpected_messages_are_counted() {
    let mut station = station();
    station.handle_message(ms(0), STATION_2, &tagged(1, MessageBody::Beacon { station: STATION_2 }));
    station.handle_message(ms(0), STATION_2, &answer(1, RequestKind::Register));
    station.handle_message(ms(0), HOME, &answer(1, RequestKind::Register));
    assert_eq!((station.stats().unexpected, station.mobiles()), (3, 0));
}

#[test]
fn station_forwards_after_the_registration_reply() {
    let mut station = station();
    let register =
        request(4, RequestAction::Register { care_of: STATION_1, prior_reception: PriorReception::Received });
    station.handle_message(ms(0), HOST, &register);
    assert_eq!(actions(&mut station), [StationAction::JoinGroup(HOST), send_action(HOME, register)]);
    station.handle_packet(HOST, packet(1), 1);
    assert_eq!(actions(&mut station), [StationAction::Refuse(1)]);
    station.handle_message(ms(20), HOME, &answer(4, RequestKind::Register));
    assert_eq!(
        actions(&mut station),
        [
            StationAction::HostArrived(HOST, PriorReception::Received),
            send_action(HOST, answer(4, RequestKind::Register))
        ]
    );
    station.handle_packet(HOST, packet(2), 2);
    assert_eq!(actions(&mut station), [StationAction::Deliver(2)]);
}

// ---- the home agent ----

#[test]
fn multicast_destination_is_the_group() {
    let home = HomeAgent::new(Identity::new(HOME), Scheme::Multicast, [HOST]);
    assert_eq!(home.destination(ms(0), HOST), Some(Ipv4Addr::new(239, 0, 0, 9)));
    assert_eq!(home.destination(ms(0), STATION_2), None, "its home is elsewhere");
}

#[test]
fn registration_destination_is_the_care_of_address_until_expiry() {
    let mut home = HomeAgent::new(Identity::new(HOME), Scheme::Registration, [HOST]);
    assert_eq!(home.destination(ms(0), HOST), None);
    home.handle_message(
        ms(0),
        &request(
            1,
            RequestAction::Register { care_of: STATION_1, prior_reception: PriorReception::Received },
        ),
    );
    let reply = Transmit { to: STATION_1, message: answer(1, RequestKind::Register) };
    assert_eq!(home.poll_transmit(), Some(reply));
    home.handle_message(
        ms(10),
        &request(
            2,
            RequestAction::Register { care_of: STATION_2, prior_reception: PriorReception::Received },
        ),
    );
    home.handle_message(
        ms(11),
        &request(
            1,
            RequestAction::Register { care_of: STATION_1, prior_reception: PriorReception::Received },
        ),
    );
    assert_eq!((home.destination(ms(20), HOST), home.stats().replayed), (Some(STATION_2), 1));
    assert_eq!(home.destination(ms(3010), HOST), None);
}

#[test]
fn home_agent_ignores_foreign_hosts_and_stations() {
    let identity = Identity { key: Some(KEY), ..Identity::new(HOME) };
    let mut home = HomeAgent::new(identity, Scheme::Registration, [HOST]);
    home.handle_message(
        ms(0),
        &request(
            1,
            RequestAction::Register { care_of: STATION_2, prior_reception: PriorReception::Received },
        ),
    );
    home.handle_message(ms(0), &key::seal(Some(&KEY), request(1, RequestAction::Buffer).message));
    let of_other = MessageBody::Request {
        mobile: STATION_2,
        lifetime: LIFETIME,
        action: RequestAction::Register { care_of: STATION_2, prior_reception: PriorReception::Received },
    };
    home.handle_message(ms(0), &key::seal(Some(&KEY), Message { number: 1, body: of_other }));
    assert_eq!((home.stats().forged, home.stats().unexpected, home.stats().registrations), (1, 2, 0));
    assert_eq!((home.destination(ms(0), HOST), home.poll_transmit()), (None, None));
}

/// A mobile host, a station and a home agent with keys; messages arrive at once.
struct KeyedNetwork {
    host: Mobile,
    station: Station<u16>,
    home: HomeAgent,
    beacons: u64,
}

fn keyed(address: Ipv4Addr, epoch_us: u64) -> Identity {
    Identity { key: Some(KEY), epoch_us, ..Identity::new(address) }
}

impl KeyedNetwork {
    fn new(scheme: Scheme) -> Self {
        let config = StationConfig::new(keyed(STATION_1, 0), HOME);
        let station = Station::new(config, ms(0), &mut RandomStream::keyed(1, 0, 0, Purpose::Handoff));
        let home = HomeAgent::new(keyed(HOME, 0), scheme, [HOST]);
        Self { host: Self::host(scheme, 0), station, home, beacons: 0 }
    }

    fn host(scheme: Scheme, epoch_us: u64) -> Mobile {
        Mobile::new(MobileConfig::new(keyed(HOST, epoch_us), scheme))
    }

    /// Passes a beacon to the host, and all resulting messages.
    fn beacon(&mut self, at: u64) {
        self.beacons += 1;
        let beacon = Message { number: self.beacons, body: MessageBody::Beacon { station: STATION_1 } };
        self.host.handle_message(ms(at), STATION_1, &key::seal(Some(&KEY), beacon), Some(-50.0));
        loop {
            let mut is_quiet = true;
            while let Some(Transmit { message, .. }) = self.host.poll_transmit() {
                is_quiet = false;
                self.station.handle_message(ms(at), HOST, &message);
            }
            for does in actions(&mut self.station) {
                let StationAction::Send(Transmit { to, message }) = does else { continue };
                is_quiet = false;
                if to == HOME {
                    self.home.handle_message(ms(at), &message);
                } else if to == HOST {
                    self.host.handle_message(ms(at), STATION_1, &message, Some(-50.0));
                }
            }
            while let Some(Transmit { message, .. }) = self.home.poll_transmit() {
                is_quiet = false;
                self.station.handle_message(ms(at), HOME, &message);
            }
            if is_quiet {
                return;
            }
        }
    }

    fn is_served(&mut self) -> bool {
        core::iter::from_fn(|| self.host.poll_event()).any(|event| matches!(event, Event::Served { .. }))
    }
}

/// Ten years in microseconds.
const TEN_YEARS_US: u64 = 10 * 365 * 24 * 3600 * 1_000_000;

#[test]
fn host_with_a_clock_set_back_is_served_at_once() {
    for scheme in [Scheme::Multicast, Scheme::Registration] {
        let mut net = KeyedNetwork::new(scheme);
        net.host = KeyedNetwork::host(scheme, TEN_YEARS_US);
        net.beacon(1);
        assert!(net.is_served());
        // It restarts without a clock, and then at the same instant once more.
        for epoch_us in [0, 0] {
            net.host = KeyedNetwork::host(scheme, epoch_us);
            net.beacon(20);
            assert!(net.is_served(), "{scheme:?}");
            if scheme == Scheme::Registration {
                assert_eq!(net.home.destination(ms(21), HOST), Some(STATION_1));
            }
        }
        assert!(net.station.stats().replayed + net.home.stats().replayed > 0);
    }
}

#[test]
fn host_key_authenticates_only_its_own_requests() {
    let own = Key::host(KEY.derive_host_key(HOST).unwrap());
    assert_eq!(own.derive_host_key(HOST), None, "it makes no keys for others");
    for scheme in [Scheme::Multicast, Scheme::Registration] {
        let mut net = KeyedNetwork::new(scheme);
        let identity = Identity { key: Some(own), ..Identity::new(HOST) };
        net.host = Mobile::new(MobileConfig::new(identity, scheme));
        net.beacon(1);
        assert!(net.is_served(), "{scheme:?}");
        assert_eq!((net.station.stats().forged, net.home.stats().forged, net.host.stats().forged), (0, 0, 0));
    }
    let mut home = HomeAgent::new(keyed(HOME, 0), Scheme::Registration, [HOST, STATION_3]);
    let asks = RequestAction::Register { care_of: STATION_2, prior_reception: PriorReception::Received };
    let of_other = Message {
        number: 1,
        body: MessageBody::Request { mobile: STATION_3, lifetime: LIFETIME, action: asks },
    };
    home.handle_message(ms(0), &key::seal(Some(&own), of_other));
    assert_eq!((home.stats().forged, home.destination(ms(0), STATION_3)), (1, None));
}

#[test]
fn registrations_are_accepted_only_for_known_stations() {
    let mut home = HomeAgent::new(keyed(HOME, 0), Scheme::Registration, [HOST]).with_stations([STATION_1]);
    for (number, care_of) in [(1, STATION_2), (2, STATION_1)] {
        let asks = RequestAction::Register { care_of, prior_reception: PriorReception::Received };
        home.handle_message(ms(0), &key::seal(Some(&KEY), request(number, asks).message));
    }
    assert_eq!((home.stats().unexpected, home.stats().registrations), (1, 1));
    assert_eq!(home.destination(ms(1), HOST), Some(STATION_1));
}

#[test]
fn replayed_request_is_ignored() {
    let mut net = KeyedNetwork::new(Scheme::Registration);
    let recorded = |care_of, number| {
        let asks = RequestAction::Register { care_of, prior_reception: PriorReception::Received };
        key::seal(Some(&KEY), request(number, asks).message)
    };
    let home = &mut net.home;
    home.handle_message(ms(0), &recorded(STATION_1, TEN_YEARS_US));
    assert!(home.poll_transmit().is_some());
    home.handle_message(ms(1), &recorded(STATION_2, 5));
    assert_eq!(home.destination(ms(2), HOST), Some(STATION_1));
    let Some(Transmit { to, message }) = home.poll_transmit() else { panic!("the host is told") };
    assert_eq!((to, message.message.body), (STATION_2, MessageBody::Stale { mobile: HOST, requested: 5 }));
    assert!(message.wire_len() <= recorded(STATION_2, 5).wire_len() + 4, "it is no amplifier");
    // A host without a request of that number ignores it.
    net.host.handle_message(ms(3), STATION_1, &message, None);
    assert_eq!(net.host.stats().unexpected, 1);
    // Without a key, any sender could forge it.
    let mut open = HomeAgent::new(Identity::new(HOME), Scheme::Registration, [HOST]);
    for number in [7, 6] {
        open.handle_message(
            ms(0),
            &request(
                number,
                RequestAction::Register { care_of: STATION_1, prior_reception: PriorReception::Received },
            ),
        );
    }
    assert!(open.poll_transmit().is_some() && open.poll_transmit().is_none());
}

// ---- the mobile host ----

struct MobileHost {
    host: Mobile,
    numbers: u64,
}

impl MobileHost {
    fn new(change: impl FnOnce(&mut MobileConfig)) -> Self {
        let mut config = MobileConfig::new(Identity::new(HOST), Scheme::Multicast);
        change(&mut config);
        Self { host: Mobile::new(config), numbers: 0 }
    }

    /// Passes a beacon to the host. Returns its requests with their destinations.
    fn handle_beacon(&mut self, at: u64, station: Ipv4Addr, dbm: f64) -> Vec<(Ipv4Addr, RequestKind)> {
        self.numbers += 1;
        let beacon = tagged(self.numbers, MessageBody::Beacon { station });
        self.host.handle_message(ms(at), station, &beacon, Some(dbm));
        self.requests().into_iter().map(|(to, asks, _)| (to, asks.kind())).collect()
    }

    fn requests(&mut self) -> Vec<(Ipv4Addr, RequestAction, u64)> {
        let asks = |transmit: Transmit| match transmit.message.message {
            Message { number, body: MessageBody::Request { action: asks, .. } } => {
                (transmit.to, asks, number)
            }
            other => panic!("{other:?}"),
        };
        core::iter::from_fn(|| self.host.poll_transmit()).map(asks).collect()
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.host.poll_event()).collect()
    }
}

#[test]
fn first_station_forwards_and_second_buffers() {
    let mut walker = MobileHost::new(|_| {});
    assert_eq!(walker.handle_beacon(0, STATION_1, -60.0), [(STATION_1, RequestKind::Forward)]);
    assert_eq!(walker.events(), [Event::Attached { station: STATION_1 }]);
    assert_eq!(walker.handle_beacon(300, STATION_2, -70.0), [(STATION_2, RequestKind::Buffer)]);
    assert_eq!(walker.host.station(), Some(STATION_1));
}

#[test]
fn handoff_follows_two_stronger_beacons() {
    let mut walker = MobileHost::new(|_| {});
    walker.handle_beacon(0, STATION_1, -60.0);
    walker.handle_beacon(300, STATION_2, -53.0);
    walker.handle_beacon(1000, STATION_1, -60.0);
    walker.handle_beacon(1300, STATION_2, -56.0);
    assert_eq!(walker.host.station(), Some(STATION_1), "the second is stronger by 4 dB alone");
    walker.handle_beacon(2000, STATION_1, -62.0);
    walker.handle_beacon(2300, STATION_2, -54.0);
    assert_eq!(walker.host.station(), Some(STATION_1), "one beacon is not enough");
    walker.handle_beacon(3000, STATION_1, -62.0);
    walker.host.record_received(packet(41));
    walker.host.record_received(packet(42));
    walker.events();
    let asked = walker.handle_beacon(3300, STATION_2, -54.0);
    assert_eq!(asked[..2], [(STATION_2, RequestKind::Forward), (STATION_1, RequestKind::Buffer)]);
    assert_eq!((walker.host.station(), walker.host.stats().handoffs), (Some(STATION_2), 1));
}

#[test]
fn without_signal_strength_host_keeps_its_station() {
    let mut walker = MobileHost::new(|_| {});
    for beacon in 0..9 {
        walker.handle_beacon(beacon * 1000, STATION_1, f64::MIN);
        walker.handle_beacon(beacon * 1000 + 300, STATION_2, f64::MIN);
    }
    assert_eq!((walker.host.station(), walker.host.stats().handoffs), (Some(STATION_1), 0));
    for beacon in 9..12 {
        walker.handle_beacon(beacon * 1000 + 300, STATION_2, f64::MIN);
        walker.host.handle_timeout(ms(beacon * 1000 + 300));
    }
    assert_eq!((walker.host.station(), walker.host.stats().handoffs), (Some(STATION_2), 1));
}

#[test]
fn request_lists_last_packets_and_event_reports_latency() {
    let mut walker =
        MobileHost::new(|config| config.handoff_rule = HandoffRule::Periodic(Duration::from_secs(1)));
    walker.handle_beacon(0, STATION_1, -60.0);
    walker.handle_beacon(100, STATION_2, -70.0);
    [7, 8, 9, 10].into_iter().for_each(|id| walker.host.record_received(packet(id)));
    walker.events();
    assert!(walker.host.poll_timeout().unwrap() <= ms(1000));
    walker.host.handle_timeout(ms(1000));
    let asked = walker.requests();
    let forward = RequestAction::Forward(latest(&[8, 9, 10]));
    let (_, _, number) =
        asked.iter().copied().find(|(to, asks, _)| (*to, *asks) == (STATION_2, forward)).unwrap();
    walker.host.handle_message(ms(1007), STATION_2, &answer(number, RequestKind::Forward), None);
    let served = Event::Served { station: STATION_2, latency: Duration::from_millis(7), handoff: true };
    assert_eq!(walker.events(), [Event::Attached { station: STATION_2 }, served]);
    walker.host.handle_timeout(ms(2000));
    assert_eq!(walker.host.station(), Some(STATION_1), "and back");
}

#[test]
fn unanswered_request_is_retried_then_station_is_removed() {
    let mut walker = MobileHost::new(|_| {});
    walker.handle_beacon(0, STATION_1, -60.0);
    let mut times = Vec::new();
    while walker.host.station().is_some() {
        let at = walker.host.poll_timeout().unwrap();
        walker.host.handle_timeout(at);
        times.extend(walker.requests().iter().map(|_| at.since(Instant::ZERO).as_millis()));
    }
    assert_eq!(times, [50, 150, 350, 750]);
    assert_eq!(walker.host.stats().unanswered, 1);
    assert!(walker.events().contains(&Event::Detached));
}

#[test]
fn silent_station_is_left_for_the_strongest() {
    let mut walker = MobileHost::new(|config| config.buffering_stations = 0);
    let answered = |walker: &mut MobileHost, at, station| {
        walker.handle_beacon(at, station, -60.0);
        for (to, asks, number) in walker.requests() {
            walker.host.handle_message(ms(at), to, &answer(number, asks.kind()), None);
        }
    };
    answered(&mut walker, 0, STATION_1);
    answered(&mut walker, 2900, STATION_2);
    walker.host.handle_timeout(ms(2999));
    assert_eq!(walker.host.station(), Some(STATION_1));
    walker.host.handle_timeout(ms(3000));
    assert_eq!(walker.host.station(), Some(STATION_2));
    walker.host.handle_timeout(ms(6000));
    assert_eq!(walker.host.station(), None);
}

#[test]
fn weakest_of_three_stations_is_released() {
    let mut walker = MobileHost::new(|_| {});
    walker.handle_beacon(0, STATION_1, -50.0);
    assert_eq!(walker.handle_beacon(100, STATION_2, -70.0), [(STATION_2, RequestKind::Buffer)]);
    assert_eq!(
        walker.handle_beacon(200, STATION_3, -60.0),
        [(STATION_3, RequestKind::Buffer), (STATION_2, RequestKind::Stop)]
    );
}

#[test]
fn registration_has_no_buffering_stations() {
    let mut walker = MobileHost::new(|config| config.scheme = Scheme::Registration);
    assert_eq!(walker.handle_beacon(0, STATION_1, -60.0), [(STATION_1, RequestKind::Register)]);
    assert_eq!(walker.handle_beacon(100, STATION_2, -60.0), []);
}

#[test]
fn forged_old_and_unsolicited_messages_are_counted() {
    let mut walker = MobileHost::new(|_| {});
    let beacon = |number, station| tagged(number, MessageBody::Beacon { station });
    walker.host.handle_message(ms(0), STATION_1, &beacon(5, STATION_1), Some(-60.0));
    walker.host.handle_message(ms(0), STATION_3, &beacon(6, STATION_1), Some(-10.0));
    walker.host.handle_message(ms(9), STATION_1, &beacon(5, STATION_1), Some(-10.0));
    walker.host.handle_message(ms(9), STATION_1, &answer(99, RequestKind::Forward), None);
    walker.host.handle_message(ms(9), STATION_1, &request(3, RequestAction::Stop), None);
    let stats = *walker.host.stats();
    assert_eq!((stats.forged, stats.replayed, stats.unexpected), (1, 1, 2));
}

#[test]
fn station_list_is_bounded() {
    let mut walker = MobileHost::new(|_| {});
    walker.handle_beacon(0, STATION_1, -60.0);
    for n in 0..1000u32 {
        walker.handle_beacon(1, Ipv4Addr::from_bits(0x0b00_0000 + n), -10.0);
    }
    assert_eq!(walker.host.station(), Some(STATION_1));
    assert_eq!(walker.host.stats().unexpected, 1000 - 15);
}

#[test]
fn message_numbers_follow_the_clock_and_always_rise() {
    let identity = Identity { epoch_us: 5_000_000, ..Identity::new(HOST) };
    let first = identity.number(ms(1), 0);
    assert_eq!((first, identity.number(ms(1), first)), (5_001_000, 5_001_001));
}
