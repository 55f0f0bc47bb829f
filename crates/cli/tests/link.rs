//! `hopline link`: a command over an emulated link between two hosts.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::{Need, Test, if_on_time, tests};
use hopline_testkit::namespace::LINK;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio, exit};
use std::thread;
use std::time::{Duration, Instant};

/// Variable with the role of this program, if a test starts it on one of the hosts.
const ROLE: &str = "LINK_TEST_ROLE";

/// Variable with the address to query; by default that of the far host.
const PEER: &str = "LINK_TEST_PEER";
/// Datagrams of a flood.
const FLOOD: u64 = 2000;

/// Plays the role and ends the process, if this is the copy of the program that a test starts on one of the hosts.
pub(crate) fn play_role() {
    match std::env::var(ROLE).as_deref() {
        Ok("answer") => answer(),
        Ok("ask") => ask(),
        Ok("flood") => flood(),
        _ => {}
    }
}

pub(crate) fn tests() -> Vec<Test> {
    let tests = tests!([LINK];
        the_exit_code_of_the_command_is_returned,
        input_and_output_are_those_of_the_near_command,
        a_failing_auxiliary_command_fails_the_run,
        the_far_command_ends_with_the_near_one,
        a_command_that_ignores_sigterm_is_killed,
        no_process_outlives_a_terminated_link,
        no_process_outlives_a_killed_link,
        no_namespace_and_no_interface_remains,
        an_idle_link_carries_no_packet,
        drops_of_the_interface_are_counted_separately,
        packets_of_both_ip_versions_pass_between_hosts_behind_routers,
        recorded_rates_delays_and_losses_are_replayed,
        an_invalid_recording_is_rejected_with_its_position,
        each_direction_has_the_configured_delay,
        an_outage_drops_all_packets_and_ends,
        packets_are_lost_at_the_configured_rate,
        a_file_arrives_over_a_bad_link,
    );
    let without = tests!([LINK, Need::Program("setpriv"), Need::Program("unshare"), USER_NAMESPACES];
        without_root_a_user_namespace_is_used,
        without_root_and_user_namespaces_the_remedy_is_printed,
    );
    let beside = tests!([LINK, Need::Program("nsenter")];
        both_hosts_have_their_documented_addresses,
    );
    let behind = tests!([LINK, Need::Program("nsenter"), Need::Program("unshare"), Need::Program("ip")];
        addresses_behind_both_ends_are_reached,
    );
    let without = without.into_iter().chain(behind);
    tests.into_iter().chain(without).chain(beside).collect()
}

/// Requirement of user namespaces, for processes that are not root.
const USER_NAMESPACES: Need = Need::Of(|| {
    let tried = Command::new("unshare").args(["--user", "--map-root-user", "true"]).output();
    let made = tried.is_ok_and(|tried| tried.status.success());
    (!made).then(|| "there are no user namespaces here".into())
});

/// Echoes every datagram, over IPv4 and IPv6.
fn answer() -> ! {
    let socket = UdpSocket::bind("[::]:7").unwrap();
    let mut buffer = [0; 16];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..len], from).unwrap();
    }
}

