//! Summaries of papers.

use super::statistics::{NONE, OVER_NARROW, comparison};
use super::*;

const HUNDRED: &[f64] = &[100.0, 101.0, 99.0, 100.0];
const DOUBLE: &[f64] = &[200.0, 201.0, 199.0, 200.0];

fn numbered(id: &str, what: &str) -> String {
    claim(what).replacen("X-1", id, 1)
}

/// Returns the summary of `claims`, where narrow stands in for wide; `others` are the verdicts of the claims
/// in one other reading.
fn standing(claims: &[String], others: &[Verdict]) -> ClaimSummary {
    let otherwise: Vec<_> = others.iter().map(|&verdict| vec![(Reading::of(&[(0, 1)]), verdict)]).collect();
    standing_read(claims, &otherwise)
}

/// Returns the summary of `claims`, where narrow stands in for wide; `others` are the other readings of each
/// claim with their verdicts.
fn standing_read(claims: &[String], others: &[Vec<(Reading, Verdict)>]) -> ClaimSummary {
    let plan = "plan = \"chain.toml\"\n";
    let text = paper_text(&claims.concat()).replace(plan, &format!("{plan}sham = {{ wide = \"narrow\" }}\n"));
    let (_folder, register) = paper_of(&text);
    let register = register.unwrap();
    let comparison = comparison(&register, [HUNDRED, DOUBLE, NONE, NONE]);
    let figures = [(0, &comparison)];
    let mut evidence = evaluate(&register, &figures).unwrap();
    for (e, others) in evidence.iter_mut().zip(others) {
        let read = |(reading, verdict): &(Reading, Verdict)| AlternativeReading {
            reading: reading.clone(),
            name: "otherwise".into(),
            measurement: None,
            verdict: *verdict,
        };
        e.other_readings.extend(others.iter().map(read));
    }
    ClaimSummary::of(&evidence)
}

fn gain(id: &str, what: &str) -> String {
    numbered(id, &format!("{OVER_NARROW}\n{what}"))
}

#[test]
fn claims_are_summarised_by_their_outcome_in_all_readings() {
    let size = "point = { variant = \"wide\", \"nodes.count\" = 3 }\nabove = 50";
    let claims = [
        gain("X-1", "above = 50"),
        gain("X-2", "above = 50"),
        gain("X-3", "above = 150"),
        numbered("X-4", size),
        numbered("X-5", &format!("{NARROW}\nabove = 50")),
        gain("X-6", "above = 50\nkind = \"fitted\""),
        numbered("X-7", &size.replace("50", "200")),
    ];
    use Verdict::{Agrees, Differs, NotTested};
    let found = standing(&claims, &[Agrees, Differs, Differs, NotTested, Agrees, Agrees, Agrees]);
    let expected = ClaimSummary {
        claims: 5,
        tested: 3,
        in_all: 1,
        in_some: 1,
        in_none: 1,
        undecided: 1,
        not_testable: 1,
        readings: 2,
    };
    assert_eq!(found, expected);
    assert_eq!(
        found.headline(),
        "Of the paper's 5 claims about its system 3 are tested: 1 hold in every reading, 1 in some, 1 in none. \
         Undecided: 1. Not testable, as they come out the same with the system switched off or cannot be measured: 1."
    );
}

#[test]
fn a_sentence_holds_in_the_readings_in_which_all_its_claims_hold() {
    let of = |id: &str, what: &str| gain(id, &format!("{what}\nsentence = \"X-1\""));
    let claims = [of("X-1", "above = 50"), of("X-2", "above = 10")];
    let one = standing(&claims, &[Verdict::Agrees, Verdict::Differs]);
    assert_eq!((one.claims, one.in_all, one.in_some), (1, 0, 1));
    let wrong = standing(&[of("X-1", "above = 50"), of("X-2", "above = 150")], &[]);
    assert_eq!((wrong.claims, wrong.in_none, wrong.readings), (1, 1, 1));
    assert!(wrong.headline().contains("1 are tested: 0 of them hold."), "{}", wrong.headline());
}

