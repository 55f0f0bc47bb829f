//! `hopline emulate` and `hopline exec`: programs at the nodes of a scenario, over simulated radios.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod programs;

use hopline_harness::{Need, Test, tests};
use hopline_testkit::namespace::LINK;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio, exit};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Variable with the role of this program, if a test starts it at a node.
const ROLE: &str = "EMULATE_TEST_ROLE";
/// Port of the echo server.
const PORT: u16 = 7;

/// Four nodes, each of which reaches the next one alone.
const CHAIN: &str = "\
name = \"four\"
duration_s = 60
[radio]
preset = \"ns2-wavelan\"
[nodes]
layout = \"chain\"
count = 4
spacing_m = 200
";

/// Returns the table of a node at a place, in metres. Further keys of it may follow.
fn node(name: &str, x_m: i32, y_m: i32) -> String {
    format!("[[node]]\nname = \"{name}\"\nx_m = {x_m}\ny_m = {y_m}\n")
}

/// Returns the waypoints of a node at (`x_m`, 0) that leaves for a place and returns, at each of these pairs of times in
/// seconds.
fn walks(x_m: i32, place: (i32, i32), times: impl IntoIterator<Item = (f64, f64)>) -> String {
    let leg = |at_s, (x_m, y_m)| format!("{{ at_s = {at_s}, x_m = {x_m}, y_m = {y_m}, speed_mps = 1000 }}, ");
    let walk = |(leaves, returns)| leg(leaves, place) + &leg(returns, (x_m, 0));
    format!("waypoints = [{}]\n", times.into_iter().map(walk).collect::<String>())
}

/// Plays the role and ends the process, if this is the copy of the program that a test starts at a node.
pub(crate) fn play_role() {
    match std::env::var(ROLE).as_deref() {
        Ok("answer") => answer(),
        Ok("ask") => ask(),
        _ => {}
    }
}

pub(crate) fn tests() -> Vec<Test> {
    let tests = tests!([LINK];
        datagrams_cross_three_hops,
        every_frame_is_counted_in_the_json_summary,
        ipv6_reaches_a_neighbour_without_any_address_given,
        without_routes_neighbours_alone_are_reached,
        a_broadcast_reaches_the_neighbours_alone,
        a_node_that_walks_away_is_out_of_reach_until_it_is_back,
        simulated_flows_run_beside_programs,
        the_exit_code_of_the_command_is_returned,
        a_late_emulation_is_invalid_and_fails_unless_best_effort,
        two_emulations_run_at_once,
        results_that_another_emulation_is_writing_are_refused_at_the_start,
        the_limit_of_open_files_is_raised_or_named,
        an_unknown_node_or_program_is_named,
        a_missing_command_leaves_nothing,
        no_process_outlives_a_killed_emulation,
        no_namespace_remains,
        an_emulation_that_has_ended_cannot_be_entered,
        programs_run_for_the_duration_and_keep_their_output,
        programs_run_beside_a_command_and_their_output_has_a_prefix,
        a_program_that_fails_fails_the_emulation,
        programs_end_with_an_emulation_that_is_killed,
        daemons_of_programs_end_before_the_summary,
        an_output_that_cannot_be_written_leaves_the_others,
        files_of_options_may_be_in_the_directory_of_results,
        programs_that_cannot_run_are_refused_before_anything_runs,
        an_emulation_that_is_told_to_end_writes_its_results,
        what_a_killed_emulation_leaves_is_removed_by_the_next_one,
        flows_of_programs_stand_beside_simulated_ones_in_all_results,
        recorded_links_are_replayed,
        nodes_that_are_not_chosen_are_simulated_alone,
        the_network_can_be_watched_on_a_page_of_this_machine,
    );
    let names = tests!([LINK, Need::Mounts, Need::Program("getent")]; names_of_nodes_resolve);
    let without_tun = tests!([LINK, Need::Mounts];
        without_a_tun_device_the_remedy_is_printed,
        a_full_disk_ends_the_emulation_and_leaves_nothing,
        settings_that_are_read_only_in_a_container_are_made_writable_at_nodes,
    );
    let without_root = tests!([LINK, Need::Program("setpriv"), Need::Program("unshare"), USER_NAMESPACES];
        without_root_a_user_namespace_is_used,
        without_root_and_user_namespaces_the_remedy_is_printed,
    );
    tests.into_iter().chain(names).chain(without_tun).chain(without_root).chain(programs::tests()).collect()
}

/// Requirement of user namespaces.
const USER_NAMESPACES: Need = Need::Of(|| {
    let tried = Command::new("unshare").args(["--user", "--map-root-user", "true"]).output();
    let made = tried.is_ok_and(|tried| tried.status.success());
    (!made).then(|| "there are no user namespaces here".into())
});

