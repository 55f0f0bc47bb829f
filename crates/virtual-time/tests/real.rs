//! Kernels at simulated nodes. The tests are ignored where `make uml` has not built a kernel.
//!
//! The test program is also the first process of the kernels, and a kernel that runs no programs but keeps the protocols:
//! tests with that one need no kernel.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, though without `#[test]`")]

mod fake_kernel;

use hopline_core::{Instant, NodeId};
use hopline_harness::{Need, Test, module, run, tests};
use hopline_scenario::Scenario;
use hopline_sim::trace::PcapTracer;
use hopline_virtual_time::emulation::{self, End, Program, Settings};
use hopline_virtual_time::guest::plan::{errors_file, output_file};
use hopline_virtual_time::kernel::{EDITION, KernelImage, Machine};
use hopline_virtual_time::report::Report;
use hopline_virtual_time::{Error, guest};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Argument of the first process of a kernel.
const INIT: &str = "virtual-host";
/// Argument of the kernel of a test.
const FAKE_KERNEL: &str = "fake-kernel";

const KERNEL: Need =
    Need::Of(|| KernelImage::find(&KernelImage::default_folder()).err().map(|e| e.to_string()));

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(INIT) => panic!("the host was not switched off: {:?}", guest::init::run()),
        Some(FAKE_KERNEL) => fake_kernel::run(),
        _ => {}
    }
    let of_protocols = tests!([];
        a_frame_arrives_at_the_same_time_in_each_run,
        a_wire_at_a_base_station_has_an_interface_of_its_own,
        a_kernel_that_ends_is_named_with_its_last_words,
        a_kernel_that_ends_at_once_is_no_success,
        a_kernel_that_sends_nothing_is_stuck,
        a_kernel_that_exceeds_its_time_is_refused,
        a_waiting_emulation_can_be_interrupted,
    );
    let of_kernels = tests!([KERNEL];
        a_host_has_its_name_its_address_and_names_of_others,
        programs_start_and_stop_at_their_times,
        what_ignores_the_end_is_killed_and_children_are_told_of_it,
        a_program_that_does_not_exist_is_reported,
        a_program_that_never_waits_is_found,
        an_interrupted_emulation_ends,
    );
    let with_ping = tests!([KERNEL, Need::Program("ping")];
        equal_runs_have_equal_captures_and_outputs,
        another_run_has_other_random_numbers,
        packets_cross_three_hops,
        a_base_station_has_an_interface_for_each_side,
    );
    let of_tcp = tests!([KERNEL, Need::Program("iperf3")]; tcp_of_linux_over_a_wire_and_chains);
    let of_tcp = of_tcp.into_iter().map(Test::long);
    let tests = of_tcp.chain(of_kernels).chain(with_ping).collect::<Vec<Test>>();
    run(module("kernels", tests).chain(module("protocols", of_protocols)), None)
}

/// Results of a run.
struct Ran {
    report: Report,
    capture: Vec<u8>,
    folder: tempfile::TempDir,
}

impl Ran {
    /// Output of the program of this number, which runs at node `node`.
    fn output(&self, node: usize, program: usize) -> String {
        let folder = self.folder.path().join("hosts").join(node.to_string());
        let read = |name: String| fs::read_to_string(folder.join(name)).unwrap();
        let name = format!("p{program}");
        let (output, errors) = (read(output_file(&name)), read(errors_file(&name)));
        assert_eq!(errors, "", "{output}");
        output
    }
}

/// A shell command at a node, from a time on, in seconds.
fn at(node: u32, start_s: u64, command: &str) -> Program {
    let command = ["sh", "-c", command].map(str::to_owned).to_vec();
    Program {
        name: String::new(),
        path: "sh".into(),
        node: NodeId(node),
        command,
        start: Instant::from_secs(start_s),
        stop: None,
    }
}

/// Runs programs over a chain of nodes for ten seconds.
fn emulate(nodes: usize, run: u64, programs: Vec<Program>) -> Result<Ran, Error> {
    emulate_until(nodes, run, programs, &|_| true)
}