#[test]
fn claims_with_different_axes_are_joined_where_common_answers_agree() {
    use Verdict::{Agrees, Differs};
    let of = |id: &str| gain(id, "above = 50\nsentence = \"X-1\"");
    let read = |answers: &[(usize, usize)], verdict| (Reading::of(answers), verdict);
    // The first claim's figure has the axes 0 and 1, the second's 1 and 2.
    let first =
        [read(&[(0, 0), (1, 1)], Agrees), read(&[(0, 1), (1, 0)], Differs), read(&[(0, 1), (1, 1)], Differs)];
    let second = |at_1: Verdict| {
        vec![read(&[(1, 0), (2, 1)], Differs), read(&[(1, 1), (2, 0)], at_1), read(&[(1, 1), (2, 1)], Agrees)]
    };
    let both = |second: Vec<_>| standing_read(&[of("X-1"), of("X-2")], &[first.to_vec(), second]);
    let some = both(second(Agrees));
    assert_eq!((some.claims, some.in_all, some.in_some, some.in_none, some.readings), (1, 0, 1, 0, 4));
    // A claim of a figure without axes applies to every reading of the other claim.
    let plain = standing_read(
        &[of("X-1"), gain("X-2", "above = 150\nsentence = \"X-1\"")],
        &[first.to_vec(), vec![]],
    );
    assert_eq!((plain.in_some, plain.in_none), (0, 1));
}

#[test]
fn claims_of_a_sentence_are_not_joined_where_an_axis_varied_alone_is_not_alone() {
    use Verdict::{Agrees, Differs};
    let of = |id: &str, bound: u32| gain(id, &format!("above = {bound}\nsentence = \"X-1\""));
    // Axis 0 is the first claim's, and varied alone or not; axis 1 is the second's. Each claim holds by its other answer.
    let found = |first: Reading| {
        let second = vec![(Reading::of(&[(1, 1)]), Agrees)];
        standing_read(&[of("X-1", 150), of("X-2", 150)], &[vec![(first, Agrees)], second])
    };
    let crossed = found(Reading::of(&[(0, 1)]));
    let alone = found(Reading::of(&[(0, 1)]).alone());
    assert_eq!((crossed.in_some, crossed.in_none), (1, 0));
    assert_eq!((alone.in_some, alone.in_none), (0, 1));
    let differs = found_in(&[of("X-1", 50), of("X-2", 50)], Differs);
    assert_eq!((differs.in_all, differs.in_some), (0, 1), "it meets the first reading of the other");
}

/// The summary of two claims of which the first has `verdict` where an axis of its own is varied alone.
fn found_in(claims: &[String], verdict: Verdict) -> ClaimSummary {
    standing_read(claims, &[vec![(Reading::of(&[(0, 1)]).alone(), verdict)], vec![]])
}

#[test]
fn a_sentence_holds_in_no_reading_if_its_claims_hold_in_disjoint_ones() {
    use Verdict::{Agrees, Differs};
    let of = |id: &str, bound: u32| gain(id, &format!("above = {bound}\nsentence = \"X-1\""));
    let read = |verdict| vec![(Reading::of(&[(0, 1)]), verdict)];
    let none = standing_read(&[of("X-1", 50), of("X-2", 150)], &[read(Differs), read(Agrees)]);
    assert_eq!((none.in_some, none.in_none), (0, 1));
}

#[test]
fn a_claim_without_the_mechanism_does_not_decide_its_sentence() {
    let size = "point = { variant = \"wide\", \"nodes.count\" = 3 }\nabove = 50\nsentence = \"X-1\"";
    let both = standing(&[gain("X-1", "above = 50\nsentence = \"X-1\""), numbered("X-2", size)], &[]);
    assert_eq!((both.claims, both.tested, both.in_all), (1, 1, 1));
}