/// Echoes every datagram, over IPv4 and IPv6.
fn answer() -> ! {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, PORT)).unwrap();
    let mut buffer = [0; 2000];
    loop {
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        let _ = socket.send_to(&buffer[..len], from);
    }
}

/// Sends datagrams to the address in `PEER` until one is returned, and prints the sources of all answers within a while.
/// Fails if none comes.
fn ask() -> ! {
    let peer = std::env::var("PEER").unwrap();
    let peer: SocketAddr = match peer.parse::<Ipv6Addr>() {
        Ok(neighbour) => SocketAddrV6::new(neighbour, PORT, 0, interface_index()).into(),
        Err(_) => SocketAddr::new(peer.parse().unwrap(), PORT),
    };
    let socket = UdpSocket::bind(if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
    socket.set_broadcast(true).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let tries = std::env::var("TRIES").map_or(60, |tries| tries.parse().unwrap());
    for number in 0..tries {
        socket.send_to(&[number; 100], peer).unwrap();
        let mut buffer = [0; 2000];
        let mut sources = BTreeSet::new();
        while let Ok((100, from)) = socket.recv_from(&mut buffer) {
            sources.insert(from.ip().to_string());
        }
        if !sources.is_empty() {
            let line = format!("{}\n", sources.into_iter().collect::<Vec<_>>().join(" "));
            std::io::stdout().write_all(line.as_bytes()).unwrap();
            exit(0);
        }
    }
    exit(1);
}

/// Returns the number of the interface air0: the second column of its line.
fn interface_index() -> u32 {
    let text = fs::read_to_string("/proc/self/net/if_inet6").unwrap();
    let line = text.lines().find(|line| line.ends_with(" air0")).unwrap();
    u32::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
}

/// Shell functions of scripts: an echo server at a node, and a question to an address from a node.
const FUNCTIONS: &str = "\
answer() { EMULATE_TEST_ROLE=answer hopline exec $1 -- $SELF & }
ask() { EMULATE_TEST_ROLE=ask PEER=$2 hopline exec $1 -- $SELF; }
";

/// Returns `hopline` with a subcommand for a scenario.
fn hopline(subcommand: &str, scenario: &str, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.arg(subcommand).arg(file(scenario)).args(options).env("NO_COLOR", "1");
    command
}

/// Writes a scenario into a file of its own.
fn file(scenario: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulate");
    fs::create_dir_all(&folder).unwrap();
    // Tests run at the same time.
    static FILES: AtomicU32 = AtomicU32::new(0);
    let file = folder.join(format!("{}.toml", FILES.fetch_add(1, Ordering::Relaxed)));
    fs::write(&file, scenario).unwrap();
    file
}

/// Returns `hopline emulate` of a scenario with a script. Results that depend on the load of the machine do not fail it.
fn emulate(scenario: &str, options: &[&str], script: &str) -> Command {
    let mut command = hopline("emulate", scenario, options);
    command.args(["--", "sh", "-c", &format!("{FUNCTIONS}{script}")]);
    command.env("SELF", std::env::current_exe().unwrap());
    command.env("HOPLINE", env!("CARGO_BIN_EXE_hopline"));
    command
}

fn done(options: &[&str], script: &str) -> Output {
    emulate(CHAIN, &[&["--best-effort"], options].concat(), script).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns what a successful script has printed.
fn printed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(output), stderr(output));
    stdout(output)
}

fn until(what: &str, is_done: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_done() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not within ten seconds: {what}");
}

/// Returns whether a process with this command line runs.
fn runs(line: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).any(|shown| shown.trim() == line)
}

fn datagrams_cross_three_hops() {
    let output = done(&[], "answer n3; ask n0 $HOPLINE_N3");
    assert_eq!(printed(&output), "10.0.0.4\n");
    let said = stderr(&output);
    assert!(said.contains("4 nodes, ") && said.contains(" frames sent, "), "{said}");
    assert!(said.contains("\nvalid: ") || said.contains("\nINVALID: "), "{said}");
}

fn names_of_nodes_resolve() {
    let output = done(&[], "hopline exec n0 -- getent ahostsv4 n3; getent ahostsv4 n3 || echo not here");
    let said = printed(&output);
    assert!(said.starts_with("10.0.0.4 ") && said.ends_with("not here\n"), "{said}");
}

