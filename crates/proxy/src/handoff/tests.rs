//! Timed dialogues of stations, home agents and mobile hosts.

use super::*;
use hopline_core::{Purpose, Stream};
use hopline_wire::handoff::{Asks, Kind, Latest, Message, PacketId, Past, Says};

const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const THIRD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 76);
const KEY: Key = Key::new([7; 16]);
const LIFETIME: Duration = Duration::from_secs(3);

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn tagged(number: u64, says: Says) -> Tagged {
    Tagged { message: Message { number, says }, tag: [0; 16] }
}

fn request(number: u64, asks: Asks) -> Tagged {
    tagged(number, Says::Request { mobile: HOST, lifetime: LIFETIME, asks })
}

fn answer(number: u64, to: Kind) -> Tagged {
    tagged(number, Says::Answer { mobile: HOST, lifetime: LIFETIME, to })
}

/// Returns the identifier of a packet; all have the same sender.
fn packet(id: u16) -> PacketId {
    PacketId { source: SENDER, id }
}

fn latest(ids: &[u16]) -> Latest {
    let mut latest = Latest::default();
    ids.iter().for_each(|&id| latest.push(packet(id)));
    latest
}

// ---- the station ----

fn station() -> Station<u16> {
    station_with(|_| {})
}

fn station_with(change: impl FnOnce(&mut StationConfig)) -> Station<u16> {
    let mut config = StationConfig::new(Identity::new(NEAR), HOME);
    change(&mut config);
    Station::new(config, Instant::ZERO, &mut Stream::keyed(1, 0, 0, Purpose::Handoff))
}

fn does(station: &mut Station<u16>) -> Vec<Does<u16>> {
    core::iter::from_fn(|| station.poll()).collect()
}

/// Returns the packets that are delivered.
fn delivered(all: &[Does<u16>]) -> Vec<u16> {
    all.iter().filter_map(|does| if let Does::Delivers(id) = does { Some(*id) } else { None }).collect()
}

/// Creates a station that buffers packets of the host, after these packets have arrived.
fn buffering(config: impl FnOnce(&mut StationConfig), ids: impl IntoIterator<Item = u16>) -> Station<u16> {
    let mut station = station_with(config);
    station.handle_message(ms(0), HOST, &request(1, Asks::Buffer));
    does(&mut station);
    ids.into_iter().for_each(|id| station.handle_packet(HOST, packet(id), id));
    station
}

fn sends(to: Ipv4Addr, message: Tagged) -> Does<u16> {
    Does::Sends(Transmit { to, message })
}

#[test]
fn what_the_host_has_not_received_is_sent_at_once_and_what_comes_then_too() {
    let mut station = buffering(|_| {}, 1..=6);
    station.handle_message(ms(9), HOST, &request(2, Asks::Forward(latest(&[2, 3, 4]))));
    let all = does(&mut station);
    assert_eq!(all[0], sends(HOST, answer(2, Kind::Forward)), "the answer goes first");
    assert_eq!(delivered(&all), [5, 6]);
    assert_eq!(all.iter().filter(|does| matches!(does, Does::Discards(_))).count(), 4);
    station.handle_packet(HOST, packet(7), 7);
    assert_eq!(does(&mut station), [Does::Delivers(7)]);
    assert!(station.forwards_to(HOST));
}

#[test]
fn what_was_lost_between_the_last_three_is_sent_too() {
    let mut station = buffering(|_| {}, 1..=6);
    station.handle_message(ms(9), HOST, &request(2, Asks::Forward(latest(&[2, 4, 5]))));
    assert_eq!(delivered(&does(&mut station)), [3, 6]);
}

#[test]
fn a_packet_of_another_sender_with_the_same_identification_is_another_packet() {
    let mut station = buffering(|_| {}, 1..=3);
    let other = |id| PacketId { source: Ipv4Addr::new(10, 0, 0, 77), id };
    for (id, kept) in [(2, 22), (3, 23), (4, 24)] {
        station.handle_packet(HOST, other(id), kept);
    }
    let mut received = Latest::default();
    [packet(2), packet(3), other(2)].into_iter().for_each(|id| received.push(id));
    station.handle_message(ms(9), HOST, &request(2, Asks::Forward(received)));
    assert_eq!(delivered(&does(&mut station)), [23, 24]);
}

