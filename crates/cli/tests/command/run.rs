//! `hopline run`.

use super::*;
use std::fs;
use std::process::Stdio;

#[test]
fn json_has_the_documented_keys() {
    let json = json(&run_chain(&["--json"]));
    for key in
        ["aggregate_goodput_bps", "cpu_s", "events", "fingerprint", "flows", "run", "sim_s", "timeouts"]
    {
        assert!(json.get(key).is_some(), "{key} is not in {json}");
    }
    let flow = &json["flows"][0];
    for key in [
        "bytes_received",
        "delay_p95_s",
        "dst",
        "goodput_bps",
        "id",
        "retransmissions",
        "rtx_index_pct",
        "segments_sent",
        "src",
        "timeouts",
        "transport",
    ] {
        assert!(flow.get(key).is_some(), "{key} is not in {flow}");
    }
    assert!(flow.get("responses").is_none() && flow.get("completion_s").is_none(), "{flow}");
    assert!(flow["delay_p50_s"].as_f64() > Some(0.01), "{flow}");
    assert_eq!(json["sim_s"], 2.0);
    assert_eq!(json["fingerprint"].as_str().unwrap().len(), 16);
    assert_eq!((&flow["src"], &flow["transport"]), (&Json::from("n0"), &Json::from("tcp-newreno")));
    let (goodput, bytes) = (flow["goodput_bps"].as_f64().unwrap(), flow["bytes_received"].as_f64().unwrap());
    assert!(bytes > 0.0 && (goodput - bytes * 8.0 / 2.0).abs() < 1.0, "{flow}");
    assert_eq!(json["aggregate_goodput_bps"], flow["goodput_bps"]);
}

#[test]
fn equal_seed_and_run_give_equal_results_and_others_do_not() {
    let fingerprint = |more: &[&str]| json(&run_chain(&[&["--json"], more].concat()))["fingerprint"].clone();
    let first = fingerprint(&[]);
    assert_eq!(first, fingerprint(&["--seed", "1", "--run", "1"]));
    assert_eq!(first, fingerprint(&["--set", "seed=1"]));
    assert_ne!(first, fingerprint(&["--run", "2"]));
    assert_ne!(first, fingerprint(&["--seed", "2"]));
    assert_ne!(first, fingerprint(&["--set", "tcp.window=2"]));
}

#[test]
fn the_summary_is_a_table_and_stderr_is_silent_without_a_terminal() {
    let output = run_chain(&[]);
    let text = stdout(&output);
    assert!(text.starts_with("chain: 5 nodes, 2 s, seed 1, run 1\n\nflow  from  to  transport "), "{text}");
    assert!(text.contains("\nf0    n0    n4  tcp-newreno "), "{text}");
    assert!(text.contains("\nfingerprint "), "{text}");
    assert_eq!(stderr(&output), "");
}

#[test]
fn verbose_adds_the_airtime_of_each_node() {
    let text = stdout(&run_chain(&["-v"]));
    let row = text.lines().find(|l| l.starts_with("n2 ")).expect("a row for n2");
    let shares: Vec<f64> = row.split_whitespace().skip(1).take(5).map(|w| w.parse().unwrap()).collect();
    assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.5, "{row}");
}

#[test]
fn verbose_has_a_column_for_each_occurring_drop_reason() {
    let header = |more: &[&str]| {
        let text = stdout(&run_chain(&[&["-v"], more].concat()));
        text.lines().find(|l| l.starts_with("node ")).expect("a table of nodes").to_owned()
    };
    let plain = header(&[]);
    assert!(plain.ends_with("idle %  queue full  retry limit  no route  link error"), "{plain}");
    let early = ["--set", "queue.discipline=red", "--set", "queue.max_threshold_packets=6"];
    let early = header(&[&early[..], &["--set", "queue.weight=1"]].concat());
    assert!(early.contains("idle %  early  queue full"), "{early}");
    let all = ["--set", "neighborhood_red.share=1", "--set", "neighborhood_red.min_threshold_packets=1"];
    let all = header(&[&all[..], &["--set", "duration_s=20"]].concat());
    assert!(all.contains("idle %  notices  for neighbors  queue full"), "{all}");
}

