use super::*;

const OLD: ([u8; 4], u16) = ([10, 0, 0, 1], 1000);
const NEW: ([u8; 4], u16) = ([10, 0, 0, 2], 2000);

fn address(of: ([u8; 4], u16)) -> SocketAddr {
    SocketAddr::from(of)
}

fn paths() -> Paths {
    Paths::new(PathConfig::default(), address(OLD), &Seed::new([1; 32])).unwrap()
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// The challenge that is to be sent now, and where to; it was sent in a datagram of the least length.
#[track_caller]
fn challenge(paths: &mut Paths, now: Instant) -> (SocketAddr, [u8; 8]) {
    match paths.poll_control(now) {
        Some((to, Control::Challenge(challenge))) => {
            paths.record_sent(to, MIN_DATAGRAM as usize);
            (to, challenge)
        }
        other => panic!("{other:?} is no challenge"),
    }
}

#[test]
fn a_new_address_is_used_once_it_is_validated() {
    let mut paths = paths();
    paths.record_received(at(0), address(NEW), 100, Order::Newest);
    let (to, content) = challenge(&mut paths, at(0));
    assert_eq!((to, paths.active()), (address(NEW), address(OLD)));
    assert_eq!(paths.poll_control(at(0)), None);
    assert_eq!(paths.allowance(address(OLD)), u64::MAX, "the old path stays usable");
    paths.handle_control(at(80), address(NEW), Control::Response(content));
    let round_trip = Some(Duration::from_millis(80));
    let moved = PathEvent::Moved { from: address(OLD), to: address(NEW), round_trip };
    assert_eq!(paths.poll_event(), Some(moved));
    assert_eq!(paths.active(), address(NEW));
    assert_eq!((paths.allowance(address(NEW)), paths.allowance(address(OLD))), (u64::MAX, 0));
    assert_eq!((paths.poll_timeout(), paths.poll_event()), (None, None));
}

#[test]
fn an_unvalidated_address_gets_three_times_the_bytes_received_from_it() {
    let mut paths = paths();
    paths.record_received(at(0), address(NEW), 28, Order::Newest);
    assert_eq!(paths.allowance(address(NEW)), 84);
    challenge(&mut paths, at(0));
    assert_eq!(paths.allowance(address(NEW)), 84 - 37);
    challenge(&mut paths, at(300));
    assert_eq!(paths.allowance(address(NEW)), 84 - 74);
    assert_eq!(paths.poll_control(at(900)), None, "ten bytes are too few for a challenge");
    paths.record_received(at(901), address(NEW), 40, Order::Older);
    assert_eq!(paths.allowance(address(NEW)), 3 * 68 - 74);
    challenge(&mut paths, at(901));
}

#[test]
fn challenges_are_repeated_with_back_off_and_then_abandoned() {
    let mut paths = paths();
    paths.record_received(at(0), address(NEW), 1000, Order::Newest);
    let mut sent = Vec::new();
    while let Some(due) = paths.poll_timeout() {
        paths.handle_timeout(due);
        if let Some((to, Control::Challenge(_))) = paths.poll_control(due) {
            assert_eq!(to, address(NEW));
            sent.push(due.as_nanos() / 1_000_000);
        }
    }
    assert_eq!(sent, [0, 300, 900, 2100, 4500]);
    let silent = PathEvent::Abandoned { address: address(NEW), reason: Abandoned::NoResponse };
    assert_eq!(paths.poll_event(), Some(silent));
    assert_eq!((paths.active(), paths.allowance(address(NEW))), (address(OLD), 0));
}

#[test]
fn back_off_is_limited_for_an_address_from_which_the_peer_keeps_sending() {
    let mut paths = paths();
    let mut sent = Vec::new();
    for millis in (0..5000).step_by(100) {
        // The newest every second; a late one shows nothing.
        let order = if millis % 1000 == 0 { Order::Newest } else { Order::Older };
        paths.record_received(at(millis), address(NEW), 1000, order);
        paths.handle_timeout(at(millis));
        if let Some((_, Control::Challenge(_))) = paths.poll_control(at(millis)) {
            sent.push(millis);
        }
    }
    assert_eq!(
        sent,
        [0, 300, 900, 1200, 1800, 3000, 3300, 3900, 4200, 4800],
        "given up after five tries, and begun again"
    );
}

#[test]
fn a_wrong_response_does_not_move_the_peer() {
    let mut paths = paths();
    paths.record_received(at(0), address(NEW), 100, Order::Newest);
    paths.handle_control(at(1), address(NEW), Control::Response([0; 8]));
    let (_, content) = challenge(&mut paths, at(1));
    let mut wrong = content;
    wrong[7] ^= 1;
    paths.handle_control(at(2), address(NEW), Control::Response(wrong));
    assert_eq!((paths.active(), paths.poll_event()), (address(OLD), None));
}

#[test]
fn late_datagrams_do_not_move_the_peer() {
    let mut paths = paths();
    paths.record_received(at(0), address(NEW), 100, Order::Older);
    assert_eq!((paths.poll_control(at(0)), paths.poll_timeout()), (None, None));
    assert_eq!(paths.allowance(address(NEW)), 0);
}

#[test]
fn a_peer_that_returns_to_its_old_address_stays_there() {
    let mut paths = paths();
    paths.record_received(at(0), address(NEW), 100, Order::Newest);
    let (_, content) = challenge(&mut paths, at(0));
    paths.record_received(at(10), address(OLD), 100, Order::Newest);
    let returned = PathEvent::Abandoned { address: address(NEW), reason: Abandoned::Returned };
    assert_eq!(paths.poll_event(), Some(returned));
    paths.handle_control(at(20), address(NEW), Control::Response(content));
    assert_eq!((paths.active(), paths.poll_event()), (address(OLD), None));
}

#[test]
fn a_challenge_is_answered_to_its_source() {
    let mut paths = paths();
    paths.record_received(at(0), address(OLD), 37, Order::Newest);
    paths.handle_control(at(0), address(OLD), Control::Challenge([5; 8]));
    assert_eq!(paths.poll_control(at(0)), Some((address(OLD), Control::Response([5; 8]))));
    paths.handle_control(at(1), address(NEW), Control::Challenge([6; 8]));
    assert_eq!(paths.poll_control(at(1)), None, "nothing is known of that address");
    for _ in 0..1000 {
        paths.handle_control(at(2), address(OLD), Control::Challenge([7; 8]));
    }
    let answers = std::iter::from_fn(|| paths.poll_control(at(2))).count();
    assert_eq!(answers, MAX_RESPONSES, "bounded");
}

#[test]
fn the_number_of_candidates_is_bounded_and_the_newest_are_kept() {
    let mut paths = paths();
    for port in 0..100 {
        paths.record_received(at(0), address(([10, 0, 0, 3], port)), 100, Order::Newest);
    }
    let kept: Vec<u16> = paths.candidates().map(|candidate| candidate.port()).collect();
    assert_eq!(kept, [96, 97, 98, 99]);
    let mut challenges: Vec<[u8; 8]> = (0..4).map(|_| challenge(&mut paths, at(0)).1).collect();
    challenges.dedup();
    assert_eq!(challenges.len(), 4, "each has its own");
}

#[test]
fn equal_seeds_give_equal_challenges() {
    let draw = || {
        let mut paths = paths();
        paths.record_received(at(0), address(NEW), 100, Order::Newest);
        challenge(&mut paths, at(0))
    };
    assert_eq!(draw(), draw());
}