#[test]
fn if_none_of_the_three_is_kept_everything_is_sent() {
    for ids in [&[][..], &[90, 91, 92]] {
        let mut station = buffering(|_| {}, 1..=4);
        station.handle_message(ms(9), HOST, &request(2, Asks::Forward(latest(ids))));
        assert_eq!(delivered(&does(&mut station)), [1, 2, 3, 4]);
    }
}

#[test]
fn the_oldest_kept_packet_makes_room() {
    let mut station = buffering(|_| {}, 1..=15);
    assert_eq!(does(&mut station), [Does::Discards(1), Does::Discards(2), Does::Discards(3)]);
    station.handle_message(ms(9), HOST, &request(2, Asks::Forward(Latest::default())));
    assert_eq!(delivered(&does(&mut station)), (4..=15).collect::<Vec<_>>());
    assert_eq!((station.stats().overwritten, station.stats().sent_from_buffer), (3, 12));
}

#[test]
fn a_station_without_room_keeps_nothing() {
    let mut station = buffering(|config| config.buffer_packets = 0, 1..=2);
    assert_eq!(does(&mut station), [Does::Discards(1), Does::Discards(2)]);
}

#[test]
fn a_warm_start_shows_the_path_what_the_host_has_already() {
    let mut station = buffering(|config| config.cold = Cold::No, 1..=4);
    station.handle_message(ms(9), HOST, &request(2, Asks::Forward(latest(&[3]))));
    let rest = [Does::Shows(1), Does::Shows(2), Does::Shows(3), Does::Delivers(4)];
    let all = does(&mut station);
    assert_eq!(
        (&all[1], &all[2..]),
        (&Does::Receives(HOST, Past::Some), &rest[..]),
        "the path is told first"
    );
}

#[test]
fn a_request_that_comes_again_is_answered_and_an_older_one_is_not() {
    let mut station = buffering(|_| {}, 1..=2);
    let forward = request(5, Asks::Forward(Latest::default()));
    station.handle_message(ms(9), HOST, &forward);
    does(&mut station);
    station.handle_message(ms(60), HOST, &forward);
    assert_eq!(does(&mut station), [sends(HOST, answer(5, Kind::Forward))]);
    station.handle_message(ms(70), HOST, &request(4, Asks::Stop));
    assert_eq!(does(&mut station), []);
    assert_eq!((station.stats().replayed, station.stats().taken_over), (1, 1));
    assert!(station.forwards_to(HOST));
}

#[test]
fn one_that_forwarded_and_is_to_keep_keeps() {
    let mut station = station();
    station.handle_message(ms(0), HOST, &request(1, Asks::Forward(Latest::default())));
    station.handle_message(ms(1), HOST, &request(2, Asks::Buffer));
    assert!(does(&mut station).contains(&Does::Parts(HOST)), "the path is told");
    station.handle_packet(HOST, packet(1), 1);
    assert_eq!(does(&mut station), []);
}

#[test]
fn a_host_that_is_silent_is_forgotten_with_what_was_kept() {
    let mut station = buffering(|_| {}, 1..=2);
    station.handle_timeout(ms(2999));
    assert_eq!(station.mobiles(), 1);
    assert!(station.poll_timeout() <= ms(3000));
    station.handle_timeout(ms(3000));
    let all = does(&mut station);
    assert_eq!(all[all.len() - 3..], [Does::Discards(1), Does::Discards(2), Does::Leaves(HOST)]);
    assert_eq!((station.mobiles(), station.stats().expired), (0, 1));
    station.handle_packet(HOST, packet(3), 3);
    assert_eq!(does(&mut station), [Does::Refuses(3)]);
    assert!(station.poll_timeout() > ms(3000), "only beacons are left");
}

