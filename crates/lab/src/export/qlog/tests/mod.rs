//! Logs of short runs, read as the drafts describe them.

use super::*;
use crate::run::{traced, untraced};
use crate::testing::{InterruptAfter, scenario};
use hopline_sim::Outcome;
use hopline_sim::outcome::FlowSample;
use jsonschema::Validator;
use serde_json::{Value as Json, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Files by name.
type Files = BTreeMap<String, Vec<u8>>;

const TRANSPORTS: [&str; 9] = [
    "tcp-reno",
    "tcp-newreno",
    "tcp-sack",
    "tcp-cubic",
    "tcp-bbr",
    "tcp-bbr3",
    "tcp-door",
    "tpa",
    "tpa-wide",
];

/// Wired link that loses packets of every transport.
fn lossy(transport: &str) -> String {
    format!(
        "name = \"lossy\"\nduration_s = 8\ntransport = \"{transport}\"\n\
         [[node]]\nname = \"a\"\ninterface = \"wired\"\n[[node]]\nname = \"b\"\ninterface = \"wired\"\n\
         [[link]]\na = \"a\"\nb = \"b\"\nrate_mbps = 1\ndelay_ms = 20\n\
         errors = {{ model = \"packet\", packet_loss = 0.02 }}\n\
         [[flow]]\nsrc = \"a\"\ndst = \"b\"\n"
    )
}

fn unwatched() -> InterruptAfter {
    InterruptAfter::after_s(1 << 30)
}

/// Runs a scenario once, and returns the files and the result.
fn logged(text: &str) -> (Files, Outcome) {
    let spec = scenario(text).spec(1).unwrap();
    let files = Rc::new(RefCell::new(Files::new()));
    let written = Rc::clone(&files);
    let append = move |name: &str, text: &[u8]| {
        written.borrow_mut().entry(name.to_owned()).or_default().extend_from_slice(text);
        Ok(())
    };
    let (run, tracer) = traced(&spec, 1, QlogTracer::new(&spec, "test", append), &unwatched()).unwrap();
    tracer.finish().unwrap();
    (files.take(), run.outcome)
}

/// A file, read.
struct Log(Vec<Json>);

impl Log {
    /// Reads a text sequence (RFC 7464).
    fn read(file: &[u8]) -> Self {
        let text = std::str::from_utf8(file).unwrap();
        assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
        let records = text[1..].split('\u{1e}').map(|record| {
            assert_eq!(record.find('\n'), Some(record.len() - 1), "one line: {record}");
            serde_json::from_str(record).unwrap()
        });
        let log = Self(records.collect());
        assert!(log.0[1..].is_sorted_by_key(|event| event["time"].as_f64().unwrap()));
        log
    }

    fn events(&self) -> impl Iterator<Item = &Json> {
        self.0[1..].iter()
    }

    fn named(&self, name: &str) -> Vec<&Json> {
        self.events().filter(|event| event["name"] == name).collect()
    }

    fn numbers(&self, name: &str) -> Vec<u64> {
        self.named(name).iter().map(|event| number(event)).collect()
    }

    /// Packets that received frames acknowledge, once each.
    fn acked(&self) -> BTreeSet<u64> {
        let frames = self.named("transport:packet_received").into_iter().flat_map(frames);
        let ranges = frames.filter_map(|frame| frame["acked_ranges"].as_array()).flatten();
        ranges.flat_map(|range| range[0].as_u64().unwrap()..=range[1].as_u64().unwrap()).collect()
    }
}

fn validator(definition: &str) -> Validator {
    let mut schema: Json = serde_json::from_str(include_str!("qlog-0.3.schema.json")).unwrap();
    schema["$ref"] = json!(format!("#/$defs/{definition}"));
    jsonschema::draft202012::new(&schema).unwrap()
}

fn check(validator: &Validator, record: &Json) {
    let errors: Vec<_> = validator.iter_errors(record).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{record}\n{errors:?}");
}

fn number(event: &Json) -> u64 {
    event["data"]["header"]["packet_number"].as_u64().unwrap()
}

fn frames(event: &Json) -> impl Iterator<Item = &Json> {
    event["data"]["frames"].as_array().unwrap().iter()
}

fn data_len(event: &Json) -> u64 {
    event["data"]["raw"]["payload_length"].as_u64().unwrap()
}

/// Returns the first byte of the data of a packet, and the one after the last.
fn data_range(event: &Json) -> Option<(u64, u64)> {
    let stream = frames(event).find(|frame| frame["frame_type"] == "stream")?;
    let [offset, length] = ["offset", "length"].map(|field| stream[field].as_u64().unwrap());
    Some((offset, offset + length))
}

fn both(files: &Files) -> [Log; 2] {
    ["f0-sender.sqlog", "f0-receiver.sqlog"].map(|name| Log::read(&files[name]))
}

#[test]
fn every_record_is_valid_by_the_schema() {
    let [header, event] = ["header", "event"].map(validator);
    for transport in TRANSPORTS {
        let (files, _) = logged(&(lossy(transport) + "stop_s = 7\n"));
        for log in both(&files) {
            check(&header, &log.0[0]);
            log.events().for_each(|record| check(&event, record));
        }
    }
}

#[test]
fn the_schema_rejects_what_the_drafts_do_not_have() {
    let event = validator("event");
    let valid =
        json!({ "time": 1.5, "name": "recovery:metrics_updated", "data": { "congestion_window": 1460 } });
    assert!(event.is_valid(&valid));
    for (field, wrong) in
        [("name", json!("recovery:metrics")), ("data", json!({ "cwnd": 1460 })), ("time", json!("1.5"))]
    {
        let mut changed = valid.clone();
        changed[field] = wrong;
        assert!(!event.is_valid(&changed), "{changed}");
    }
}

#[test]
fn every_transport_logs_what_the_run_counts() {
    for transport in TRANSPORTS {
        let (files, outcome) = logged(&lossy(transport));
        assert_eq!(files.len(), 2, "{transport}");
        let [sender, receiver] = both(&files);
        let flow = &outcome.flows[0];
        let sent = sender.named("transport:packet_sent");
        assert_eq!(sent.len() as u64, flow.data.sent, "{transport}");
        let data = sent.iter().filter(|event| data_len(event) > 0);
        assert_eq!(data.count() as u64, flow.segments_sent, "{transport}");
        assert_eq!(receiver.named("transport:packet_received").len() as u64, flow.data.received);
        assert_eq!(receiver.named("transport:packet_sent").len() as u64, flow.reverse.sent);
        assert_eq!(sender.named("transport:packet_received").len() as u64, flow.reverse.received);
        assert!(flow.retransmissions > 0, "{transport} loses packets on this path");
        let timeouts = sender.named("recovery:loss_timer_updated").len() as u64;
        assert!(timeouts <= flow.timeouts, "several at one moment are one event");
        assert_eq!(timeouts > 0, flow.timeouts > 0);
    }
}

#[test]
fn each_packet_that_is_received_was_sent_before() {
    for transport in TRANSPORTS {
        let (files, _) = logged(&lossy(transport));
        let [sender, receiver] = both(&files);
        for (from, to) in [(&sender, &receiver), (&receiver, &sender)] {
            let of = |event: &&Json| {
                let [raw, frames] = ["raw", "frames"].map(|field| event["data"][field].clone());
                (number(event), (event["time"].as_f64().unwrap(), raw, frames))
            };
            let sent: BTreeMap<_, _> = from.named("transport:packet_sent").iter().map(of).collect();
            let is_stream = |frame: &&Json| frame["frame_type"] == "stream";
            for event in to.named("transport:packet_received") {
                let (number, (at, raw, _)) = of(&event);
                let (earlier, same, frames_sent) = &sent[&number];
                assert!(*earlier < at && *same == raw, "{transport}: {event}");
                let stream = frames_sent.as_array().unwrap().iter().find(is_stream);
                assert_eq!(frames(event).find(is_stream), stream, "{transport}: {event}");
            }
        }
    }
}

#[test]
fn a_packet_is_acknowledged_or_lost_and_each_retransmission_follows_a_loss() {
    for transport in TRANSPORTS {
        let (files, outcome) = logged(&lossy(transport));
        let [sender, _] = both(&files);
        let lost = sender.numbers("recovery:packet_lost");
        assert_eq!(lost.len() as u64, outcome.flows[0].retransmissions, "{transport}");
        let distinct: BTreeSet<u64> = lost.iter().copied().collect();
        assert_eq!(distinct.len(), lost.len(), "{transport}: a packet is lost once");
        let acked = sender.acked();
        assert!(acked.is_disjoint(&distinct), "{transport}: {acked:?} {distinct:?}");
        let sent = sender.numbers("transport:packet_sent");
        assert!(acked.union(&distinct).all(|number| sent.contains(number)), "{transport}");
        assert!(acked.len() + lost.len() > sent.len() * 9 / 10, "{transport}: the rest is in flight");
        losses_come_first(&sender, transport);
    }
}

/// Asserts that data that are sent again were lost before.
fn losses_come_first(log: &Log, transport: &str) {
    let mut highest = 0;
    let mut lost: BTreeSet<u64> = BTreeSet::new();
    for event in log.events().filter(|event| event["data"].get("frames").is_some()) {
        let Some((start, end)) = data_range(event) else { continue };
        match event["name"].as_str().unwrap() {
            "recovery:packet_lost" => assert!(lost.insert(start), "{transport}: {event}"),
            "transport:packet_sent" if start < highest => {
                assert!(lost.remove(&start), "{transport}: {event}");
                // TPA-wide numbers packets, so that a packet does not show that it repeats another.
                assert!(event["data"].get("trigger").is_some() || transport == "tpa-wide", "{event}");
            }
            "transport:packet_sent" => highest = end,
            _ => {}
        }
    }
}

#[test]
fn the_windows_are_those_of_the_series() {
    for transport in TRANSPORTS {
        let (files, outcome) = logged(&lossy(transport));
        let [sender, _] = both(&files);
        let samples = &outcome.flows[0].series;
        assert!(samples.len() >= 7, "{transport}");
        for FlowSample { at, cwnd_bytes, srtt, .. } in samples {
            let ms = at.as_nanos() as f64 / 1e6;
            let latest = |field: &str, until: &dyn Fn(f64) -> bool| {
                let metrics = sender.named("recovery:metrics_updated").into_iter();
                let known = metrics.take_while(|event| until(event["time"].as_f64().unwrap()));
                known.filter_map(|event| event["data"][field].as_f64()).last()
            };
            // What happens at the very moment comes before the sample or after it.
            let either = |field| [latest(field, &|time| time < ms), latest(field, &|time| time <= ms)];
            assert!(
                either("congestion_window").contains(&Some(*cwnd_bytes as f64)),
                "{transport} at {ms}: {cwnd_bytes}, {:?}",
                either("congestion_window")
            );
            let srtt = srtt.map(|srtt| (srtt.as_nanos() / 1000) as f64 / 1000.0);
            assert!(either("smoothed_rtt").contains(&srtt), "{transport} at {ms}: {srtt:?}");
        }
    }
}

#[test]
fn a_log_changes_no_result_and_has_the_same_bytes_again() {
    let text = lossy("tcp-cubic");
    let (files, outcome) = logged(&text);
    let (again, _) = logged(&text);
    assert_eq!(files, again);
    let spec = scenario(&text).spec(1).unwrap();
    let plain = untraced(&spec, 1, &unwatched()).unwrap();
    assert_eq!(plain.outcome.fingerprint, outcome.fingerprint);
}

#[test]
fn the_client_opens_the_connection_and_a_transfer_ends_it() {
    let mut text = lossy("tcp-cubic");
    text.push_str("bytes = 20000\n");
    let (files, _) = logged(&text);
    let [sender, receiver] = both(&files);
    let states = |log: &Log| -> Vec<String> {
        let states = log.named("connectivity:connection_state_updated").into_iter();
        states.map(|event| event["data"]["new"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(sender.0[0]["trace"]["vantage_point"]["type"], "client");
    assert_eq!(receiver.0[0]["trace"]["vantage_point"]["type"], "server");
    // It sends the end of the data before the answer to its SYN has come.
    assert_eq!(states(&sender), ["attempted", "closing"]);
    assert_eq!(states(&receiver), ["handshake_started", "handshake_completed", "closing"]);
    let started = sender.named("connectivity:connection_started")[0];
    assert_eq!(started["data"]["protocol"], "TCP");
    let fin = sender.named("transport:packet_sent").into_iter().flat_map(frames).find(|f| f["fin"] == true);
    assert_eq!(
        fin.map(|frame| frame["offset"].as_u64().unwrap() + frame["length"].as_u64().unwrap()),
        Some(20000)
    );
}

#[test]
fn a_flow_that_is_stopped_resets_the_connection() {
    let (files, _) = logged(&(lossy("tcp-cubic") + "stop_s = 4\n"));
    for log in both(&files) {
        let closed = log.named("connectivity:connection_closed");
        assert_eq!((closed.len(), &closed[0]["data"]["trigger"]), (1, &json!("error")));
    }
}

#[test]
fn the_server_of_requests_is_the_sender() {
    let (files, _) = logged(&(lossy("tcp-cubic") + "kind = \"http\"\nthink_s = 0.1\n"));
    let [sender, receiver] = both(&files);
    assert_eq!(sender.0[0]["trace"]["vantage_point"]["type"], "server");
    assert_eq!(receiver.0[0]["trace"]["vantage_point"]["type"], "client");
}

#[test]
fn a_flow_that_sends_nothing_has_a_file_that_viewers_can_open() {
    let mut text = lossy("tcp-cubic");
    text.push_str("start_s = 9\n");
    let (files, _) = logged(&text);
    for log in both(&files) {
        assert_eq!(log.named("transport:packet_sent").len(), 0);
        assert_eq!(log.events().count(), 2, "parameters");
    }
}

#[test]
fn only_flows_with_a_transport_have_files() {
    let mut text = lossy("tcp-cubic");
    text.push_str("name = \"a/b\"\n[[flow]]\nname = \"call\"\nkind = \"cbr\"\nrate_kbps = 8\n");
    text.push_str("src = \"b\"\ndst = \"a\"\n");
    let (files, _) = logged(&text);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["a_b-receiver.sqlog", "a_b-sender.sqlog"]);
    assert!(has_connections(&scenario(&text).spec(1).unwrap()));
}

#[test]
fn each_flow_has_names_of_its_own_that_every_file_system_accepts() {
    let mut taken = BTreeSet::new();
    let names = ["a/b", "a_b", "A_B", "", "../..", "-x", "\u{e9}", &"long".repeat(100)];
    let names = names.map(|name| file_name(name, &mut taken));
    assert_eq!(names[..7], ["a_b", "a_b-2", "A_B-3", "flow", "_..", "x", "_"]);
    assert_eq!(names[7].len(), MAX_NAME_BYTES);
}

#[test]
fn an_error_stops_the_log_and_not_the_run() {
    let spec = scenario(&lossy("tcp-cubic")).spec(1).unwrap();
    let calls = Rc::new(RefCell::new(0));
    let counted = Rc::clone(&calls);
    let full = move |_: &str, _: &[u8]| {
        *counted.borrow_mut() += 1;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    };
    let (run, tracer) = traced(&spec, 1, QlogTracer::new(&spec, "test", full), &unwatched()).unwrap();
    assert!(run.outcome.flows[0].bytes_received > 0);
    let (name, error) = tracer.finish().unwrap_err();
    assert_eq!((name.as_str(), error.kind()), ("f0-sender.sqlog", io::ErrorKind::StorageFull));
    assert_eq!(*calls.borrow(), 1);
}
