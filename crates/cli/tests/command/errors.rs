//! Invalid input: exit code 2, the position, advice, and nothing on stdout or on disk.

use super::*;

/// Returns the error message about invalid input.
#[track_caller]
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert_eq!(stdout(output), "");
    stderr(output)
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

/// Returns the error message about a scenario file with this text.
fn refused_file(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.toml");
    std::fs::write(&file, text).unwrap();
    let output = folder.path().join("out");
    let error = refused(&hopline(["run", file.to_str().unwrap(), "-o", output.to_str().unwrap()]));
    assert_eq!(names(folder.path()), ["s.toml"], "nothing is written");
    error
}

#[test]
fn a_missing_file() {
    contains(&refused(&hopline(["run", "no/such.toml"])), &["no/such.toml: there is no such file"]);
}

#[test]
fn a_misspelt_key_with_position_snippet_and_remedy() {
    let text = std::fs::read_to_string(scenario("chain")).unwrap().replace("spacing_m", "spaceing_m");
    let line = 1 + text.lines().position(|l| l.starts_with("spaceing_m")).unwrap();
    contains(
        &refused_file(&text),
        &[
            "unknown key `spaceing_m` in `nodes`",
            &format!("s.toml:{line}:1]"),
            "spaceing_m = 200",
            "help: did you mean `spacing_m`?",
        ],
    );
}

#[test]
fn text_that_is_not_toml() {
    contains(&refused_file("duration_s = = 3\n"), &["invalid TOML", "s.toml:1:14]"]);
}

#[test]
fn several_wrong_keys_at_once() {
    let text = std::fs::read_to_string(scenario("chain")).unwrap();
    let text = text.replace("runs = 10", "runs = 0").replace("spacing_m = 200", "spacing_m = \"far\"");
    contains(&refused_file(&text), &["`runs` = 0 is out of range", "`nodes.spacing_m` takes a number"]);
}

#[test]
fn a_broken_line_of_a_movement_file() {
    let folder = tempfile::tempdir().unwrap();
    let source = scenario("walk");
    for file in ["scenario.toml", "flows.csv"] {
        std::fs::copy(source.with_file_name(file), folder.path().join(file)).unwrap();
    }
    let movements = std::fs::read_to_string(source.with_file_name("walk.ns_movements")).unwrap();
    let line = movements.lines().position(|l| l.contains("setdest") && l.contains("$ns_")).unwrap();
    let broken: Vec<String> = (0..)
        .zip(movements.lines())
        .map(|(i, l)| if i == line { l.replace("setdest", "setdset") } else { l.into() })
        .collect();
    std::fs::write(folder.path().join("walk.ns_movements"), broken.join("\n")).unwrap();
    let file = folder.path().join("scenario.toml");
    let error = refused(&hopline(["run", file.to_str().unwrap()]));
    contains(&error, &[&format!("walk.ns_movements:{}:", line + 1), "setdset"]);
}

#[test]
fn a_setting_is_shown_as_it_was_given() {
    let error = refused(&run_chain(&["--set", "tcp.window=0"]));
    contains(&error, &["`tcp.window` = 0 is out of range", "--set:1:12", "tcp.window=0"]);
    contains(&refused(&run_chain(&["--set", "tcp.widnow=3"])), &["did you mean `window`?"]);
    contains(&refused(&run_chain(&["--set", "tcp.window"])), &["not of the form key=value"]);
}

#[test]
fn a_varied_value_is_checked_before_anything_runs() {
    let file = scenario("chain");
    let error = refused(&hopline(["compare", file.to_str().unwrap(), "--vary", "tcp.window=2,zero"]));
    contains(&error, &["`tcp.window` does not know \"zero\"", "--vary:1:14"]);
}

#[test]
fn options_without_an_effect() {
    contains(&refused(&hopline(["run"])), &["<SCENARIO>"]);
    contains(&refused(&hopline(["walk"])), &["unrecognized subcommand"]);
    for extra in ["--pcap", "--ns2-trace", "--flowmon", "--force"] {
        contains(&refused(&run_chain(&[extra])), &["--output"]);
    }
}

