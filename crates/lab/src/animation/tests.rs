//! Recordings of runs, read back.

use super::layout::reading::{Tables, read};
use super::layout::{STREAMS, Stream};
use super::*;
use crate::run::NoObserver;
use crate::testing::{InterruptAfter, TWO_HOPS, scenario};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hopline_sim::trace::FrameLossReason;

/// Two senders that do not hear each other (hidden terminals), and a receiver between them.
const HIDDEN: &str = "\
name = \"hidden\"
duration_s = 4
[radio]
preset = \"dot11b\"
range_m = 250
carrier_sense_range_m = 250
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[[flow]]
src = \"n0\"
dst = \"n1\"
kind = \"cbr\"
rate_kbps = 400
[[flow]]
src = \"n2\"
dst = \"n1\"
kind = \"cbr\"
rate_kbps = 400
";

/// A queue of two packets, and far more traffic than it can forward.
const FULL_QUEUE: &str = "\
name = \"full\"
duration_s = 2
[radio]
[queue]
capacity_packets = 2
[nodes]
layout = \"chain\"
count = 2
spacing_m = 200
[[flow]]
src = \"n0\"
dst = \"n1\"
kind = \"cbr\"
rate_kbps = 4000
";

fn window(text: &str) -> Window {
    text.parse().unwrap()
}

fn recorded(text: &str, of: &str) -> Animation {
    record(&scenario(text).spec(1).unwrap(), 1, window(of), &NoObserver).unwrap()
}

fn tables(animation: &Animation) -> Tables {
    let inflate =
        |line: &str| miniz_oxide::inflate::decompress_to_vec(&STANDARD.decode(line).unwrap()).unwrap();
    let text = animation.text();
    read(&text.lines().map(inflate).collect::<Vec<_>>())
}

fn rows(tables: &Tables, stream: Stream) -> &[Vec<i64>] {
    &tables[stream as usize]
}

#[test]
fn a_collision_of_hidden_terminals_names_both_senders() {
    let tables = tables(&recorded(HIDDEN, ".."));
    let (frames, losses) = (rows(&tables, Stream::Frames), rows(&tables, Stream::Losses));
    let mut others = rows(&tables, Stream::Others).iter();
    let mut named = 0;
    for loss in losses {
        let (at, lost) = (loss[1], &frames[loss[2] as usize]);
        let met: Vec<&Vec<i64>> =
            others.by_ref().take(loss[4] as usize).map(|other| &frames[other[0] as usize]).collect();
        if FrameLossReason::ALL[loss[3] as usize] != FrameLossReason::Collision {
            continue;
        }
        assert_eq!((at, lost[2]), (1, 2), "it was for n1, and was lost there: {loss:?}");
        let mut senders: Vec<i64> = met.iter().map(|frame| frame[1]).collect();
        senders.dedup(); // It may have begun a second frame before the first had ended.
        assert_eq!(senders, [2 - lost[1]], "whoever sent, it was the other one: {lost:?}");
        for other in met {
            assert!(other[0] <= lost[0] + lost[4] && lost[0] <= other[0] + other[4], "{lost:?} {other:?}");
        }
        named += 1;
    }
    assert!(named > 20, "{named} of {} losses", losses.len());
    assert_eq!(others.next(), None, "each belongs to a loss");
}

#[test]
fn a_packet_dropped_by_a_full_queue_is_recorded_with_that_reason() {
    let animation = recorded(FULL_QUEUE, "..");
    let tables = tables(&animation);
    let drops = rows(&tables, Stream::Drops);
    assert!(drops.len() > 100, "{}", drops.len());
    for drop in drops {
        assert_eq!(animation.reasons[drop[2] as usize], "interface queue full");
        // At n0, data of the first flow, from n0 to n1, with next hop n1; no frame was tried.
        assert_eq!((drop[1], drop[3], drop[4]), (0, kind::Kind::Data as i64, 1));
        assert_eq!(drop[7..], [1, 2, 2, 0]);
    }
    let longest = rows(&tables, Stream::Queues).iter().map(|row| row[2]).max();
    assert_eq!(longest, Some(2), "the queue was full, and never more");
}

