//! User-defined algorithms in a network: they can do the same as the built-in ones, and a run in which they
//! fail ends.

mod algorithms;

use crate::support::{SpecBuilder, bottleneck, chain};
use algorithms::{AdmitAll, Counts, CustomCoDel, RandomGrowth, Reno, RoutingFirst, ScriptedWindow};
use hopline_core::{Duration, Instant, RandomStream};
use hopline_queue::custom::CustomDisciplineId;
use hopline_queue::{CoDelConfig, CustomDiscipline, Service};
use hopline_sim::custom::{AlgorithmKind, CustomAlgorithms, UsedAlgorithm};
use hopline_sim::spec::{Discipline, RoutingSpec};
use hopline_sim::{NoTrace, Spec, World, simulate};
use hopline_transport::tcp::{
    Config, CongestionControl, CustomCcAck, CustomCcLoss, CustomCcTimeout, CustomCongestionControl,
    CustomCongestionControlId,
};
use std::sync::{Arc, Mutex};

const CONGESTION_CONTROL: CongestionControl = CongestionControl::Custom(CustomCongestionControlId(0));
const DISCIPLINE: Discipline = Discipline::Custom(CustomDisciplineId(0));

fn congestion_control<L: CustomCongestionControl + 'static>(
    make: impl Fn(u64) -> L + Send + Sync + 'static,
) -> CustomAlgorithms {
    CustomAlgorithms::default().with_congestion_control("mine", "1", move |seed| Ok(Box::new(make(seed))))
}

fn discipline<D: CustomDiscipline + 'static>(
    make: impl Fn() -> D + Send + Sync + 'static,
) -> CustomAlgorithms {
    CustomAlgorithms::default().with_discipline("mine", "1", move |_seed| Ok(Box::new(make())))
}

/// Returns networks in which windows meet losses, time-outs and queues of routing messages.
fn networks(over: Config) -> [Spec; 3] {
    let lossy = chain(6).bulk(0, 6, over).bulk(6, 0, over).seconds(30);
    let over_aodv = lossy.clone().aodv(hopline_routing::aodv::Config::default());
    [lossy, over_aodv, bottleneck(20, Discipline::DropTail).bulk(0, 2, over).bulk(0, 2, over).seconds(30)]
}

fn failure(spec: &Spec) -> Option<String> {
    let mut world = World::new(spec, 1, NoTrace);
    world.run_until(Instant::ZERO + spec.duration);
    let failure = world.failure().cloned()?;
    assert_eq!(world.now(), failure.at, "nothing happens after it");
    let events = world.events();
    world.run_until(Instant::ZERO + spec.duration);
    assert_eq!((world.now(), world.events()), (failure.at, events), "nor later");
    Some(failure.describe(spec))
}

#[test]
fn custom_reno_equals_built_in_reno_exactly() {
    let presets = [
        (Config::ns2_235(), Counts::Acks),
        (Config::modern(), Counts::Bytes),
        (Config::linux().with_congestion_control(CongestionControl::Reno), Counts::Bytes),
    ];
    for (ours, counts) in presets {
        let theirs = ours.with_congestion_control(CONGESTION_CONTROL);
        for (plain, own) in networks(ours).into_iter().zip(networks(theirs)) {
            let own = own
                .change(|spec| spec.custom_algorithms = congestion_control(move |_seed| Reno::new(counts)));
            let (plain, own) = (simulate(&plain, 1), simulate(&own, 1));
            assert!(plain.flows[0].retransmissions > 0, "something has to be lost");
            assert_eq!(plain.fingerprint, own.fingerprint, "{counts:?}: {ours:?}");
        }
    }
}

#[test]
fn a_custom_discipline_that_admits_all_equals_drop_tail_exactly() {
    for plain in networks(Config::modern()) {
        let plain = plain.change(|spec| {
            for link in &mut spec.links {
                link.queue.service_order = Service::Fifo;
            }
            if let Some(radio) = &mut spec.radio {
                radio.queue.service_order = Service::Fifo;
                radio.queue.capacity = 5.try_into().unwrap();
            }
        });
        let own = plain.clone().change(|spec| {
            for link in &mut spec.links {
                link.queue.discipline = DISCIPLINE;
            }
            if let Some(radio) = &mut spec.radio {
                radio.queue.discipline = DISCIPLINE;
            }
            spec.custom_algorithms = discipline(|| AdmitAll);
        });
        assert_eq!(simulate(&plain, 1).fingerprint, simulate(&own, 1).fingerprint);
    }
}

#[test]
fn ranks_reproduce_the_priority_queue_of_ns_2_exactly() {
    let plain = chain(6).bulk(0, 6, Config::modern()).bulk(6, 0, Config::modern()).seconds(30);
    let plain = plain
        .aodv(hopline_routing::aodv::Config::default())
        .radio(|radio| radio.queue.capacity = 4.try_into().unwrap());
    assert!(matches!(plain.routing, RoutingSpec::Aodv(_)));
    assert_eq!(plain.radio.as_ref().map(|radio| radio.queue.service_order), Some(Service::RoutingPriority));
    let own = plain
        .clone()
        .radio(|radio| radio.queue.discipline = DISCIPLINE)
        .change(|spec| spec.custom_algorithms = discipline(RoutingFirst::default));
    assert_eq!(simulate(&plain, 1).fingerprint, simulate(&own, 1).fingerprint);
}

