//! Tests of the checks of pages: each finds the error that is made here.

use crate::docs::links;
use crate::docs::page::Page;
use crate::docs::parameters;
use crate::docs::printed::compare;
use crate::docs::walk::{Mode, Share, walk};
use hopline_harness::{Test, tests};

pub(crate) fn all() -> Vec<Test> {
    tests!([];
        missing_link_targets_are_found,
        missing_paths_are_found,
        headings_have_the_anchors_of_the_web_view,
        a_default_or_range_of_another_value_is_found,
        defaults_of_kinds_and_presets_are_compared,
        fields_of_a_kind_of_proxy_are_compared_with_its_keys,
        a_table_of_parameters_without_a_mark_is_found,
        an_unmarked_block_is_found,
        another_number_is_a_difference_and_another_cpu_time_is_not,
        an_ellipsis_matches_any_lines_and_nothing_else_does,
        a_failing_command_or_another_output_is_found,
        commands_without_output_are_run_if_harmless,
        an_invalid_file_is_found,
        an_outdated_excerpt_is_found,
        slow_examples_run_only_on_request,
        an_update_writes_the_printed_output_only,
    )
    .into()
}

fn page(text: &str) -> Page {
    Page::parse(&crate::docs::root().join("page.md"), "page.md".into(), text.into())
}

fn said(text: &str) -> String {
    walk(&page(text), Share::Quick, Mode::Compare).err().unwrap_or_default().join("\n")
}

fn missing_link_targets_are_found() {
    let good =
        "# One\n[a](#one) [b](docs/link.md) [c](docs) [d](https://example.org/x) ![e](docs/agreement.svg)\n";
    assert_eq!(links::check(&page(good)), Ok(()));
    for (bad, why) in [
        ("# One\n[a](#two)", "page.md:2: #two: there is no heading #two"),
        ("[a](docs/nowhere.md)", "page.md:1: docs/nowhere.md: there is no such file"),
        ("[a](docs/link.md#nowhere)", "page.md:1: docs/link.md#nowhere: there is no heading #nowhere"),
        ("## [a](nowhere)", "page.md:1: nowhere: there is no such file"),
        ("| a |\n|---|\n| [a](nowhere) |", "page.md:3: nowhere: there is no such file"),
        ("[a](../..)", "page.md:1: ../..: it leads out of the repository"),
        ("[a](Makefile#check)", "page.md:1: Makefile#check: only pages have headings"),
    ] {
        assert_eq!(links::check(&page(bad)), Err(vec![why.into()]), "{bad}");
    }
}

fn missing_paths_are_found() {
    let good = "`crates/cli/src/{main,args}.rs`, `docs/`, `x/y.rs`, `scenarios/*/x`, `papers tpa`, `{`";
    assert_eq!(links::check(&page(good)), Ok(()));
    let lost = links::check(&page("a\n`crates/cli/src/{main,nothing}.rs` `docs/nowhere.md`")).unwrap_err();
    let expected = ["crates/cli/src/nothing.rs", "docs/nowhere.md"];
    assert_eq!(lost, expected.map(|path| format!("page.md:2: {path}: there is no such file")));
}

fn headings_have_the_anchors_of_the_web_view() {
    let text = "# TPA over UDP, on `Linux`\n## `[[variant]]`: what is compared; the first\n## Same\n## Same\n## Über_uns – ja\n";
    let expected =
        ["tpa-over-udp-on-linux", "variant-what-is-compared-the-first", "same", "same-1", "über_uns--ja"];
    assert_eq!(page(text).anchors, expected);
}

/// Returns what is wrong with the parameters of a table that follows `before`.
fn parameters_said(before: &str, header: &str, rows: &[&str]) -> String {
    let columns = header.matches(" | ").count() + 1;
    let rows: String = rows.iter().map(|row| format!("| {row} |\n")).collect();
    let text = format!("# A\n\n{before}\n| {header} |\n|{}\n{rows}", "---|".repeat(columns));
    parameters::check(&page(&text)).err().unwrap_or_default().join("\n")
}

