//! `hopline emulate --virtual-time`. Tests with kernels are ignored where `make uml` has not built one.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::{Need, Test, tests};
use hopline_virtual_time::kernel::KernelImage;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

const KERNEL: Need =
    Need::Of(|| KernelImage::find(&KernelImage::default_folder()).err().map(|e| e.to_string()));

/// Two neighbours for three seconds.
const PAIR: &str = "\
name = \"pair\"
duration_s = 3
radio.preset = \"ns2-wavelan\"
[nodes]
layout = \"chain\"
count = 2
spacing_m = 200
";

pub(crate) fn tests() -> Vec<Test> {
    let of_kernels = tests!([KERNEL];
        output_and_exit_codes_are_kept_and_a_failure_fails_the_emulation,
        results_are_the_same_bytes_twice_and_nothing_else_remains,
        the_current_directory_does_not_count_and_is_shown,
        a_command_runs_at_the_first_node_and_the_emulation_ends_with_it,
        hopline_sends_and_receives_a_file_at_nodes,
        a_program_that_never_waits_ends_the_emulation,
        after_ctrl_c_and_after_kill_nothing_remains,
        a_sweep_has_the_same_tables_on_one_thread_and_on_two_and_is_resumed,
        a_run_whose_program_fails_is_a_failed_run,
        a_program_whose_packets_find_no_way_has_a_goodput_of_zero,
        a_machine_that_cannot_make_a_run_ends_the_sweep_and_the_same_command_goes_on,
    );
    let with_mounts = tests!([KERNEL, Need::Mounts]; a_full_disk_costs_only_what_does_not_fit);
    let with_filters = tests!([
            KERNEL,
            Need::Program("curl"), Need::Program("python3"), Need::Program("iptables"), Need::Program("nft"),
        ];
        snoop_at_a_base_station_repairs_the_same_losses_twice,
    );
    let without = tests!([];
        a_missing_kernel_and_one_of_another_version_are_refused,
        what_virtual_time_does_not_have_is_refused,
        a_sweep_that_cannot_be_emulated_is_refused_before_it_begins,
    );
    of_kernels.into_iter().chain(with_mounts).chain(with_filters).chain(without).collect()
}

/// A folder with a scenario, in which temporary files are made.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(scenario: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("pair.toml"), scenario).unwrap();
        fs::create_dir(folder.path("temporary")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
        command.args(["emulate", "--virtual-time", "pair.toml"]).args(options).current_dir(self.0.path());
        command.env("NO_COLOR", "1").env("TMPDIR", self.path("temporary"));
        command
    }

    /// Sweeps `plan` over kernels, into `results` beside it.
    fn sweep(&self, plan: &str, options: &[&str]) -> Output {
        fs::write(self.path("plan.toml"), format!("scenario = \"pair.toml\"\n{plan}")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hopline"));
        command.args(["sweep", "--virtual-time", "plan.toml", "-q"]).args(options).current_dir(self.0.path());
        command.env("NO_COLOR", "1").env("TMPDIR", self.path("temporary")).output().unwrap()
    }

    fn run(&self, options: &[&str]) -> Output {
        self.command(options).output().unwrap()
    }

    /// Asserts that no process and no file of kernels remains.
    fn assert_clean(&self) {
        let temporary = self.path("temporary");
        until("the kernels have ended", || processes_in(&temporary).is_empty());
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns the processes with a working directory in a folder.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter(|path| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))).collect()
}

fn until(what: &str, is_done: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_done() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not within a minute: {what}");
}

/// A table of a program.
fn program(name: &str, node: &str, script: &str, more: &str) -> String {
    format!(
        "[[program]]\nname = \"{name}\"\nnode = \"{node}\"\ncommand = [\"sh\", \"-c\", '{script}']\n{more}\n"
    )
}