fn emulate_until(
    nodes: usize,
    run: u64,
    programs: Vec<Program>,
    proceed: &dyn Fn(Instant) -> bool,
) -> Result<Ran, Error> {
    let image = KernelImage::find(&KernelImage::default_folder()).unwrap();
    emulate_with(image, (&chain(nodes), run, Duration::from_secs(20)), programs, proceed)
}

/// Runs kernels of a test over a chain of nodes, with these roles.
fn pretend(roles: &[&str], proceed: &dyn Fn(Instant) -> bool) -> Result<Ran, Error> {
    pretend_at(&chain(roles.len()), roles, proceed)
}

fn pretend_at(scenario: &str, roles: &[&str], proceed: &dyn Fn(Instant) -> bool) -> Result<Ran, Error> {
    pretend_with(":", scenario, roles, proceed)
}

/// `first`: what each kernel does at its start, in the language of the shell.
fn pretend_with(
    first: &str,
    scenario: &str,
    roles: &[&str],
    proceed: &dyn Fn(Instant) -> bool,
) -> Result<Ran, Error> {
    let folder = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 6.12{EDITION} && exit\n{first}\nexec '{}' {FAKE_KERNEL}\n",
        own.display()
    );
    fs::write(folder.path().join("linux"), script).unwrap();
    fs::set_permissions(folder.path().join("linux"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("entropy.so"), "").unwrap();
    let image = KernelImage::find(folder.path()).unwrap();
    let role = |(node, role): (usize, &&str)| Program {
        command: role.split(' ').map(str::to_owned).collect(),
        ..at(node as u32, 0, "")
    };
    let programs = roles.iter().enumerate().map(role).collect();
    emulate_with(image, (scenario, 1, Duration::from_secs(1)), programs, proceed)
}

/// A server behind a wire and a mobile host behind a radio, joined by the base station. For four seconds.
const BASE_STATION: &str = "\
name = \"base station\"
duration_s = 4
radio.preset = \"dot11b\"
[[node]]
name = \"base\"
x_m = 0
y_m = 0
[[node]]
name = \"mobile\"
x_m = 100
y_m = 0
[[node]]
name = \"server\"
interface = \"wired\"
[[link]]
a = \"server\"
b = \"base\"
rate_mbps = 100
delay_ms = 5
";

/// A chain of nodes, each of which reaches the next one alone, for ten seconds.
fn chain(nodes: usize) -> String {
    format!(
        "name = \"chain\"\nduration_s = 10\n[radio]\npreset = \"ns2-wavelan\"\n\
         [nodes]\nlayout = \"chain\"\ncount = {nodes}\nspacing_m = 200\n"
    )
}

fn emulate_with(
    kernel: KernelImage,
    (scenario, run, patience): (&str, u64, Duration),
    mut programs: Vec<Program>,
    proceed: &dyn Fn(Instant) -> bool,
) -> Result<Ran, Error> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    fs::write(&file, scenario).unwrap();
    let spec = Scenario::load_network(&file, &[]).unwrap().spec(run).unwrap();
    for (number, program) in programs.iter_mut().enumerate() {
        program.name = format!("p{number}");
    }
    let hosts = folder.path().join("hosts");
    fs::create_dir(&hosts).unwrap();
    let settings = Settings {
        nodes: (0..spec.nodes.len() as u32).map(NodeId).collect(),
        run,
        end: End::At(Instant::ZERO + spec.duration),
        has_routes: true,
        programs,
        environment: vec![("PATH".into(), std::env::var("PATH").unwrap())],
        working_directory: Path::new("/").to_owned(),
        kernel,
        machine: Machine::default(),
        init: std::env::current_exe().unwrap(),
        init_arguments: vec![INIT.into()],
        folder: hosts,
        patience,
    };
    let place = folder.path().join("capture.pcapng");
    let tracer = PcapTracer::new(BufWriter::new(File::create(&place).unwrap()), &spec).unwrap();
    let (report, tracer) = emulation::run(&spec, &settings, tracer, proceed)?;
    tracer.finish().unwrap().flush().unwrap();
    Ok(Ran { report, capture: fs::read(place).unwrap(), folder })
}

