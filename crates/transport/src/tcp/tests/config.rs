//! Presets and their validation.

use crate::tcp::{
    AckPolicy, Config, CongestionControl, CubicConfig, Endpoint, Estimator, Growth, InitialSsthresh,
    InitialWindow, LimitedTransmit, LossDetection, OptionOffer, Ports, RackConfig, RtoConfig, TailProbe,
};
use hopline_core::{Duration, Length, Seq32};

#[test]
fn presets_are_valid() {
    let ns2 = [Config::ns2_235(), Config::ns2_2006(), Config::ns2_2001()];
    for config in [Config::modern(), Config::qualnet(), Config::bsd()].into_iter().chain(ns2) {
        let variants = [
            config,
            config.with_reno(),
            config.with_newreno(),
            config.with_sack(),
            config.with_rack(),
            config.with_linux_recovery(),
        ];
        for config in variants {
            assert_eq!(config.validate(), Ok(()));
            assert_eq!(config.with_cubic().validate(), Ok(()));
        }
    }
}

#[test]
fn ns2_presets_keep_the_constants_of_their_time() {
    let (c01, c06, c35) = (Config::ns2_2001(), Config::ns2_2006(), Config::ns2_235());
    assert_eq!(c01.rto.granularity, Duration::from_millis(100));
    assert_eq!(c01.rto.initial, Duration::from_secs(6));
    assert_eq!(c01.rto.backoff_limit, Some(64));
    assert_eq!(c01.initial_window, InitialWindow::Segments(1));
    assert_eq!(c06.rto.max, Duration::from_secs(100_000));
    assert_eq!(c35.rto.granularity, Duration::from_millis(10));
    assert_eq!(c35.rto.min, Duration::from_millis(200));
    assert_eq!(c35.rto.max, Duration::from_secs(60));
    assert_eq!(c35.rto.initial, Duration::from_secs(3));
    assert_eq!(c35.initial_window, InitialWindow::Segments(2));
}

#[test]
fn qualnet_is_newreno_of_the_rfcs_with_the_numbers_of_4_4bsd() {
    let config = Config::qualnet();
    assert_eq!(config.with_newreno(), config);
    assert_eq!(config.variant, Config::modern().with_newreno().variant);
    assert_eq!(config.mss * config.window_clamp.unwrap(), 16_384);
    assert_eq!(config.initial_window.bytes(config.mss), 512);
    assert_eq!((config.timestamps, config.limited_transmit), (OptionOffer::NotOffered, LimitedTransmit::Off));
    assert_eq!(config.ack_policy, AckPolicy::Delayed { timer: Duration::from_millis(200) });
    let RtoConfig { initial, min, granularity, .. } = config.rto;
    assert_eq!((initial, min), (Duration::from_secs(3), Duration::from_secs(1)));
    assert_eq!(granularity, Duration::from_millis(500));
}

#[test]
fn with_newreno_keeps_an_existing_newreno() {
    assert_eq!(Config::ns2_2001().with_newreno().variant, Config::ns2_2001().variant);
    assert_eq!(Config::ns2_2001().with_sack().with_newreno().variant, Config::ns2_2001().variant);
}

#[test]
fn initial_windows_in_bytes() {
    assert_eq!(InitialWindow::Segments(2).bytes(1460), 2920);
    // RFC 3390 §1: 4 segments up to 1095 bytes, 3 up to 2190, 2 above.
    assert_eq!(InitialWindow::Rfc3390.bytes(536), 2144);
    assert_eq!(InitialWindow::Rfc3390.bytes(1460), 4380);
    assert_eq!(InitialWindow::Rfc3390.bytes(9000), 18_000);
    // RFC 6928 §2.
    assert_eq!(InitialWindow::Rfc6928.bytes(1460), 14_600);
    assert_eq!(InitialWindow::Rfc6928.bytes(9000), 18_000);
}