fn a_default_or_range_of_another_value_is_found() {
    let said = |row: &str| parameters_said("<!-- keys: tpa -->", "key | range | default", &[row]);
    for right in [
        "`cwnd_max` | 1 to 12 | 3",
        "`block_fill_ms` | whole, 0 to 60000 | 100 ms",
        "`block_fill_ms` | 0–1 min | 0.1 s",
        "`g`, `h` | 0.001 to 1 | 1/8, 1/4",
        "`echo` | `last`, `first` | `last`",
        "`pacing` | `none`, `adaptive` | `none`, of tpa-ap: `adaptive`",
    ] {
        assert_eq!(said(right), "", "{right}");
    }
    for (wrong, says) in [
        ("`cwnd_max` | 1 to 12 | 2", "page.md:6: the default of `cwnd_max` is 3, not 2"),
        ("`cwnd_max` | 1 to 11 | 3", "page.md:6: `cwnd_max` takes whole, 1 to 12, not 1 to 11"),
        ("`block_fill_ms` | 0–1 min | 100 s", "the default of `block_fill_ms` is 100, not 100 s"),
        ("`block_fill_ms` | 0–1 min | 100 bytes", "the default of `block_fill_ms` is 100, not 100 bytes"),
        ("`g`, `h` | 0.001 to 1 | 1/4", "the default of `g` is 0.125, not 1/4"),
        ("`g`, `h` | 0.001 to 1 | 1/8, 1/4, 1/2", "2 keys, and other defaults"),
        (
            "`pacing` | `none`, `adaptive` | `none`",
            "the default of `pacing` is none, of tpa-ap: adaptive, not none",
        ),
        ("`cwnd` | 1 to 12 | 3", "`tpa` has no key `cwnd`"),
        ("cwnd_max | 1 to 12 | 3", "is not a list of keys in backticks"),
        ("`cwnd_max`: the window | 1 to 12 | 3", "is not a list of keys in backticks"),
    ] {
        assert!(said(wrong).contains(says), "{wrong}: {}", said(wrong));
    }
    let unit = |row: &str| parameters_said("<!-- keys: tcp -->", "key | unit", &[row]);
    assert_eq!([unit("`min_rto_s` | s"), unit("`cubic_beta` | ")], ["", ""]);
    assert!(unit("`min_rto_s` | ms").contains("the unit of `min_rto_s` is s, not ms"));
}

fn defaults_of_kinds_and_presets_are_compared() {
    let of = |kind: &str, row: &str| {
        parameters_said(&format!("<!-- keys: proxy, of {kind} -->"), "key | default", &[row])
    };
    assert_eq!(of("ack-pacing", "`high_water_packets` | 4096"), "");
    assert!(
        of("snoop", "`high_water_packets` | 4096").contains("the default of `high_water_packets` is 2000")
    );
    let by = |row: &str| {
        parameters_said("<!-- keys: queue, by radio.preset -->", "key | default | `ns2-wavelan`", &[row])
    };
    assert_eq!(by("`capacity_packets` | 50 | 49"), "");
    assert!(by("`capacity_packets` | 49 | 49").contains("the default of `capacity_packets` is 50"));
    assert!(by("`capacity_packets` | 50 | 50").contains("queue.capacity_packets of ns2-wavelan is not 50"));
}

fn fields_of_a_kind_of_proxy_are_compared_with_its_keys() {
    let said = |row: &str| parameters_said("<!-- fields: gateway -->", "field | range | default", &[row]);
    for right in [
        "`fallback_after` | 100 ms–60 s | 3 s",
        "`buffer` | 4 KiB–1 MiB | 32 KiB",
        "`max_connections` | 1–65 535 | 1024",
        "`negotiation_timeout` | 100 ms–60 s | 10 s",
        "`.asking(known)` | | all use the exit",
    ] {
        assert_eq!(said(right), "", "{right}");
    }
    assert!(
        said("`fallback_after` | 100 ms–60 s | 2 s")
            .contains("`fallback_after_s` has the default 3, not 2 s")
    );
    assert!(
        said("`fallback_after` | 1–60 s | 3 s").contains("`fallback_after_s` takes 0.1 to 60, not 1–60 s")
    );
    assert!(said("`buffer` | 4 KiB–16 MiB | 32 KiB").contains("takes 4096 to 1048576"));
}

