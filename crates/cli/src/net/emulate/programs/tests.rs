//! Programs, started without nodes.

use super::*;
use hopline_lab::Scenario;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

/// A directory of results, programs, and all that they refer to.
struct World {
    folder: tempfile::TempDir,
    spec: Spec,
    programs: Vec<Program>,
    nodes: Nodes,
}

impl World {
    /// Reads `[[program]]` tables of a node `n0`.
    fn new(tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("one.toml");
        let network = "duration_s = 9\nradio.preset = \"ns2-wavelan\"\n[nodes]\nlayout = \"chain\"\ncount = 1\nspacing_m = 1\n";
        fs::write(&file, format!("{network}{tables}")).unwrap();
        let scenario = Scenario::load_network(&file, &[]).unwrap();
        let (spec, programs) = (scenario.spec(1).unwrap(), scenario.programs(1).unwrap());
        Self { folder, spec, programs, nodes: Nodes::empty() }
    }

    /// Prepares to run the programs as those of this machine.
    fn programs<'a>(&'a self, results: &'a Directory) -> Programs<'a> {
        let shell = ["sh", "-c", "shift 4; exec \"$@\"", "sh"].map(OsString::from).to_vec();
        let launcher = Launcher { words: shell, nodes: &self.nodes, results: Some(results) };
        Programs::with_launcher(self.programs.clone(), &self.spec, launcher)
    }

    fn results(&self) -> Directory {
        Directory::create(&self.folder.path().join("results"), hopline_lab::output::Existing::Refuse).unwrap()
    }
}

/// Returns a table of a program at `n0`.
fn table(name: &str, command: &str) -> String {
    format!("[[program]]\nname = \"{name}\"\nnode = \"n0\"\ncommand = {command}\n")
}

/// Polls until no program runs or waits.
fn await_end(programs: &mut Programs<'_>) {
    while programs.all.iter().any(|one| !matches!(one.state, State::Ended(..))) {
        programs.poll().unwrap();
        thread::sleep(POLL_INTERVAL);
    }
}

#[test]
fn a_program_that_cannot_be_started_leaves_the_others_running() {
    // Linux takes arguments of at most 128 KiB (MAX_ARG_STRLEN).
    let long = format!("[\"echo\", \"{}\"]", "x".repeat(200_000));
    let world = World::new(&(table("long", &long) + &table("short", "[\"echo\", \"done\"]")));
    let results = world.results();
    let mut programs = world.programs(&results);
    await_end(&mut programs);
    let [long, short] = &programs.stop().unwrap().into_results()[..] else { panic!() };
    assert_eq!(long.line(), "program long at n0: not started: Argument list too long (os error 7)");
    assert_eq!((long.has_failed(), long.started, long.ended), (true, None, None));
    assert!(short.line().starts_with("program short at n0: exit code 0 after") && !short.has_failed());
    assert_eq!(fs::read_to_string(results.draft().join("short.stdout")).unwrap(), "done\n");
}

#[test]
fn programs_start_in_the_order_of_their_times_and_know_when() {
    let at = |name: &str, start_s: &str| table(name, "[\"true\"]") + "start_s = " + start_s + "\n";
    let world = World::new(&[at("second", "0.1"), at("first", "0.05"), at("never", "8")].concat());
    let results = world.results();
    let mut programs = world.programs(&results);
    // A machine that begins late starts both in one call.
    thread::sleep(Duration::from_millis(100));
    while programs.waiting.len() > 1 {
        programs.poll().unwrap();
    }
    let all = programs.stop().unwrap().into_results();
    let [Some(second), Some(first), None] = [0, 1, 2].map(|n: usize| all[n].started) else {
        panic!("{all:?}")
    };
    assert!(first >= Duration::from_millis(100) && second > first, "{all:?}");
    assert_eq!(all[2].line(), "program never at n0: not started: its time is 8 s");
    assert!(!all[2].has_failed());
}

#[test]
fn a_call_starts_programs_for_a_while_and_leaves_the_others_to_the_next() {
    let tables: String = (0..1000).map(|n| table(&format!("p{n}"), "[\"true\"]")).collect();
    let world = World::new(&tables);
    let results = world.results();
    let mut programs = world.programs(&results);
    programs.poll().unwrap();
    assert!(!programs.waiting.is_empty(), "1000 programs have started within {START_SLICE:?}");
    assert!(matches!(programs.all[0].state, State::Running(_)) && programs.all[0].started.is_some());
    assert!(programs.all[1].started > programs.all[0].started || programs.all[1].started.is_none());
    programs.stop().unwrap().into_results();
}

#[test]
fn late_starts_are_told_in_one_line() {
    let world = World::new(&["a", "b", "c"].map(|name| table(name, "[\"true\"]")).concat());
    let started = |ms: [u64; 3]| {
        let result = |(program, ms): (&Program, u64)| ProgramResult {
            program: program.clone(),
            node: "n0".into(),
            started: Some(Duration::from_millis(ms)),
            ended: None,
            end: End::Stopped(ExitStatus::from_raw(0)),
        };
        warning_of_late_starts(&world.programs.iter().zip(ms).map(result).collect::<Vec<_>>())
    };
    assert_eq!(started([20, 100, 500]), None);
    assert_eq!(started([0, 2300, 1]).unwrap(), "warning: program b started 2.3 s late");
    assert_eq!(
        started([600, 700, 900]).unwrap(),
        "warning: program c started 0.9 s late, and 2 others less late"
    );
}

#[test]
fn a_program_whose_turn_has_not_come_is_not_started() {
    let world = World::new(&table("a", "[\"true\"]"));
    let results = world.results();
    let programs = world.programs(&results);
    let all = StoppedPrograms { all: programs.all, ending: Duration::from_secs(2) }.into_results();
    assert_eq!(
        all[0].line(),
        "program a at n0: not started: it took too long to start the programs before it"
    );
    assert!(all[0].has_failed());
}

#[test]
fn the_last_line_of_a_file_of_any_size_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("errors");
    let write = |begins: u64, text: &str| {
        let mut file = File::create(&path).unwrap();
        // A hole, which takes no space.
        file.set_len(begins).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        last_line(Path::new(&path))
    };
    assert_eq!(write(0, "first\n  last \n\n").as_deref(), Some("last"));
    assert_eq!(write(1 << 40, "\nlast\n").as_deref(), Some("last"));
    assert_eq!(write(0, "\n"), None);
    assert_eq!(write(0, &"ü".repeat(100_000)).unwrap().len(), MAX_SHOWN);
}