#[test]
fn a_flow_that_can_never_connect_is_reported_and_no_failure() {
    let output = run_chain(&["--set", "nodes.spacing_m=900"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(text.contains("flow f0 (n0 -> n4) never connected: not one byte arrived"), "{text}");
    let text = stdout(&run_chain(&["--set", "flow.0.start_s=5"]));
    assert!(text.contains("never connected: it would have started after the end of the run"), "{text}");
}

#[test]
fn output_holds_manifest_flows_and_series() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let output =
        run_chain(&["-o", target.to_str().unwrap(), "--set", "tcp.window=3", "--run", "4", "--json"]);
    let summary = json(&output);
    assert_eq!(names(folder.path()), ["out"]);
    assert_eq!(names(&target), ["flows.csv", "manifest.json", "series.csv"]);
    let manifest: Json = serde_json::from_slice(&fs::read(target.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["fingerprint"], summary["fingerprint"]);
    assert_eq!((&manifest["run"], &manifest["seed"]), (&Json::from(4), &Json::from(1)));
    assert_eq!(manifest["parameters"]["tcp"]["window"], 3);
    assert_eq!(manifest["settings"], Json::from(vec!["duration_s=2", "tcp.window=3"]));
    assert_eq!(manifest["scenario_sha256"].as_str().unwrap().len(), 64);
    for key in ["aggregate_goodput_bps", "timeouts", "frames_per_segment", "events", "sim_s"] {
        assert_eq!(manifest[key], summary[key], "{key}");
        assert!(manifest[key].is_number(), "{key}");
    }
    let series = fs::read_to_string(target.join("series.csv")).unwrap();
    let rows: Vec<&str> = series.lines().collect();
    assert_eq!(rows[0], "time_s,flow,goodput_bps,cwnd_bytes,srtt_s,queue_packets,delay_mean_s");
    assert!(rows[1].starts_with("1.0,f0,") && rows[2].starts_with("2.0,f0,") && rows.len() == 3, "{series}");
    let bits: f64 = rows[1..].iter().map(|row| row.split(',').nth(2).unwrap().parse::<f64>().unwrap()).sum();
    assert_eq!(bits / 8.0, summary["flows"][0]["bytes_received"].as_f64().unwrap());
}

#[test]
fn the_table_of_flows_has_every_metric_of_the_json() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let web = scenario("web");
    let output = hopline([
        "run",
        web.to_str().unwrap(),
        "--set",
        "duration_s=30",
        "--json",
        "-qo",
        target.to_str().unwrap(),
    ]);
    let summary = json(&output);
    let text = fs::read_to_string(target.join("flows.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let header = &rows[0];
    assert_eq!(header[..5], ["id", "src", "dst", "transport", "goodput_bps"]);
    let flows = summary["flows"].as_array().unwrap();
    assert_eq!(rows.len(), 1 + flows.len());
    let mut empty = 0;
    for (row, flow) in rows[1..].iter().zip(flows) {
        for (name, cell) in header.iter().zip(row) {
            match flow.get(name) {
                Some(Json::String(text)) => assert_eq!(cell, text),
                // The last digit of a number may be lost when JSON is read.
                Some(value) => {
                    let (cell, value) = (cell.parse::<f64>().unwrap(), value.as_f64().unwrap());
                    assert!((cell - value).abs() <= 1e-12 * value.abs(), "{name}: {cell} {value}");
                }
                None => {
                    assert_eq!(*cell, "", "{name}");
                    empty += 1;
                }
            }
        }
        let known = flow.as_object().unwrap().keys().filter(|key| !header.contains(&key.as_str()));
        assert_eq!(known.count(), 0, "every key is a column");
    }
    assert!(empty > 0);
}

#[test]
fn the_hidden_warm_up_is_noted_and_missing_values_are_dashes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    let text = "duration_s = 10\nwarmup_s = 4\n[radio]\n[nodes]\nlayout = \"chain\"\ncount = 2\nspacing_m = 200\n\
        [[flow]]\nsrc = \"n0\"\ndst = \"n1\"\nkind = \"cbr\"\nrate_kbps = 16\npacket_bytes = 200\n";
    fs::write(&file, text).unwrap();
    let text = stdout(&hopline(["run", file.to_str().unwrap(), "-v"]));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(": 2 nodes, 10 s of which the first 4 do not count, seed 1, run 1"), "{text}");
    let cells: Vec<&str> = lines[3].split_whitespace().collect();
    assert_eq!(cells[..4], ["f0", "n0", "n1", "udp-cbr"]);
    assert_eq!(cells[6..], ["61", "-", "-", "-"], "{text}");
    let node = lines.iter().find(|line| line.starts_with("n0 ")).unwrap();
    let shares = node.split_whitespace().skip(1).take(5).map(|share| share.parse::<f64>().unwrap());
    assert!((shares.sum::<f64>() - 100.0).abs() < 0.3, "{text}");
}

#[test]
fn a_capture_is_valid_pcapng_and_changes_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let traced = json(&run_chain(&["-o", target.to_str().unwrap(), "--pcap", "--json"]));
    assert_eq!(traced["fingerprint"], json(&run_chain(&["--json"]))["fingerprint"]);
    let capture = fs::read(target.join("run.pcapng")).unwrap();
    // The type of a section header block (pcapng §4.1).
    assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(capture.len() > 10_000);
    let manifest = fs::read_to_string(target.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"run.pcapng\""), "{manifest}");
}

