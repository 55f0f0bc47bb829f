use super::*;
use hopline_streams::wide::{PrivateKey, PublicKey};
use std::net::Ipv4Addr;
use std::thread;

const HERE: ConversationPeer = at(1, 1);
const THERE: ConversationPeer = at(2, 1);

const fn at(network: u8, host: u8) -> ConversationPeer {
    ConversationPeer::unknown(IpAddr::V4(Ipv4Addr::new(10, 0, network, host)))
}

fn key(number: u8) -> PublicKey {
    PrivateKey::new([number; 32]).public()
}

fn known(party: ConversationPeer, number: u8) -> ConversationPeer {
    ConversationPeer { key: Some(key(number)), origin: Origin::Known, ..party }
}

fn all_of(conversations: &Conversations, began: Instant, party: ConversationPeer, most: usize) -> Vec<Slot> {
    (0..most).map_while(|_| conversations.enter_at(began, party)).collect()
}

#[test]
fn slots_are_limited_in_total_and_for_each_host() {
    let conversations = Conversations::new(Limits { in_all: 3, per_party: 2, for_known: 0 });
    let first = conversations.enter(HERE).unwrap();
    let _second = conversations.enter(HERE).unwrap();
    assert!(conversations.enter(HERE).is_none(), "its address has two");
    let _third = conversations.enter(THERE).unwrap();
    assert!(
        conversations.enter(THERE).is_none(),
        "there are three, and none of a prefix that is much heavier"
    );
    drop(first);
    assert!(conversations.enter(THERE).is_some());
}

#[test]
fn addresses_of_one_ipv6_network_are_one_host_and_a_key_is_one_party_at_any_address() {
    let conversations = Conversations::new(Limits { per_party: 2, ..Limits::default() });
    let v6 = |host: u16| ConversationPeer::unknown(IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, host]));
    let seats = [v6(1), v6(2)].map(|party| conversations.enter(party).unwrap());
    assert!(conversations.enter(v6(3)).is_none());
    let with_key = |network| ConversationPeer { key: Some(key(1)), ..at(network, 1) };
    let others = [1, 2].map(|network| conversations.enter(with_key(network)).unwrap());
    assert!(conversations.enter(with_key(3)).is_none());
    assert!(conversations.enter(ConversationPeer { key: Some(key(2)), ..at(3, 1) }).is_some());
    drop((seats, others));
}

#[test]
fn a_conversation_without_progress_loses_its_slot_to_another_sender() {
    let conversations = Conversations::new(Limits { in_all: 3, per_party: 3, for_known: 0 });
    let began = now();
    let [idle, trickling, busy] =
        [at(1, 1), at(2, 1), at(3, 1)].map(|party| conversations.enter_at(began, party).unwrap());
    busy.advance(MIN_PROGRESS);
    trickling.advance(MIN_PROGRESS - 1);
    let newcomer = at(4, 1);
    assert!(conversations.enter_at(began + IDLE_TIMEOUT / 2, newcomer).is_none());
    assert!(!idle.is_evicted(), "not yet");
    assert!(conversations.enter_at(began + IDLE_TIMEOUT, newcomer).is_none());
    assert!(idle.is_evicted() && trickling.is_evicted() && !busy.is_evicted());
    drop(idle);
    assert!(conversations.enter_at(began + IDLE_TIMEOUT, newcomer).is_some());
}

#[test]
fn a_new_sender_gets_the_slot_of_the_slowest_conversation_of_the_largest_prefix() {
    let conversations = Conversations::new(Limits { in_all: 8, per_party: 4, for_known: 0 });
    let began = now();
    let attackers = [at(1, 1), at(1, 2)].map(|party| all_of(&conversations, began, party, 4));
    assert_eq!(attackers.each_ref().map(Vec::len), [4, 4], "two addresses have all");
    attackers.iter().flatten().skip(1).for_each(|seat| seat.advance(MIN_PROGRESS));
    let later = began + Duration::from_secs(1);
    let honest = conversations.enter_at(later, at(9, 9)).expect("at once");
    assert!(attackers[0][0].is_evicted(), "the one that made no progress");
    assert_eq!(attackers.iter().flatten().filter(|seat| seat.is_evicted()).count(), 1);
    // The attackers return for the seat, and displace no other peer.
    drop(attackers);
    let again = all_of(&conversations, later, at(1, 1), 8);
    assert!(!honest.is_evicted() && again.len() == 4);
}