fn a_host_has_its_name_its_address_and_names_of_others() {
    let command = "uname -n; cat /proc/net/fib_trie | grep -m1 -o '10.0.0.2'; grep n2 /etc/hosts; ls /sys/class/net/air0/address && cat /sys/class/net/air0/address";
    let ran = emulate(3, 1, vec![at(1, 0, command)]).unwrap();
    let expected = "n1\n10.0.0.2\n10.0.0.3 n2\n/sys/class/net/air0/address\n02:00:00:00:00:01\n";
    assert_eq!(ran.output(1, 0), expected);
}

fn programs_start_and_stop_at_their_times() {
    let sleeper = Program { stop: Some(Instant::from_secs(4)), ..at(0, 2, "exec sleep 100") };
    let ran = emulate(2, 1, vec![at(0, 3, "cut -d. -f1 /proc/uptime"), sleeper, at(1, 0, "exit 7")]).unwrap();
    assert_eq!(ran.output(0, 0), "3\n");
    let ends: Vec<_> = ran.report.hosts.iter().flat_map(|host| &host.programs).flat_map(|p| &p.end).collect();
    assert_eq!((ends[1].signal, ends[1].was_stopped, ends[1].ended_ns / 1_000_000), (Some(15), true, 4000));
    assert_eq!((ends[2].code, ends[2].was_stopped), (Some(7), false));
}

fn what_ignores_the_end_is_killed_and_children_are_told_of_it() {
    let deaf = "trap '' TERM; while :; do sleep 0.2; done";
    let deaf = Program { stop: Some(Instant::from_secs(2)), ..at(0, 1, deaf) };
    // A daemon in a session of its own, without a parent.
    let daemon =
        at(1, 0, "setsid sh -c 'trap \"echo told; exit\" TERM; while :; do sleep 0.1; done' 2> /dev/null &");
    let ran = emulate(2, 1, vec![deaf, daemon]).unwrap();
    let ends: Vec<_> = ran.report.hosts.iter().flat_map(|host| &host.programs).flat_map(|p| &p.end).collect();
    assert_eq!((ends[0].signal, ends[0].was_stopped, ends[0].ended_ns / 1_000_000), (Some(9), true, 5000));
    assert_eq!((ends[1].code, ends[1].was_stopped), (Some(0), false));
    assert_eq!(ran.output(1, 1), "told\n");
}

fn a_program_that_does_not_exist_is_reported() {
    let missing = Program { path: "no-such-program".into(), command: vec!["missing".into()], ..at(0, 0, "") };
    let ran = emulate(2, 1, vec![missing]).unwrap();
    let error = ran.report.hosts[0].programs[0].end.as_ref().unwrap().error.as_deref().unwrap();
    assert!(error.contains("No such file"), "{error}");
}

fn a_program_that_never_waits_is_found() {
    let error = emulate(2, 1, vec![at(1, 1, "while :; do :; done")]).err().unwrap().to_string();
    assert!(error.contains("virtual time stands still") && error.contains("node n1"), "{error}");
}

fn an_interrupted_emulation_ends() {
    let ended = emulate_until(2, 1, vec![at(1, 1, "while :; do :; done")], &|_| false);
    assert!(matches!(ended, Err(Error::Interrupted)));
}

fn equal_runs_have_equal_captures_and_outputs() {
    let programs =
        || vec![at(0, 1, "ping -c 5 -i 0.5 n1; head -c 16 /dev/urandom | od -x"), at(1, 0, "ss -i")];
    let [one, other] = [(), ()].map(|()| emulate(2, 1, programs()).unwrap());
    assert!(one.output(0, 0).contains("5 received"), "{}", one.output(0, 0));
    assert_eq!(one.output(0, 0), other.output(0, 0));
    assert!(one.capture == other.capture, "the captures differ");
    assert_eq!(one.report.outcome.fingerprint, other.report.outcome.fingerprint);
}

