//! `[[program]]`.

use super::*;
use crate::Program;
use crate::user_defined::ScenarioUse;

/// Returns a scenario to emulate.
fn emulated(text: &str) -> Result<Scenario, Problems> {
    let source = Arc::new(Source { name: "test.toml".into(), text: text.to_owned() });
    let scenario = Scenario::unchecked(source, Path::new("").into(), CustomAlgorithms::default())?;
    Scenario { used_for: ScenarioUse::Emulation, ..scenario }.with(&[])
}

/// Returns the programs of an emulation of `CHAIN` without its flow, and `text`.
fn programs(text: &str) -> Result<Vec<Program>, Problems> {
    let scenario = emulated(&format!("{}{text}", CHAIN.split("[[flow]]").next().unwrap()))?;
    assert!(scenario.spec(1)?.flows.is_empty());
    scenario.programs(1)
}

/// Returns the place, the message and the help of the first problem of a program with these keys.
fn problem(keys: &str) -> String {
    first_problem(programs(&format!("[[program]]\n{keys}\n")))
}

/// Returns the place, the message and the help of the first problem.
fn first_problem(result: Result<Vec<Program>, Problems>) -> String {
    let problems = result.expect_err("this is wrong");
    let problem = &problems.0[0];
    let (line, column) = problem.at.as_ref().unwrap().line_column();
    format!("{line}:{column} {} | {}", problem.message, problem.help.as_deref().unwrap_or("-"))
}

#[test]
fn programs_have_a_node_a_command_and_times() {
    let text = "[[program]]\nnode = \"n2\"\ncommand = [\"iperf3\", \"-s\"]\n\
                [[program]]\nname = \"client.1\"\nnode = \"n0\"\ncommand = [\"iperf3\"]\nstart_s = 1\nstop_s = 2.5\n";
    let programs = programs(text).unwrap();
    let all: Vec<_> = programs.iter().map(|p| (&*p.name, p.node, &*p.command, p.start, p.stop)).collect();
    let ms = Instant::from_millis;
    let [server, client] = [vec!["iperf3".to_owned(), "-s".into()], vec!["iperf3".into()]];
    assert_eq!(
        all,
        [
            ("p0", NodeId(2), &*server, Instant::ZERO, None),
            ("client.1", NodeId(0), &*client, ms(1000), Some(ms(2500)))
        ]
    );
    assert_eq!(programs[0].origin.line_column().0, 9);
}

#[test]
fn a_program_at_every_node_is_one_for_each_with_a_name_of_its_own() {
    let text = "[[program]]\nname = \"babeld\"\nnode = \"*\"\ncommand = [\"babeld\", \"air0\"]\nstop_s = 9\n";
    let all = programs(text).unwrap();
    let all: Vec<_> = all.iter().map(|p| (&*p.name, p.node, p.command.len(), p.stop)).collect();
    let stop = Some(Instant::from_millis(9000));
    let expected = [("babeld-n0", 0), ("babeld-n1", 1), ("babeld-n2", 2)];
    assert_eq!(all, expected.map(|(name, node)| (name, NodeId(node), 2, stop)));
}

#[test]
fn wrong_programs_have_a_place_and_a_remedy() {
    let node = "node = \"n1\"";
    let ping = "node = \"n1\"\ncommand = [\"ping\"]";
    for (keys, expected) in [
        (
            "node = \"n7\"\ncommand = [\"ping\"]".to_owned(),
            "8:8 there is no node `n7` | did you mean `n0`? the nodes are n0, n1, n2",
        ),
        (format!("{node}\ncommand = []"), "9:11 a program without a command | the first word is the program"),
        (
            format!("{node}\ncommand = \"ping n2\""),
            "9:11 `program.0.command` takes a list of strings, not a string | the program and its arguments",
        ),
        (
            format!("{node}\ncommand = [\"echo\", \"a\\u0000b\"]"),
            r#"9:11 the word "a\0b" of a command contains a NUL character | no argument of a program can have it"#,
        ),
        (node.to_owned(), "7:1 `program.0` has no `command` | add `command = …`"),
        (
            format!("{ping}\nstart_s = 2\nstop_s = 2"),
            "11:10 the program stops before it starts | stop_s must be above start_s = 2",
        ),
        (
            format!("{ping}\nname = \"../x\""),
            "10:8 `../x` cannot name the files of a program | it takes 1 to",
        ),
        (
            "node = \"*\"\ncommand = [\"ping\"]\nname = \"a\"\n[[program]]\nnode = \"n1\"\ncommand = [\"ping\"]\nname = \"a-n1\"".to_owned(),
            "14:8 a second program named `a-n1` | names of programs are unique",
        ),
        (
            format!("{ping}\nname = \"a\"\n[[program]]\n{ping}\nname = \"a\""),
            "14:8 a second program named `a` | names of programs are unique",
        ),
    ] {
        let problem = problem(&keys);
        assert!(problem.starts_with(expected), "{problem}\n{expected}");
    }
}

#[test]
fn a_simulation_refuses_programs_that_are_not_left_out() {
    let text = format!("{CHAIN}[[program]]\nnode = \"n0\"\ncommand = [\"ping\"]\n");
    let problem = super::errors::first_problem(&text);
    assert!(
        problem.starts_with("10:1 [[program]] has real programs, and a simulation runs none | "),
        "{problem}"
    );
    assert!(parse(&text, &["program=[]"]).is_ok());
}

#[test]
fn names_that_programs_cannot_use_are_refused_in_emulations_alone() {
    let nodes = |names: [&str; 2]| {
        let node = |name: &str| format!("[[node]]\nname = \"{name}\"\nx_m = 0\ny_m = 0\n");
        format!("duration_s = 1\nradio.preset = \"ns2-wavelan\"\n{}{}", node(names[0]), node(names[1]))
    };
    for (names, expected) in [
        (
            ["a", "Emulation"],
            "8:8 a node named `Emulation`: its address would be in HOPLINE_EMULATION, which names the emulation | choose another",
        ),
        (
            ["a-b", "a_b"],
            "8:8 nodes named `a-b` and `a_b`: the addresses of both would be in HOPLINE_A_B | names of emulated nodes differ",
        ),
        (
            ["a", "--help"],
            "8:8 a node named `--help`, which `hopline exec` would take for an option | names of",
        ),
        (
            ["a", "Localhost"],
            "8:8 a node named `Localhost`, which is the name of each host for itself | choose another",
        ),
        (["a", "x\\u0000y"], r#"8:8 the name "x\0y" of a node contains a NUL character | no argument"#),
    ] {
        let text = nodes(names);
        let problem = first_problem(emulated(&text).and_then(|scenario| scenario.programs(1)));
        assert!(problem.starts_with(expected), "{problem}\n{expected}");
        let flow = format!("[[flow]]\nsrc = \"{}\"\ndst = \"{}\"\n", names[0], names[1]);
        parse(&(text + &flow), &[]).unwrap();
    }
    assert!(emulated(&nodes(["a-b", "ab"])).is_ok());
}
