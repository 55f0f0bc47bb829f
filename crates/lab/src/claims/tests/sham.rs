//! Claims with the mechanism under test switched off.

use super::statistics::{NONE, OVER_NARROW, comparison};
use super::*;

const HUNDRED: &[f64] = &[100.0, 101.0, 99.0, 100.0];
const DOUBLE: &[f64] = &[200.0, 201.0, 199.0, 200.0];
const WIDE_ALONE: &str = "point = { variant = \"wide\", \"nodes.count\" = 3 }";

/// Outcome of a claim where \"narrow\" stands in for \"wide\".
struct Tested {
    verdict: Verdict,
    why: String,
    mechanism: Mechanism,
    tally: ClaimTally,
}

fn with_shams(shams: &str, claims: &str) -> (tempfile::TempDir, Result<Register, Problems>) {
    let plan = "plan = \"chain.toml\"\n";
    paper_of(&paper_text(claims).replace(plan, &format!("{plan}sham = {shams}\n")))
}

fn tested_at(what: &str, goodputs: super::statistics::Goodputs<'_>) -> Tested {
    let (_folder, register) = with_shams("{ wide = \"narrow\" }", &claim(what));
    let register = register.unwrap();
    let comparison = comparison(&register, goodputs);
    let figures = [(0, &comparison)];
    let evidence = evaluate(&register, &figures).unwrap();
    let tally = ClaimTally::of(&evidence);
    let Evidence { verdict, why, mechanism, .. } = evidence.into_iter().next().unwrap();
    Tested { verdict, why, mechanism, tally }
}

fn tested(what: &str) -> Tested {
    tested_at(what, [HUNDRED, DOUBLE, NONE, NONE])
}

fn off(tested: &Tested) -> (Option<f64>, Verdict) {
    let Mechanism::Removed(sham) = &tested.mechanism else { panic!("{:?}", tested.mechanism) };
    (sham.measurement.as_ref().map(|m| m.value), sham.verdict)
}

#[test]
fn a_gain_of_the_mechanism_vanishes_in_the_ablation_and_the_claim_stands() {
    let gain = tested(&format!("{OVER_NARROW}\nabove = 50"));
    assert_eq!((gain.verdict, off(&gain)), (Verdict::Agrees, (Some(0.0), Verdict::Differs)));
    assert_eq!(gain.tally.under(Heading::Bounds).of(Verdict::Agrees), 1);
}

#[test]
fn a_claim_that_holds_without_the_mechanism_is_not_tested_and_not_counted() {
    let size = tested(&format!("{WIDE_ALONE}\nabove = 50"));
    assert_eq!((size.verdict, off(&size)), (Verdict::NotTested, (Some(100.0), Verdict::Agrees)));
    assert_eq!(size.why, "it comes out the same with the mechanism switched off");
    assert_eq!(
        size.tally.lines()[0],
        "signs and ranges of the paper: 0 of 0 agree (0 direction only, 0 differs, 0 cannot be judged), 1 not tested"
    );
}

#[test]
fn a_direction_that_the_ablation_has_too_is_not_tested() {
    let against_four = "point = { variant = \"wide\", \"nodes.count\" = 3 }\n\
                        against = { variant = \"narrow\", \"nodes.count\" = 4 }\nclaimed = 1000";
    let both = tested_at(against_four, [HUNDRED, DOUBLE, &[50.0, 51.0, 49.0, 50.0], NONE]);
    assert_eq!((both.verdict, off(&both).1), (Verdict::NotTested, Verdict::DirectionOnly));
}

#[test]
fn a_claim_that_differs_differs_whatever_the_ablation_shows() {
    let differs = tested(&format!("{WIDE_ALONE}\nbelow = 150"));
    assert_eq!((differs.verdict, off(&differs).1), (Verdict::Differs, Verdict::Agrees));
}

#[test]
fn an_ablation_has_the_keys_that_all_variants_are_varied_over() {
    let at_four = "point = { variant = \"wide\", \"nodes.count\" = 4 }\nabove = 150";
    let four = tested_at(at_four, [NONE, NONE, HUNDRED, DOUBLE]);
    assert_eq!((four.verdict, off(&four)), (Verdict::Agrees, (Some(100.0), Verdict::Differs)));
}

#[test]
fn a_claim_without_the_mechanism_is_counted_separately() {
    let baseline = tested(&format!("{NARROW}\nabove = 50"));
    assert_eq!((baseline.verdict, &baseline.mechanism), (Verdict::Agrees, &Mechanism::Absent));
    assert_eq!(Heading::ALL.map(|heading| baseline.tally.under(heading).all()), [0, 0, 1, 0, 0, 0]);
}

#[test]
fn a_claim_about_another_mechanism_has_its_own_ablations() {
    let own = tested(&format!("{NARROW}\nabove = 50\nsham = {{ narrow = \"wide\" }}"));
    assert_eq!((own.verdict, off(&own)), (Verdict::NotTested, (Some(200.0), Verdict::Agrees)));
    let none = tested(&format!("{WIDE_ALONE}\nabove = 50\nsham = {{}}"));
    assert_eq!((none.verdict, none.mechanism), (Verdict::Agrees, Mechanism::Absent));
}

#[test]
fn without_ablations_nothing_is_reported_about_the_mechanism() {
    let (_folder, register) = paper(&claim(&format!("{WIDE_ALONE}\nabove = 50")));
    let register = register.unwrap();
    let comparison = comparison(&register, [HUNDRED, DOUBLE, NONE, NONE]);
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    assert_eq!((evidence[0].verdict, &evidence[0].mechanism), (Verdict::Agrees, &Mechanism::Unknown));
}

#[test]
fn an_ablation_that_the_plan_lacks_is_rejected_at_its_position() {
    for (shams, expected) in [
        ("{ wide = \"narow\" }", "did you mean \"narrow\"?"),
        ("{ wied = \"narrow\" }", "did you mean \"wide\"?"),
    ] {
        let (_folder, register) = with_shams(shams, &claim(&format!("{WIDE_ALONE}\nabove = 50")));
        let register = register.unwrap();
        let refused = register.plan(&register.figures[0], &[], Effort::Full).unwrap_err().to_string();
        assert!(refused.contains(expected) && refused.contains("claims.toml:"), "{refused}");
    }
    let refused = with_shams("{ wide = 3 }", &claim("above = 0")).1.unwrap_err().to_string();
    assert!(refused.contains("the stand-in of \"wide\" is no text"), "{refused}");
}