#[test]
fn codel_can_be_written_as_a_custom_discipline() {
    let config = CoDelConfig { target: Duration::from_millis(15), ..CoDelConfig::RFC8289 };
    let network = |discipline| bottleneck(200, discipline).bulk(0, 2, Config::linux()).seconds(30);
    let own = network(DISCIPLINE).change(|spec| {
        for link in spec.links.iter_mut().take(1) {
            link.queue.discipline = Discipline::DropTail;
        }
        spec.custom_algorithms = discipline(move || CustomCoDel::new(config));
    });
    let ours = simulate(&network(Discipline::CoDel(config)), 1);
    assert!(ours.nodes.iter().any(|node| node.drops.early > 0), "it has to drop");
    assert_eq!(ours.fingerprint, simulate(&own, 1).fingerprint);
    let tail = simulate(&network(Discipline::DropTail), 1);
    assert_ne!(ours.fingerprint, tail.fingerprint);
}

#[test]
fn random_draws_depend_only_on_seed_and_run() {
    let [spec, ..] = networks(Config::modern().with_congestion_control(CONGESTION_CONTROL));
    let spec = spec.change(|spec| {
        spec.custom_algorithms = congestion_control(|seed| {
            RandomGrowth(RandomStream::global(seed, 0, hopline_core::Purpose::Traffic))
        });
    });
    assert_eq!(simulate(&spec, 1).fingerprint, simulate(&spec, 1).fingerprint);
    assert_ne!(simulate(&spec, 1).fingerprint, simulate(&spec, 2).fingerprint);
}

#[test]
fn every_end_and_queue_has_its_own_instance_and_seed() {
    let seeds: Arc<Mutex<Vec<u64>>> = Arc::default();
    let [noted, also] = [seeds.clone(), seeds.clone()];
    let machines = CustomAlgorithms::default()
        .with_congestion_control("mine", "1", move |seed| {
            noted.lock().unwrap().push(seed);
            Ok(Box::new(Reno::new(Counts::Bytes)))
        })
        .with_discipline("mine", "1", move |seed| {
            also.lock().unwrap().push(seed);
            Ok(Box::new(AdmitAll))
        });
    let over = Config::modern().with_congestion_control(CONGESTION_CONTROL);
    let spec = bottleneck(20, DISCIPLINE).bulk(0, 2, over).bulk(2, 0, over);
    let spec = spec.change(|spec| spec.custom_algorithms = machines);
    let world = World::new(&spec, 1, NoTrace);
    assert!(world.failure().is_none());
    let mut distinct = seeds.lock().unwrap().clone();
    assert_eq!(distinct.len(), 2 * 2 + 2, "both ends of two flows, both directions of a link");
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 6);
}

#[test]
fn a_failed_congestion_control_ends_the_run_with_its_error() {
    let fails = |n: u32| if n == 100 { Err("line 1\n  line 2".to_owned()) } else { Ok(8000.0) };
    let [spec, ..] = networks(Config::modern().with_congestion_control(CONGESTION_CONTROL));
    let spec = spec
        .change(|spec| spec.custom_algorithms = congestion_control(move |_seed| ScriptedWindow(fails, 0)));
    let story = failure(&spec).expect("it fails");
    let (head, why) = story.split_once(" s: ").expect("a head");
    let (who, at) = head.split_once(" failed in on_ack at ").expect("which, and when");
    let ends =
        [("f0", "n0"), ("f1", "n6")].map(|(f, n)| format!("own law `mine` of flow `{f}` at node `{n}`"));
    assert!(ends.contains(&who.to_owned()), "{who}");
    assert!((0.1..30.0).contains(&at.parse::<f64>().expect("a time")), "{at}");
    assert_eq!(why, "line 1\n  line 2");
}

#[test]
fn a_negative_or_nan_window_is_a_failure() {
    for wrong in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        let [spec, ..] = networks(Config::modern().with_congestion_control(CONGESTION_CONTROL));
        let spec = spec.change(|spec| {
            spec.custom_algorithms =
                congestion_control(move |_seed| ScriptedWindow(move |_n: u32| Ok(wrong), 0))
        });
        let story = failure(&spec).expect("it fails");
        assert!(
            story.contains("on_ack at ") && story.contains(&format!("a window of {wrong} bytes")),
            "{story}"
        );
    }
}