fn another_run_has_other_random_numbers() {
    let [one, other] =
        [1, 2].map(|run| emulate(1, run, vec![at(0, 0, "head -c 16 /dev/urandom | od -x")]).unwrap());
    assert_ne!(one.output(0, 0), other.output(0, 0));
}

fn packets_cross_three_hops() {
    let ran = emulate(4, 1, vec![at(0, 1, "ping -c 3 n3")]).unwrap();
    let output = ran.output(0, 0);
    assert!(output.contains("3 received") && output.contains("ttl=62"), "{output}");
}

fn a_base_station_has_an_interface_for_each_side() {
    let addresses = "ip -brief -4 address show up | tr -s ' '; ls -d /sys/class/net/eth* 2> /dev/null";
    let route = "ip route get 10.0.0.2 | head -n 1; ip route get 10.0.0.3 | head -n 1";
    let count = "cd /sys/class/net; cat air0/statistics/rx_packets wire0/statistics/rx_packets";
    let programs =
        vec![at(1, 1, "ping -c 3 10.0.0.3"), at(0, 1, addresses), at(0, 1, route), at(0, 3, count)];
    let kernel = KernelImage::find(&KernelImage::default_folder()).unwrap();
    let ran = emulate_with(kernel, (BASE_STATION, 1, Duration::from_secs(20)), programs, &|_| true).unwrap();
    assert!(ran.output(1, 0).contains("3 received"), "{}", ran.output(1, 0));
    assert_eq!(ran.output(0, 1), "lo UNKNOWN 127.0.0.1/8 \nair0 UP 10.0.0.1/8 \nwire0 UP 10.0.0.1/32 \n");
    let routes = ran.output(0, 2);
    assert!(routes.starts_with("10.0.0.2 dev air0 ") && routes.contains("\n10.0.0.3 dev wire0 "), "{routes}");
    let counts: Vec<u32> = ran.output(0, 3).lines().map(|count| count.parse().unwrap()).collect();
    assert!(counts.len() == 2 && counts.iter().all(|&count| count >= 3), "{counts:?}");
}

fn a_frame_arrives_at_the_same_time_in_each_run() {
    let [one, other] = [(), ()].map(|()| pretend(&["send", "receive"], &|_| true).unwrap());
    assert_eq!(one.output(0, 0), "sent 64 bytes\n");
    let received = one.output(1, 1);
    let time = received.strip_prefix("[02, 00, 00, 00, 00, 00, 88, b5, 07] of 76 bytes at ");
    let time: u64 = time.and_then(|rest| rest.strip_suffix(" ns\n")).unwrap().parse().unwrap();
    // It was sent at 21 ms. At 1 Mb/s its bits take 0.7 ms, and 31 slots before it 0.6 ms.
    assert!((21_700_000..23_000_000).contains(&time), "{received}");
    assert_eq!(received, other.output(1, 1));
    assert!(one.capture == other.capture, "the captures differ");
    let taps = one.report.hosts.iter().map(|host| (host.tap.accepted, host.tap.emitted));
    assert_eq!(taps.collect::<Vec<_>>(), [(1, 0), (0, 1)]);
}

fn a_wire_at_a_base_station_has_an_interface_of_its_own() {
    let ran = pretend_at(BASE_STATION, &["send net1", "receive", "receive"], &|_| true).unwrap();
    assert_eq!(ran.output(1, 1), "nothing\n");
    // It was sent at 21 ms. The 50 bytes behind its header take 4 µs at 100 Mb/s, and the wire 5 ms.
    let received = "[02, 00, 00, 00, 00, 00, 88, b5, 07] of 76 bytes at 26004000 ns\n";
    assert_eq!(ran.output(2, 2), received);
    let ran = pretend_at(BASE_STATION, &["receive net1", "receive", "send"], &|_| true).unwrap();
    assert_eq!(ran.output(0, 0), received.replacen("00, 88", "02, 88", 1));
    let ran = pretend_at(BASE_STATION, &["receive", "send", "receive"], &|_| true).unwrap();
    assert!(ran.output(0, 0).starts_with("[02, 00, 00, 00, 00, 01, 88, b5, 07] of 76 bytes"));
    assert_eq!(ran.output(2, 2), "nothing\n");
}

