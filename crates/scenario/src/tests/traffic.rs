//! Kinds of traffic, and what sizes and times are drawn from.

use super::*;
use hopline_sim::spec::{ExchangeSpec, RandomVariable};
use std::num::NonZeroU64;

fn traffic(lines: &str) -> Traffic {
    spec(&(CHAIN.to_owned() + lines), &[]).flows.remove(0).traffic
}

fn exchange(lines: &str) -> ExchangeSpec {
    match traffic(lines) {
        Traffic::Exchange { exchange, .. } => exchange,
        other => panic!("{other:?}"),
    }
}

#[test]
fn on_and_off_times_are_exponential_by_default() {
    let half_a_second = RandomVariable::Exponential { mean: 0.5 };
    match traffic("kind = \"on-off\"\nrate_kbps = 64\n") {
        Traffic::OnOff { packet_bytes, interval, on, off } => {
            assert_eq!((packet_bytes, interval), (512, Duration::from_millis(64)));
            assert_eq!((on, off), (half_a_second, half_a_second));
        }
        other => panic!("{other:?}"),
    }
    let lines = "kind = \"on-off\"\nrate_kbps = 64\non_s = 2\n\
        off_s = { draw = \"uniform\", min = 1, max = 3 }\n";
    match traffic(lines) {
        Traffic::OnOff { on, off, .. } => {
            assert_eq!(
                (on, off),
                (RandomVariable::Constant(2.0), RandomVariable::Uniform { min: 1.0, max: 3.0 })
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_start_jitter_is_drawn_for_each_run_and_flow_and_off_by_default() {
    let second = "[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\nstart_s = 3\n";
    let text = CHAIN.to_owned() + "start_s = 3\nstart_jitter_s = 0.1\n" + second;
    let starts = |settings: &[&str]| -> Vec<f64> {
        spec(&text, settings).flows.iter().map(|flow| flow.start.as_secs_f64()).collect()
    };
    let once = starts(&[]);
    assert!(once[0] > 3.0 && once[0] < 3.1, "{once:?}");
    assert_eq!(once[1], 3.0);
    assert_eq!(once, starts(&[]), "the same run, the same start");
    assert_ne!(once[0], starts(&["seed=2"])[0]);
    let both = starts(&["flow.1.start_jitter_s=0.1"]);
    assert_eq!(both[0], once[0], "another flow's jitter changes nothing");
    assert!(both[1] > 3.0 && both[1] != both[0], "{both:?}");
}

#[test]
fn requests_and_responses_have_sizes_and_no_pause_by_default() {
    let lines = "kind = \"request-response\"\nrequest_bytes = 100\nresponse_bytes = 5000\ntransactions = 7\n";
    assert_eq!(
        exchange(lines),
        ExchangeSpec {
            request_bytes: RandomVariable::Constant(100.0),
            response_bytes: RandomVariable::Constant(5000.0),
            think_s: RandomVariable::Constant(0.0),
            transactions: NonZeroU64::new(7),
        }
    );
}

#[test]
fn http_defaults_to_the_3gpp_model_and_keys_override_it() {
    let typical = exchange("kind = \"http\"\n");
    assert_eq!(typical.request_bytes, RandomVariable::Constant(350.0));
    assert_eq!(typical.response_bytes, RandomVariable::LogNormal { mean: 10_710.0, deviation: 25_032.0 });
    assert_eq!((typical.think_s, typical.transactions), (RandomVariable::Exponential { mean: 30.0 }, None));
    let pareto = "{ draw = \"bounded-pareto\", min = 1000, max = 1e6, shape = 1.2 }";
    let own = exchange(&format!("kind = \"http\"\nresponse_bytes = {pareto}\nthink_s = 1.5\n"));
    assert_eq!(own.response_bytes, RandomVariable::BoundedPareto { min: 1000.0, max: 1e6, shape: 1.2 });
    assert_eq!((own.request_bytes, own.think_s), (typical.request_bytes, RandomVariable::Constant(1.5)));
}

#[test]
fn requests_use_the_tcp_of_the_scenario_or_their_own() {
    let text = CHAIN.to_owned() + "kind = \"http\"\ntransport = \"tcp-sack\"\ntcp = { window = 5 }\n";
    let config = tcp(&spec(&text, &["tcp.min_rto_s=0.3"]), 0);
    assert!(matches!(config.variant(), Variant::Sack(_)));
    assert_eq!((config.window_clamp(), config.rto().min()), (Some(5), Duration::from_millis(300)));
}

#[test]
fn a_distribution_can_be_set_from_the_command_line() {
    let text = CHAIN.to_owned() + "kind = \"http\"\nthink_s = { draw = \"exponential\", mean = 3 }\n";
    let think = |setting: &str| match spec(&text, &[setting]).flows.remove(0).traffic {
        Traffic::Exchange { exchange, .. } => exchange.think_s,
        other => panic!("{other:?}"),
    };
    assert_eq!(think("flow.0.think_s.mean=7"), RandomVariable::Exponential { mean: 7.0 });
    assert_eq!(think("flow.0.think_s=2"), RandomVariable::Constant(2.0));
}

#[test]
fn random_flows_may_be_cbr_between_other_pairs_in_each_run() {
    let text = "duration_s = 1\n[radio]\npreset = \"ns2-wavelan\"\n[nodes]\nlayout = \"random\"\ncount = 20\nwidth_m = 500\nheight_m = 500\n\
                [[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n\
                [flows]\nrandom = 10\nkind = \"cbr\"\nrate_kbps = 16.384\nstart_max_s = 0.25\n";
    let spec = spec(text, &[]);
    assert_eq!((spec.flows.len(), spec.flows[0].labels.transport.as_str()), (11, "tcp-newreno"));
    let streams = &spec.flows[1..];
    for flow in streams {
        let Traffic::Cbr { packet_bytes: 512, interval } = flow.traffic else { panic!("{:?}", flow.traffic) };
        assert_eq!((interval, flow.labels.transport.as_str()), (Duration::from_millis(250), "udp-cbr"));
        assert!(flow.start <= Instant::from_millis(250) && flow.src != flow.dst);
    }
    assert!(streams.iter().any(|flow| flow.start > Instant::ZERO));
    let bulk =
        parse(text, &["flows.kind=bulk"]).and_then(|s| s.spec(1)).expect_err("bulk has no rate").to_string();
    assert!(bulk.contains("rate_kbps"), "{bulk}");
}

#[test]
fn a_flow_has_its_kind_and_class_in_results() {
    let labels = |settings: &[&str]| spec(CHAIN, settings).flows[0].labels.clone();
    let plain = labels(&[]);
    assert_eq!((plain.kind.as_str(), plain.class.as_str()), ("bulk", ""));
    let web = labels(&["flow.0.kind=http", "flow.0.class=web"]);
    assert_eq!((web.kind.as_str(), web.class.as_str()), ("http", "web"));
}

#[test]
fn a_class_must_not_be_named_like_a_kind() {
    let error = parse(CHAIN, &["flow.0.class=http"]).unwrap_err().to_string();
    assert!(error.contains("a class called like a kind of flow: \"http\""), "{error}");
}