#[test]
fn parameters_out_of_range_are_named() {
    type Spoil = fn(&mut Config);
    let spoilt: [(&str, Spoil); 17] = [
        ("mss", |c| c.mss = 47),
        ("initial_window", |c| c.initial_window = InitialWindow::Segments(0)),
        ("initial_ssthresh", |c| c.initial_ssthresh = InitialSsthresh::Segments(1)),
        ("law.c", |c| {
            c.congestion_control = CongestionControl::Cubic(CubicConfig { c: 0.0, ..CubicConfig::RFC9438 })
        }),
        ("law.c", |c| {
            c.congestion_control =
                CongestionControl::Cubic(CubicConfig { c: f64::NAN, ..CubicConfig::RFC9438 })
        }),
        ("law.beta", |c| {
            c.congestion_control = CongestionControl::Cubic(CubicConfig { beta: 1.0, ..CubicConfig::RFC9438 })
        }),
        ("law.beta", |c| {
            c.congestion_control = CongestionControl::Cubic(CubicConfig { beta: 0.0, ..CubicConfig::RFC9438 })
        }),
        ("window_clamp", |c| c.window_clamp = Some(0)),
        ("growth.limit", |c| c.growth = Growth::Bytes { limit: 0 }),
        ("dup_ack_threshold", |c| c.dup_ack_threshold = 0),
        ("ack_policy.timer", |c| c.ack_policy = AckPolicy::Delayed { timer: Duration::from_millis(501) }),
        ("rto.initial", |c| c.rto.initial = Duration::ZERO),
        ("rto.max", |c| c.rto.max = Duration::from_millis(1)),
        ("rto.granularity", |c| c.rto.granularity = Duration::ZERO),
        ("rto.backoff_limit", |c| c.rto.backoff_limit = Some(3)),
        ("receive_buffer", |c| c.receive_buffer = 0),
        ("send_buffer", |c| c.send_buffer = Some(0)),
    ];
    for (field, spoil) in spoilt {
        let mut config = Config::modern();
        spoil(&mut config);
        let error = config.validate().unwrap_err();
        assert_eq!(error.field, field);
        let made = Endpoint::<Length>::new(config, Ports { local: 1, remote: 2 }, Seq32(0));
        assert_eq!(made.err(), Some(error));
    }
    let mut config = Config::ns2_235();
    config.rto.estimator = Estimator::Ticks { phase: Duration::from_millis(10) };
    assert_eq!(config.validate().unwrap_err().field, "rto.estimator.phase");
}

#[test]
fn rack_requires_sack_of_rfc_6675() {
    let rack = Config::modern().with_rack();
    assert_eq!(rack.validate(), Ok(()));
    for variant in
        [Config::modern().with_reno(), Config::modern().with_newreno(), Config::ns2_235().with_sack()]
    {
        let error = Config { variant: variant.variant, ..rack }.validate().unwrap_err();
        assert_eq!(error.field, "loss_detection");
    }
    assert_eq!(rack.with_newreno().validate(), Ok(()), "which tells losses by duplicates");
    assert_eq!(rack.with_reno().validate(), Ok(()));
}

#[test]
fn parameters_of_rack_out_of_range_are_named() {
    let spoilt = [
        ("loss_detection.rack", RackConfig { min_rtt_window: Duration::ZERO, ..RackConfig::RFC8985 }),
        ("loss_detection.rack", RackConfig { reo_wnd_persist: 0, ..RackConfig::RFC8985 }),
        (
            "loss_detection.rack.tail_probe.max_ack_delay",
            RackConfig {
                tail_probe: TailProbe::On { max_ack_delay: Duration::from_millis(501) },
                ..RackConfig::RFC8985
            },
        ),
    ];
    for (field, rack) in spoilt {
        let config = Config { loss_detection: LossDetection::Rack(rack), ..Config::modern().with_rack() };
        assert_eq!(config.validate().unwrap_err().field, field);
    }
}