#[test]
fn a_capture_of_some_nodes_has_only_their_interfaces() {
    let folder = tempfile::tempdir().unwrap();
    let captured = |name: &str, more: &[&str]| {
        let target = folder.path().join(name);
        let run = json(&run_chain(&[&["-o", target.to_str().unwrap(), "--json"], more].concat()));
        (fs::read(target.join("run.pcapng")).unwrap(), run["fingerprint"].clone())
    };
    // Blocks of type 1 describe interfaces, each with an option 2, its name (pcapng §4.2).
    let has = |capture: &[u8], node: &str| {
        let option = [&[2, 0, 2, 0][..], node.as_bytes()].concat();
        capture.windows(option.len()).any(|bytes| bytes == option)
    };
    let (all, fingerprint) = captured("all", &["--pcap"]);
    let (two, same) = captured("two", &["--pcap-node", "n4,n1", "--pcap-node", "n1"]);
    assert_eq!(fingerprint, same);
    assert!(["n0", "n1", "n2", "n3", "n4"].into_iter().all(|node| has(&all, node)));
    assert!(has(&two, "n1") && has(&two, "n4"));
    assert!(!["n0", "n2", "n3"].into_iter().any(|node| has(&two, node)));
    assert!(two.len() > 10_000 && two.len() < all.len() * 3 / 4, "{} of {}", two.len(), all.len());
}