fn output_and_exit_codes_are_kept_and_a_failure_fails_the_emulation() {
    let scenario = [
        PAIR,
        &program("clock", "n0", "cut -d. -f1 /proc/uptime; uname -n; echo $HOPLINE_N1", "start_s = 2"),
        &program("failing", "n1", "echo oops >&2; exit 7", ""),
        &program("stopped", "n1", "exec sleep 100", "stop_s = 1"),
        &program("late", "n1", "true", "start_s = 9"),
    ];
    let folder = Folder::new(&scenario.concat());
    let ended = folder.run(&[]);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    for line in [
        "clock: 2\nclock: n0\nclock: 10.0.0.2\n",
        "failing: oops\n",
        "error: program failing at n1 ended after 0.0 s with exit code 7\n",
        "program stopped at n1: stopped after 1.0 s\n",
        "program late at n1: not started: its time is 9 s\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    folder.assert_clean();
}

fn results_are_the_same_bytes_twice_and_nothing_else_remains() {
    let send = "head -c 8 /dev/urandom | od -x; echo hello > /dev/udp/10.0.0.2/7";
    let scenario = [
        PAIR,
        "[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n",
        &program("sender", "n0", send, "start_s = 1").replace("\"sh\"", "\"bash\""),
    ];
    let folder = Folder::new(&scenario.concat());
    for name in ["one", "other"] {
        let json = format!("{name}.json");
        let ended = folder.run(&["-o", name, "--pcap", "--json", &json]);
        assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    }
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    assert!(read("one.json") == read("other.json"));
    for name in ["run.pcapng", "flows.csv", "series.csv", "sender.stdout", "sender.stderr"] {
        assert!(read(&format!("one/{name}")) == read(&format!("other/{name}")), "{name}");
    }
    let flows = String::from_utf8(read("one/flows.csv")).unwrap();
    assert!(flows.contains(",udp,") && flows.contains(",tcp-newreno,"), "{flows}");
    folder.assert_clean();
}

/// Random numbers of the kernel and of the network show a difference of one folder.
fn the_current_directory_does_not_count_and_is_shown() {
    let send = "head -c 8 /dev/urandom | od -x; echo hello > /dev/udp/10.0.0.2/7";
    let scenario = [PAIR, &program("sender", "n0", send, "start_s = 1").replace("\"sh\"", "\"bash\"")];
    let folder = Folder::new(&scenario.concat());
    let deep = folder.path("a/deeper/one");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("message"), "hello\n").unwrap();
    let from = |current: &Path, name: &str| {
        let file = format!("{name}.json");
        let [pair, results, json] = ["pair.toml", name, &file].map(|name| folder.path(name));
        let mut command = folder.command(&["--pcap", "--set", "name=pair"]);
        command.args([OsStr::new("--json"), json.as_os_str(), OsStr::new("-o"), results.as_os_str()]);
        let ended = at(command, &pair).current_dir(current).output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
        ["run.pcapng", "sender.stdout"].map(|file| fs::read(results.join(file)).unwrap())
    };
    let one = from(&folder.path(""), "one");
    assert!(one == from(&deep, "two"), "a deeper directory");
    assert!(one == from(Path::new("/"), "three"), "a directory that no temporary folder hides");

    let pair = folder.path("pair.toml");
    let command = folder.command(&["--set", "program=[]", "--", "sh", "-c", "cat message; ls ..; pwd"]);
    let shown = at(command, &pair).current_dir(&deep).output().unwrap();
    let expected = format!("hello\none\n{}\n", deep.display());
    assert_eq!(String::from_utf8(shown.stdout.clone()).unwrap(), expected, "{}", stderr(&shown));
}

/// Puts the path of the scenario in the place of its name.
fn at(command: Command, scenario: &Path) -> Command {
    let mut other = Command::new(command.get_program());
    other.args(command.get_args().map(|word| if word == "pair.toml" { scenario.as_os_str() } else { word }));
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other
}