fn every_frame_is_counted_in_the_json_summary() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("summary.json");
    let output = done(&["--json", place.to_str().unwrap()], "answer n1; ask n0 $HOPLINE_N1");
    assert!(printed(&output).ends_with("10.0.0.2\n"));
    let summary: Value = serde_json::from_slice(&fs::read(place).unwrap()).unwrap();
    let nodes = summary["nodes"].as_array().unwrap();
    assert_eq!(
        nodes.iter().map(|node| node["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["n0", "n1", "n2", "n3"]
    );
    for node in nodes {
        let of = |name: &str| node[name].as_u64().unwrap();
        assert_eq!(of("sent"), of("delivered") + of("dropped") + of("held"), "{node:#}");
        let drops = node["drops"].as_object().unwrap().values();
        assert_eq!(of("dropped"), drops.map(|count| count.as_u64().unwrap()).sum::<u64>(), "{node:#}");
    }
    // A question, an answer, and how each found the other's address.
    let [asked, answered] = [&nodes[0], &nodes[1]];
    assert!(asked["sent"].as_u64() >= Some(2) && answered["received"].as_u64() >= Some(2), "{summary:#}");
    assert!(summary["lateness"]["events"].as_u64() > Some(10) && summary["failure"].is_null(), "{summary:#}");
    assert!(summary["duration_s"].as_f64() > Some(0.01) && summary["valid"].is_boolean(), "{summary:#}");
}

fn ipv6_reaches_a_neighbour_without_any_address_given() {
    // Its interface has the address 02:00:00:00:00:01, of which the kernel makes one of IPv6 (RFC 4291, appendix A).
    assert_eq!(printed(&done(&[], "answer n1; ask n0 fe80::ff:fe00:1")), "fe80::ff:fe00:1\n");
}

fn without_routes_neighbours_alone_are_reached() {
    let script = "answer n1; answer n2; ask n0 $HOPLINE_N1; TRIES=3 ask n0 $HOPLINE_N2 || echo no answer";
    assert_eq!(printed(&done(&["--no-routes"], script)), "10.0.0.2\nno answer\n");
}

fn a_broadcast_reaches_the_neighbours_alone() {
    // Until both answers have come in one round: broadcasts are not repeated.
    let script = "for n in 0 2 3; do answer n$n; done; ask n1 $HOPLINE_N0 && ask n1 $HOPLINE_N2 && \
                  for i in 1 2 3 4 5 6 7 8 9; do \
                  heard=$(ask n1 10.255.255.255); test \"$heard\" = '10.0.0.1 10.0.0.3' && break; done; echo $heard";
    let output = printed(&done(&[], script));
    assert_eq!(output.lines().last(), Some("10.0.0.1 10.0.0.3"), "{output}");
}

fn a_node_that_walks_away_is_out_of_reach_until_it_is_back() {
    let walk = [
        "duration_s = 20\nradio.preset = \"ns2-wavelan\"\n",
        &node("station", 0, 0),
        &node("walker", 100, 0),
        &walks(100, (500, 0), [(3.0, 6.0)]),
    ]
    .concat();
    let script = "answer walker; ask station $HOPLINE_WALKER; \
                  while TRIES=1 ask station $HOPLINE_WALKER > /dev/null; do :; done; echo gone; ask station $HOPLINE_WALKER";
    let output = emulate(&walk, &["--best-effort"], script).output().unwrap();
    assert_eq!(printed(&output), "10.0.0.2\ngone\n10.0.0.2\n");
}

fn simulated_flows_run_beside_programs() {
    // Node 0 senses its sender.
    let scenario = format!("{CHAIN}[[flow]]\nsrc = \"n2\"\ndst = \"n3\"\n");
    let output = emulate(&scenario, &["--best-effort"], "answer n1; ask n0 $HOPLINE_N1").output().unwrap();
    assert_eq!(printed(&output), "10.0.0.2\n");
}

fn the_exit_code_of_the_command_is_returned() {
    assert_eq!(done(&[], "exit 7").status.code(), Some(7));
    assert_eq!(done(&[], "kill -KILL $$").status.code(), Some(128 + 9));
    assert_eq!(done(&[], "hopline exec n2 -- sh -c 'exit 9'").status.code(), Some(9));
}

fn a_late_emulation_is_invalid_and_fails_unless_best_effort() {
    // The emulation stands still, while a simulated flow has events each millisecond.
    let scenario = format!("{CHAIN}[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n");
    let script = "kill -STOP $PPID; sleep 1; kill -CONT $PPID; sleep 0.1";
    for (options, code) in [(&[][..], Some(1)), (&["--best-effort"], Some(0))] {
        let output = emulate(&scenario, options, script).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), code, "{said}");
        assert!(
            said.contains("\nINVALID: ") && said.contains(" % of events more than 1 ms late\n"),
            "{said}"
        );
    }
}

