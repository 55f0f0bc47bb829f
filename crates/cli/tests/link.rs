//! `hopline link`: a command over an emulated link between two hosts.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::{Need, Test, if_on_time, tests};
use hopline_testkit::namespace::LINK;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio, exit};
use std::thread;
use std::time::{Duration, Instant};

/// What this program does instead of testing, where a test starts it on one of the hosts.
const ROLE: &str = "LINK_TEST_ROLE";

/// Plays a part and ends the process, if this is the copy of the program that a test starts on one of the hosts.
pub(crate) fn play() {
    match std::env::var(ROLE).as_deref() {
        Ok("answer") => answer(),
        Ok("ask") => ask(),
        _ => {}
    }
}

pub(crate) fn tests() -> Vec<Test> {
    let tests = tests!([LINK];
        the_commands_end_is_passed_on,
        what_is_read_and_printed_is_the_near_commands,
        the_far_command_ends_with_the_near_one,
        who_is_told_to_end_is_told_once_and_then_killed,
        nothing_outlives_a_link_that_is_told_to_end,
        nothing_outlives_a_link_that_is_killed,
        no_namespace_and_no_interface_is_left,
        each_way_delays_as_asked,
        an_outage_lets_nothing_through_and_ends,
        packets_are_lost_as_asked,
        a_file_arrives_over_a_bad_link,
    );
    let without = tests!([LINK, Need::Program("setpriv")];
        without_the_right_to_it_is_said_what_is_needed,
    );
    let beside = tests!([LINK, Need::Program("nsenter")];
        both_hosts_are_known_by_their_addresses,
    );
    tests.into_iter().chain(without).chain(beside).collect()
}

/// Sends every datagram back.
fn answer() -> ! {
    let socket = UdpSocket::bind("0.0.0.0:7").unwrap();
    let mut buffer = [0; 16];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..len], from).unwrap();
    }
}

/// Asks the far host until ten datagrams came back, and prints the shortest time that one took, in milliseconds.
fn ask() -> ! {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((std::env::var("HOPLINE_FAR").unwrap(), 7)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let times = (0..200_u64).filter_map(|number| round_trip(&socket, number)).take(10);
    let shortest = times.min().unwrap().as_millis().to_string();
    std::io::stdout().write_all(shortest.as_bytes()).unwrap();
    exit(0);
}

fn round_trip(socket: &UdpSocket, number: u64) -> Option<Duration> {
    #[expect(clippy::disallowed_methods, reason = "this link is in real time")]
    let began = Instant::now();
    // Before the other end listens, ICMP says so.
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

/// What the link said it did, and what the asking host said, with one that answers on the other.
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

/// The command did what it should. That the machine was too busy for the link is not its fault.
fn assert_well(output: &Output) {
    let late = stderr(output).contains("\nINVALID: ");
    assert_eq!(output.status.code(), Some(i32::from(late)), "{}", stderr(output));
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a process with this command line is there.
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

fn the_commands_end_is_passed_on() {
    assert_eq!(done(&["--", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(done(&["--", "true"]).status.code(), Some(0));
    assert_eq!(done(&["--", "sh", "-c", "kill -9 $$"]).status.code(), Some(128 + 9));
    let missing = done(&["--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("/no/such/program cannot be started"));
    assert_eq!(done(&["--rate", "20", "--", "true"]).status.code(), Some(2));
}

fn without_the_right_to_it_is_said_what_is_needed() {
    let without = ["--inh-caps=-sys_admin", "--bounding-set=-sys_admin", env!("CARGO_BIN_EXE_hopline")];
    let output = Command::new("setpriv").args(without).args(["link", "--", "echo", "run"]).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(stderr(&output).contains("needs CAP_NET_ADMIN and /dev/net/tun"), "{}", stderr(&output));
}

fn both_hosts_are_known_by_their_addresses() {
    let said = done(&["--seed", "5", "--", "sh", "-c", "echo $HOPLINE_NEAR $HOPLINE_FAR $HOPLINE_LINK_SEED"]);
    assert_eq!(stdout(&said), "10.80.0.1 10.80.0.2 5\n");
    let far = "nsenter --net=$HOPLINE_FAR_NETNS cat /proc/self/net/fib_trie | grep -c 10.80.0.2";
    assert_ne!(stdout(&done(&["--", "sh", "-c", far])), "0\n");
    let same = "test $(readlink $HOPLINE_FAR_NETNS) = $(readlink /proc/self/ns/net) && echo it is";
    assert!(stderr(&done(&["--far", same, "--", "true"])).contains("far: it is\n"));
}

fn what_is_read_and_printed_is_the_near_commands() {
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

fn the_far_command_ends_with_the_near_one() {
    let output = done(&["--far", "setsid sleep 71001 & exec sleep 71002", "--", "true"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!runs("sleep 71001") && !runs("sleep 71002"), "what they left behind is ended too");
}

fn who_is_told_to_end_is_told_once_and_then_killed() {
    let far = "trap 'echo told' TERM; while :; do sleep 0.1; done";
    let output = done(&["--far", far, "--", "true"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output).matches("far: told\n").count(), 1, "{}", stderr(&output));
}

fn nothing_outlives_a_link_that_is_told_to_end() {
    let mut child =
        link(&["--far", "sleep 72001", "--", "sleep", "72002"]).stderr(Stdio::null()).spawn().unwrap();
    until("both run", || runs("sleep 72001") && runs("sleep 72002"));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(!runs("sleep 72001") && !runs("sleep 72002"));
}

fn nothing_outlives_a_link_that_is_killed() {
    let mut child =
        link(&["--far", "exec sleep 73001", "--", "sleep", "73002"]).stderr(Stdio::null()).spawn().unwrap();
    until("both run", || runs("sleep 73001") && runs("sleep 73002"));
    child.kill().unwrap();
    child.wait().unwrap();
    until("they end", || !runs("sleep 73001") && !runs("sleep 73002"));
}

fn no_namespace_and_no_interface_is_left() {
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

fn each_way_delays_as_asked() {
    let (did, said) = asked(&["--delay", "70ms", "--delay-back", "20ms"]);
    let shortest: u64 = said.trim().parse().unwrap();
    assert!(shortest >= 90, "{shortest} ms");
    // Of ten the one that met the fewest others on this machine.
    let late = (did["lateness"]["valid"] != true).then(|| format!("the link was late: {}", did["lateness"]));
    if_on_time(late, || assert!(shortest < 300, "{shortest} ms"));
}

fn an_outage_lets_nothing_through_and_ends() {
    let (did, _) = asked(&["--outage", "0s..3s"]);
    assert!(did["there"]["blacked_out"].as_u64() >= Some(1), "{did:#}");
    assert_eq!((&did["back"]["blacked_out"], &did["there"]["lost"]), (&0.into(), &0.into()), "{did:#}");
    assert!(did["back"]["delivered"].as_u64() >= Some(10), "{did:#}");
}

fn packets_are_lost_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("link.json");
    // The kernel's TCP, through some losses.
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