#[test]
fn beacons_go_out_once_a_second_and_their_numbers_rise() {
    let mut station = station();
    let mut numbers = Vec::new();
    let first = station.poll_timeout();
    assert!(first < ms(1000));
    for _ in 0..3 {
        let at = station.poll_timeout();
        station.handle_timeout(at);
        for does in does(&mut station) {
            let Does::Sends(Transmit { to: Ipv4Addr::BROADCAST, message }) = does else { panic!("{does:?}") };
            assert_eq!(message.message.says, Says::Beacon { station: NEAR });
            numbers.push((at.since(first), message.message.number));
        }
    }
    assert_eq!(numbers.iter().map(|(at, _)| at.as_millis()).collect::<Vec<_>>(), [0, 1000, 2000]);
    assert!(numbers.is_sorted_by(|a, b| a.1 < b.1));
}

#[test]
fn a_station_serves_no_more_hosts_than_it_may_and_those_it_serves_go_on() {
    let mut station = station_with(|config| config.mobiles = 1);
    station.handle_message(ms(0), HOST, &request(1, Asks::Buffer));
    let other = Says::Request { mobile: FAR, lifetime: LIFETIME, asks: Asks::Buffer };
    station.handle_message(ms(0), FAR, &tagged(1, other));
    assert_eq!((station.mobiles(), station.stats().refused), (1, 1));
    station.handle_message(ms(1), HOST, &request(2, Asks::Forward(Latest::default())));
    assert!(station.forwards_to(HOST));
}

#[test]
fn forged_messages_change_nothing_and_are_counted() {
    let mut open = station();
    open.handle_message(ms(0), THIRD, &request(1, Asks::Forward(Latest::default())));
    assert_eq!((open.mobiles(), open.stats().forged), (0, 1), "in the name of another host");
    let mut keyed = station_with(|config| config.identity.key = Some(KEY));
    keyed.handle_message(ms(0), HOST, &request(1, Asks::Forward(Latest::default())));
    assert_eq!((keyed.mobiles(), keyed.stats().forged), (0, 1), "without the key");
    let says = request(1, Asks::Buffer).message;
    keyed.handle_message(ms(0), HOST, &key::seal(Some(&KEY), says));
    assert_eq!((keyed.mobiles(), keyed.stats().forged), (1, 1));
    let mut damaged = key::seal(Some(&KEY), request(2, Asks::Stop).message);
    damaged.tag[15] ^= 1;
    keyed.handle_message(ms(0), HOST, &damaged);
    assert_eq!((keyed.mobiles(), keyed.stats().forged), (1, 2));
    assert_eq!(format!("{KEY:?}"), "Key", "a secret is not shown");
}

#[test]
fn what_is_none_of_its_concern_is_counted() {
    let mut station = station();
    station.handle_message(ms(0), FAR, &tagged(1, Says::Beacon { station: FAR }));
    station.handle_message(ms(0), FAR, &answer(1, Kind::Register));
    station.handle_message(ms(0), HOME, &answer(1, Kind::Register));
    assert_eq!((station.stats().foreign, station.mobiles()), (3, 0));
}

#[test]
fn a_registration_goes_to_the_home_agent_and_serves_once_it_has_answered() {
    let mut station = station();
    let register = request(4, Asks::Register { care_of: NEAR, past: Past::Some });
    station.handle_message(ms(0), HOST, &register);
    assert_eq!(does(&mut station), [Does::Joins(HOST), sends(HOME, register)]);
    station.handle_packet(HOST, packet(1), 1);
    assert_eq!(does(&mut station), [Does::Refuses(1)]);
    station.handle_message(ms(20), HOME, &answer(4, Kind::Register));
    assert_eq!(
        does(&mut station),
        [Does::Receives(HOST, Past::Some), sends(HOST, answer(4, Kind::Register))]
    );
    station.handle_packet(HOST, packet(2), 2);
    assert_eq!(does(&mut station), [Does::Delivers(2)]);
}

// ---- the home agent ----

#[test]
fn a_group_is_where_packets_go_whoever_is_in_it() {
    let home = HomeAgent::new(Identity::new(HOME), Scheme::Multicast, [HOST]);
    assert_eq!(home.destination(ms(0), HOST), Some(Ipv4Addr::new(239, 0, 0, 9)));
    assert_eq!(home.destination(ms(0), FAR), None, "its home is elsewhere");
}

