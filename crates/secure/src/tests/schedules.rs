//! Whatever becomes of any message, a handshake comes to the same at both ends, or fails and says so.

use super::world::{DatagramFate, Ends, Outcome, World};
use super::{keys, shared};
use crate::{Credentials, Method};
use hopline_core::Duration;
use proptest::prelude::*;

const METHODS: [Method; 2] = [Method::SharedKey, Method::PublicKeys];

fn ends(method: Method) -> Ends {
    let (initiator, responder): (Credentials, Credentials) = match method {
        Method::SharedKey => (shared(7), shared(7)),
        Method::PublicKeys => (keys(1, &[2]), keys(2, &[1])),
    };
    Ends::of(initiator, responder)
}

/// Checks that both ends know the same of the connection.
#[track_caller]
fn agree(world: &World) {
    let opened = world.opened.as_ref().unwrap();
    let id = opened.session.sealer.remote_id();
    let accepted = &world.accepted[&id].established;
    assert_eq!(world.accepted.len(), 1);
    assert_eq!(opened.binding, accepted.binding);
    assert_eq!(opened.version, accepted.version);
    assert_eq!(
        (&opened.parameters[..], &accepted.parameters[..]),
        (&b"of the responder"[..], &b"of the initiator"[..])
    );
    assert_eq!(opened.session.unsealer.local_id(), accepted.session.sealer.remote_id());
}

#[test]
fn without_faults_data_are_sent_after_one_round_trip() {
    for (method, before_data) in METHODS.into_iter().zip([2, 3]) {
        let mut world = World::new(ends(method), &[]);
        assert_eq!(world.run(), Outcome::Works);
        agree(&world);
        assert_eq!(world.opened.as_ref().unwrap().round_trip, Some(Duration::from_millis(60)));
        let data = world.log.iter().position(|datagram| !datagram.starts_with(b"TPAW"));
        assert_eq!(
            data,
            Some(before_data),
            "{method:?}: data follow what the second message is answered with"
        );
    }
}

#[test]
fn any_faults_of_one_or_two_messages_are_survived() {
    let fates = [
        DatagramFate::Lost,
        DatagramFate::Late { millis: 900 },
        DatagramFate::Twice { millis: 700 },
        DatagramFate::Damaged { at: 40, bit: 3 },
        DatagramFate::Damaged { at: 7, bit: 0 },
        DatagramFate::Cut { by: 1 },
    ];
    for method in METHODS {
        for first in 0..6 {
            for second in first..6 {
                for [one, other] in fates.iter().flat_map(|one| fates.map(|other| [*one, other])) {
                    let mut schedule = [DatagramFate::Arrives; 6];
                    schedule[first] = one;
                    schedule[second] = other;
                    let mut world = World::new(ends(method), &schedule);
                    assert_eq!(world.run(), Outcome::Works, "{method:?} {schedule:?}");
                    agree(&world);
                }
            }
        }
    }
}

#[test]
fn equal_seeds_give_equal_bytes_and_different_seeds_do_not() {
    let log = |seed| {
        let mut world = World::new(
            Ends { seed, ..ends(Method::PublicKeys) },
            &[DatagramFate::Arrives, DatagramFate::Lost],
        );
        assert_eq!(world.run(), Outcome::Works);
        world.log
    };
    assert_eq!(log(1), log(1));
    assert!(log(1).iter().zip(log(2)).all(|(one, other)| *one != other));
}

fn any_fate() -> impl Strategy<Value = DatagramFate> {
    prop_oneof![
        3 => Just(DatagramFate::Arrives),
        3 => Just(DatagramFate::Lost),
        2 => (0..5000u16).prop_map(|millis| DatagramFate::Late { millis }),
        2 => (0..5000u16).prop_map(|millis| DatagramFate::Twice { millis }),
        3 => any::<(u16, u8)>().prop_map(|(at, bit)| DatagramFate::Damaged { at, bit }),
        1 => (1..1000u16).prop_map(|by| DatagramFate::Cut { by }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_schedule_of_faults_ends_with_equal_keys_or_an_error(
        fates in prop::collection::vec(any_fate(), 0..60),
        method in prop::sample::select(METHODS.to_vec()),
        seed in any::<u8>(),
    ) {
        let mut world = World::new(Ends { seed, ..ends(method) }, &fates);
        match world.run() {
            Outcome::Works => agree(&world),
            // Nothing that anybody could believe in: both ends, if they have keys, have the same.
            Outcome::Failed(_) | Outcome::Silence => {
                prop_assert!(fates.len() > 6, "a few accidents must not end it");
                if world.opened.is_some() && !world.accepted.is_empty() {
                    agree(&world);
                }
            }
        }
        prop_assert!(world.accepted.len() <= 1);
    }
}
