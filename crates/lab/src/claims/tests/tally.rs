//! Numbers of claims by verdict.

use super::statistics::{NONE, OVER_NARROW, comparison};
use super::*;

const HUNDRED: &[f64] = &[100.0; 4];
const DOUBLE: &[f64] = &[200.0; 4];

fn numbered(id: &str, what: &str) -> String {
    claim(&format!("{OVER_NARROW}\n{what}")).replacen("X-1", id, 1)
}

/// Returns the numbers of `claims`, all about a gain of 100 %.
fn tally(claims: &[String]) -> ClaimTally {
    let (_folder, register) = paper(&claims.concat());
    let register = register.unwrap();
    let comparison = comparison(&register, [HUNDRED, DOUBLE, NONE, NONE]);
    let figures = [(0, &comparison)];
    let evidence = evaluate(&register, &figures).unwrap();
    ClaimTally::of(&evidence)
}

#[test]
fn values_are_counted_apart_from_signs_and_ranges() {
    let tally = tally(&[
        numbered("X-1", "claimed = 100"),
        numbered("X-2", "claimed = 50"),
        numbered("X-3", "claimed = -50"),
        numbered("X-4", "above = 0"),
        numbered("X-5", "low = 90\nhigh = 110"),
        "[[claim]]\nid = \"X-6\"\nstatement = \"x\"\nneeds = \"y\"\n".into(),
    ]);
    assert_eq!(
        tally.lines(),
        [
            "exact values of the paper: 1 of 3 agree (1 direction only, 1 differs, 0 cannot be judged)",
            "signs and ranges of the paper: 2 of 2 agree (0 direction only, 0 differs, 0 cannot be judged)"
        ]
    );
    assert_eq!(tally.json()["values"]["direction-only"], 1);
    assert_eq!((&tally.json()["bounds"]["all"], &tally.json()["ours"]["all"]), (&2.into(), &0.into()));
}

#[test]
fn claims_of_one_sentence_count_once_with_the_worst_verdict() {
    let of = |id: &str, what: &str| numbered(id, &format!("{what}\nsentence = \"X-1\""));
    let both = tally(&[of("X-1", "above = 0"), of("X-2", "above = 50")]);
    let bounds = both.under(Heading::Bounds);
    assert_eq!((bounds.of(Verdict::Agrees), bounds.all()), (1, 1));
    let one = tally(&[of("X-1", "above = 0"), of("X-2", "above = 150"), of("X-3", "claimed = 100")]);
    assert_eq!(one.under(Heading::Bounds).of(Verdict::Differs), 1, "one of the two is wrong");
    assert_eq!(
        one.under(Heading::Values).of(Verdict::Agrees),
        1,
        "a value of the same sentence is another thing"
    );
}

#[test]
fn other_readings_and_claims_of_this_project_do_not_count_for_the_paper() {
    let tally = tally(&[
        numbered("X-1", "above = 0"),
        numbered("X-2", "claimed = 100\nkind = \"reading\""),
        numbered("X-3", "claimed = 50\nkind = \"ours\""),
        numbered("X-4", "above = 50\nkind = \"paper\""),
        numbered("X-5", "claimed = 100\nkind = \"fitted\""),
        numbered("X-6", "above = 0\nkind = \"repeated\""),
    ]);
    assert_eq!(Heading::ALL.map(|heading| tally.under(heading).all()), [0, 2, 0, 1, 1, 1]);
    assert!(problem(&claim("kind = \"theirs\"")).contains("theirs"));
}