fn a_table_of_parameters_without_a_mark_is_found() {
    let (header, row) = ("key | default", "`tcp.ack_every` | 2");
    assert!(
        parameters_said("Text.", header, &[row]).contains("page.md:4: a table of parameters without a mark")
    );
    assert!(
        parameters_said("", "key | `dot11b`", &["`first_access` | immediate"]).contains("without a mark")
    );
    assert_eq!(parameters_said("<!-- not keys: of a command -->", header, &[row]), "");
    // Results, and keys of nothing.
    assert_eq!(parameters_said("", "key | Mb/s", &[row]), "");
    assert_eq!(parameters_said("", header, &["`--timeout` | 2"]), "");
    assert!(
        parameters_said("<!-- keys: tcpp -->", header, &[row]).contains("scenarios have no table `tcpp`")
    );
    assert!(
        parameters_said("<!-- keys: tcp, for bbr -->", header, &[row])
            .contains("`for bbr` is not understood")
    );
    assert!(parameters_said("<!-- fields: gate -->", header, &[row]).contains("there is no kind `gate`"));
}

fn an_unmarked_block_is_found() {
    for block in
        ["```toml\na = 1\n```\n", "```text\npicture\n```\n", "```\nhopline run\n```\n", "```rust\nx\n```\n"]
    {
        assert!(said(block).contains("is not run, and does not say why"), "{block}: {}", said(block));
        let marked = format!("<!-- not run: a picture -->\n{block}");
        assert_eq!(said(&marked), "", "{marked}");
        // A mark applies to the next block alone, and not beyond a paragraph.
        assert!(said(&format!("{marked}\n{block}")).contains("is not run"));
        assert!(said(&format!("<!-- not run: a picture -->\n\nText.\n\n{block}")).contains("is not run"));
    }
}

fn another_number_is_a_difference_and_another_cpu_time_is_not() {
    let table = "a  kb/s  CPU s  fingerprint\nx   1.0   0.45  38f6\n\nb, 0.03 CPU s\nreport 7\n";
    let wider = "a   kb/s   CPU s  fingerprint\nx    1.0  210.45  38f6\n\nb, 11.0 CPU s\nreport 7\n";
    assert_eq!(compare(table, wider), Ok(()));
    for (is, other) in [("1.0", "1.1"), ("38f6", "38f7"), ("report 7", "report 8"), ("kb/s", "Mb/s")] {
        assert!(compare(table, &table.replace(is, other)).is_err(), "{other}");
    }
    assert_eq!(compare("a\n", "a\nb\n"), Err("shown:   nothing more\nprinted: b".into()));
    assert_eq!(compare("a\nb\n", "a\n"), Err("shown:   b\nprinted: nothing more".into()));
}

fn an_ellipsis_matches_any_lines_and_nothing_else_does() {
    assert_eq!(compare("a\n…\nd\n", "a\nb\nc\nd\n"), Ok(()));
    assert_eq!(compare("…\nd\n", "d\n"), Ok(()));
    assert_eq!(compare("a\n…\n", "a\n"), Ok(()));
    assert!(compare("a\n…\nd\n", "a\nb\nc\n").is_err());
    assert!(compare("…\nb\n", "a\nb\nc\n").is_err());
}

fn a_failing_command_or_another_output_is_found() {
    let version = format!("hopline {}", env!("CARGO_PKG_VERSION"));
    let block =
        |shown: &str| format!("```text\n$ hopline \\\n  --version\n{shown}\n$ hopline -V\n{version}\n```\n");
    assert_eq!(said(&block(&version)), "");
    assert!(said(&block("hopline 7")).contains(&format!("shown:   hopline 7\nprinted: {version}")));
    assert!(said("<!-- prints: echo one -->\n```text\ntwo\n```\n").contains("printed: one"));
    assert!(said("<!-- setup: exit 3 -->\n").contains("exit 3: fails"));
    assert!(said("<!-- run -->\n\n    exit 3\n").contains("the script: fails"));
    // The setup has created the file.
    assert_eq!(said("<!-- setup: echo one > file -->\n\n<!-- run -->\n\n    test -s file\n"), "");
}