fn two_emulations_run_at_once() {
    // The inner one has one node less.
    let inner = CHAIN.replace("count = 4", "count = 3");
    let first = emulate(CHAIN, &["--best-effort"], "echo ready; read line; answer n3; ask n0 $HOPLINE_N3")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let second =
        emulate(&inner, &["--best-effort"], "answer n2; ask n0 $HOPLINE_N2; hopline exec n3 -- true");
    let second = { second }.output().unwrap();
    assert_eq!(
        (second.status.code(), stdout(&second).as_str()),
        (Some(2), "10.0.0.3\n"),
        "{}",
        stderr(&second)
    );
    // The first one goes on once its input ends.
    let first = first.wait_with_output().unwrap();
    assert_eq!(stdout(&first), "ready\n10.0.0.4\n");
}

fn results_that_another_emulation_is_writing_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let options = ["--best-effort", "-o", results.to_str().unwrap()];
    let first = emulate(CHAIN, &options, "echo ready; read line")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut first = first.unwrap();
    let mut ready = [0; 6];
    first.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let entries =
        || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let before = entries();
    for force in [&[][..], &["--force"]] {
        let second = emulate(CHAIN, &[&options[..], force].concat(), "echo runs").output().unwrap();
        let said = stderr(&second).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((second.status.code(), stdout(&second).as_str()), (Some(2), ""), "{said}");
        assert!(said.contains("another process is writing"), "{said}");
        assert_eq!(entries(), before, "nothing was touched");
    }
    // The script goes on once its input ends; `read` fails then.
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(1));
    assert!(results.join("manifest.json").is_file());
}

fn the_limit_of_open_files_is_raised_or_named() {
    let file = file(&CHAIN.replace("count = 4", "count = 40"));
    let limited = |which: &str| {
        let script = format!(
            "ulimit -{which}n 64; exec $HOPLINE emulate $FILE --best-effort -- hopline exec n39 -- echo entered"
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).env("FILE", &file).env("HOPLINE", env!("CARGO_BIN_EXE_hopline"));
        shell.env("NO_COLOR", "1").output().unwrap()
    };
    assert_eq!(printed(&limited("S")), "entered\n");
    let output = limited("");
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{said}");
    assert!(
        said.contains("40 nodes, 0 links and 0 programs take 144 open files, and this process may have 64"),
        "{said}"
    );
    assert!(said.contains("LimitNOFILE=144"), "{said}");
}

fn an_unknown_node_or_program_is_named() {
    let output = done(&[], "hopline exec n9 -- true");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no node `n9`") && said.contains("did you mean `n0`?"), "{said}");
    let output = done(&[], "hopline exec n1 -- no-such-program-7");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no-such-program-7 cannot be started: No such file"), "{said}");
}

fn a_missing_command_leaves_nothing() {
    let file = emulate(CHAIN, &[], "").get_args().nth(1).unwrap().to_owned();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    let output = command.arg("emulate").arg(file).args(["--", "/no/such/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/no/such/program cannot be started"), "{}", stderr(&output));
    assert!(!fs::read_to_string("/proc/net/dev").unwrap().contains("air0:"));
}

fn no_process_outlives_a_killed_emulation() {
    let mut child =
        emulate(CHAIN, &[], "exec hopline exec n1 -- sleep 75001").stderr(Stdio::null()).spawn().unwrap();
    until("it runs", || runs("sleep 75001"));
    child.kill().unwrap();
    child.wait().unwrap();
    until("it ends", || !runs("sleep 75001"));
}

fn no_namespace_remains() {
    let hosts = "hopline exec n0 -- readlink /proc/self/ns/net; hopline exec n1 -- readlink /proc/self/ns/net; \
                 hopline exec n0 -- sleep 75002 & hopline exec n1 -- setsid sleep 75003 &";
    let said = stdout(&done(&[], hosts));
    let namespaces: Vec<&str> = said.lines().collect();
    assert!(namespaces.len() == 2 && namespaces[0] != namespaces[1], "{said}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    for namespace in processes.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok()) {
        assert!(!namespaces.contains(&namespace.to_str().unwrap()), "{namespace:?} is in use");
    }
}