#[test]
fn invalid_numbers_with_a_valid_example() {
    let wrong = |args: &[&str], value: &str, right: &str| {
        contains(
            &refused(&hopline(args)),
            &[&format!("invalid value '{value}' for '-"), &format!("': {right}\n")],
        );
    };
    let million = "a whole number from 1 to 1000000";
    wrong(&["run", "x.toml", "--run", "first"], "first", "a whole number from 1");
    wrong(&["run", "x.toml", "--run", "0"], "0", "a whole number from 1");
    wrong(&["movements", "x.toml", "--run", "0"], "0", "a whole number from 1");
    wrong(&["run", "x.toml", "--seed", "1.5"], "1.5", "a whole number from 0");
    wrong(
        &["run", "x.toml", "--seed", "99999999999999999999"],
        "99999999999999999999",
        "a whole number from 0",
    );
    wrong(&["compare", "x.toml", "--runs", "ten"], "ten", million);
    wrong(&["compare", "x.toml", "--runs", "0"], "0", million);
    wrong(&["compare", "x.toml", "--runs", "-3"], "-3", million);
    wrong(&["compare", "x.toml", "--jobs", "0"], "0", "a whole number from 1 to 65535");
    wrong(&["sweep", "x.toml", "-o", "y", "--jobs", "many"], "many", "a whole number from 1 to 65535");
    wrong(&["bench", "-c", "x", "-t", "-1"], "-1", "a whole number from 1 to 86400");
    wrong(&["bench", "-c", "x", "-P", ""], "", "a whole number from 1 to 128");
    wrong(&["bench", "-s", "-p", "70000"], "70000", "a whole number from 0 to 65535");
    wrong(&["recv", "--conversations", "0"], "0", "a whole number from 1 to 65535");
    wrong(&["recv", "--expire", "-1"], "-1", "a whole number from 0 to 4294967295");
    wrong(&["send", "x", "y", "--window", "13"], "13", "a whole number from 1 to 12");
    wrong(&["link", "--mtu", "67"], "67", "a whole number from 68 to 65535");
}

#[test]
fn a_host_stack_without_listeners_or_open_to_all() {
    let of = |arguments: &str| {
        let words = format!("tcp --address 10.88.0.2 {arguments}");
        refused(&hopline(words.split_whitespace()))
    };
    contains(&of(""), &["no program would reach the stack", "-L 8080:HOST:80"]);
    contains(&of("--socks 0.0.0.0:1080"), &["every host there", "loopback"]);
    contains(&of("-L 80"), &["8080:192.0.2.7:80"]);
    contains(&of("--socks 1080 --transport tpa"), &["tcp-door", "tcp-bbr3"]);
    contains(&of("--socks 1080 --set tcp.mss=9"), &["unknown key `mss`", "--set:1:"]);
    contains(&of("--socks 1080 --set radio.preset=x"), &["says nothing of a TCP endpoint"]);
    contains(&of("--socks 1080 --mtu 100"), &["a whole number from 576 to 65535"]);
    contains(&of("--socks 1080 --set door.t1=2"), &["`door.t1` changes nothing with tcp-cubic", "tcp-door"]);
    contains(&of("-L 80:127.0.0.1:80"), &["the stack does not reach", "--accept"]);
    contains(
        &refused(&hopline(["tcp", "--address", "127.0.0.1", "--socks", "1080"])),
        &["127.0.0.1 is an address of this machine"],
    );
}

#[test]
fn a_link_on_which_no_packet_can_overtake() {
    let error = refused(&hopline(["link", "--overtake", "--", "true"]));
    contains(&error, &["--overtake where all packets take as long", "--jitter 5ms"]);
}

#[test]
fn networks_that_cannot_be_emulated() {
    let file = scenario("chain");
    let of = |more: &[&str]| {
        refused(&hopline([&["emulate", file.to_str().unwrap()], more, &["--", "true"]].concat()))
    };
    contains(
        &of(&["--set", "routing.protocol=aodv"]),
        &["simulated flows have no routes", "--set routing.protocol=static"],
    );
    contains(&of(&["--set", "nodes.count=501"]), &["501 nodes are too many to emulate: at most 500"]);
    contains(&of(&["--set", "nodes.spacing_m=x"]), &["nodes.spacing_m"]);
    let handoff = scenario("handoff");
    contains(
        &refused(&hopline(["emulate", handoff.to_str().unwrap(), "--", "true"])),
        &["[cells] cannot be emulated", "leave out [cells] and [[mobile]]"],
    );
    contains(&refused(&hopline(["emulate", "no-such.toml", "--", "true"])), &["no-such.toml"]);
}