/// Queries the far host until ten datagrams are returned, and prints the shortest round-trip time, in milliseconds.
fn ask() -> ! {
    let peer = std::env::var(PEER).or_else(|_| std::env::var("HOPLINE_FAR"));
    let peer = SocketAddr::new(peer.unwrap().parse().unwrap(), 7);
    let socket = UdpSocket::bind(if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
    socket.connect(peer).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let times = (0..200_u64).filter_map(|number| round_trip(&socket, number)).take(10);
    let shortest = times.min().unwrap().as_millis().to_string();
    std::io::stdout().write_all(shortest.as_bytes()).unwrap();
    exit(0);
}

/// Sends far more datagrams than the interface has room for.
fn flood() -> ! {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for _ in 0..FLOOD {
        socket.send_to(&[7; 100], (std::env::var("HOPLINE_FAR").unwrap(), 9)).unwrap();
    }
    exit(0);
}

fn round_trip(socket: &UdpSocket, number: u64) -> Option<Duration> {
    #[expect(clippy::disallowed_methods, reason = "this link is in real time")]
    let began = Instant::now();
    // Fails by ICMP before the other end listens.
    let _ = socket.send(&number.to_be_bytes());
    let mut got = [0; 8];
    while socket.recv(&mut got).ok()? == got.len() {
        if u64::from_be_bytes(got) == number {
            return Some(began.elapsed());
        }
    }
    None
}

fn link(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.arg("link").args(arguments).env("HOPLINE", env!("CARGO_BIN_EXE_hopline"));
    command.env("SELF", std::env::current_exe().unwrap());
    command
}

fn done(arguments: &[&str]) -> Output {
    link(arguments).output().unwrap()
}

/// Returns the report of the link, and the output of the querying host, with an echo server on the other.
fn asked(arguments: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("link.json");
    let far = format!("{ROLE}=answer exec $SELF");
    let near = format!("{ROLE}=ask exec $SELF");
    let rest = ["--json", place.to_str().unwrap(), "--far", &far, "--", "sh", "-c", &near];
    let output = done(&[arguments, &rest].concat());
    assert_well(&output);
    (serde_json::from_slice(&fs::read(place).unwrap()).unwrap(), stdout(&output))
}

/// Checks that the command succeeded. A busy machine, too slow for the link, is not its fault.
fn assert_well(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns whether a process with this command line exists.
fn runs(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").trim() == mark)
}

fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

fn the_exit_code_of_the_command_is_returned() {
    assert_eq!(done(&["--", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(done(&["--", "true"]).status.code(), Some(0));
    assert_eq!(done(&["--", "sh", "-c", "kill -9 $$"]).status.code(), Some(128 + 9));
    let missing = done(&["--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("/no/such/program cannot be started"));
    assert_eq!(done(&["--rate", "20", "--", "true"]).status.code(), Some(2));
}

/// Command prefix that drops the capabilities that a link needs.
const UNPRIVILEGED: &str = "setpriv --inh-caps=-sys_admin,-net_admin --bounding-set=-sys_admin,-net_admin";

fn without_root_a_user_namespace_is_used() {
    let script =
        format!("exec {UNPRIVILEGED} $HOPLINE link --far 'exec true' -- sh -c 'cat /proc/self/uid_map'");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("HOPLINE", env!("CARGO_BIN_EXE_hopline"));
    let output = shell.output().unwrap();
    assert_well(&output);
    let map = stdout(&output);
    let columns: Vec<&str> = map.split_whitespace().collect();
    assert_eq!((columns[0], columns[2]), ("0", "1"), "root of a namespace with one user: {map}");
}

fn without_root_and_user_namespaces_the_remedy_is_printed() {
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec {UNPRIVILEGED} $HOPLINE link -- echo run"
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "sh", "-c", &script]);
    let output = unshare.env("HOPLINE", env!("CARGO_BIN_EXE_hopline")).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["needs root, or user namespaces", "run it as root", "user.max_user_namespaces"] {
        assert!(said.contains(words), "{said}");
    }
}

fn both_hosts_have_their_documented_addresses() {
    let said = done(&["--seed", "5", "--", "sh", "-c", "echo $HOPLINE_NEAR $HOPLINE_FAR $HOPLINE_LINK_SEED"]);
    assert_eq!(stdout(&said), "10.80.0.1 10.80.0.2 5\n");
    let far = "nsenter --net=$HOPLINE_FAR_NETNS cat /proc/self/net/fib_trie | grep -c 10.80.0.2";
    assert_ne!(stdout(&done(&["--", "sh", "-c", far])), "0\n");
    let same = "test $(readlink $HOPLINE_FAR_NETNS) = $(readlink /proc/self/ns/net) && echo it is";
    assert!(stderr(&done(&["--far", same, "--", "true"])).contains("far: it is\n"));
}

fn input_and_output_are_those_of_the_near_command() {
    let mut child = link(&["--far", "cat; echo said; echo wrong >&2", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"data\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "data\n");
    assert!(stderr(&output).starts_with("far: said\nfar: wrong\nthere: "), "{}", stderr(&output));
}

fn a_failing_auxiliary_command_fails_the_run() {
    for option in ["--near-router", "--far-router", "--far"] {
        let at_once = done(&[option, "nosuchprogram", "--", "echo", "begun"]);
        let said = stderr(&at_once);
        assert_eq!(at_once.status.code(), Some(1), "{said}");
        assert!(
            said.contains(&format!("error: {option} 'nosuchprogram' ended with exit status: 127")),
            "{said}"
        );
        assert_eq!(stdout(&at_once), "", "a figure without the command that it is about");
    }
    let later = done(&["--far", "sleep 0.5; exit 3", "--", "sh", "-c", "echo begun; sleep 1.5"]);
    assert_eq!((later.status.code(), stdout(&later).as_str()), (Some(1), "begun\n"));
    assert_eq!(stderr(&later).matches("'sleep 0.5; exit 3' ended with exit status: 3").count(), 1);
    let near = done(&["--far", "sleep 0.5; exit 3", "--", "sh", "-c", "sleep 1; exit 7"]);
    assert_eq!(near.status.code(), Some(7));
    let early = done(&["--near-router", "true", "--far", "true", "--", "true"]);
    assert_eq!(early.status.code(), Some(0), "{}", stderr(&early));
}

fn the_far_command_ends_with_the_near_one() {
    #[expect(clippy::disallowed_methods, reason = "this link is in real time")]
    let began = Instant::now();
    let output = done(&["--far", "setsid sleep 71001 & exec sleep 71002", "--", "true"]);
    assert_eq!(output.status.code(), Some(0));
    // A command that ends by SIGTERM is not waited for: that took 6 s.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(!runs("sleep 71001") && !runs("sleep 71002"), "what they left behind is ended too");
}

fn a_command_that_ignores_sigterm_is_killed() {
    let far = "trap 'echo told' TERM; while :; do sleep 0.1; done";
    let output = done(&["--far", far, "--", "true"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output).matches("far: told\n").count(), 1, "{}", stderr(&output));
}

fn no_process_outlives_a_terminated_link() {
    let mut child =
        link(&["--far", "sleep 72001", "--", "sleep", "72002"]).stderr(Stdio::null()).spawn().unwrap();
    until("both run", || runs("sleep 72001") && runs("sleep 72002"));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(!runs("sleep 72001") && !runs("sleep 72002"));
}

fn no_process_outlives_a_killed_link() {
    let mut child =
        link(&["--far", "exec sleep 73001", "--", "sleep", "73002"]).stderr(Stdio::null()).spawn().unwrap();
    until("both run", || runs("sleep 73001") && runs("sleep 73002"));
    child.kill().unwrap();
    child.wait().unwrap();
    until("they end", || !runs("sleep 73001") && !runs("sleep 73002"));
}

fn no_namespace_and_no_interface_remains() {
    let hosts = "readlink /proc/self/ns/net $HOPLINE_FAR_NETNS; sleep 74001 & setsid sleep 74002 &";
    let said = stdout(&done(&["--", "sh", "-c", hosts]));
    let namespaces: Vec<&str> = said.lines().collect();
    assert!(namespaces.len() == 2 && namespaces[0] != namespaces[1], "{said}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    for namespace in processes.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok()) {
        assert!(!namespaces.contains(&namespace.to_str().unwrap()), "{namespace:?} is somebody's");
    }
    assert!(!fs::read_to_string("/proc/net/dev").unwrap().contains("link0:"));
}

/// Returns the report of a link while these commands ran.
fn did(arguments: &[&str]) -> (Value, Output) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("link.json");
    let output = done(&[&["--json", place.to_str().unwrap()], arguments].concat());
    assert_well(&output);
    (serde_json::from_slice(&fs::read(place).unwrap()).unwrap(), output)
}

fn an_idle_link_carries_no_packet() {
    let (did, _) = did(&["--near-router", "true", "--", "sleep", "0.3"]);
    for way in ["there", "back"] {
        assert_eq!((&did[way]["sent"], &did[way]["delivered"]), (&0.into(), &0.into()), "{did:#}");
    }
}

fn drops_of_the_interface_are_counted_separately() {
    // The link's thread stands still, so that the interface's queue of 500 packets fills up.
    let near = format!("kill -STOP $PPID; {ROLE}=flood $SELF; kill -CONT $PPID; sleep 0.2");
    let (did, output) = did(&["--", "sh", "-c", &near]);
    let there = |key: &str| did["there"][key].as_u64().unwrap();
    assert!(there("interface_drops") >= FLOOD - 600, "{did:#}");
    assert_eq!((there("sent"), there("delivered")), (FLOOD, FLOOD - there("interface_drops")), "{did:#}");
    assert!(stderr(&output).contains("by the sender's interface"), "{}", stderr(&output));
}

fn packets_of_both_ip_versions_pass_between_hosts_behind_routers() {
    let far = format!("{ROLE}=answer exec $SELF");
    let near = format!("{ROLE}=ask {PEER}=$HOPLINE_FAR $SELF; {ROLE}=ask {PEER}=$HOPLINE_FAR6 $SELF");
    let routers = ["--near-router", "true", "--far-router", "true", "--delay", "1ms"];
    let (did, output) = did(&[&routers[..], &["--far", &far, "--", "sh", "-c", &near]].concat());
    assert_ne!(stdout(&output), "", "a round trip of each");
    let delivered = did["back"]["delivered"].as_u64().unwrap();
    assert!(delivered >= 20, "{did:#}");
}

fn addresses_behind_both_ends_are_reached() {
    // A host behind an end, on a cable: `$1` is its network, `$2` its command.
    let behind = "unshare --net sleep 60 & host=$!
        until ! [ /proc/$host/ns/net -ef /proc/self/ns/net ]; do sleep 0.01; done
        ip link add up0 type veth peer name eth0 netns $host
        ip addr add 10.$1.0.1/24 dev up0; ip -6 addr add fd$1::1/64 dev up0 nodad; ip link set up0 up
        nsenter --net=/proc/$host/ns/net sh -c \"ip addr add 10.$1.0.2/24 dev eth0
        ip -6 addr add fd$1::2/64 dev eth0 nodad; ip link set eth0 up
        ip route add default via 10.$1.0.1; ip -6 route add default via fd$1::1; $2\"";
    let far = format!("set -- 92 '{ROLE}=answer exec $SELF'; {behind}");
    let asks = format!("{ROLE}=ask {PEER}=10.92.0.2 $SELF; {ROLE}=ask {PEER}=fd92::2 $SELF");
    let near = format!("set -- 91 '{asks}'; {behind}; kill $host");
    let networks = [
        ["--near-net", "10.91.0.0/24"],
        ["--near-net", "fd91::/64"],
        ["--far-net", "10.92.0.0/24"],
        ["--far-net", "fd92::/64"],
    ];
    let (did, output) = did(&[networks.as_flattened(), &["--far", &far, "--", "sh", "-c", &near]].concat());
    let delivered = did["back"]["delivered"].as_u64().unwrap();
    assert!(delivered >= 20, "{did:#} {}", stderr(&output));
}

fn each_direction_has_the_configured_delay() {
    let (did, said) = asked(&["--delay", "70ms", "--delay-back", "20ms"]);
    let shortest: u64 = said.trim().parse().unwrap();
    assert!(shortest >= 90, "{shortest} ms");
    // The shortest of ten is the one least delayed by other work of this machine.
    let late = (did["lateness"]["valid"] != true).then(|| format!("the link was late: {}", did["lateness"]));
    if_on_time(late, || assert!(shortest < 300, "{shortest} ms"));
}

fn recorded_rates_delays_and_losses_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    // Everything is lost at first. Later packets are delayed by 40 ms, and leave at the next of five opportunities per
    // second.
    let replay = file("replay.csv", "time_s,delay_ms,loss\n0,40,1\n0.8,,0\n");
    let (did, said) = asked(&["--replay", &replay, "--replay-back", &file("none.csv", "time_s\n0\n")]);
    let shortest: u64 = said.trim().parse().unwrap();
    assert!(shortest >= 40 && did["there"]["lost"].as_u64() >= Some(1), "{shortest} ms, {did:#}");
    assert_eq!(did["back"]["lost"], 0, "{did:#}");
    let trace = file("trace", "200\n");
    let (did, _) = asked(&["--rate-trace", &trace, "--rate-back", "1gbit"]);
    assert!(did["there"]["mean_wait_s"].as_f64() > Some(0.01), "{did:#}");
    assert!(did["back"]["mean_wait_s"].as_f64() < Some(0.01), "{did:#}");
}

fn an_invalid_recording_is_rejected_with_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, "5\n7ms\n").unwrap();
    for option in ["--rate-trace", "--rate-trace-back"] {
        let refused = done(&[option, path.to_str().unwrap(), "--", "true"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("trace:2:1"), "{}", stderr(&refused));
    }
    fs::write(&path, "[{\"time_s\": 0, \"loss\": 5}]").unwrap();
    let refused = done(&["--replay", path.to_str().unwrap(), "--", "true"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("trace:1:"), "{}", stderr(&refused));
}

fn an_outage_drops_all_packets_and_ends() {
    let (did, _) = asked(&["--outage", "0s..3s"]);
    assert!(did["there"]["blacked_out"].as_u64() >= Some(1), "{did:#}");
    assert_eq!((&did["back"]["blacked_out"], &did["there"]["lost"]), (&0.into(), &0.into()), "{did:#}");
    assert!(did["back"]["delivered"].as_u64() >= Some(10), "{did:#}");
}

fn packets_are_lost_at_the_configured_rate() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("link.json");
    // The kernel's TCP, with some losses.
    let near = "$HOPLINE bench -c $HOPLINE_FAR --transport tcp -n 300K";
    let how = ["--delay", "10ms", "--loss", "20%", "--loss-back", "0", "--rate", "5mbit", "--json"];
    let what = [place.to_str().unwrap(), "--far", "$HOPLINE bench -s -1", "--", "sh", "-c", near];
    assert_well(&done(&[&how[..], &what].concat()));
    let did: Value = serde_json::from_slice(&fs::read(place).unwrap()).unwrap();
    let (sent, lost) = (did["there"]["sent"].as_f64().unwrap(), did["there"]["lost"].as_f64().unwrap());
    assert!(sent > 200.0 && (0.1..0.32).contains(&(lost / sent)), "{did:#}");
    assert_eq!(did["back"]["lost"], 0, "{did:#}");
}

fn a_file_arrives_over_a_bad_link() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data: Vec<u8> = (0..300_000).map(|i| (i * 31 % 251) as u8).collect();
    fs::write(from.path().join("f"), &data).unwrap();
    let shared = from.path().join("shared.key");
    fs::write(&shared, "07".repeat(32)).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o600)).unwrap();
    let keys = format!("-q --psk {}", shared.display());
    let far = format!("$HOPLINE recv {keys} -o {}", to.path().display());
    let near = format!("$HOPLINE send {keys} {}/f $HOPLINE_FAR", from.path().display());
    let output =
        done(&["--delay", "5ms", "--loss", "5%", "--mtu", "1400", "--far", &far, "--", "sh", "-c", &near]);
    assert_well(&output);
    assert!(fs::read(to.path().join("f")).unwrap() == data);
}