fn an_emulation_that_has_ended_cannot_be_entered() {
    let place = printed(&done(&[], "echo $HOPLINE_EMULATION"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
    command.args(["exec", "n0", "--", "true"]).env("HOPLINE_EMULATION", place.trim()).env("NO_COLOR", "1");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the emulation is gone"), "{}", stderr(&output));
}

fn without_a_tun_device_the_remedy_is_printed() {
    let file = emulate(CHAIN, &[], "").get_args().nth(1).unwrap().to_owned();
    let script = "mount -t tmpfs none /dev/net && $HOPLINE emulate $FILE -- echo run";
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c", script]).env("FILE", file);
    let output = unshare.env("HOPLINE", env!("CARGO_BIN_EXE_hopline")).env("NO_COLOR", "1").output().unwrap();
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("opening /dev/net/tun") && said.contains("modprobe tun"), "{said}");
}

fn settings_that_are_read_only_in_a_container_are_made_writable_at_nodes() {
    let script = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && \
                  ! (echo 1 > /proc/sys/net/ipv4/ip_forward) 2> /dev/null && \
                  $HOPLINE emulate $FILE --best-effort -- $HOPLINE exec n1 -- sh -c '\
                  cat /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/ip_forward && echo changed'";
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c", script]).env("FILE", file(CHAIN));
    unshare.env("HOPLINE", env!("CARGO_BIN_EXE_hopline"));
    assert_eq!(printed(&unshare.output().unwrap()), "1\nchanged\n");
}

fn without_root_a_user_namespace_is_used() {
    let script = "exec setpriv --inh-caps=-sys_admin,-net_admin --bounding-set=-sys_admin,-net_admin $HOPLINE emulate $FILE \
                  --best-effort -- sh -c \"$SCRIPT\"";
    let file = emulate(CHAIN, &[], "").get_args().nth(1).unwrap().to_owned();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .env("FILE", file)
        .env("SCRIPT", format!("{FUNCTIONS}answer n1; ask n0 10.0.0.2"));
    shell.env("HOPLINE", env!("CARGO_BIN_EXE_hopline")).env("SELF", std::env::current_exe().unwrap());
    assert_eq!(printed(&shell.output().unwrap()), "10.0.0.2\n");
}

fn without_root_and_user_namespaces_the_remedy_is_printed() {
    let file = emulate(CHAIN, &[], "").get_args().nth(1).unwrap().to_owned();
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all $HOPLINE emulate $FILE -- echo run";
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "sh", "-c", script]).env("FILE", file);
    let output = unshare.env("HOPLINE", env!("CARGO_BIN_EXE_hopline")).env("NO_COLOR", "1").output().unwrap();
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("needs root, or user namespaces") && said.contains("run it as root"), "{said}");
}

/// Returns [`CHAIN`] with programs, for a short time.
fn with_programs(programs: &str) -> String {
    format!("{}{programs}", CHAIN.replace("duration_s = 60", "duration_s = 1.2"))
}

fn programs_run_for_the_duration_and_keep_their_output() {
    let scenario = with_programs(
        r#"
[[program]]
name = "words"
node = "n1"
command = ["sh", "-c", "echo $HOPLINE_N3; echo oops >&2"]
[[program]]
name = "server"
node = "n2"
command = ["sleep", "75004"]
[[program]]
node = "n3"
command = ["sleep", "75005"]
start_s = 0.1
stop_s = 0.3
[[program]]
node = "n3"
command = ["sleep", "75006"]
start_s = 100
"#,
    );
    let folder = tempfile::tempdir().unwrap();
    let [results, json] =
        ["results", "summary.json"].map(|name| folder.path().join(name).display().to_string());
    let output =
        hopline("emulate", &scenario, &["--best-effort", "-o", &results, "--json", &json]).output().unwrap();
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("program words at n1: exit code 0 after"), "{said}");
    assert!(said.contains("program server at n2: stopped after 1."), "{said}");
    assert!(said.contains("program p3 at n3: not started: its time is 100 s"), "{said}");
    let text = |name: &str| fs::read_to_string(Path::new(&results).join(name)).unwrap();
    assert_eq!((text("words.stdout"), text("words.stderr")), ("10.0.0.4\n".into(), "oops\n".into()));
    let manifest: Value = serde_json::from_str(&text("manifest.json")).unwrap();
    assert_eq!(manifest["scenario"], "four", "{manifest:#}");
    let summary: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let [words, server, stopped, late] = &*summary["programs"].as_array().unwrap().clone() else {
        panic!("{summary:#}")
    };
    assert_eq!((&words["end"], &words["exit_code"]), (&"exited".into(), &0.into()), "{words:#}");
    assert_eq!((&server["end"], &server["signal"]), (&"stopped".into(), &15.into()), "{server:#}");
    assert!(
        stopped["started_s"].as_f64() >= Some(0.1) && stopped["ended_s"].as_f64() >= Some(0.3),
        "{stopped:#}"
    );
    assert!(late["started_s"].is_null() && late["end"] == "not started", "{late:#}");
}