#[test]
fn a_prefix_with_a_conversation_in_each_network_counts_as_one_large_prefix() {
    let conversations = Conversations::new(Limits { in_all: 8, per_party: 4, for_known: 0 });
    let v6 = |site: u16, network: u16| {
        ConversationPeer::unknown(IpAddr::from([0x2001, 0xdb8, site, network, 0, 0, 0, 1]))
    };
    let attackers: Vec<_> = (0..8).map(|network| conversations.enter(v6(1, network)).unwrap()).collect();
    let _honest = conversations.enter(v6(2, 0)).expect("at once");
    assert_eq!(attackers.iter().filter(|seat| seat.is_evicted()).count(), 1);
    assert!(conversations.enter(v6(1, 99)).is_none(), "nobody of the same prefix takes it");
}

#[test]
fn slots_are_reserved_for_known_peers_which_replace_unknown_ones() {
    let conversations = Conversations::new(Limits { in_all: 8, per_party: 8, for_known: 2 });
    let began = now();
    let strangers = all_of(&conversations, began, HERE, 8);
    assert_eq!(strangers.len(), 6, "two are kept");
    strangers.iter().for_each(|seat| seat.advance(MIN_PROGRESS));
    let known: Vec<_> =
        (1..=8).map(|number| conversations.enter_at(began, known(HERE, number)).expect("at once")).collect();
    assert_eq!(strangers.iter().filter(|seat| seat.is_evicted()).count(), 6);
    assert!(conversations.enter_at(began, THERE).is_none(), "a stranger takes nobody's");
    assert!(!known.iter().any(Slot::is_evicted));
}

#[test]
fn the_number_of_leaving_conversations_is_bounded() {
    let conversations = Conversations::new(Limits { in_all: 16, per_party: 16, for_known: 0 });
    let strangers = all_of(&conversations, now(), HERE, 16);
    let known: Vec<_> = (1..=16).map_while(|number| conversations.enter(known(THERE, number))).collect();
    assert_eq!((strangers.len(), known.len()), (16, MAX_LEAVING));
    drop(strangers);
    assert!(conversations.enter(self::known(THERE, 99)).is_some());
}

#[test]
fn the_later_conversation_of_a_sender_replaces_the_earlier_and_waits_for_its_end() {
    let conversations = Conversations::default();
    let [earlier, later, other] = [(); 3].map(|()| conversations.enter(HERE).unwrap());
    let (id, another) = (SenderId([1; 16]), SenderId([2; 16]));
    earlier.take_over(id);
    other.take_over(another);
    thread::scope(|scope| {
        let ending = scope.spawn(move || {
            while !earlier.is_taken_over() {
                thread::yield_now();
            }
        });
        later.take_over(id);
        assert!(ending.is_finished() || ending.join().is_ok());
    });
    assert!(!later.is_taken_over() && !other.is_taken_over());
    let table = conversations.0.table();
    assert_eq!(table.conversations.iter().filter(|taken| taken.sender == Some((None, id))).count(), 1);
}

#[test]
fn a_peer_with_another_key_and_the_same_identifier_takes_nothing_over() {
    let conversations = Conversations::default();
    let enter = |number| conversations.enter(ConversationPeer { key: Some(key(number)), ..HERE }).unwrap();
    let [own, thief] = [1, 2].map(enter);
    let id = SenderId([1; 16]);
    own.take_over(id);
    thief.take_over(id);
    assert!(!own.is_taken_over());
    let again = enter(1);
    thread::scope(|scope| {
        scope.spawn(|| again.take_over(id));
        while !own.is_taken_over() {
            thread::yield_now();
        }
        drop(own);
    });
    assert!(!thief.is_taken_over());
}
