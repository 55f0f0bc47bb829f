//! Whatever becomes of any message, a handshake comes to the same at both ends, or fails and says so.

use super::world::{Ends, Fate, Outcome, World};
use super::{keys, shared};
use crate::{Credentials, Method};
use hopline_core::Duration;
use proptest::prelude::*;

const METHODS: [Method; 2] = [Method::SharedKey, Method::PublicKeys];

fn ends(method: Method) -> Ends {
    let (opener, answerer): (Credentials, Credentials) = match method {
        Method::SharedKey => (shared(7), shared(7)),
        Method::PublicKeys => (keys(1, &[2]), keys(2, &[1])),
    };
    Ends::of(opener, answerer)
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
        (&b"of the answerer"[..], &b"of the opener"[..])
    );
    assert_eq!(opened.session.unsealer.local_id(), accepted.session.sealer.remote_id());
}

#[test]
fn a_quiet_network_takes_one_round_trip_before_data() {
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
fn any_one_or_two_messages_may_meet_any_fate() {
    let fates = [
        Fate::Lost,
        Fate::Late { millis: 900 },
        Fate::Twice { millis: 700 },
        Fate::Damaged { at: 40, bit: 3 },
        Fate::Damaged { at: 7, bit: 0 },
        Fate::Cut { by: 1 },
    ];
    for method in METHODS {
        for first in 0..6 {
            for second in first..6 {
                for [one, other] in fates.iter().flat_map(|one| fates.map(|other| [*one, other])) {
                    let mut schedule = [Fate::Arrives; 6];
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
fn equal_seeds_give_equal_bytes_and_others_do_not() {
    let log = |seed| {
        let mut world = World::new(Ends { seed, ..ends(Method::PublicKeys) }, &[Fate::Arrives, Fate::Lost]);
        assert_eq!(world.run(), Outcome::Works);
        world.log
    };
    assert_eq!(log(1), log(1));
    assert!(log(1).iter().zip(log(2)).all(|(one, other)| *one != other));
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => Just(Fate::Arrives),
        3 => Just(Fate::Lost),
        2 => (0..5000u16).prop_map(|millis| Fate::Late { millis }),
        2 => (0..5000u16).prop_map(|millis| Fate::Twice { millis }),
        3 => any::<(u16, u8)>().prop_map(|(at, bit)| Fate::Damaged { at, bit }),
        1 => (1..1000u16).prop_map(|by| Fate::Cut { by }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_schedule_completes_with_equal_keys_or_fails_cleanly(
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
