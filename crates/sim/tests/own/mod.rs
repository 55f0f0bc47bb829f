//! User-defined algorithms in a network: they can do the same as the built-in ones, and a run in which they
//! fail ends.

mod machines;

use crate::support::{Build, bottleneck, chain};
use hopline_core::{Duration, Instant, Stream};
use hopline_queue::own::OwnDisciplineId;
use hopline_queue::{CoDelConfig, OwnDiscipline, Service};
use hopline_sim::own::{Kind, Machines, Used};
use hopline_sim::spec::{Discipline, RoutingSpec};
use hopline_sim::{NoTrace, Spec, World, simulate};
use hopline_transport::tcp::{Config, LawAck, LawLoss, LawTimeout, OwnLaw, OwnLawId, WindowLaw};
use machines::{Answers, Counts, Gambler, OwnCoDel, Reno, RoutingFirst, Tail};
use std::sync::{Arc, Mutex};

const LAW: WindowLaw = WindowLaw::Own(OwnLawId(0));
const DISCIPLINE: Discipline = Discipline::Own(OwnDisciplineId(0));

fn law<L: OwnLaw + 'static>(make: impl Fn(u64) -> L + Send + Sync + 'static) -> Machines {
    Machines::default().with_law("mine", "1", move |seed| Ok(Box::new(make(seed))))
}

fn discipline<D: OwnDiscipline + 'static>(make: impl Fn() -> D + Send + Sync + 'static) -> Machines {
    Machines::default().with_discipline("mine", "1", move |_seed| Ok(Box::new(make())))
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
    Some(failure.text(spec))
}

#[test]
fn reno_as_an_own_law_goes_the_way_of_ours_to_the_bit() {
    let presets = [
        (Config::ns2_235(), Counts::Acks),
        (Config::modern(), Counts::Bytes),
        (Config { law: WindowLaw::Aimd, ..Config::linux() }, Counts::Bytes),
    ];
    for (ours, counts) in presets {
        let theirs = Config { law: LAW, ..ours };
        for (plain, own) in networks(ours).into_iter().zip(networks(theirs)) {
            let own = own.change(|spec| spec.machines = law(move |_seed| Reno::new(counts)));
            let (plain, own) = (simulate(&plain, 1), simulate(&own, 1));
            assert!(plain.flows[0].retransmissions > 0, "something has to be lost");
            assert_eq!(plain.fingerprint, own.fingerprint, "{counts:?}: {ours:?}");
        }
    }
}