fn a_command_runs_at_the_first_node_and_the_emulation_ends_with_it() {
    let other = program("other", "n1", "trap \"echo end; exit\" TERM; sleep 1000 & wait", "");
    let late = program("late", "n1", "true", "start_s = 9");
    let folder = Folder::new(&[PAIR, &other, &late].concat());
    let command = |options: &[&str], script: &str| {
        let ended = folder.run(&[options, &["--", "sh", "-c", script]].concat());
        let said = stderr(&ended);
        folder.assert_clean();
        (ended.status.code(), String::from_utf8(ended.stdout).unwrap(), said)
    };
    let (code, output, said) =
        command(&[], "uname -n; echo oops >&2; sleep 5; cut -d. -f1 /proc/uptime; exit 7");
    assert_eq!((code, &*output), (Some(7), "n0\n5\n"), "{said}");
    for line in [
        "oops\n",
        "other: end\n",
        "program other at n1: stopped after 5.0 s\n",
        "program late at n1: not started: its time is 9 s\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let (code, output, said) = command(&["--node", "n1"], "uname -n");
    assert_eq!((code, &*output), (Some(0), "n1\n"), "{said}");
}

fn hopline_sends_and_receives_a_file_at_nodes() {
    let receive = "exec hopline recv -o /tmp/in --psk secret";
    let folder = Folder::new(&[PAIR, &program("receiver", "n1", receive, "")].concat());
    fs::write(folder.path("secret"), "0123456789abcdef".repeat(4)).unwrap();
    fs::set_permissions(folder.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.path("file"), vec![7; 30_000]).unwrap();
    let send = ["--", "hopline", "send", "file", "10.0.0.2", "--psk", "secret"];
    let [one, other] = [(), ()].map(|()| folder.run(&send));
    let said = stderr(&one);
    assert_eq!(one.status.code(), Some(0), "{said}");
    assert!(said.contains("receiver: 1 stored, 0 there already, 0 refused; 29.30 KiB"), "{said}");
    let sent = String::from_utf8(one.stdout).unwrap();
    assert!(sent.contains("1 stored, 0 there already, 0 refused; 29.30 KiB"), "{sent}");
    assert_eq!(sent, String::from_utf8(other.stdout).unwrap());
    folder.assert_clean();
}

fn snoop_at_a_base_station_repairs_the_same_losses_twice() {
    let network = "\
duration_s = 20
radio.preset = \"dot11b\"
mac.ack_policy = \"no-ack\" # a loss stays a loss
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
[[radio.loss]]
from = \"base\"
to = \"mobile\"
model = \"packet\"
packet_loss = 0.05
";
    let download = "curl --silent --fail --max-time 10 --output /tmp/copy http://server/file; cmp file /tmp/copy && echo same";
    let scenario = [
        network,
        &program("server", "server", "exec python3 -m http.server 80 2> /dev/null", ""),
        &program("snoop", "base", "exec hopline proxy run snoop.toml 2> /dev/null", ""),
        &program("download", "mobile", download, "start_s = 4"),
        &program("counters", "base", "hopline proxy status snoop.toml", "start_s = 16"),
    ];
    let folder = Folder::new(&scenario.concat());
    let snoop = "state_dir = \"/tmp/state\"\n[[proxy]]\nkind = \"snoop\"\ninterface = \"air0\"\n";
    fs::write(folder.path("snoop.toml"), snoop).unwrap();
    fs::write(folder.path("file"), (0..500_000).map(|n: u32| (n / 7) as u8).collect::<Vec<_>>()).unwrap();
    for name in ["one", "other"] {
        let ended = folder.run(&["-o", name, "--pcap"]);
        assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    }
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    assert_eq!(String::from_utf8(read("one/download.stdout")).unwrap(), "same\n");
    let counters = String::from_utf8(read("one/counters.stdout")).unwrap();
    let count = |name: &str| -> u64 {
        let line = counters.lines().find(|line| line.trim_start().starts_with(name)).expect(&counters);
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert!(count("local_retransmissions") > 0, "{counters}");
    assert_eq!(count("one_sided_packets"), 0, "{counters}");
    for name in ["run.pcapng", "flows.csv", "counters.stdout"] {
        assert!(read(&format!("one/{name}")) == read(&format!("other/{name}")), "{name}");
    }
    folder.assert_clean();
}

fn a_program_that_never_waits_ends_the_emulation() {
    let folder = Folder::new(&[PAIR, &program("spin", "n1", "while :; do :; done", "start_s = 1")].concat());
    let ended = folder.run(&["--patience", "5"]);
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("virtual time stands still: for 5 s a program at node n"), "{said}");
    folder.assert_clean();
}

fn after_ctrl_c_and_after_kill_nothing_remains() {
    let folder = Folder::new(&[PAIR, &program("spin", "n1", "while :; do :; done", "start_s = 1")].concat());
    let temporary = folder.path("temporary");
    let signalled = |signal: &str| {
        let mut child = folder.command(&[]).spawn().unwrap();
        until("kernels run", || processes_in(&temporary).len() >= 2);
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        child.wait().unwrap().code()
    };
    assert_eq!(signalled("-INT"), Some(130));
    folder.assert_clean();
    assert_eq!(signalled("-KILL"), None);
    until("the kernels have ended", || processes_in(&temporary).is_empty());
    // The next emulation removes the files of the killed one.
    assert_eq!(signalled("-TERM"), Some(130));
    folder.assert_clean();
}

fn a_missing_kernel_and_one_of_another_version_are_refused() {
    let folder = Folder::new(&[PAIR, &program("one", "n0", "true", "")].concat());
    let refused = || {
        let ended = folder.run(&["--kernel", "kernel", "-o", "results"]);
        assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
        assert!(!folder.path("results").exists());
        stderr(&ended)
    };
    let said = refused();
    // A relative path is of the current directory.
    let place = folder.path("kernel/linux").canonicalize().unwrap_or_else(|_| folder.path("kernel/linux"));
    assert!(said.contains(&format!("there is no user-mode Linux kernel at {}", place.display())), "{said}");
    assert!(said.contains("`make uml` in hopline's source folder builds it once"), "{said}");
    fs::create_dir(folder.path("kernel")).unwrap();
    fs::write(folder.path("kernel/linux"), "#!/bin/sh\necho 6.12.1-hopline.2\n").unwrap();
    fs::set_permissions(folder.path("kernel/linux"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path("kernel/entropy.so"), "").unwrap();
    let said = refused();
    assert!(said.contains("kernel/linux is a kernel of version `6.12.1-hopline.2`, and"), "{said}");
    assert!(
        said.contains("needs one that ends in `-hopline.3`: run `make uml` in hopline's source folder"),
        "{said}"
    );
}

fn what_virtual_time_does_not_have_is_refused() {
    let refused = |programs: &str, options: &[&str], expected: &str| {
        let folder = Folder::new(&[PAIR, programs].concat());
        let ended = folder.run(options);
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        folder.assert_clean();
    };
    let one = program("one", "n0", "true", "");
    refused(&one, &["--", "no-such-program"], "there is no program `no-such-program`");
    refused(&one, &["--watch"], "--virtual-time: --watch shows a network in real time");
    refused(&one, &["--best-effort"], "--virtual-time: --best-effort is about real time");
    refused("", &[], "--virtual-time: the scenario has no program to run");
    refused(&one, &["--set", "nodes.count=201"], "201 nodes are too many to emulate in virtual time");
    let missing = "[[program]]\nnode = \"n0\"\ncommand = [\"no-such-program\"]\n";
    refused(missing, &[], "there is no program `no-such-program`");
}

fn a_sweep_has_the_same_tables_on_one_thread_and_on_two_and_is_resumed() {
    let send = "for i in 1 2 3 4 5 6 7 8; do head -c 900 /dev/urandom > /dev/udp/10.0.0.2/7; done";
    let sender = program("sender", "n0", send, "start_s = 1").replace("\"sh\"", "\"bash\"");
    let folder = Folder::new(&[PAIR, "[[flow]]\nsrc = \"n0\"\ndst = \"n1\"\n", &sender].concat());
    let plan = "runs = 2\n[grid]\n\"mac.data_rate_mbps\" = [1, 2]\n";
    let said = |output: Output| {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let one = said(folder.sweep(plan, &["-o", "one", "--jobs", "1", "--metric", "goodput of program"]));
    assert!(one.contains(" in virtual time, seed 1"), "{one}");
    assert!(one.contains("goodput of program kb/s"), "{one}");
    assert!(!one.contains("goodput of program kb/s  0.0"), "{one}");
    said(folder.sweep(plan, &["-o", "two", "--jobs", "2"]));
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    for table in ["runs.csv", "metrics.csv", "series.csv"] {
        assert!(read(&format!("one/{table}")) == read(&format!("two/{table}")), "{table}");
    }
    let metrics = String::from_utf8(read("one/metrics.csv")).unwrap();
    assert!(metrics.contains("program") && !metrics.contains("udp n0"), "{metrics}");
    assert!(!metrics.contains("jain"), "{metrics}");
    assert!(fs::read_to_string(folder.path("one/report.html")).unwrap().contains("of 3 s over Linux 6."));
    // A third run of each point is added.
    let records = |name: &str| read(name).iter().filter(|byte| **byte == b'\n').count();
    said(folder.sweep(&plan.replace("runs = 2", "runs = 3"), &["-o", "one"]));
    assert_eq!(records("one/records.jsonl"), 6);
    let other = folder.sweep(plan, &["-o", "two", "--syscall-cost-us", "9"]);
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    folder.assert_clean();
}

fn a_run_whose_program_fails_is_a_failed_run() {
    let folder = Folder::new(&[PAIR, &program("one", "n1", "echo no luck >&2; exit 3", "")].concat());
    let ended = folder.sweep("runs = 1\n", &["-o", "results"]);
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    let record = fs::read_to_string(folder.path("results/records.jsonl")).unwrap();
    assert!(record.contains("no luck") && record.contains("one"), "{record}");
    folder.assert_clean();
}

fn a_sweep_that_cannot_be_emulated_is_refused_before_it_begins() {
    let refused = |programs: &str, options: &[&str], expected: &str| {
        let folder = Folder::new(&[PAIR, programs].concat());
        let ended = folder.sweep("runs = 1\n", &[&["-o", "results"], options].concat());
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(!folder.path("results").exists());
        folder.assert_clean();
    };
    let one = program("one", "n0", "true", "");
    refused(&one, &["--kernel", "kernel"], "there is no user-mode Linux kernel at");
    refused(&one, &["--set", "nodes.count=201"], "201 nodes are too many to emulate in virtual time");
    let missing = "[[program]]\nnode = \"n0\"\ncommand = [\"no-such-program\"]\n";
    refused(missing, &[], "there is no program `no-such-program`");
    refused("", &[], "--virtual-time: the scenario has no program to run");
}

fn a_full_disk_costs_only_what_does_not_fit() {
    let loud = program("loud", "n0", "head -c 300000 /dev/zero", "");
    let folder = Folder::new(&[PAIR, &loud].concat());
    let script = "mount -t tmpfs -o size=64k none full && exec $HOPLINE emulate --virtual-time pair.toml -o full/results \
                  --json summary.json --report report.html";
    fs::create_dir(folder.path("full")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script]).current_dir(folder.0.path());
    command.env("HOPLINE", env!("CARGO_BIN_EXE_hopline")).env("TMPDIR", folder.path("temporary"));
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("writing loud.stdout: No space left on device"), "{}", stderr(&ended));
    let summary = fs::read_to_string(folder.path("summary.json")).unwrap();
    assert!(summary.contains("\"loud\""), "{summary}");
    assert!(folder.path("report.html").exists());
    folder.assert_clean();
}

fn a_program_whose_packets_find_no_way_has_a_goodput_of_zero() {
    let send = program("sender", "n0", "echo hello > /dev/udp/10.0.0.2/7", "").replace("\"sh\"", "\"bash\"");
    let folder = Folder::new(&[PAIR, &send].concat());
    let ended = folder.sweep("runs = 2\n[grid]\n\"nodes.spacing_m\" = [200, 9000]\n", &["-o", "results"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let metrics = fs::read_to_string(folder.path("results/metrics.csv")).unwrap();
    let goodputs: Vec<_> = metrics.lines().filter(|line| line.contains(",program,,,goodput_bps,")).collect();
    assert_eq!(goodputs.len(), 4, "{metrics}");
    assert!(goodputs[2..].iter().all(|line| line.ends_with(",0")), "{goodputs:?}");
    assert!(!metrics.contains("jain"), "{metrics}");
    folder.assert_clean();
}

fn a_machine_that_cannot_make_a_run_ends_the_sweep_and_the_same_command_goes_on() {
    let folder =
        Folder::new(&[PAIR, &program("spinner", "n0", "test -e stop || while :; do :; done", "")].concat());
    let ended = folder.sweep("runs = 1\n", &["-o", "results", "--patience", "1"]);
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("virtual time stands still"), "{}", stderr(&ended));
    assert_eq!(fs::read(folder.path("results/records.jsonl")).unwrap(), b"");
    fs::write(folder.path("stop"), "").unwrap();
    let ended = folder.sweep("runs = 1\n", &["-o", "results", "--patience", "1"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    folder.assert_clean();
}
