//! `schema`, `doctor`, `completions` and `man`.

use super::*;

#[test]
fn a_schema_is_printed_for_every_kind_of_file() {
    let schema = json(&hopline(["schema"]));
    assert_eq!(schema, json(&hopline(["schema", "scenario"])), "a scenario is meant if nothing is named");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["required"], serde_json::json!(["duration_s"]));
    for key in ["duration_s", "radio", "flow", "sweep"] {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
    assert!(stdout(&hopline(["schema", "--help"])).contains("possible values: scenario, plan, claims"));
}

#[test]
fn an_unknown_kind_of_file_is_rejected() {
    let output = hopline(["schema", "picture"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("scenario"), "{}", stderr(&output));
}

#[test]
fn the_doctor_states_purpose_and_remedy_of_each_feature() {
    let report = json(&hopline(["doctor", "--json"]));
    assert_eq!(keys(&report), ["findings"]);
    let findings = report["findings"].as_array().unwrap();
    for finding in findings {
        assert_eq!(keys(finding), ["detail", "purpose", "remedy", "state", "what"], "{finding}");
        let present = match finding["state"].as_str().unwrap() {
            "present" => true,
            "missing" | "unknown" => false,
            other => panic!("{other}"),
        };
        assert_eq!(finding["remedy"].is_null(), present, "{finding}");
        for key in ["detail", "purpose", "what"] {
            assert!(!finding[key].as_str().unwrap().is_empty(), "{finding}");
        }
    }
    let what: Vec<&str> = findings.iter().map(|f| f["what"].as_str().unwrap()).collect();
    for expected in [
        "hopline",
        "cores",
        "memory",
        "disk",
        "privileges",
        "network namespaces",
        "TUN",
        "emulated link",
        "NFQUEUE",
        "TPROXY",
        "ns-2",
        "tshark",
        "Chromium",
    ] {
        assert!(what.contains(&expected), "{expected} is not in {what:?}");
    }
    assert_eq!(findings[0]["detail"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn missing_programs_are_no_failure() {
    let output = command().arg("doctor").env("PATH", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let line =
        |what: &str| text.lines().find(|l| l.starts_with(what)).unwrap_or_else(|| panic!("{what}: {text}"));
    for what in ["ns-2", "tshark", "Chromium"] {
        assert!(line(what).contains("no ") && line(what).contains("not found"), "{}", line(what));
    }
    assert!(text.contains("To get what is missing:"), "{text}");
    assert!(text.contains("tshark: apt-get install tshark"), "{text}");
    assert_eq!(stderr(&output), "");
}

/// A program that fails, prints binary data, or is not executable, does not make the doctor fail.
#[test]
#[cfg(unix)]
fn a_broken_program_is_no_failure() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    place("tshark", "#!/bin/sh\nprintf '\\377\\376 9'\n");
    place("ip", "#!/bin/sh\nexit 3\n");
    place("chromium", "not a program at all");
    let output = command().args(["doctor", "--json"]).env("PATH", folder.path()).output().unwrap();
    let report = json(&output);
    let state = |what: &str| {
        let findings = report["findings"].as_array().unwrap();
        findings.iter().find(|f| f["what"] == what).unwrap()["state"].clone()
    };
    assert_eq!(
        (state("tshark"), state("iproute2"), state("Chromium")),
        ("present".into(), "unknown".into(), "missing".into())
    );
}

#[test]
fn completions_contain_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = hopline(["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{shell}: {}", stderr(&output));
        let script = stdout(&output);
        for word in COMMANDS.iter().chain(&["set", "vary", "force"]) {
            assert!(script.contains(word), "{shell} does not complete {word}");
        }
    }
    assert_eq!(hopline(["completions", "tcsh"]).status.code(), Some(2));
    assert_eq!(hopline(["completions"]).status.code(), Some(2));
}

#[test]
fn the_main_manual_page_names_every_command() {
    let page = stdout(&hopline(["man"]));
    assert!(page.contains(".TH hopline 1"), "{page}");
    for command in COMMANDS {
        assert!(page.contains(&format!("hopline\\-{command}(1)")), "{command}\n{page}");
    }
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let output = hopline(["man", "-o", pages.to_str().unwrap()]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), String::new()), "{}", stderr(&output));
    let mut expected: Vec<String> = COMMANDS.iter().map(|c| format!("hopline-{c}.1")).collect();
    expected.extend(PROXY_COMMANDS.iter().map(|c| format!("hopline-proxy-{c}.1")));
    expected.extend(KEY_COMMANDS.iter().map(|c| format!("hopline-key-{c}.1")));
    expected.push("hopline.1".into());
    expected.sort();
    assert_eq!(names(&pages), expected);
    for name in names(&pages) {
        let text = std::fs::read_to_string(pages.join(&name)).unwrap();
        let title = name.trim_end_matches(".1");
        for part in [&*format!(".TH {title} 1"), ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"]
        {
            assert!(text.contains(part), "{part} is not in {name}");
        }
    }
}

#[test]
fn unwritable_pages_are_a_single_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = hopline(["man", "-o", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("it is a file; -o takes a directory"), "{}", stderr(&output));
}

#[test]
fn help_is_wrapped_at_a_fixed_width() {
    // Lines wider than 110 columns are hard to read.
    for (columns, width) in [("80", 80), ("200", 110)] {
        let main = [vec!["--help"]].into_iter();
        for args in main.chain(COMMANDS.map(|command| vec![command, "--help"])) {
            let help = command().args(&args).env("COLUMNS", columns).output().unwrap();
            let help = stdout(&help);
            let begin = help.find("\nExample").or(help.find("\nExit codes:")).unwrap_or(help.len());
            let lines: Vec<&str> = help[begin..].lines().collect();
            for pair in lines.windows(2) {
                let [line, next] = pair else { unreachable!("two lines") };
                assert!(line.chars().count() <= width, "{args:?} {columns}: {line}");
                let of_one_paragraph = |line: &str| !line.is_empty() && !line.starts_with(' ');
                if of_one_paragraph(line) && of_one_paragraph(next) && !next.starts_with("Exit codes:") {
                    let first = next.split(' ').next().unwrap().chars().count();
                    assert!(line.chars().count() + 1 + first > width, "{args:?} {columns}: {line} | {next}");
                }
            }
        }
    }
}