#[test]
fn a_capture_of_an_unknown_node_is_rejected_before_any_run() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let refused = run_chain(&["-o", target.to_str().unwrap(), "--pcap-node", "n0,n41"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(said.contains("--pcap-node: there is no node `n41`"), "{said}");
    assert!(said.contains("did you mean `n1`? the nodes are n0, n1, n2, n3, n4"), "{said}");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn response_times_have_their_own_table() {
    let web = scenario("web");
    let run = ["run", web.to_str().unwrap(), "--set", "duration_s=30", "-q"];
    let text = stdout(&hopline(run));
    let header = text.lines().position(|line| line.starts_with("flow   responses")).expect(&text);
    assert!(text.lines().nth(header + 1).unwrap().starts_with("pages"), "{text}");
    let json = json(&hopline(run.into_iter().chain(["--json"])));
    let calls = &json["flows"][1];
    assert!(
        calls["responses"].as_u64() > Some(10) && calls["response_p95_s"].as_f64() > Some(0.05),
        "{calls}"
    );
    assert!(json["flows"][2]["responses"].is_null());
}

#[test]
fn traces_of_other_simulators_are_written_and_change_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let all = ["-o", target.to_str().unwrap(), "--pcap", "--ns2-trace", "--flowmon", "--json"];
    let traced = json(&run_chain(&all));
    assert_eq!(traced["fingerprint"], json(&run_chain(&["--json"]))["fingerprint"]);
    let trace = fs::read_to_string(target.join("run.tr")).unwrap();
    assert!(trace.starts_with("s 0.000000000 _0_ AGT  --- 0 tcp 40 "), "{}", &trace[..80]);
    let received: f64 = traced["flows"][0]["bytes_received"].as_f64().unwrap();
    let distinct: std::collections::BTreeMap<&str, f64> = trace
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|f| (f[0], f[3], f[6]) == ("r", "AGT", "tcp"))
        .map(|f| (f[17], f[7].parse::<f64>().unwrap() - 40.0))
        .collect();
    assert_eq!(distinct.values().sum::<f64>(), received);
    let flowmon = fs::read_to_string(target.join("flowmon.xml")).unwrap();
    assert!(flowmon.starts_with("<?xml version=\"1.0\"?>\n<FlowMonitor>"), "{flowmon}");
    let manifest = fs::read_to_string(target.join("manifest.json")).unwrap();
    for file in ["run.pcapng", "run.tr", "flowmon.xml"] {
        assert!(manifest.contains(&format!("\"{file}\"")), "{manifest}");
    }
}