fn programs_run_beside_a_command_and_their_output_has_a_prefix() {
    let scenario = with_programs(
        "[[program]]\nnode = \"n1\"\ncommand = [\"sh\", \"-c\", \"echo hello; sleep 75007\"]\n",
    );
    let output = emulate(&scenario, &["--best-effort"], "sleep 1.5; echo done").output().unwrap();
    assert_eq!(printed(&output), "done\n");
    assert!(stderr(&output).starts_with("p0: hello\n"), "{}", stderr(&output));
    assert!(!runs("sleep 75007"));
}

fn a_program_that_fails_fails_the_emulation() {
    let scenario = with_programs(
        "[[program]]\nnode = \"n1\"\ncommand = [\"sh\", \"-c\", \"echo no luck >&2; exit 3\"]\n",
    );
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results").display().to_string();
    let output = hopline("emulate", &scenario, &["--best-effort", "-o", &results]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: program p0 at n1 ended after") && said.contains("exit code 3: no luck\n"),
        "{said}"
    );
    // Its own exit code shows more than that of the emulation.
    let output = emulate(&scenario, &["--best-effort"], "sleep 0.5; exit 7").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
}

fn programs_end_with_an_emulation_that_is_killed() {
    let scenario = with_programs("[[program]]\nnode = \"n1\"\ncommand = [\"sleep\", \"75014\"]\n");
    let mut child = emulate(&scenario, &[], "exec sleep 75015").stderr(Stdio::null()).spawn().unwrap();
    until("it runs", || runs("sleep 75014"));
    child.kill().unwrap();
    child.wait().unwrap();
    until("it ends", || !runs("sleep 75014") && !runs("sleep 75015"));
}

fn daemons_of_programs_end_before_the_summary() {
    let daemon = "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.05; done";
    let program = |name: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nnode = \"n1\"\ncommand = [\"sh\", \"-c\", \"setsid sh -c \\\"{daemon}\\\" &\"]\n"
        )
    };
    let scenario = with_programs(&(program("a") + &program("b")));
    let said = stderr(&hopline("emulate", &scenario, &["--best-effort"]).output().unwrap());
    let summary = said.find("program a at n1: exit code 0").unwrap_or_else(|| panic!("{said}"));
    for words in ["a: up", "b: up", "a: bye", "b: bye"] {
        assert!(said.find(words).is_some_and(|at| at < summary), "{words} of {said}");
    }
}

fn an_output_that_cannot_be_written_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let [results, links] =
        ["results", "links.json"].map(|name| folder.path().join(name).display().to_string());
    let output = done(&["-o", &results, "--json", "/dev/full", "--record", &links], "true");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write /dev/full: No space left on device"), "{said}");
    assert!(Path::new(&results).join("manifest.json").exists() && Path::new(&links).exists(), "{said}");
}

fn files_of_options_may_be_in_the_directory_of_results() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let [sum, links, page] = ["sum.json", "links.json", "page.html"].map(|name| results.join(name));
    let [json, record, report] = [&sum, &links, &page].map(|file| file.display().to_string());
    let options = ["--force", "--json", &json, "--record", &record, "--report", &report];
    let options = [&["-o", results.to_str().unwrap()][..], &options].concat();
    for _ in 0..2 {
        printed(&done(&options, "true"));
        assert!(
            results.join("manifest.json").exists() && [&sum, &links, &page].iter().all(|file| file.exists())
        );
    }
}

fn programs_that_cannot_run_are_refused_before_anything_runs() {
    let program = |node: &str, command: &str| {
        with_programs(&format!("[[program]]\nnode = \"{node}\"\ncommand = [\"{command}\"]\n"))
    };
    for (scenario, words) in [
        (program("n1", "no-such-program-8"), "there is no program `no-such-program-8`"),
        (program("n1", "./missing"), "a path is relative to the current directory"),
        (program("n1", "sleep 1"), "each argument is a string of its own"),
        (program("n9", "true"), "there is no node `n9`"),
    ] {
        let output = hopline("emulate", &scenario, &["--", "echo", "run"]).output().unwrap();
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{said}");
        assert!(said.contains(words), "{said}");
    }
    for (option, place, words) in [
        ("--record", "/no/such/folder/x", "--record: there is no folder /no/such/folder"),
        ("--json", "/", "--json: / is a folder"),
    ] {
        let output = hopline("emulate", CHAIN, &[option, place, "--", "echo", "run"]).output().unwrap();
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{said}");
        assert!(said.contains(words), "{said}");
    }
    let output = hopline("run", &program("n1", "true"), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("`hopline emulate` and `hopline sweep --virtual-time` run them"),
        "{}",
        stderr(&output)
    );
}