#[test]
fn with_registration_they_go_where_the_host_was_last_until_that_is_over() {
    let mut home = HomeAgent::new(Identity::new(HOME), Scheme::Registration, [HOST]);
    assert_eq!(home.destination(ms(0), HOST), None);
    home.handle_message(ms(0), &request(1, Asks::Register { care_of: NEAR, past: Past::Some }));
    let reply = Transmit { to: NEAR, message: answer(1, Kind::Register) };
    assert_eq!(home.poll_transmit(), Some(reply));
    home.handle_message(ms(10), &request(2, Asks::Register { care_of: FAR, past: Past::Some }));
    home.handle_message(ms(11), &request(1, Asks::Register { care_of: NEAR, past: Past::Some }));
    assert_eq!((home.destination(ms(20), HOST), home.stats().replayed), (Some(FAR), 1));
    assert_eq!(home.destination(ms(3010), HOST), None);
}

#[test]
fn a_home_agent_heeds_no_strangers() {
    let identity = Identity { key: Some(KEY), ..Identity::new(HOME) };
    let mut home = HomeAgent::new(identity, Scheme::Registration, [HOST]);
    home.handle_message(ms(0), &request(1, Asks::Register { care_of: FAR, past: Past::Some }));
    home.handle_message(ms(0), &key::seal(Some(&KEY), request(1, Asks::Buffer).message));
    let of_other = Says::Request {
        mobile: FAR,
        lifetime: LIFETIME,
        asks: Asks::Register { care_of: FAR, past: Past::Some },
    };
    home.handle_message(ms(0), &key::seal(Some(&KEY), Message { number: 1, says: of_other }));
    assert_eq!((home.stats().forged, home.stats().foreign, home.stats().registrations), (1, 2, 0));
    assert_eq!((home.destination(ms(0), HOST), home.poll_transmit()), (None, None));
}

/// A mobile host, a station and a home agent with keys; messages arrive at once.
struct Keyed {
    host: Mobile,
    station: Station<u16>,
    home: HomeAgent,
    beacons: u64,
}

fn keyed(address: Ipv4Addr, epoch_us: u64) -> Identity {
    Identity { key: Some(KEY), epoch_us, ..Identity::new(address) }
}

impl Keyed {
    fn new(scheme: Scheme) -> Self {
        let config = StationConfig::new(keyed(NEAR, 0), HOME);
        let station = Station::new(config, ms(0), &mut Stream::keyed(1, 0, 0, Purpose::Handoff));
        let home = HomeAgent::new(keyed(HOME, 0), scheme, [HOST]);
        Self { host: Self::host(scheme, 0), station, home, beacons: 0 }
    }

    fn host(scheme: Scheme, epoch_us: u64) -> Mobile {
        Mobile::new(MobileConfig::new(keyed(HOST, epoch_us), scheme))
    }