#[test]
fn qlog_files_of_both_ends_are_written_and_change_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let logs = path("logs");
    let logged = json(&run_chain(&["--qlog", &logs, "--json"]));
    assert_eq!(logged["fingerprint"], json(&run_chain(&["--json"]))["fingerprint"]);
    assert_eq!(names(folder.path()), ["logs"], "no draft is left");
    assert_eq!(names(logs.as_ref()), ["f0-receiver.sqlog", "f0-sender.sqlog"]);
    let bytes = || fs::read(folder.path().join("logs/f0-sender.sqlog")).unwrap();
    let first = bytes();
    assert!(first.starts_with(b"\x1e{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\","));
    // The directory is not replaced unless that is asked for, and then only if it has nothing but logs.
    let refused = run_chain(&["--qlog", &logs]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("add --force"), "{}", stderr(&refused));
    let text = stdout(&run_chain(&["--qlog", &logs, "--force"]));
    assert!(text.ends_with(&format!("qlog files in {logs}\n")), "{text}");
    assert_eq!(bytes(), first, "the same run, the same bytes");
    fs::write(folder.path().join("logs/mine.txt"), "mine").unwrap();
    let refused = run_chain(&["--qlog", &logs, "--force"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(folder.path().join("logs/mine.txt").exists() && bytes() == first, "{}", stderr(&refused));
    // Beside results and other traces.
    let (out, more) = (path("out"), path("more"));
    let all = json(&run_chain(&["-o", &out, "--pcap", "--ns2-trace", "--qlog", &more, "--json"]));
    assert_eq!(all["fingerprint"], logged["fingerprint"]);
    assert_eq!(fs::read(folder.path().join("more/f0-sender.sqlog")).unwrap(), first);
    assert!(folder.path().join("out/run.tr").exists());
}

#[test]
fn qlog_is_refused_before_any_run_where_it_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let refused = |args: &[&str], reason: &str| {
        let output = run_chain(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    };
    let (out, within) = (path("out"), path("out/logs"));
    refused(&["-o", &out, "--qlog", &within], "overlap");
    refused(&["-o", &out, "--qlog", &out], "overlap");
    fs::write(path("file"), "").unwrap();
    refused(&["--qlog", &path("file/logs")], "it is a file");
    refused(
        &["--set", "flow.0.kind=cbr", "--set", "flow.0.rate_kbps=8", "--qlog", &path("logs")],
        "no flow has a transport protocol",
    );
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn an_existing_directory_needs_force() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let target = target.to_str().unwrap();
    assert_eq!(run_chain(&["-o", target]).status.code(), Some(0));
    let manifest = || fs::read_to_string(format!("{target}/manifest.json")).unwrap();
    let first = manifest();
    let refused = run_chain(&["-o", target, "--run", "2"]);
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(2), ""));
    assert!(stderr(&refused).contains("exists and is not overwritten"), "{}", stderr(&refused));
    assert_eq!(manifest(), first);
    assert_eq!(run_chain(&["-o", target, "--run", "2", "--force"]).status.code(), Some(0));
    assert_ne!(manifest(), first);
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn force_does_not_replace_a_directory_without_results() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let output = run_chain(&["-o", folder.path().to_str().unwrap(), "--force"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no manifest.json of hopline"), "{}", stderr(&output));
    assert_eq!(names(folder.path()), ["notes.txt"]);
}

#[test]
fn an_output_below_a_file_is_a_single_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let missing = folder.path().join("file/no/out");
    let output = run_chain(&["-o", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("it is a file; -o takes a directory") && error.lines().count() == 1, "{error}");
    assert!(!error.contains(".hopline-"), "{error}");
}

#[test]
fn a_broken_pipe_is_no_failure() {
    let file = scenario("chain");
    let mut child = command()
        .args(["run", file.to_str().unwrap(), "--set", "duration_s=2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_a_failure() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let file = scenario("chain");
    let args = ["run", file.to_str().unwrap(), "--set", "duration_s=2"];
    let output = command().args(args).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write to stdout"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_nothing_and_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let file = scenario("chain");
    let args = ["run", file.to_str().unwrap(), "--set", "duration_s=1e7", "--pcap", "-o"];
    let mut child =
        command().args(args).arg(&target).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The draft beside the target shows that the run has begun; the handler is in place before it.
    while names(folder.path()).is_empty() {
        assert_eq!(child.try_wait().unwrap(), None, "the run ended before it could be interrupted");
        std::thread::yield_now();
    }
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(stderr(&output), "interrupted; nothing was written\n");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_single_run_has_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.html");
    let scenario = scenario("web");
    let output = hopline([
        "run",
        scenario.to_str().unwrap(),
        "--set=duration_s=20",
        "--run=2",
        "--report",
        file.to_str().unwrap(),
    ]);
    let text = stdout(&output);
    assert!(text.contains("report in ") && text.contains("total of http"), "{text}");
    let page = fs::read_to_string(&file).unwrap();
    for words in ["Over time", "The flows", "How delays are spread", "\"run\":2", "1 run of 20 s"] {
        assert!(page.contains(words), "{words}");
    }
    let foreign = folder.path().join("mine.txt");
    fs::write(&foreign, "mine").unwrap();
    let refused = hopline([
        "run",
        scenario.to_str().unwrap(),
        "--set=duration_s=20",
        "--report",
        foreign.to_str().unwrap(),
    ]);
    assert!(!refused.status.success());
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
}

#[test]
fn an_animated_part_is_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::canonicalize(scenario("chain")).unwrap();
    let start = ["run", file.to_str().unwrap(), "--set", "duration_s=2", "--run", "3"];
    let run =
        |more: &[&str]| command().current_dir(folder.path()).args(start.iter().chain(more)).output().unwrap();
    run(&["--report", "a.html", "--animate", "500ms..1s"]);
    let page = std::fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert!(page.contains("Shown: 0.5 s to 1 s of run 3."));
    let nowhere = run(&["--animate", "500ms..1s"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("--report"), "{}", stderr(&nowhere));
    let late = run(&["--report", "b.html", "--animate", "2s.."]);
    assert!(stderr(&late).contains("it begins at 2 s, and the run ends at 2 s"), "{}", stderr(&late));
    assert_eq!((late.status.code(), folder.path().join("b.html").exists()), (Some(2), false));
}