fn flows_of_programs_stand_beside_simulated_ones_in_all_results() {
    let folder = tempfile::tempdir().unwrap();
    let [results, json, report] =
        ["results", "summary.json", "report.html"].map(|name| folder.path().join(name).display().to_string());
    let scenario = format!("{CHAIN}[[flow]]\nsrc = \"n2\"\ndst = \"n3\"\nkind = \"cbr\"\nrate_kbps = 40\n");
    let options =
        ["--best-effort", "-o", &results, "--pcap-node", "n1", "--json", &json, "--report", &report];
    // One question after the other, until one is answered: whole seconds go by.
    let script = "answer n3; ask n0 $HOPLINE_N3 && ask n0 $HOPLINE_N3 && sleep 1.1";
    let output = emulate(&scenario, &options, script).output().unwrap();
    assert_eq!(printed(&output), "10.0.0.4\n10.0.0.4\n");
    let said = stderr(&output);
    assert!(said.contains("flow ") && said.contains("> n3:7 "), "{said}");
    let summary: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let flows = summary["flows"].as_array().unwrap();
    assert_eq!((&flows[0]["id"], &flows[0]["kind"]), (&"f0".into(), &"cbr".into()), "{summary:#}");
    let asked: Vec<_> = flows[1..].iter().filter(|flow| flow["transport"] == "udp").collect();
    assert_eq!(asked.len(), 2, "{summary:#}");
    for flow in asked {
        let of = |name: &str| flow[name].as_f64().unwrap();
        assert_eq!(
            (&flow["src"], &flow["dst"], &flow["kind"]),
            (&"n0".into(), &"n3".into(), &"program".into())
        );
        assert_eq!(of("bytes_received"), 100.0 * of("packets_received"), "{flow:#}");
        assert!(of("packets_sent") >= of("packets_received") && of("packets_received") >= 1.0, "{flow:#}");
        assert_eq!(of("hops_mean"), 3.0, "{flow:#}");
        assert!(of("delay_p50_s") > 0.001, "{flow:#}");
        assert!(flow["timeouts"].is_null(), "{flow:#}");
    }
    let text = |name: &str| fs::read_to_string(Path::new(&results).join(name)).unwrap();
    assert_eq!(text("flows.csv").lines().count(), 1 + flows.len());
    assert!(text("series.csv").contains("> n3:7,"), "{}", text("series.csv"));
    let manifest: Value = serde_json::from_str(&text("manifest.json")).unwrap();
    assert_eq!(manifest["files"], serde_json::json!(["flows.csv", "series.csv", "run.pcapng"]));
    let capture = fs::read(Path::new(&results).join("run.pcapng")).unwrap();
    let has = |bytes: &[u8]| capture.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(b"n1") && !has(b"n2") && has(&[0; 100]), "frames of n1, with the first question");
    let page = fs::read_to_string(&report).unwrap();
    assert!(
        page.contains("application/octet-stream") && page.contains("&#62; n3:7") | page.contains("&gt; n3:7")
    );
}

fn recorded_links_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let links = folder.path().join("links.json").display().to_string();
    // A host behind n1 may have the address that a 100th node would have.
    let foreign = "at n0 ip neigh replace 10.9.9.9 lladdr 02:00:00:00:00:63 dev air0; at n0 ping -q -c 1 -W 1 10.9.9.9 > /dev/null";
    let output = done(&["--record", &links], &format!("{foreign}; answer n1; ask n0 $HOPLINE_N1"));
    assert_eq!(printed(&output), "10.0.0.2\n");
    let recorded: Value = serde_json::from_slice(&fs::read(&links).unwrap()).unwrap();
    let row = &recorded["n0-n1"][0];
    assert!(row["delay_ms"].as_f64() > Some(0.5) && row["loss"].is_number(), "{recorded:#}");
    let mut link = Command::new(env!("CARGO_BIN_EXE_hopline"));
    link.args(["link", "--replay", &format!("{links}#n0-n1"), "--", "true"]);
    let output = link.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Returns the answer to a request for a path, up to a text that must come.
fn fetched(address: &str, path: &str, until: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&answer).contains(until) {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{path} ends without {until}: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(answer).unwrap()
}