fn a_kernel_that_ends_is_named_with_its_last_words() {
    let error = pretend(&["send", "jump"], &|_| true).err().unwrap().to_string();
    assert!(error.contains("node n1 has ended") && error.ends_with("Kernel panic: no jump"), "{error}");
}

fn a_kernel_that_ends_at_once_is_no_success() {
    // A kernel that finds no memory ends so.
    let last = "Checking if /dev/shm is on tmpfs...No space left";
    let ran = pretend_with(&format!("echo '{last}'; exit 1"), &chain(2), &["send", "receive"], &|_| true);
    let error = ran.err().expect("no kernel has run").to_string();
    assert!(error.contains("the kernel of node n") && error.ends_with(last), "{error}");
    // At a node without programs, too.
    let only_first = "case $PWD in */0) ;; *) exit 1 ;; esac";
    let error = pretend_with(only_first, &chain(2), &["send"], &|_| true).err().unwrap().to_string();
    assert!(error.contains("the kernel of node n1 has ended"), "{error}");
}

fn a_kernel_that_sends_nothing_is_stuck() {
    let error = pretend(&["spin", "receive"], &|_| true).err().unwrap().to_string();
    assert!(error.contains("virtual time stands still: for 1 s a program at node n0"), "{error}");
}

fn a_kernel_that_exceeds_its_time_is_refused() {
    let error = pretend(&["cheat", "receive"], &|_| true).err().unwrap();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
}

fn a_waiting_emulation_can_be_interrupted() {
    assert!(matches!(pretend(&["spin", "receive"], &|_| false), Err(Error::Interrupted)));
}

/// Prints the goodput of Linux's TCP in kb/s, which docs/virtual-time.md has, and checks that a run repeats.
fn tcp_of_linux_over_a_wire_and_chains() {
    let wire = "name = \"wire\"\nduration_s = 40\n[[node]]\nname = \"n0\"\n[[node]]\nname = \"n1\"\n\
                [[link]]\na = \"n0\"\nb = \"n1\"\nrate_mbps = 20\ndelay_ms = 25\nqueue.capacity_packets = 83\n";
    for algorithm in ["reno", "cubic", "bbr"] {
        let [one, other] = [(), ()].map(|()| transfer(wire, 2, algorithm));
        assert_eq!(one.1, other.1, "the fingerprints of {algorithm} differ");
        println!("wire, {algorithm}: {:.0}", one.0 / 1e3);
    }
    for nodes in 2..=9 {
        let scenario = chain(nodes).replace("duration_s = 10", "duration_s = 40");
        let kbps = ["reno", "cubic", "bbr"].map(|algorithm| transfer(&scenario, nodes, algorithm).0 / 1e3);
        println!("{} hops, reno, cubic, bbr: {kbps:.0?}", nodes - 1);
    }
}

/// Sends from the first node to the last one for 30 s; returns the goodput in bit/s, and the fingerprint.
fn transfer(scenario: &str, nodes: usize, algorithm: &str) -> (f64, u64) {
    let last = nodes - 1;
    let client = format!("iperf3 -c n{last} -C {algorithm} -t 30 -J");
    let programs = vec![at(last as u32, 0, "exec iperf3 -s"), at(0, 1, &client)];
    let image = KernelImage::find(&KernelImage::default_folder()).unwrap();
    let ran = emulate_with(image, (scenario, 1, Duration::from_secs(60)), programs, &|_| true).unwrap();
    let result: serde_json::Value = serde_json::from_str(&ran.output(0, 1)).unwrap();
    let rate = result["end"]["sum_received"]["bits_per_second"].as_f64();
    // Zero is what iperf3 says if it was stopped before it heard from its server.
    let rate = rate.filter(|&rate| rate > 0.0).unwrap_or_else(|| panic!("{result:#}"));
    (rate, ran.report.outcome.fingerprint)
}
