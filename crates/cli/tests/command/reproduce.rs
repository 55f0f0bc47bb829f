//! `hopline reproduce`.

use super::*;

#[test]
fn papers_figures_and_claims_are_listed() {
    let text = stdout(&hopline(["reproduce", "--list"]));
    for word in ["tpa: ", "nred: ", "door: ", "cannot be judged yet: "] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    let one = stdout(&hopline(["reproduce", "nred", "--list"]));
    assert!(one.starts_with("nred: ") && !one.contains("tpa: "), "{one}");
}

#[test]
fn an_unknown_paper_or_figure_is_refused_with_those_that_there_are() {
    for (args, known) in [(["reproduce", "tap"], "the papers are"), (["reproduce", "tpa/"], "the papers are")]
    {
        let output = hopline(args);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
        assert!(stderr(&output).contains(known) && stderr(&output).contains("tpa"), "{}", stderr(&output));
    }
    let output = hopline(["reproduce", "tpa", "chian"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("tpa has no figure `chian`"), "{}", stderr(&output));
}
