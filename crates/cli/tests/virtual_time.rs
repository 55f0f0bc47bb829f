//! `hopline emulate --virtual-time`. Tests with kernels are ignored where `make uml` has not built one.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_harness::{Need, Test, tests};
use hopline_virtual_time::kernel::KernelImage;
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
        a_program_that_never_waits_ends_the_emulation,
        after_ctrl_c_and_after_kill_nothing_remains,
    );
    let without = tests!([];
        a_missing_kernel_and_one_of_another_version_are_refused,
        what_virtual_time_does_not_have_is_refused,
    );
    of_kernels.into_iter().chain(without).collect()
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
    assert!(said.contains("there is no user-mode Linux kernel at kernel/linux"), "{said}");
    assert!(said.contains("`make uml` in hopline's source folder builds the kernel"), "{said}");
    fs::create_dir(folder.path("kernel")).unwrap();
    fs::write(folder.path("kernel/linux"), "#!/bin/sh\necho 6.12.1\n").unwrap();
    fs::set_permissions(folder.path("kernel/linux"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path("kernel/entropy.so"), "").unwrap();
    let said = refused();
    assert!(said.contains("its version is `6.12.1`, which does not end in -hopline."), "{said}");
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
    refused(&one, &["--", "true"], "--virtual-time: a command after `--` runs in real time");
    refused(&one, &["--watch"], "--virtual-time: --watch shows a network in real time");
    refused(&one, &["--best-effort"], "--virtual-time: --best-effort is about real time");
    refused("", &[], "--virtual-time: the scenario has no program to run");
    refused(&one, &["--set", "nodes.count=201"], "201 nodes are too many to emulate in virtual time");
    let missing = "[[program]]\nnode = \"n0\"\ncommand = [\"no-such-program\"]\n";
    refused(missing, &[], "there is no program `no-such-program`");
}