fn commands_without_output_are_run_if_harmless() {
    assert_eq!(said("    hopline run scenarios/chain/scenario.toml --set duration_s=0.1  # short\n"), "");
    assert_eq!(
        said("```sh\nhopline compare scenarios/chain/scenario.toml \\\n  --vary tcp.window=2,3\n```\n"),
        ""
    );
    assert_eq!(said("    hopline sweep scenarios/transports/plan.toml -o x\n"), "");
    assert!(said("    hopline sweep scenarios/transports/scenario.toml -o x\n").contains("scenario.toml"));
    assert_eq!(said("    hopline reproduce tpa chain --quick\n    hopline reproduce tpa -o x\n"), "");
    for wrong in [
        "run scenarios/nowhere.toml",
        "run scenarios/chain/scenario.toml --set tcp.windw=3",
        "reproduce tpa nothing",
        "reproduce nothing -o x",
    ] {
        assert!(said(&format!("    hopline {wrong}\n")).contains("fails"), "{wrong}");
    }
    for harmful in ["iptables -F", "hopline proxy run proxy.toml", "make demo", "hopline recv", "hopline"] {
        assert!(said(&format!("    {harmful}\n")).contains("is not run here"), "{harmful}");
        assert_eq!(said(&format!("<!-- not run: it does harm -->\n\n    {harmful}\n")), "");
    }
}

fn an_invalid_file_is_found() {
    let file = |mark: &str, text: &str| said(&format!("<!-- {mark}: x.toml -->\n```toml\n{text}\n```\n"));
    assert!(file("scenario", "duration_s = 1\nnode = 3").contains("node"));
    let network =
        "duration_s = 1\nradio.preset = \"dot11b\"\nnodes = { layout = \"chain\", count = 2, spacing_m = 9 }";
    assert!(file("scenario", network).contains("no flows"));
    assert_eq!(file("network", network), "");
    assert!(file("network", &format!("{network}\nnode = 3")).contains("node"));
    assert!(
        file("plan", "scenario = \"scenarios/chain/scenario.toml\"\n[grid]\n\"tcp.windw\" = [1]")
            .contains("windw")
    );
    assert!(file("proxy", "[[proxy]]\nkind = \"snop\"").contains("snop"));
    assert_eq!(
        file("plan", "scenario = \"scenarios/chain/scenario.toml\"\n[grid]\n\"tcp.window\" = [1, 2]"),
        ""
    );
    assert_eq!(file("file", "whatever"), "");
}

fn an_outdated_excerpt_is_found() {
    let of = |text: &str| said(&format!("<!-- excerpt: clippy.toml -->\n```toml\n{text}\n```\n"));
    assert_eq!(of("disallowed-methods"), "");
    assert!(of("what nobody wrote").contains("is not in"));
}

fn slow_examples_run_only_on_request() {
    let text = "<!-- slow -->\n```text\n$ hopline -V\ntwo\n```\n";
    assert_eq!(said(text), "");
    assert!(walk(&page(text), Share::Slow, Mode::Compare).is_err());
}

fn an_update_writes_the_printed_output_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.md");
    let update = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let said = walk(&Page::load(&file), Share::Quick, Mode::Update);
        (said.is_ok(), std::fs::read_to_string(&file).unwrap())
    };
    let text = |one: &str, two: &str| {
        format!(
            "# A\n```text\n$ hopline -V\n{one}\n\n$ hopline -V\n```\nB\n<!-- prints: echo '1 0.5 CPU s' -->\n```text\n{two}\n```\n"
        )
    };
    let version = format!("hopline {}", env!("CARGO_PKG_VERSION"));
    let right =
        text(&version, "1 0.5 CPU s").replace("$ hopline -V\n```", &format!("$ hopline -V\n{version}\n```"));
    assert_eq!(update(&text("hopline 7", "2 0.5 CPU s")), (true, right.clone()));
    // A page that differs only in CPU times is not changed.
    let as_good = right.replace("0.5 CPU s\n", "0.7 CPU s\n");
    assert_eq!(update(&as_good), (true, as_good.clone()));
    // Abridged output is not updated: people have to write it.
    let abridged = text("…\nhopline 7", "1 0.5 CPU s");
    assert_eq!(update(&abridged), (false, abridged.clone()));
}