    /// Passes a beacon to the host, and all resulting messages.
    fn beacon(&mut self, at: u64) {
        self.beacons += 1;
        let beacon = Message { number: self.beacons, says: Says::Beacon { station: NEAR } };
        self.host.handle_message(ms(at), NEAR, &key::seal(Some(&KEY), beacon), Some(-50.0));
        loop {
            let mut is_quiet = true;
            while let Some(Transmit { message, .. }) = self.host.poll_transmit() {
                is_quiet = false;
                self.station.handle_message(ms(at), HOST, &message);
            }
            for does in does(&mut self.station) {
                let Does::Sends(Transmit { to, message }) = does else { continue };
                is_quiet = false;
                if to == HOME {
                    self.home.handle_message(ms(at), &message);
                } else if to == HOST {
                    self.host.handle_message(ms(at), NEAR, &message, Some(-50.0));
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
const DECADE: u64 = 10 * 365 * 24 * 3600 * 1_000_000;

#[test]
fn a_mobile_host_whose_clock_was_set_back_is_served_at_once_by_whoever_remembers_it() {
    for scheme in [Scheme::Multicast, Scheme::Registration] {
        let mut net = Keyed::new(scheme);
        net.host = Keyed::host(scheme, DECADE);
        net.beacon(1);
        assert!(net.is_served());
        // It restarts without a clock, and then at the same instant once more.
        for epoch_us in [0, 0] {
            net.host = Keyed::host(scheme, epoch_us);
            net.beacon(20);
            assert!(net.is_served(), "{scheme:?}");
            if scheme == Scheme::Registration {
                assert_eq!(net.home.destination(ms(21), HOST), Some(NEAR));
            }
        }
        assert!(net.station.stats().replayed + net.home.stats().replayed > 0);
    }
}

#[test]
fn a_mobile_host_speaks_for_itself_alone_and_is_heard_by_all_who_have_the_key_of_the_network() {
    let own = Key::host(KEY.of_host(HOST).unwrap());
    assert_eq!(own.of_host(HOST), None, "it makes no keys for others");
    for scheme in [Scheme::Multicast, Scheme::Registration] {
        let mut net = Keyed::new(scheme);
        let identity = Identity { key: Some(own), ..Identity::new(HOST) };
        net.host = Mobile::new(MobileConfig::new(identity, scheme));
        net.beacon(1);
        assert!(net.is_served(), "{scheme:?}");
        assert_eq!((net.station.stats().forged, net.home.stats().forged, net.host.stats().forged), (0, 0, 0));
    }
    let mut home = HomeAgent::new(keyed(HOME, 0), Scheme::Registration, [HOST, THIRD]);
    let asks = Asks::Register { care_of: FAR, past: Past::Some };
    let of_other = Message { number: 1, says: Says::Request { mobile: THIRD, lifetime: LIFETIME, asks } };
    home.handle_message(ms(0), &key::seal(Some(&own), of_other));
    assert_eq!((home.stats().forged, home.destination(ms(0), THIRD)), (1, None));
}

#[test]
fn hosts_register_at_stations_alone() {
    let mut home = HomeAgent::new(keyed(HOME, 0), Scheme::Registration, [HOST]).at([NEAR]);
    for (number, care_of) in [(1, FAR), (2, NEAR)] {
        let asks = Asks::Register { care_of, past: Past::Some };
        home.handle_message(ms(0), &key::seal(Some(&KEY), request(number, asks).message));
    }
    assert_eq!((home.stats().foreign, home.stats().registrations), (1, 1));
    assert_eq!(home.destination(ms(1), HOST), Some(NEAR));
}

#[test]
fn a_recorded_request_raises_no_number_and_redirects_nothing() {
    let mut net = Keyed::new(Scheme::Registration);
    let recorded = |care_of, number| {
        let asks = Asks::Register { care_of, past: Past::Some };
        key::seal(Some(&KEY), request(number, asks).message)
    };
    let home = &mut net.home;
    home.handle_message(ms(0), &recorded(NEAR, DECADE));
    assert!(home.poll_transmit().is_some());
    home.handle_message(ms(1), &recorded(FAR, 5));
    assert_eq!(home.destination(ms(2), HOST), Some(NEAR));
    let Some(Transmit { to, message }) = home.poll_transmit() else { panic!("the host is told") };
    assert_eq!((to, message.message.says), (FAR, Says::Behind { mobile: HOST, asked: 5 }));
    assert!(message.wire_len() <= recorded(FAR, 5).wire_len() + 4, "it is no amplifier");
    // A host without a request of that number ignores it.
    net.host.handle_message(ms(3), NEAR, &message, None);
    assert_eq!(net.host.stats().foreign, 1);
    // Without a key, any sender could forge it.
    let mut open = HomeAgent::new(Identity::new(HOME), Scheme::Registration, [HOST]);
    for number in [7, 6] {
        open.handle_message(ms(0), &request(number, Asks::Register { care_of: NEAR, past: Past::Some }));
    }
    assert!(open.poll_transmit().is_some() && open.poll_transmit().is_none());
}

// ---- the mobile host ----

struct Walker {
    host: Mobile,
    numbers: u64,
}

impl Walker {
    fn new(change: impl FnOnce(&mut MobileConfig)) -> Self {
        let mut config = MobileConfig::new(Identity::new(HOST), Scheme::Multicast);
        change(&mut config);
        Self { host: Mobile::new(config), numbers: 0 }
    }

    /// Passes a beacon to the host. Returns its requests with their destinations.
    fn hears(&mut self, at: u64, station: Ipv4Addr, dbm: f64) -> Vec<(Ipv4Addr, Kind)> {
        self.numbers += 1;
        let beacon = tagged(self.numbers, Says::Beacon { station });
        self.host.handle_message(ms(at), station, &beacon, Some(dbm));
        self.asked().into_iter().map(|(to, asks, _)| (to, asks.kind())).collect()
    }

    fn asked(&mut self) -> Vec<(Ipv4Addr, Asks, u64)> {
        let asks = |transmit: Transmit| match transmit.message.message {
            Message { number, says: Says::Request { asks, .. } } => (transmit.to, asks, number),
            other => panic!("{other:?}"),
        };
        core::iter::from_fn(|| self.host.poll_transmit()).map(asks).collect()
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.host.poll_event()).collect()
    }
}

#[test]
fn the_first_station_heard_forwards_and_the_second_keeps() {
    let mut walker = Walker::new(|_| {});
    assert_eq!(walker.hears(0, NEAR, -60.0), [(NEAR, Kind::Forward)]);
    assert_eq!(walker.events(), [Event::Attached { station: NEAR }]);
    assert_eq!(walker.hears(300, FAR, -70.0), [(FAR, Kind::Buffer)]);
    assert_eq!(walker.host.station(), Some(NEAR));
}

#[test]
fn it_turns_to_another_when_two_beacons_on_end_were_so_much_stronger() {
    let mut walker = Walker::new(|_| {});
    walker.hears(0, NEAR, -60.0);
    walker.hears(300, FAR, -53.0);
    walker.hears(1000, NEAR, -60.0);
    walker.hears(1300, FAR, -56.0);
    assert_eq!(walker.host.station(), Some(NEAR), "the second is stronger by 4 dB alone");
    walker.hears(2000, NEAR, -62.0);
    walker.hears(2300, FAR, -54.0);
    assert_eq!(walker.host.station(), Some(NEAR), "one beacon is not enough");
    walker.hears(3000, NEAR, -62.0);
    walker.host.received(packet(41));
    walker.host.received(packet(42));
    walker.events();
    let asked = walker.hears(3300, FAR, -54.0);
    assert_eq!(asked[..2], [(FAR, Kind::Forward), (NEAR, Kind::Buffer)]);
    assert_eq!((walker.host.station(), walker.host.stats().handoffs), (Some(FAR), 1));
}

#[test]
fn where_nobody_measures_signals_it_stays_while_its_station_is_there() {
    let mut walker = Walker::new(|_| {});
    for beacon in 0..9 {
        walker.hears(beacon * 1000, NEAR, f64::MIN);
        walker.hears(beacon * 1000 + 300, FAR, f64::MIN);
    }
    assert_eq!((walker.host.station(), walker.host.stats().handoffs), (Some(NEAR), 0));
    for beacon in 9..12 {
        walker.hears(beacon * 1000 + 300, FAR, f64::MIN);
        walker.host.handle_timeout(ms(beacon * 1000 + 300));
    }
    assert_eq!((walker.host.station(), walker.host.stats().handoffs), (Some(FAR), 1));
}

#[test]
fn it_says_which_packets_it_received_last_and_how_long_the_change_took() {
    let mut walker = Walker::new(|config| config.decide = Decide::Every(Duration::from_secs(1)));
    walker.hears(0, NEAR, -60.0);
    walker.hears(100, FAR, -70.0);
    [7, 8, 9, 10].into_iter().for_each(|id| walker.host.received(packet(id)));
    walker.events();
    assert!(walker.host.poll_timeout().unwrap() <= ms(1000));
    walker.host.handle_timeout(ms(1000));
    let asked = walker.asked();
    let forward = Asks::Forward(latest(&[8, 9, 10]));
    let (_, _, number) = asked.iter().copied().find(|(to, asks, _)| (*to, *asks) == (FAR, forward)).unwrap();
    walker.host.handle_message(ms(1007), FAR, &answer(number, Kind::Forward), None);
    let served = Event::Served { station: FAR, took: Duration::from_millis(7), handoff: true };
    assert_eq!(walker.events(), [Event::Attached { station: FAR }, served]);
    walker.host.handle_timeout(ms(2000));
    assert_eq!(walker.host.station(), Some(NEAR), "and back");
}

#[test]
fn a_request_without_an_answer_goes_out_again_and_then_its_station_is_taken_for_gone() {
    let mut walker = Walker::new(|_| {});
    walker.hears(0, NEAR, -60.0);
    let mut times = Vec::new();
    while walker.host.station().is_some() {
        let at = walker.host.poll_timeout().unwrap();
        walker.host.handle_timeout(at);
        times.extend(walker.asked().iter().map(|_| at.since(Instant::ZERO).as_millis()));
    }
    assert_eq!(times, [50, 150, 350, 750]);
    assert_eq!(walker.host.stats().unanswered, 1);
    assert!(walker.events().contains(&Event::Detached));
}

#[test]
fn a_station_that_is_heard_no_more_is_left_for_the_strongest() {
    let mut walker = Walker::new(|config| config.buffering = 0);
    let answered = |walker: &mut Walker, at, station| {
        walker.hears(at, station, -60.0);
        for (to, asks, number) in walker.asked() {
            walker.host.handle_message(ms(at), to, &answer(number, asks.kind()), None);
        }
    };
    answered(&mut walker, 0, NEAR);
    answered(&mut walker, 2900, FAR);
    walker.host.handle_timeout(ms(2999));
    assert_eq!(walker.host.station(), Some(NEAR));
    walker.host.handle_timeout(ms(3000));
    assert_eq!(walker.host.station(), Some(FAR));
    walker.host.handle_timeout(ms(6000));
    assert_eq!(walker.host.station(), None);
}

#[test]
fn of_three_stations_the_two_strongest_serve_and_the_weakest_is_let_go() {
    let mut walker = Walker::new(|_| {});
    walker.hears(0, NEAR, -50.0);
    assert_eq!(walker.hears(100, FAR, -70.0), [(FAR, Kind::Buffer)]);
    assert_eq!(walker.hears(200, THIRD, -60.0), [(THIRD, Kind::Buffer), (FAR, Kind::Stop)]);
}

#[test]
fn with_registration_nobody_keeps_anything() {
    let mut walker = Walker::new(|config| config.scheme = Scheme::Registration);
    assert_eq!(walker.hears(0, NEAR, -60.0), [(NEAR, Kind::Register)]);
    assert_eq!(walker.hears(100, FAR, -60.0), []);
}

#[test]
fn forged_and_old_beacons_and_answers_to_nothing_are_counted() {
    let mut walker = Walker::new(|_| {});
    let beacon = |number, station| tagged(number, Says::Beacon { station });
    walker.host.handle_message(ms(0), NEAR, &beacon(5, NEAR), Some(-60.0));
    walker.host.handle_message(ms(0), THIRD, &beacon(6, NEAR), Some(-10.0));
    walker.host.handle_message(ms(9), NEAR, &beacon(5, NEAR), Some(-10.0));
    walker.host.handle_message(ms(9), NEAR, &answer(99, Kind::Forward), None);
    walker.host.handle_message(ms(9), NEAR, &request(3, Asks::Stop), None);
    let stats = *walker.host.stats();
    assert_eq!((stats.forged, stats.replayed, stats.foreign), (1, 1, 2));
}

#[test]
fn a_flood_of_beacons_makes_no_long_list() {
    let mut walker = Walker::new(|_| {});
    walker.hears(0, NEAR, -60.0);
    for n in 0..1000u32 {
        walker.hears(1, Ipv4Addr::from_bits(0x0b00_0000 + n), -10.0);
    }
    assert_eq!(walker.host.station(), Some(NEAR));
    assert_eq!(walker.host.stats().foreign, 1000 - 15);
}

#[test]
fn numbers_follow_the_clock_and_rise_within_a_microsecond() {
    let identity = Identity { epoch_us: 5_000_000, ..Identity::new(HOST) };
    let first = identity.number(ms(1), 0);
    assert_eq!((first, identity.number(ms(1), first)), (5_001_000, 5_001_001));
}