#[test]
fn windows_are_clamped() {
    for (answer, least, most) in [(0.0, 1, 1), (f64::INFINITY, 64, 64), (1e300, 64, 64)] {
        let over = Config::modern().with_congestion_control(CONGESTION_CONTROL).with_window_clamp(Some(64));
        let spec = bottleneck(200, Discipline::DropTail).bulk(0, 2, over).seconds(10);
        let spec = spec.change(|spec| {
            spec.custom_algorithms =
                congestion_control(move |_seed| ScriptedWindow(move |_n: u32| Ok(answer), 0))
        });
        let outcome = simulate(&spec, 1);
        // Timestamps take 12 bytes of each segment.
        let mss = u64::from(over.mss()) - 12;
        let windows = outcome.flows[0].series.iter().skip(1).map(|sample| sample.cwnd_bytes / mss);
        assert!(outcome.flows[0].bytes_received > 0);
        assert!(
            windows.clone().all(|window| (least..=most).contains(&window)),
            "{answer}: {:?}",
            windows.collect::<Vec<_>>()
        );
    }
}

#[test]
fn an_algorithm_that_cannot_be_constructed_fails_at_its_first_call() {
    let machines = CustomAlgorithms::default()
        .with_congestion_control("mine", "1", |_seed| Err("no".to_owned()))
        .with_discipline("mine", "1", |_seed| Err("never".to_owned()));
    let over = Config::modern().with_congestion_control(CONGESTION_CONTROL);
    let spec = bottleneck(20, Discipline::DropTail)
        .bulk(0, 2, over)
        .change(|spec| spec.custom_algorithms = machines.clone());
    assert!(failure(&spec).is_some_and(|story| story.contains("it cannot be made: no")));
    let spec = bottleneck(20, DISCIPLINE)
        .bulk(0, 2, Config::modern())
        .change(|spec| spec.custom_algorithms = machines);
    let story = failure(&spec).expect("it fails");
    assert!(
        story.contains("own queue discipline `mine` at node `n1` failed in enqueue at ")
            && story.contains("it cannot be made: never"),
        "{story}"
    );
}

#[test]
fn an_unknown_algorithm_id_is_a_failure_and_no_panic() {
    let spec =
        bottleneck(20, DISCIPLINE).bulk(0, 2, Config::modern().with_congestion_control(CONGESTION_CONTROL));
    assert!(failure(&spec).is_some_and(|story| story.contains("has no own machine number 0")));
}

#[test]
fn a_specification_lists_its_algorithms() {
    let spec =
        bottleneck(20, DISCIPLINE).bulk(0, 2, Config::modern().with_congestion_control(CONGESTION_CONTROL));
    let machines =
        congestion_control(|_seed| Reno::new(Counts::Bytes))
            .with_congestion_control("other", "2", |_| Err(String::new()));
    let machines = machines.with_discipline("queue", "3", |_| Ok(Box::new(AdmitAll)));
    let used: Vec<UsedAlgorithm> =
        spec.change(|spec| spec.custom_algorithms = machines).custom_algorithms().into_iter().collect();
    let [law, queue] =
        [(AlgorithmKind::CongestionControl, "mine", "1"), (AlgorithmKind::Discipline, "queue", "3")]
            .map(|(kind, name, digest)| UsedAlgorithm { kind, name: name.into(), digest: digest.into() });
    assert_eq!(used, [law, queue]);
    assert!(networks(Config::linux()).iter().all(|spec| spec.custom_algorithms().is_empty()));
}

/// Algorithm that records its inputs.
#[derive(Debug)]
struct InputRecorder(Arc<Mutex<Vec<CustomCcAck>>>);

impl CustomCongestionControl for InputRecorder {
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
        self.0.lock().expect("nobody panics with it").push(*ack);
        Ok(ack.slow_start_bytes)
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(f64::from(loss.reduction_base_bytes / 2))
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(f64::from(timeout.reduction_base_bytes / 2))
    }
}

#[test]
fn a_congestion_control_gets_round_trips_windows_and_bytes() {
    let told: Arc<Mutex<Vec<CustomCcAck>>> = Arc::default();
    let over = Config::modern().with_congestion_control(CONGESTION_CONTROL).with_window_clamp(Some(8));
    let notes = told.clone();
    let spec = bottleneck(200, Discipline::DropTail).bulk(0, 2, over).seconds(5);
    let spec = spec.change(|spec| {
        spec.custom_algorithms = congestion_control(move |_seed| InputRecorder(notes.clone()))
    });
    let outcome = simulate(&spec, 1);
    let told = told.lock().unwrap();
    let acked: u64 = told.iter().map(|ack| ack.acked_bytes).sum();
    assert!(acked >= outcome.flows[0].bytes_received - 8 * u64::from(over.mss()), "nothing is lost here");
    // 42 ms of propagation and the time of a segment on the slow link.
    for ack in told.iter().skip(20) {
        let ms = [ack.rtt, ack.state.srtt].map(|time| time.expect("measured").as_secs_f64() * 1e3);
        assert!(ms.iter().all(|ms| (42.0..120.0).contains(ms)), "{ack:?}");
        assert_eq!(ack.state.max_cwnd_bytes, 8 * ack.state.mss_bytes);
        assert!(ack.state.flight_bytes <= 8 * u64::from(ack.state.mss_bytes), "{ack:?}");
    }
    assert!(told.windows(2).all(|pair| pair[0].state.now <= pair[1].state.now));
}