#[test]
fn a_value_that_is_varied_twice() {
    let file = scenario("chain");
    let error = refused(&hopline(["compare", file.to_str().unwrap(), "--vary", "tcp.window=2,3,2"]));
    contains(&error, &["`tcp.window` is varied over 2 twice", "--vary:1:16", "remove one of the two"]);
}

#[test]
fn a_closed_output_is_a_failure_and_a_broken_pipe_is_none() {
    let through_shell = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_hopline")]).arg(scenario("chain"));
        shell.env("NO_COLOR", "1").output().unwrap()
    };
    let closed = through_shell("exec \"$0\" run \"$1\" --set duration_s=1 >&-");
    assert_eq!(closed.status.code(), Some(1));
    contains(&stderr(&closed), &["cannot write to stdout: it is closed"]);
    let quiet = through_shell("exec \"$0\" run \"$1\" --set duration_s=1 >/dev/null");
    assert_eq!((quiet.status.code(), stderr(&quiet).as_str()), (Some(0), ""));
    let piped = through_shell("\"$0\" run \"$1\" --set duration_s=1 | true");
    assert_eq!((piped.status.code(), stderr(&piped).as_str()), (Some(0), ""));
}

#[test]
fn no_colours_if_disabled() {
    assert!(!refused(&run_chain(&["--set", "tcp.window=0"])).contains('\u{1b}'));
}

#[test]
fn scenarios_that_exceed_memory_are_rejected_before_allocation() {
    let text = std::fs::read_to_string(scenario("chain")).unwrap();
    let grid = text.replace("layout = \"chain\"", "layout = \"grid\"");
    let count = grid.lines().find(|line| line.starts_with("count")).unwrap().to_owned();
    let grid = grid.replace(&count, "columns = 1000000\nrows = 1000000");
    contains(
        &refused_file(&grid),
        &["a network of 1000000000000 nodes", "it has at most 1048576, which take some 3.5 GB of memory"],
    );
    let endless = format!("{text}\n[mobility]\nmodel = \"ns2\"\nfile = \"/dev/zero\"\n");
    contains(&refused_file(&endless), &["/dev/zero: not a regular file", "s.toml:"]);
    contains(&refused(&hopline(["run", "/dev/zero"])), &["/dev/zero: not a regular file"]);
}

#[test]
fn a_fifo_without_a_writer_is_rejected_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    contains(&refused(&hopline(["run", pipe.to_str().unwrap()])), &["pipe: not a regular file"]);
}

#[test]
fn files_and_directories_in_each_others_place_are_rejected_before_any_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("file"), "mine").unwrap();
    let chain = scenario("chain");
    let chain = chain.to_str().unwrap();
    let (file, below, directory) = (at("file"), at("file/below"), at(""));
    for args in [
        &["reproduce", "snoop", "errors", "--quick", "-o", &file][..],
        &["reproduce", "snoop", "errors", "--quick", "-o", &below],
        &["compare", chain, "-o", &file],
        &["run", chain, "-o", &file],
        &["run", chain, "-o", &below, "--force"],
        &["man", "-o", &file],
        &["recv", "--anyone", "-o", &file],
    ] {
        let said = refused(&hopline(args));
        assert!(said.contains("it is a file; -o takes a directory"), "{args:?}: {said}");
    }
    for args in [
        &["compare", chain, "--report", &directory][..],
        &["run", chain, "--report", &directory],
        &["reproduce", "snoop", "errors", "--quick", "--report", &directory],
        &["movements", chain, "-o", &directory, "--force"],
    ] {
        let said = refused(&hopline(args));
        assert!(said.contains("it is a directory; "), "{args:?}: {said}");
    }
    assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "mine");
}