fn the_network_can_be_watched_on_a_page_of_this_machine() {
    let mut child = emulate(
        CHAIN,
        &["--best-effort", "--watch"],
        "answer n3; (while ask n0 $HOPLINE_N3 > /dev/null; do :; done) & read line",
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("watch it at http://").unwrap_or_else(|| panic!("{line}"));
    let address = address.trim_end_matches('/').to_owned();
    let page = fetched(&address, "/", "</html>");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("new EventSource('events')"), "{page}");
    assert!(page.contains("\"names\":[\"n0\",\"n1\",\"n2\",\"n3\"]") && page.contains("connect-src 'self'"));
    let events = fetched(&address, "/events", "\"rows\":\"");
    assert!(events.contains("Content-Type: text/event-stream") && events.contains("\ndata: {"), "{events}");
    assert!(fetched(&address, "/other", "\r\n\r\n").starts_with("HTTP/1.1 404 "));
    let ended = thread::scope(|scope| {
        let following = scope.spawn(|| fetched(&address, "/events", "event: end"));
        drop(child.stdin.take());
        following.join().unwrap()
    });
    assert!(ended.contains("\"until\":"));
    assert_eq!(child.wait().unwrap().code(), Some(1), "the end of its input");
}

fn nodes_that_are_not_chosen_are_simulated_alone() {
    let scenario = format!("{CHAIN}[[flow]]\nsrc = \"n2\"\ndst = \"n3\"\n");
    let script = "answer n1; ask n0 $HOPLINE_N1; hopline exec n2 -- true";
    let output = emulate(&scenario, &["--best-effort", "--node", "n1,n0"], script).output().unwrap();
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), "10.0.0.2\n"), "{said}");
    assert!(said.contains("there is no node `n2`") && said.contains("\n2 nodes, "), "{said}");
    let program = with_programs("[[program]]\nnode = \"n1\"\ncommand = [\"true\"]\n");
    for (options, words) in [
        (["--node", "n7"], "--node: there is no node `n7`"),
        (["--node", "n0"], "program `p0` is at `n1`, which --node does not choose"),
    ] {
        let output = hopline("emulate", &program, &options).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

fn an_emulation_that_is_told_to_end_writes_its_results() {
    let scenario = format!("{CHAIN}[[program]]\nnode = \"n1\"\ncommand = [\"sleep\", \"75008\"]\n");
    // Without a command, and with one.
    for (signal, command, code) in
        [("INT", &[][..], 130), ("TERM", &[], 130), ("TERM", &["--", "sleep", "75009"], 128 + 15)]
    {
        let folder = tempfile::tempdir().unwrap();
        let [results, json] = ["results", "summary.json"].map(|name| folder.path().join(name));
        let options = ["--best-effort", "-o", results.to_str().unwrap(), "--json", json.to_str().unwrap()];
        let mut emulation = hopline("emulate", &scenario, &[&options[..], command].concat());
        let child = emulation.stderr(Stdio::piped()).spawn().unwrap();
        until("it runs", || runs("sleep 75008"));
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{signal}: {said}");
        assert!(said.contains("4 nodes, ") && said.contains("program p0 at n1: stopped"), "{said}");
        assert!(results.join("manifest.json").is_file() && json.is_file());
        assert!(!runs("sleep 75008") && !runs("sleep 75009"));
    }
}

/// Sends a signal to a process.
fn send(signal: &str, to: &Child) {
    let mut kill = Command::new("kill");
    assert!(kill.args([&format!("-{signal}"), &to.id().to_string()]).status().unwrap().success());
}

fn what_a_killed_emulation_leaves_is_removed_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results").display().to_string();
    let options = ["--best-effort", "-o", &results, "--pcap"];
    let start = |seconds| hopline("emulate", CHAIN, &[&options[..], &["--", "sleep", seconds]].concat());
    let mut killed = start("75010").stderr(Stdio::null()).spawn().unwrap();
    until("it runs", || runs("sleep 75010"));
    send("KILL", &killed);
    killed.wait().unwrap();
    fs::create_dir(folder.path().join(".hopline-mine")).unwrap();
    let names = || {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
    };
    assert!(names().iter().any(|name| name.starts_with(".hopline-draft-")), "{:?}", names());
    assert_eq!(start("0").output().unwrap().status.code(), Some(0));
    assert_eq!(names(), [".hopline-mine", "results"].map(String::from).into());
}

fn a_full_disk_ends_the_emulation_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = format!("{CHAIN}[[flow]]\nsrc = \"n2\"\ndst = \"n3\"\n");
    let script = "mount -t tmpfs -o size=64k none $DISK && { $HOPLINE emulate $FILE -o $DISK/results --pcap -- sleep 75011; \
                  echo $? $(ls -A $DISK); }";
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c", script]).env("FILE", file(&scenario));
    unshare.env("DISK", folder.path()).env("HOPLINE", env!("CARGO_BIN_EXE_hopline")).env("NO_COLOR", "1");
    let output = unshare.output().unwrap();
    let said = stderr(&output);
    assert_eq!(stdout(&output), "1\n", "{said}");
    assert!(said.contains("/results/run.pcapng: No space left on device"), "{said}");
    assert!(!runs("sleep 75011"));
}