#[test]
fn what_lets_everything_in_is_drop_tail_to_the_bit() {
    for plain in networks(Config::modern()) {
        let plain = plain.change(|spec| {
            for link in &mut spec.links {
                link.queue.service = Service::Fifo;
            }
            if let Some(radio) = &mut spec.radio {
                radio.queue.service = Service::Fifo;
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
            spec.machines = discipline(|| Tail);
        });
        assert_eq!(simulate(&plain, 1).fingerprint, simulate(&own, 1).fingerprint);
    }
}

#[test]
fn ranks_make_the_priority_queue_of_ns_2_to_the_bit() {
    let plain = chain(6).bulk(0, 6, Config::modern()).bulk(6, 0, Config::modern()).seconds(30);
    let plain = plain
        .aodv(hopline_routing::aodv::Config::default())
        .radio(|radio| radio.queue.capacity = 4.try_into().unwrap());
    assert!(matches!(plain.routing, RoutingSpec::Aodv(_)));
    assert_eq!(plain.radio.as_ref().map(|radio| radio.queue.service), Some(Service::RoutingFirst));
    let own = plain
        .clone()
        .radio(|radio| radio.queue.discipline = DISCIPLINE)
        .change(|spec| spec.machines = discipline(RoutingFirst::default));
    assert_eq!(simulate(&plain, 1).fingerprint, simulate(&own, 1).fingerprint);
}

#[test]
fn codel_can_be_written_as_an_own_discipline() {
    let config = CoDelConfig { target: Duration::from_millis(15), ..CoDelConfig::RFC8289 };
    let network = |discipline| bottleneck(200, discipline).bulk(0, 2, Config::linux()).seconds(30);
    let own = network(DISCIPLINE).change(|spec| {
        for link in spec.links.iter_mut().take(1) {
            link.queue.discipline = Discipline::DropTail;
        }
        spec.machines = discipline(move || OwnCoDel::new(config));
    });
    let ours = simulate(&network(Discipline::CoDel(config)), 1);
    assert!(ours.nodes.iter().any(|node| node.drops.early > 0), "it has to drop");
    assert_eq!(ours.fingerprint, simulate(&own, 1).fingerprint);
    let tail = simulate(&network(Discipline::DropTail), 1);
    assert_ne!(ours.fingerprint, tail.fingerprint);
}

#[test]
fn what_is_drawn_of_the_seed_is_the_same_in_every_run_of_that_number() {
    let [spec, ..] = networks(Config { law: LAW, ..Config::modern() });
    let spec = spec.change(|spec| {
        spec.machines = law(|seed| Gambler(Stream::global(seed, 0, hopline_core::Purpose::Traffic)));
    });
    assert_eq!(simulate(&spec, 1).fingerprint, simulate(&spec, 1).fingerprint);
    assert_ne!(simulate(&spec, 1).fingerprint, simulate(&spec, 2).fingerprint);
}

#[test]
fn every_end_of_a_flow_and_every_queue_has_a_machine_and_a_seed_of_its_own() {
    let seeds: Arc<Mutex<Vec<u64>>> = Arc::default();
    let [noted, also] = [seeds.clone(), seeds.clone()];
    let machines = Machines::default()
        .with_law("mine", "1", move |seed| {
            noted.lock().unwrap().push(seed);
            Ok(Box::new(Reno::new(Counts::Bytes)))
        })
        .with_discipline("mine", "1", move |seed| {
            also.lock().unwrap().push(seed);
            Ok(Box::new(Tail))
        });
    let over = Config { law: LAW, ..Config::modern() };
    let spec = bottleneck(20, DISCIPLINE).bulk(0, 2, over).bulk(2, 0, over);
    let spec = spec.change(|spec| spec.machines = machines);
    let world = World::new(&spec, 1, NoTrace);
    assert!(world.failure().is_none());
    let mut distinct = seeds.lock().unwrap().clone();
    assert_eq!(distinct.len(), 2 * 2 + 2, "both ends of two flows, both directions of a link");
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 6);
}

#[test]
fn a_law_that_fails_ends_its_run_and_its_whole_story_is_told() {
    let fails = |n: u32| if n == 100 { Err("line 1\n  line 2".to_owned()) } else { Ok(8000.0) };
    let [spec, ..] = networks(Config { law: LAW, ..Config::modern() });
    let spec = spec.change(|spec| spec.machines = law(move |_seed| Answers(fails, 0)));
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
fn a_window_that_is_no_number_or_below_zero_is_a_failure() {
    for wrong in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        let [spec, ..] = networks(Config { law: LAW, ..Config::modern() });
        let spec = spec.change(|spec| spec.machines = law(move |_seed| Answers(move |_n: u32| Ok(wrong), 0)));
        let story = failure(&spec).expect("it fails");
        assert!(
            story.contains("on_ack at ") && story.contains(&format!("a window of {wrong} bytes")),
            "{story}"
        );
    }
}

