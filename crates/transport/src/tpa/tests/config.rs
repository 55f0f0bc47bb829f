//! Valid and invalid configurations, and the errors of the latter.

use crate::pacing::{self, Pacing};
use crate::tpa::{Config, Endpoint, Listener, Notification, Secret};
use hopline_core::{Duration, Length};

type Change = fn(&mut Config);

#[test]
fn presets_are_valid_for_every_window() {
    for window in 1..=12 {
        for config in [Config::tpa(window), Config::tpa_star(window)] {
            assert_eq!(config.validate(), Ok(()), "window {window}");
        }
    }
}

#[test]
fn parameters_out_of_range_are_named_with_their_range() {
    let spoilt: [(&str, Change); 29] = [
        ("mss must be 1 to 65000", |c| c.mss = 0),
        ("mss must be 1 to 65000", |c| c.mss = 65_001),
        ("block_segments must be 1 to 12", |c| c.block_segments = 0),
        ("block_segments must be 1 to 12", |c| c.block_segments = 13),
        ("cwnd_max must be 1 to 12", |c| c.cwnd_max = 0),
        ("cwnd_max must be 1 to 12", |c| c.cwnd_max = 13),
        ("rto.initial must be above zero", |c| c.rto.initial = Duration::ZERO),
        ("rto.min must be above zero", |c| c.rto.min = Duration::ZERO),
        ("rto.max must be at least rto.min", |c| c.rto.max = Duration::from_nanos(199_999_999)),
        ("rto.g, rto.h must be above 0 and at most 1", |c| c.rto.g = 0.0),
        ("rto.g, rto.h must be above 0 and at most 1", |c| c.rto.g = 1.000_001),
        ("rto.g, rto.h must be above 0 and at most 1", |c| c.rto.h = -0.25),
        ("rto.g, rto.h must be above 0 and at most 1", |c| c.rto.h = f64::NAN),
        ("rto.g1, rto.h1 must be above 0 and at most 1", |c| c.rto.g1 = 0.0),
        ("rto.g1, rto.h1 must be above 0 and at most 1", |c| c.rto.g1 = f64::INFINITY),
        ("rto.g1, rto.h1 must be above 0 and at most 1", |c| c.rto.h1 = f64::NAN),
        ("rto.g1, rto.h1 must be above 0 and at most 1", |c| c.rto.h1 = 2.0),
        ("rto.th_rc must be at least 1", |c| c.rto.th_rc = 0),
        ("th_cong must be at least 1", |c| c.failures.th_cong = 0),
        ("th_route must be at least 1", |c| {
            c.failures.notification = Notification::Elfn;
            c.failures.th_route = Some(0);
        }),
        ("th_route must be left out where nothing is told of routes: there th_cong is both", |c| {
            c.failures.th_route = Some(3);
        }),
        ("th_ack must be at least 1", |c| c.failures.th_ack = 0),
        ("receive_buffer must be at least block_segments · mss", |c| c.receive_buffer = 12 * 1460 - 1),
        ("receive_buffer must be at least block_segments · mss", |c| c.mss = 65_000),
        ("keep_alive must be above zero", |c| c.keep_alive = Some(Duration::ZERO)),
        ("silence_limit must be above zero", |c| c.silence_limit = Some(Duration::ZERO)),
        ("pacing.spatial_factor must be 1 to 255 hops", |c| {
            c.pacing = Pacing::Adaptive(pacing::Config { spatial_factor: 0, ..pacing::Config::AUTHORS });
        }),
        ("pacing.contention_factor must be 0 to 1000", |c| {
            let contention_factor = f64::NAN;
            c.pacing = Pacing::Adaptive(pacing::Config { contention_factor, ..pacing::Config::AUTHORS });
        }),
        // The first of several is named.
        ("mss must be 1 to 65000", |c| (c.mss, c.cwnd_max) = (0, 0)),
    ];
    for (message, spoil) in spoilt {
        let mut config = Config::tpa(3);
        spoil(&mut config);
        let error = config.validate().unwrap_err();
        assert_eq!(error.to_string(), message, "{config:?}");
        assert_eq!(Endpoint::<Length>::new(config).err(), Some(error));
        assert_eq!(Listener::new(config, Secret([0; 16])).err(), Some(error));
    }
}

#[test]
fn the_ends_of_every_range_are_valid() {
    const SHORTEST: Duration = Duration::from_nanos(1);
    let within: [(&str, Change); 16] = [
        ("mss 1", |c| c.mss = 1),
        ("mss 65000", |c| (c.mss, c.receive_buffer) = (65_000, 12 * 65_000)),
        ("blocks of 1", |c| c.block_segments = 1),
        ("a window of 1", |c| c.cwnd_max = 1),
        ("a window of 12", |c| c.cwnd_max = 12),
        ("the shortest times", |c| (c.rto.initial, c.rto.min, c.rto.max) = (SHORTEST, SHORTEST, SHORTEST)),
        ("rto.max is rto.min", |c| c.rto.max = c.rto.min),
        ("weights of 1", |c| (c.rto.g, c.rto.h, c.rto.g1, c.rto.h1) = (1.0, 1.0, 1.0, 1.0)),
        ("the least weights", |c| (c.rto.g, c.rto.h1) = (f64::MIN_POSITIVE, f64::MIN_POSITIVE)),
        ("counts of 1", |c| (c.rto.th_rc, c.failures.th_cong, c.failures.th_ack) = (1, 1, 1)),
        ("counts of 255", |c| (c.rto.th_rc, c.failures.th_cong, c.failures.th_ack) = (255, 255, 255)),
        ("no update with greater weights", |c| c.rto.n_rc = 0),
        ("th_route where losses are told", |c| {
            (c.failures.notification, c.failures.th_route) = (Notification::ElfnAndRecovery, Some(1));
        }),
        ("room for one block", |c| c.receive_buffer = 12 * 1460),
        ("the shortest patience", |c| (c.keep_alive, c.silence_limit) = (Some(SHORTEST), Some(SHORTEST))),
        ("no delay of anything", |c| {
            (c.block_fill, c.ack.timer, c.time_wait) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
            (c.syn_retries, c.send_buffer) = (Some(0), Some(0));
        }),
    ];
    for (what, change) in within {
        let mut config = Config::tpa(3);
        change(&mut config);
        assert_eq!(config.validate(), Ok(()), "{what}");
        assert!(Endpoint::<Length>::new(config).is_ok(), "{what}");
    }
}
