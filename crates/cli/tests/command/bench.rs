//! `hopline bench`, over loopback.

use crate::{command, hopline, json, keys, stderr, stdout};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Output, Stdio};

/// Server, and the port it listens on.
struct Server {
    child: Child,
    err: BufReader<ChildStderr>,
    port: String,
}

impl Server {
    fn start(more: &[&str]) -> Self {
        let mut command = command();
        command.args(["bench", "-s", "-B", "127.0.0.1", "-p", "0"]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        let port = line.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().to_owned();
        Self { child, err, port }
    }

    fn test(&self, more: &[&str]) -> Output {
        hopline(["bench", "-c", "127.0.0.1", "-p", &self.port].iter().chain(more))
    }

    /// Returns the exit code, stdout, and the rest of stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut said = String::new();
        self.err.read_to_string(&mut said).unwrap();
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), said)
    }

    fn interrupt(&self) {
        interrupt(&self.child);
    }
}

fn interrupt(child: &Child) {
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn number(value: &Json) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks that each key in `numbers` of `object` is a number, and that the other keys are `others`.
fn check_numbers(object: &Json, numbers: &[&str], others: &[&str]) {
    let mut all = [numbers, others].concat();
    all.sort_unstable();
    assert_eq!(keys(object), all, "{object}");
    numbers.iter().for_each(|key| assert!(object[key].is_number(), "{key}: {object}"));
}

const SPAN_KEYS: [&str; 5] = ["bits_per_second", "bytes", "end", "seconds", "start"];
const INTERVAL_KEYS: [&str; 6] = ["retransmits", "rtt", "rttvar", "snd_cwnd", "snd_wnd", "socket"];
const TOTAL_KEYS: [&str; 6] =
    ["max_rtt", "max_snd_cwnd", "max_snd_wnd", "mean_rtt", "min_rtt", "retransmits"];

/// Checks that keys and types are iperf3's, in a test in which the client sent.
fn check_shape(document: &Json, streams: usize, more: &[&str]) {
    assert_eq!(keys(document), ["end", "intervals", "start"]);
    assert_eq!(document["start"]["cookie"].as_str().unwrap().len(), 36);
    let start = &document["start"];
    assert_eq!(start["connected"].as_array().unwrap().len(), streams);
    for stream in start["connected"].as_array().unwrap() {
        check_numbers(stream, &["local_port", "remote_port", "socket"], &["local_host", "remote_host"]);
        assert_eq!(
            (&stream["local_host"], &stream["remote_host"]),
            (&"127.0.0.1".into(), &"127.0.0.1".into())
        );
    }
    check_numbers(&start["timestamp"], &["timesecs"], &["time"]);
    assert_eq!(start["connecting_to"]["host"], "127.0.0.1");
    assert!(start["version"].as_str().unwrap().starts_with("hopline "));
    assert!(start["system_info"].as_str().unwrap().starts_with("Linux "));
    for interval in document["intervals"].as_array().unwrap() {
        assert_eq!(keys(interval), ["streams", "sum"]);
        assert_eq!(interval["streams"].as_array().unwrap().len(), streams);
        for stream in interval["streams"].as_array().unwrap() {
            check_numbers(stream, &[&SPAN_KEYS[..], &INTERVAL_KEYS, more].concat(), &["omitted", "sender"]);
        }
        check_numbers(&interval["sum"], &[&SPAN_KEYS[..], &["retransmits"]].concat(), &["omitted", "sender"]);
        let sum: f64 = interval["streams"].as_array().unwrap().iter().map(|s| number(&s["bytes"])).sum();
        assert_eq!(sum, number(&interval["sum"]["bytes"]));
    }
    let end = &document["end"];
    for stream in end["streams"].as_array().unwrap() {
        assert_eq!(keys(stream), ["receiver", "sender"]);
        check_numbers(&stream["sender"], &[&SPAN_KEYS[..], &TOTAL_KEYS, &["socket"]].concat(), &["sender"]);
        check_numbers(&stream["receiver"], &[&SPAN_KEYS[..], &["socket"]].concat(), &["sender"]);
    }
    check_numbers(&end["sum_sent"], &[&SPAN_KEYS[..], &["retransmits"]].concat(), &["sender"]);
    check_numbers(&end["sum_received"], &SPAN_KEYS, &["sender"]);
    let cpu = ["host_system", "host_total", "host_user", "remote_system", "remote_total", "remote_user"];
    check_numbers(&end["cpu_utilization_percent"], &cpu, &[]);
    assert!(end["sender_tcp_congestion"].is_string() && end["receiver_tcp_congestion"].is_string());
}

#[test]
fn json_has_iperf3s_keys_over_both_transports() {
    let server = Server::start(&[]);
    for (transport, protocol, more) in [("tpa", "TPA", &[][..]), ("tcp:reno", "TCP", &["pmtu"])] {
        let output = server.test(&["-n", "300K", "-P", "3", "-l", "10K", "--transport", transport, "-J"]);
        let document = json(&output);
        check_shape(&document, 3, more);
        let start = &document["start"]["test_start"];
        assert_eq!((&start["protocol"], &start["num_streams"]), (&protocol.into(), &3.into()));
        assert_eq!((&start["bytes"], &start["blksize"]), (&307_200.into(), &10_240.into()));
        assert_eq!((&start["reverse"], &start["duration"]), (&0.into(), &0.into()));
        let end = &document["end"];
        assert_eq!(
            (&end["sum_sent"]["bytes"], &end["sum_received"]["bytes"]),
            (&307_200.into(), &307_200.into())
        );
        let summed: f64 =
            document["intervals"].as_array().unwrap().iter().map(|i| number(&i["sum"]["bytes"])).sum();
        assert_eq!(summed, 307_200.0);
        assert_eq!(end["sender_tcp_congestion"], transport.trim_start_matches("tcp:"));
        assert_eq!(end["sum_sent"]["sender"], true);
    }
    server.interrupt();
    assert_eq!(server.end().0, Some(130));
}

#[test]
fn in_reverse_the_server_sends_and_reports_retransmissions() {
    let server = Server::start(&["-1"]);
    let document = json(&server.test(&["-n", "100K", "-R", "--window", "2", "-J"]));
    let (start, end) = (&document["start"]["test_start"], &document["end"]);
    assert_eq!((&start["reverse"], &start["tpa_cwnd_max"]), (&1.into(), &2.into()));
    assert_eq!(
        (&end["sum_sent"]["bytes"], &end["sum_received"]["bytes"]),
        (&102_400.into(), &102_400.into())
    );
    assert_eq!(end["sum_received"]["sender"], false);
    let sender = &end["streams"][0]["sender"];
    assert!(sender["retransmits"].is_number());
    assert_eq!(sender["max_snd_cwnd"], 2 * 1448, "the server keeps to the window it was told");
    assert!(document["intervals"][0]["sum"].get("retransmits").is_none());
    let (code, out, said) = server.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(out.contains("TPA with a window of 2, 100 KiB, streams: 1, the client receives"), "{out}");
}

/// Returns a value of the status of a running process.
fn of_process(pid: u32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_test_of_the_maximum_streams_takes_little_memory_and_more_are_rejected() {
    let server = Server::start(&[]);
    let refused = server.test(&["-P", "65", "--bidir", "--transport", "tcp", "-t", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    let why = "the server takes 128 streams, both directions together, and no more";
    assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
    let pid = server.child.id();
    let before = of_process(pid, "VmHWM");
    let most = server.test(&[
        "-P",
        "64",
        "--bidir",
        "--transport",
        "tcp",
        "-l",
        "1M",
        "-n",
        "200M",
        "--latency",
        "0",
    ]);
    assert_eq!(most.status.code(), Some(0), "{}", stderr(&most));
    let added = of_process(pid, "VmHWM") - before;
    // Read buffers of 8 MiB for 64 received streams, and one block for all sent streams.
    assert!(added < 32 << 10, "{added} kB");
    server.interrupt();
    assert_eq!(server.end().0, Some(130));
}

#[test]
fn the_output_of_the_server_is_complete() {
    let server = Server::start(&["-1"]);
    let output = server.test(&["-n", "100K", "--get-server-output"]);
    let text = stdout(&output);
    let (_, said) = text.split_once("The server says:\n").unwrap();
    assert_eq!(said, server.end().1);
    assert!(said.contains("sender\n") && said.ends_with("receiver\n"), "{said}");
}

#[test]
fn omitted_bytes_are_in_no_total() {
    let server = Server::start(&[]);
    for way in [&[][..], &["-R"], &["--bidir"]] {
        let more =
            ["-O", "1", "-n", "1M", "--transport", "tcp", "--latency", "0", "-b", "40M", "-l", "10K", "-J"];
        let document = json(&server.test(&[&more, way].concat()));
        assert_eq!(document["intervals"][0]["sum"]["omitted"], true, "{way:?}");
        for key in ["sum_sent", "sum_received"] {
            let bytes = number(&document["end"][key]["bytes"]);
            assert!((0.9..2.0).contains(&(bytes / f64::from(1 << 20))), "{way:?} {key} {bytes}");
        }
    }
    server.interrupt();
    assert_eq!(server.end().0, Some(130));
}

/// The order is that of iperf3's document.
#[test]
fn json_is_printed_for_an_unresolvable_server() {
    let output = hopline(["bench", "-c", "no-such-host.invalid", "-J"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    let error = document["error"].as_str().unwrap();
    assert!(error.starts_with("no-such-host.invalid: "), "{error}");
    assert_eq!(document["intervals"], serde_json::json!([]));
}

#[test]
fn json_keys_have_iperf3s_order_and_are_complete() {
    let server = Server::start(&[]);
    let text = stdout(&server.test(&["-t", "1", "-i", "0", "-u", "-J", "--latency", "0.1"]));
    let mut at = 0;
    for key in [
        "start",
        "connected",
        "version",
        "system_info",
        "timestamp",
        "connecting_to",
        "cookie",
        "target_bitrate",
        "sock_bufsize",
        "sndbuf_actual",
        "rcvbuf_actual",
        "test_start",
        "protocol",
        "num_streams",
        "blksize",
        "omit",
        "duration",
        "bytes",
        "blocks",
        "reverse",
        "tos",
        "target_bitrate",
        "intervals",
        "end",
        "streams",
        "udp",
        "jitter_ms",
        "lost_packets",
        "packets",
        "lost_percent",
        "out_of_order",
        "sender",
        "sum",
        "sum_sent",
        "sum_received",
        "cpu_utilization_percent",
        "host_total",
        "latency_ms",
        "before",
        "during",
        "after",
    ] {
        let next = text[at..].find(&format!("\"{key}\":"));
        at += next.unwrap_or_else(|| panic!("{key} is missing or too early: {text}"));
    }
    server.interrupt();
}

#[test]
fn a_json_stream_has_an_event_per_line_and_a_log_file_has_the_output() {
    let server = Server::start(&[]);
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().to_str().unwrap();
    let output = server.test(&["-t", "1", "-i", "0.5", "--json-stream", "--latency", "0", "--logfile", path]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), String::new()), "{}", stderr(&output));
    let text = std::fs::read_to_string(path).unwrap();
    let events: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[1], names[names.len() - 1]), ("start", "interval", "end"));
    assert!(events.iter().all(|event| event["data"].is_object()), "{text}");
    server.interrupt();
}

#[test]
fn text_has_a_line_for_every_stream_and_the_sum_of_both_sides() {
    let server = Server::start(&["-1"]);
    let output = server.test(&["-t", "1", "-i", "0.5", "-P", "2", "--transport", "tcp"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for words in ["[  1]", "[  2]", "[SUM]"] {
        for side in ["sender", "receiver"] {
            let lines = text.lines().filter(|line| line.starts_with(words) && line.ends_with(side));
            assert_eq!(lines.count(), 1, "{words} {side}: {text}");
        }
    }
    let header = text.lines().find(|line| line.starts_with("[ ID]")).unwrap();
    for column in ["Interval", "Transfer", "Bitrate", "Retr", "Cwnd", "RTT"] {
        assert!(header.contains(column), "{header}");
    }
    assert!(text.contains("[SUM]  0.00-0.5"), "{text}");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_silent_server_is_an_error_in_json() {
    let port = {
        let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        unused.local_addr().unwrap().port().to_string()
    };
    for transport in ["tpa", "tcp"] {
        let output = hopline(["bench", "-c", "127.0.0.1", "-p", &port, "--transport", transport, "-J"]);
        assert_eq!(output.status.code(), Some(1));
        let document: Json = serde_json::from_slice(&output.stdout).unwrap();
        let error = format!("cannot connect to 127.0.0.1:{port}: nobody listens there");
        assert_eq!(document["error"], error.as_str());
        assert_eq!(
            (&document["end"], &document["intervals"]),
            (&serde_json::json!({}), &serde_json::json!([]))
        );
        assert!(stderr(&output).contains(&error), "{}", stderr(&output));
    }
    assert_eq!(hopline(["bench", "-c", "no-such-host.invalid"]).status.code(), Some(1));
}

/// Returns a client of an endless test that has printed intervals: the process, its further output, and its output so far.
fn running_client(server: &Server) -> (Child, BufReader<ChildStdout>, String) {
    let mut client = command();
    client.args(["bench", "-c", "127.0.0.1", "-p", &server.port, "-t", "3600", "-i", "0.1"]);
    let mut client = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(client.stdout.take().unwrap());
    let mut text = String::new();
    while text.lines().count() < 4 {
        assert!(out.read_line(&mut text).unwrap() > 0, "{text}");
    }
    (client, out, text)
}

#[test]
fn interrupted_tests_print_partial_results() {
    let server = Server::start(&[]);
    let (mut client, mut out, mut text) = running_client(&server);
    interrupt(&client);
    out.read_to_string(&mut text).unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(130));
    assert!(text.contains("sender\n") && text.contains("receiver\n"), "{text}");
    // The server has noticed its end, and accepts the next.
    let next = server.test(&["-n", "10K"]);
    assert_eq!(next.status.code(), Some(0), "{}", stderr(&next));
    server.interrupt();
    let (code, _, said) = server.end();
    assert_eq!((code, said.as_str()), (Some(130), "interrupted\n"));
}

#[test]
fn a_server_that_stops_during_a_test_is_an_error_at_the_client() {
    let server = Server::start(&[]);
    let (mut client, _out, _) = running_client(&server);
    server.interrupt();
    let mut said = String::new();
    client.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("the other side was stopped by its user"), "{said}");
    assert_eq!(server.end().0, Some(130));
}

#[test]
fn contradictory_options_are_rejected_before_connecting() {
    let client = ["bench", "-c", "127.0.0.1"];
    for (wrong, word) in [
        (&["-t", "1", "-n", "1M"][..], "cannot be used with"),
        (&["-t", "0"], "a whole number from 1 to 86400"),
        (&["-n", "0"], "above 0"),
        (&["-n", "1.5M"], "64K, 10M"),
        (&["-l", "2M"], "at most 1M"),
        (&["-i", "0.01"], "from 0.1 to 3600 seconds"),
        (&["-P", "0"], "a whole number from 1 to 128"),
        (&["-P", "129"], "a whole number from 1 to 128"),
        (&["--window", "13"], "a whole number from 1 to 12"),
        (&["--window", "3", "--transport", "tcp"], "--window is TPA's"),
        (&["--transport", "sctp"], "`tcp:NAME`, NAME being one of:"),
        (&["-C", "nosuch"], "there is no congestion control `nosuch` here"),
        (&["-u", "-C", "reno"], "cannot be used with"),
        (&["-u", "-Z"], "--zerocopy is for TCP, and the transport is UDP"),
        (&["-N"], "--no-delay is for TCP, and the transport is TPA"),
        (&["-u", "-l", "8"], "datagrams of 16 to 65507 bytes"),
        (&["-b", "fast"], "10M/5"),
        (&["-S", "256"], "0 to 255"),
        (&["-f", "x"], "one of k, m, g, t"),
        (&["-4", "-6"], "cannot be used with"),
        (&["-R", "--bidir"], "cannot be used with"),
        (&["-J", "--json-stream"], "cannot be used with"),
        (&["--transport", "tcp:nosuch"], "there is no congestion control `nosuch` here; this kernel has:"),
        (&["-s"], "cannot be used with"),
        (&["-1"], "cannot be used with"),
    ] {
        let output = hopline(client.iter().chain(wrong));
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{wrong:?}");
        assert!(stderr(&output).contains(word), "{wrong:?}: {}", stderr(&output));
    }
    for wrong in [
        &[][..],
        &["-s", "-R"],
        &["-s", "-t", "1"],
        &["-s", "-n", "1"],
        &["-s", "-J"],
        &["-s", "-P", "2"],
        &["-s", "-l", "1K"],
        &["-s", "-O", "1"],
        &["-s", "--transport", "tpa"],
        &["-s", "--window", "3"],
        &["-s", "-B", "nowhere"],
    ] {
        let output = hopline(["bench"].iter().chain(wrong));
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
    }
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let busy = hopline(["bench", "-s", "-B", "127.0.0.1", "-p", &port]);
    assert_eq!(busy.status.code(), Some(1));
    assert!(stderr(&busy).contains("cannot listen on 127.0.0.1:"), "{}", stderr(&busy));
}