#[test]
fn windows_are_kept_between_one_segment_and_the_largest() {
    for (answer, least, most) in [(0.0, 1, 1), (f64::INFINITY, 64, 64), (1e300, 64, 64)] {
        let over = Config { law: LAW, window_clamp: Some(64), ..Config::modern() };
        let spec = bottleneck(200, Discipline::DropTail).bulk(0, 2, over).seconds(10);
        let spec =
            spec.change(|spec| spec.machines = law(move |_seed| Answers(move |_n: u32| Ok(answer), 0)));
        let outcome = simulate(&spec, 1);
        // Timestamps take 12 bytes of each segment.
        let mss = u64::from(over.mss) - 12;
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
fn a_machine_that_cannot_be_made_fails_when_it_is_asked() {
    let machines = Machines::default().with_law("mine", "1", |_seed| Err("no".to_owned())).with_discipline(
        "mine",
        "1",
        |_seed| Err("never".to_owned()),
    );
    let over = Config { law: LAW, ..Config::modern() };
    let spec =
        bottleneck(20, Discipline::DropTail).bulk(0, 2, over).change(|spec| spec.machines = machines.clone());
    assert!(failure(&spec).is_some_and(|story| story.contains("it cannot be made: no")));
    let spec =
        bottleneck(20, DISCIPLINE).bulk(0, 2, Config::modern()).change(|spec| spec.machines = machines);
    let story = failure(&spec).expect("it fails");
    assert!(
        story.contains("own queue discipline `mine` at node `n1` failed in enqueue at ")
            && story.contains("it cannot be made: never"),
        "{story}"
    );
}

#[test]
fn a_number_that_no_machine_has_is_a_failure_and_not_a_crash() {
    let spec = bottleneck(20, DISCIPLINE).bulk(0, 2, Config { law: LAW, ..Config::modern() });
    assert!(failure(&spec).is_some_and(|story| story.contains("has no own machine number 0")));
}

#[test]
fn a_specification_tells_which_machines_it_asks_for() {
    let spec = bottleneck(20, DISCIPLINE).bulk(0, 2, Config { law: LAW, ..Config::modern() });
    let machines = law(|_seed| Reno::new(Counts::Bytes)).with_law("other", "2", |_| Err(String::new()));
    let machines = machines.with_discipline("queue", "3", |_| Ok(Box::new(Tail)));
    let used: Vec<Used> = spec.change(|spec| spec.machines = machines).own_machines().into_iter().collect();
    let [law, queue] = [(Kind::Law, "mine", "1"), (Kind::Discipline, "queue", "3")]
        .map(|(kind, name, digest)| Used { kind, name: name.into(), digest: digest.into() });
    assert_eq!(used, [law, queue]);
    assert!(networks(Config::linux()).iter().all(|spec| spec.own_machines().is_empty()));
}

/// Algorithm that records its inputs.
#[derive(Debug)]
struct Notes(Arc<Mutex<Vec<LawAck>>>);

impl OwnLaw for Notes {
    fn on_ack(&mut self, ack: &LawAck) -> Result<f64, String> {
        self.0.lock().expect("nobody panics with it").push(*ack);
        Ok(ack.slow_start_bytes)
    }

    fn on_loss(&mut self, loss: &LawLoss) -> Result<f64, String> {
        Ok(f64::from(loss.reduced_bytes / 2))
    }

    fn on_timeout(&mut self, timeout: &LawTimeout) -> Result<f64, String> {
        Ok(f64::from(timeout.reduced_bytes / 2))
    }
}

#[test]
fn a_law_is_told_of_round_trips_windows_and_bytes() {
    let told: Arc<Mutex<Vec<LawAck>>> = Arc::default();
    let over = Config { law: LAW, window_clamp: Some(8), ..Config::modern() };
    let notes = told.clone();
    let spec = bottleneck(200, Discipline::DropTail).bulk(0, 2, over).seconds(5);
    let spec = spec.change(|spec| spec.machines = law(move |_seed| Notes(notes.clone())));
    let outcome = simulate(&spec, 1);
    let told = told.lock().unwrap();
    let acked: u64 = told.iter().map(|ack| ack.acked_bytes).sum();
    assert!(acked >= outcome.flows[0].bytes_received - 8 * u64::from(over.mss), "nothing is lost here");
    // 42 ms of propagation and the time of a segment on the slow link.
    for ack in told.iter().skip(20) {
        let ms = [ack.rtt, ack.state.srtt].map(|time| time.expect("measured").as_secs_f64() * 1e3);
        assert!(ms.iter().all(|ms| (42.0..120.0).contains(ms)), "{ack:?}");
        assert_eq!(ack.state.max_cwnd_bytes, 8 * ack.state.mss_bytes);
        assert!(ack.state.flight_bytes <= 8 * u64::from(ack.state.mss_bytes), "{ack:?}");
    }
    assert!(told.windows(2).all(|pair| pair[0].state.now <= pair[1].state.now));
}