#[test]
fn an_unacknowledged_packet_is_recorded_with_its_last_attempt() {
    let alone = TWO_HOPS
        .replace("spacing_m = 200", "spacing_m = 200\n[[outage]]\nfrom = \"n1\"\nto = \"n2\"\nstart_s = 1");
    let animation = recorded(&alone, "..");
    let tables = tables(&animation);
    let given_up: Vec<&Vec<i64>> = rows(&tables, Stream::Drops)
        .iter()
        .filter(|drop| animation.reasons[drop[2] as usize] == "retry limit reached")
        .collect();
    assert!(!given_up.is_empty(), "{:?}", animation.reasons);
    for drop in given_up {
        let last = &rows(&tables, Stream::Frames)[drop[10] as usize - 1];
        assert_eq!(last[1], drop[1], "from where it was dropped");
        assert!(
            drop[3] != kind::Kind::Data as i64 || last[2] == drop[9],
            "to the next hop: {drop:?} {last:?}"
        );
    }
    let out = FrameLossReason::ALL.iter().position(|why| *why == FrameLossReason::Outage).unwrap() as i64;
    assert!(rows(&tables, Stream::Losses).iter().any(|loss| loss[3] == out && loss[1] == 2));
}

#[test]
fn a_window_has_its_events_and_begins_with_the_current_state() {
    let (all, part) = (recorded(TWO_HOPS, ".."), recorded(TWO_HOPS, "1s..2s"));
    assert_eq!((part.from_s, part.to_s(), part.is_cut()), (1.0, 2.0, false));
    let (all, part) = (tables(&all), tables(&part));
    let within = |row: &&Vec<i64>| (1_000_000..2_000_000).contains(&row[0]);
    let shifted = |row: &Vec<i64>| (row[0] - 1_000_000, row[1..].to_vec());
    for stream in [Stream::Frames, Stream::Queues] {
        let expected: Vec<_> = rows(&all, stream).iter().filter(within).map(shifted).collect();
        let mut found: Vec<_> = rows(&part, stream).iter().map(|row| (row[0], row[1..].to_vec())).collect();
        found.retain(|row| stream == Stream::Frames || row.0 > 0);
        assert!(!found.is_empty());
        assert_eq!(found, expected, "{stream:?}");
    }
    let routes: Vec<&[i64]> = rows(&part, Stream::Routes).iter().map(Vec::as_slice).collect();
    assert_eq!(routes, [[0, 0, 0, 2], [0, 0, 1, 3]], "the way was found before the window");
    let before = rows(&all, Stream::Queues).iter().filter(|row| row[0] < 1_000_000);
    let mut stand = [0; 3];
    before.for_each(|row| stand[row[1] as usize] = row[2]);
    let at_first = rows(&part, Stream::Queues).iter().filter(|row| row[0] == 0);
    let mut found = [0; 3];
    at_first.for_each(|row| found[row[1] as usize] = row[2]);
    assert_eq!(found, stand);
}

#[test]
fn a_window_without_events_is_recorded() {
    let late = TWO_HOPS.replace("dst = \"n2\"", "dst = \"n2\"\nstart_s = 3");
    let animation = recorded(&late, "1s..2s");
    assert_eq!((animation.from_s, animation.to_s(), animation.is_cut()), (1.0, 2.0, false));
    assert!(tables(&animation).iter().all(Vec::is_empty));
}

#[test]
fn equal_seeds_give_equal_recordings_and_another_run_differs() {
    let spec = scenario(HIDDEN).spec(1).unwrap();
    let of = |run| record(&spec, run, window("1s.."), &NoObserver).unwrap();
    assert_eq!(of(1), of(1));
    assert_ne!(of(1).text(), of(2).text());
}

#[test]
fn recording_does_not_change_the_run() {
    let spec = scenario(HIDDEN).spec(1).unwrap();
    let mut world = World::new(
        &spec,
        1,
        Recorder::new(
            &spec,
            (Instant::ZERO, Instant::ZERO + spec.duration),
            recorder::ChunkForm::Continued,
            Box::new(|_| recorder::Room::Left),
        ),
    );
    world.run_until(Instant::ZERO + spec.duration);
    assert_eq!(world.finish().0.fingerprint, hopline_sim::simulate(&spec, 1).fingerprint);
}

