use super::*;
use crate::mobility::{Cursor, Position};
use hopline_core::{NodeId, Purpose};
use proptest::prelude::*;

const AREA: Area = Area { width_m: 600.0, height_m: 400.0 };
const NODES: u32 = 3_000;

fn stream(node: u32) -> RandomStream {
    RandomStream::new(5, 1, NodeId(node), Purpose::Mobility)
}

fn paths(model: RandomWaypoint, duration: Duration) -> Vec<Trajectory> {
    (0..NODES).map(|n| model.trajectory(duration, &mut stream(n)).unwrap()).collect()
}

/// Mean speed of the nodes that move at `at`, and the share of those that do not.
fn speeds(paths: &[Trajectory], at: Instant) -> (f64, f64) {
    let speeds: Vec<f64> = paths.iter().map(|p| p.velocity_at(at).speed_mps()).filter(|&v| v > 0.0).collect();
    let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
    (mean, 1.0 - speeds.len() as f64 / paths.len() as f64)
}

fn setdest(pause: Duration) -> RandomWaypoint {
    RandomWaypoint::Setdest(SetdestWaypoint { area: AREA, max_speed_mps: 10.0, pause })
}

const TPA_STUDY: StationaryWaypoint =
    StationaryWaypoint { area: AREA, min_speed_mps: 1.0, max_speed_mps: 9.0, pause: Duration::from_secs(20) };

#[test]
fn the_stationary_form_keeps_its_mean_speed_and_share_of_pauses_from_the_start() {
    let duration = Duration::from_secs(1_000);
    let paths = paths(RandomWaypoint::Stationary(TPA_STUDY), duration);
    let mean_speed = 8.0 / libm::log(9.0);
    for at in [0, 7, 60, 300, 999] {
        let (speed, paused) = speeds(&paths, Instant::from_secs(at));
        // 3000 nodes: standard errors are 0.05 m/s and 0.009.
        assert!((speed - mean_speed).abs() < 0.2, "{speed} m/s at {at} s");
        assert!((paused - TPA_STUDY.paused_share()).abs() < 0.03, "{paused} paused at {at} s");
    }
    assert!((TPA_STUDY.mean_trip_s() - AREA.mean_distance_m() * libm::log(9.0) / 8.0).abs() < 1e-9);
}

#[test]
fn the_stationary_form_gathers_in_the_middle_from_the_start() {
    let model = StationaryWaypoint { pause: Duration::ZERO, ..TPA_STUDY };
    let paths = paths(RandomWaypoint::Stationary(model), Duration::from_secs(500));
    let middle = |at| {
        let inside = |p: &&Trajectory| {
            let at = p.position_at(at);
            (at.x_m - 300.0).abs() < 150.0 && (at.y_m - 200.0).abs() < 100.0
        };
        paths.iter().filter(inside).count() as f64 / f64::from(NODES)
    };
    // Uniform would be a quarter. What holds at the start holds at the end.
    let (first, last) = (middle(Instant::ZERO), middle(Instant::from_secs(499)));
    assert!(first > 0.38 && (first - last).abs() < 0.05, "{first} {last}");
}

#[test]
fn the_setdest_form_slows_down() {
    let paths = paths(setdest(Duration::ZERO), Duration::from_secs(2_000));
    let (first, _) = speeds(&paths, Instant::ZERO);
    let (later, _) = speeds(&paths, Instant::from_secs(200));
    let (last, _) = speeds(&paths, Instant::from_secs(1_900));
    assert!((first - 5.0).abs() < 0.2, "{first}");
    assert!(later < first * 0.75 && last < later * 0.8, "{first} {later} {last}");
}

#[test]
fn the_setdest_form_starts_uniform_and_with_a_pause() {
    let paths = paths(setdest(Duration::from_secs(3)), Duration::from_secs(10));
    assert!(paths.iter().all(|p| p.velocity_at(Instant::from_millis(2_999)).speed_mps() == 0.0));
    assert!(paths.iter().all(|p| p.velocity_at(Instant::from_secs(3)).speed_mps() > 0.0));
    let mean = paths.iter().map(|p| p.position_at(Instant::ZERO).x_m).sum::<f64>() / f64::from(NODES);
    assert!((mean - 300.0).abs() < 12.0, "{mean}");
}

