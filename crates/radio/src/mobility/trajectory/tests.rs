use super::*;
use proptest::prelude::*;

const fn at(x_m: f64, y_m: f64) -> Position {
    Position { x_m, y_m }
}

const fn s(secs: u64) -> Instant {
    Instant::from_secs(secs)
}

fn setdest(secs: u64, x_m: f64, y_m: f64, speed_mps: f64) -> SetdestCommand {
    SetdestCommand { at: s(secs), to: at(x_m, y_m), speed_mps }
}

#[test]
fn a_fixed_node_is_always_there() {
    let path = Trajectory::fixed(at(3.0, -4.0));
    assert!(path.is_static());
    assert_eq!(path.max_speed(), 0.0);
    assert_eq!(path.next_change_after(Instant::ZERO), None);
    assert_eq!(path.position_at(Instant::FAR_FUTURE), at(3.0, -4.0));
    assert_eq!(path.velocity_at(s(9)), Velocity::ZERO);
}

#[test]
fn waypoints_are_met_at_their_times_and_joined_by_straight_lines() {
    let path = Trajectory::through(&[(s(5), at(0.0, 0.0)), (s(15), at(30.0, 40.0)), (s(20), at(30.0, 40.0))])
        .unwrap();
    let mut cursor = Cursor::default();
    for (t, expected) in [
        (0, at(0.0, 0.0)),
        (5, at(0.0, 0.0)),
        (10, at(15.0, 20.0)),
        (15, at(30.0, 40.0)),
        (99, at(30.0, 40.0)),
    ] {
        assert_eq!(path.position(s(t), &mut cursor), expected, "at {t} s");
    }
    assert_eq!(path.velocity_at(s(4)), Velocity::ZERO);
    assert_eq!(path.velocity_at(s(5)), Velocity { x_mps: 3.0, y_mps: 4.0 });
    assert_eq!(path.velocity_at(s(15)), Velocity::ZERO);
    assert_eq!(path.max_speed(), 5.0);
    assert!(!path.is_static());
    assert_eq!(path.next_change_after(s(0)), Some(s(5)));
    assert_eq!(path.next_change_after(s(5)), Some(s(15)));
    assert_eq!(path.next_change_after(s(20)), None);
}

#[test]
fn impossible_waypoints_are_refused_with_their_index() {
    assert_eq!(Trajectory::through(&[]), Err(WaypointError::Empty));
    let twice = [(s(1), at(0.0, 0.0)), (s(1), at(1.0, 0.0))];
    assert_eq!(Trajectory::through(&twice), Err(WaypointError::NotLater { index: 1 }));
    let nowhere = [(s(1), at(0.0, 0.0)), (s(2), at(f64::NAN, 0.0))];
    assert_eq!(Trajectory::through(&nowhere), Err(WaypointError::NotFinite { index: 1 }));
}

#[test]
fn a_setdest_moves_the_node_until_it_arrives() {
    let path = Trajectory::from_setdest(at(0.0, 0.0), &[setdest(2, 30.0, 40.0, 5.0)]);
    assert_eq!(path.position_at(s(2)), at(0.0, 0.0));
    assert_eq!(path.position_at(s(7)), at(15.0, 20.0));
    assert_eq!(path.position_at(s(12)), at(30.0, 40.0));
    assert_eq!(path.position_at(s(500)), at(30.0, 40.0));
    assert_eq!(path.next_change_after(s(2)), Some(s(12)));
}

#[test]
fn a_setdest_during_a_leg_redirects_the_node() {
    let path =
        Trajectory::from_setdest(at(0.0, 0.0), &[setdest(0, 100.0, 0.0, 10.0), setdest(4, 40.0, 30.0, 3.0)]);
    assert_eq!(path.position_at(s(4)), at(40.0, 0.0));
    assert_eq!(path.position_at(s(9)), at(40.0, 15.0));
    assert_eq!(path.position_at(s(14)), at(40.0, 30.0));
    assert_eq!(path.position_at(s(60)), at(40.0, 30.0), "the first destination is forgotten");
}

#[test]
fn speed_zero_stops_the_node_on_the_spot() {
    for speed in [0.0, -1.0, f64::NAN] {
        let path = Trajectory::from_setdest(
            at(0.0, 0.0),
            &[setdest(0, 100.0, 0.0, 10.0), setdest(3, 100.0, 0.0, speed)],
        );
        assert_eq!(path.position_at(s(3)), at(30.0, 0.0));
        assert_eq!(path.position_at(s(100)), at(30.0, 0.0));
    }
}