#[test]
fn an_animation_that_is_too_large_is_cut_at_its_end_and_others_at_about_the_same_time() {
    let long = HIDDEN.replace("duration_s = 4", "duration_s = 40");
    let whole = recorded(&long, "..");
    let slow = recorded(&long.replace("rate_kbps = 400", "rate_kbps = 40"), "..");
    let bytes = |animation: &Animation| animation.text().len() + 1;
    let scenes: usize = distinct_scenes(&[whole.clone(), slow.clone()]).0.iter().map(String::len).sum();
    let total = bytes(&whole) + bytes(&slow) + scenes;
    let mut both = [whole.clone(), slow.clone()];
    fit(&mut both, total);
    assert_eq!(both, [whole.clone(), slow], "what fits stays whole");
    fit(&mut both, total / 2);
    assert!(both.iter().map(bytes).sum::<usize>() <= total / 2);
    assert!(both[0].is_cut() && both[0].to_s() < 40.0 && both[0].requested_end_s == 40.0);
    let (a, b) = (both[0].to_s(), both[1].to_s());
    let longest = both.iter().map(|animation| animation.to_s() / animation.chunks.len() as f64);
    assert!((a - b).abs() <= longest.fold(0.0, f64::max) * 1.5, "{a} {b}");
    let (kept, all) = (tables(&both[0]), tables(&whole));
    for (stream, _) in STREAMS {
        assert!(rows(&all, stream).starts_with(rows(&kept, stream)), "{stream:?}");
    }
    fit(&mut both, 0);
    assert_eq!((both[0].to_s(), both[0].text().len()), (0.0, 0), "nothing fits in nothing");
}

#[test]
fn an_interrupted_recording_returns_nothing() {
    let spec = scenario(TWO_HOPS).spec(1).unwrap();
    assert_eq!(record(&spec, 1, window(".."), &InterruptAfter::after_s(0)), Err(Interrupted));
}

/// Runs the network of [`HIDDEN`] for a part of its time, seen by a recorder.
fn observed(recorder: LiveRecorder, until: &str) {
    let mut world = World::new(&scenario(HIDDEN).spec(1).unwrap(), 1, recorder);
    world.run_until(window(until).ends(Duration::from_secs(4)));
    let _ = world.finish();
}

#[test]
fn what_is_recorded_while_a_network_runs_is_what_a_repetition_records() {
    let spec = scenario(HIDDEN).spec(1).unwrap();
    for part in ["1s..2s", "..3s"] {
        let (recorder, recording) = live(&spec, window(part));
        observed(recorder, "..");
        let animation = recording.collect().into_animation(&spec, 1).unwrap();
        let repeated = recorded(HIDDEN, part);
        assert_eq!(tables(&animation), tables(&repeated));
        assert_eq!((animation.from_s, animation.to_s()), (repeated.from_s, repeated.to_s()));
    }
    let (recorder, recording) = live(&spec, window("5s.."));
    observed(recorder, "..");
    assert_eq!(recording.collect().into_animation(&spec, 1), None, "the network ended before");
}

#[test]
fn each_chunk_of_a_watched_network_can_be_read_by_itself() {
    let spec = scenario(HIDDEN).spec(1).unwrap();
    let (recorder, network) = watched(&spec);
    observed(recorder, "..3s");
    let (mut frames, mut losses, mut until) = (Vec::new(), Vec::new(), 0);
    while let Watched::Events(json) = network.next(std::time::Duration::ZERO) {
        let chunk: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(chunk["first"], frames.len(), "the number of its first frame");
        assert!(chunk["until"].as_i64().unwrap() - until <= 210_000, "{json}");
        until = chunk["until"].as_i64().unwrap();
        let tables = read(&[STANDARD.decode(chunk["rows"].as_str().unwrap()).unwrap()]);
        frames.extend_from_slice(rows(&tables, Stream::Frames));
        losses.extend_from_slice(rows(&tables, Stream::Losses));
    }
    assert_eq!(network.next(std::time::Duration::ZERO), Watched::End);
    let whole = tables(&recorded(HIDDEN, "..3s"));
    let before =
        |rows: &[Vec<i64>]| rows.iter().filter(|row| row[0] < 3_000_000).cloned().collect::<Vec<_>>();
    assert_eq!(
        (before(&frames), before(&losses)),
        (before(rows(&whole, Stream::Frames)), before(rows(&whole, Stream::Losses)))
    );
}