#[test]
fn equal_speeds_are_a_constant_speed() {
    let model = StationaryWaypoint { min_speed_mps: 4.0, max_speed_mps: 4.0, ..TPA_STUDY };
    assert!((model.mean_trip_s() - AREA.mean_distance_m() / 4.0).abs() < 1e-9);
    let path = model.trajectory(Duration::from_secs(500), &mut stream(0)).unwrap();
    assert!((path.max_speed() - 4.0).abs() < 1e-6, "{}", path.max_speed());
}

#[test]
fn the_same_stream_gives_the_same_path_and_another_node_another() {
    let model = RandomWaypoint::Stationary(TPA_STUDY);
    let path = |node| model.trajectory(Duration::from_secs(100), &mut stream(node)).unwrap();
    assert_eq!(path(4), path(4));
    assert_ne!(path(4), path(5));
}

#[test]
fn a_longer_run_begins_like_the_shorter_one() {
    let model = setdest(Duration::from_secs(2));
    let short = model.trajectory(Duration::from_secs(100), &mut stream(1)).unwrap();
    let long = model.trajectory(Duration::from_secs(1_000), &mut stream(1)).unwrap();
    assert!(short.corners().zip(long.corners()).all(|(a, b)| a == b));
    assert!(short.end() >= Instant::from_secs(100));
}

#[test]
fn impossible_models_are_refused() {
    let run =
        |model: StationaryWaypoint| model.trajectory(Duration::from_secs(100), &mut stream(0)).unwrap_err();
    for (min, max) in [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (1.0, 1e9), (1.0, f64::NAN)] {
        let bad = StationaryWaypoint { min_speed_mps: min, max_speed_mps: max, ..TPA_STUDY };
        assert_eq!(run(bad), RandomWaypointError::Speed);
    }
    let flat = Area { width_m: 10.0, height_m: 0.0 };
    assert_eq!(run(StationaryWaypoint { area: flat, ..TPA_STUDY }), RandomWaypointError::Area);
    let tiny = Area { width_m: 1e-6, height_m: 1e-6 };
    assert_eq!(
        run(StationaryWaypoint { area: tiny, pause: Duration::ZERO, ..TPA_STUDY }),
        RandomWaypointError::TooManyTrips
    );
}

#[test]
fn the_number_of_trips_is_estimated() {
    let model = StationaryWaypoint { min_speed_mps: 4.0, max_speed_mps: 4.0, ..TPA_STUDY };
    let duration = Duration::from_secs(100_000);
    let foreseen = RandomWaypoint::Stationary(model).estimated_trips(duration);
    let path = model.trajectory(duration, &mut stream(3)).unwrap();
    // A trip and a pause have a corner each.
    let made = path.corners().len() as f64 / 2.0;
    assert!((made / foreseen - 1.0).abs() < 0.05, "{made} {foreseen}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nodes_stay_inside_and_within_their_speeds(
        seed in any::<u64>(), pause_ms in 0u64..5_000, min in 0.01f64..5.0, more in 0.0f64..30.0,
    ) {
        let pause = Duration::from_millis(pause_ms);
        let (area, max) = (AREA, min + more);
        let models = [
            RandomWaypoint::Setdest(SetdestWaypoint { area, max_speed_mps: max, pause }),
            RandomWaypoint::Stationary(StationaryWaypoint { area, min_speed_mps: min, max_speed_mps: max, pause }),
        ];
        for model in models {
            let mut s = RandomStream::new(seed, 1, NodeId(0), Purpose::Mobility);
            let path = model.trajectory(Duration::from_secs(300), &mut s).unwrap();
            let mut cursor = Cursor::default();
            let mut before: Option<Position> = None;
            for second in 0..300 {
                let here = path.position(Instant::from_secs(second), &mut cursor);
                prop_assert!((0.0..=600.0).contains(&here.x_m) && (0.0..=400.0).contains(&here.y_m));
                if let Some(before) = before {
                    prop_assert!(before.distance_m(here) <= max * 1.000_001);
                }
                before = Some(here);
            }
        }
    }
}