#[test]
fn setdests_apply_by_time_and_the_last_of_equal_times_wins() {
    let orders = [setdest(5, 0.0, 50.0, 10.0), setdest(0, 10.0, 0.0, 10.0), setdest(5, 0.0, 0.0, 10.0)];
    let path = Trajectory::from_setdest(at(0.0, 0.0), &orders);
    assert_eq!(path.position_at(s(5)), at(10.0, 0.0));
    assert_eq!(path.position_at(s(6)), at(0.0, 0.0));
}

#[test]
fn a_setdest_over_a_negligible_distance_is_no_leg() {
    let path = Trajectory::from_setdest(at(1.0, 1.0), &[setdest(1, 1.0, 1.0, 5.0)]);
    assert!(path.is_static());
    // 1e-10 s of travel: the node is there at once.
    let path = Trajectory::from_setdest(at(0.0, 0.0), &[setdest(1, 1e-9, 0.0, 10.0)]);
    assert_eq!(path.position_at(s(1)), at(1e-9, 0.0));
    assert_eq!(path.max_speed(), 1e-9, "one second to the next corner");
}

#[test]
fn a_very_long_leg_is_cut_at_the_end_of_time() {
    let path = Trajectory::from_setdest(at(0.0, 0.0), &[setdest(0, 1e9, 0.0, 1e-9)]);
    let here = path.position_at(Instant::from_secs(1_000));
    assert!((here.x_m - 1e-6).abs() < 1e-12, "{here:?}");
    let late = SetdestCommand { at: Instant::FAR_FUTURE, to: at(5.0, 5.0), speed_mps: 1.0 };
    let path = Trajectory::from_setdest(at(0.0, 0.0), &[late]);
    assert_eq!(path.position_at(s(1_000_000)), at(0.0, 0.0));
}

fn any_order() -> impl Strategy<Value = SetdestCommand> {
    (0u64..200_000, -500.0f64..500.0, -500.0f64..500.0, -1.0f64..30.0).prop_map(|(ms, x, y, speed_mps)| {
        SetdestCommand { at: Instant::from_millis(ms), to: at(x, y), speed_mps }
    })
}

proptest! {
    #[test]
    fn a_cursor_agrees_with_a_search(
        orders in prop::collection::vec(any_order(), 0..20),
        times in prop::collection::vec(0u64..300_000, 1..60),
    ) {
        let path = Trajectory::from_setdest(at(0.0, 0.0), &orders);
        let mut cursor = Cursor::default();
        for ms in times {
            let t = Instant::from_millis(ms); // forth and back
            prop_assert_eq!(path.position(t, &mut cursor), path.position_at(t));
        }
    }

    #[test]
    fn between_changes_the_velocity_is_constant_and_there_are_no_jumps(
        orders in prop::collection::vec(any_order(), 1..20),
    ) {
        let path = Trajectory::from_setdest(at(0.0, 0.0), &orders);
        let mut now = Instant::ZERO;
        while let Some(next) = path.next_change_after(now) {
            prop_assert!(next > now);
            let (v, span) = (path.velocity_at(now), (next - now).as_secs_f64());
            let end = at(path.position_at(now).x_m + v.x_mps * span, path.position_at(now).y_m + v.y_mps * span);
            prop_assert!(end.distance_m(path.position_at(next)) < 1e-6);
            prop_assert!(v.speed_mps() <= path.max_speed());
            now = next;
        }
        prop_assert_eq!(path.velocity_at(now), Velocity::ZERO);
    }

    #[test]
    fn setdests_keep_their_speed(orders in prop::collection::vec(any_order(), 1..20)) {
        let path = Trajectory::from_setdest(at(0.0, 0.0), &orders);
        let fastest = orders.iter().map(|o| o.speed_mps).fold(0.0, f64::max);
        for (from, to) in path.corners().zip(path.corners().skip(1)) {
            // Corners fall on whole nanoseconds.
            let allowed = fastest * ((to.0 - from.0).as_secs_f64() + 1e-9);
            prop_assert!(from.1.distance_m(to.1) <= allowed + 1e-9);
        }
    }
}
