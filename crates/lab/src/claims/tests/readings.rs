//! Claims in other readings.

use super::*;
use hopline_config::document::Setting;

const AXES: &str = "\
[[axis]]
id = \"acks\"
words = \"the text does not say when ACKs are sent\"
[[axis.reading]]
name = \"delayed\"
[[axis.reading]]
name = \"at once\"
set = { \"tcp.delayed_ack_ms\" = \"off\" }
[[axis]]
id = \"time\"
words = \"nor for how long\"
figures = [\"chain\"]
[[axis.reading]]
name = \"as the plan\"
[[axis.reading]]
name = \"twice\"
set = { duration_s = 4 }
";

fn register_with(axes: &str, claims: &str) -> (tempfile::TempDir, Result<Register, Problems>) {
    paper_of(&format!("{HEAD}{axes}{claims}"))
}

fn made(register: &Register) -> Vec<(usize, Reading, Comparison)> {
    let figure = &register.figures[0];
    let run = |reading: Reading| {
        let plan = register.plan_in_reading(figure, &reading, &[], Effort::Full).unwrap();
        let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
        (0, reading, in_memory(&plan, how).unwrap().0)
    };
    register.readings(figure).into_iter().filter(|reading| !reading.is_first()).map(run).collect()
}

fn borrowed(made: &[(usize, Reading, Comparison)]) -> Vec<(usize, Reading, &Comparison)> {
    made.iter().map(|(number, reading, comparison)| (*number, reading.clone(), comparison)).collect()
}

#[test]
fn a_single_claim_has_plans_of_its_own_points_in_every_other_reading() {
    let claims = [claim(&format!("{WIDE}\nabove = 0")), claim(&format!("{NARROW}\nabove = 0"))];
    let second = claims[1].replacen("X-1", "X-2", 1);
    let (_folder, register) = register_with(AXES, &[claims[0].as_str(), &second].concat());
    let register = register.unwrap();
    let claim = register.claim("X-2").unwrap();
    let axes: Vec<&str> = register.axes_of(claim).iter().map(|axis| axis.id.as_str()).collect();
    assert_eq!(axes, ["acks", "time"]);
    let plans = register.alternative_plans_of(claim, &[], Effort::Full).unwrap();
    let names: Vec<String> = plans.iter().map(|(_, reading, _)| reading.name(&register)).collect();
    assert_eq!(names, ["twice", "at once", "at once, twice"]);
    assert!(plans.iter().all(|(.., plan)| plan.points.len() == 1), "the point of X-2 alone");
}

#[test]
fn a_claim_is_judged_in_every_combination_of_answers() {
    let claim = claim(&format!("{WIDE}\nabove = 0"));
    let (_folder, register) = register_with(AXES, &claim);
    let register = register.unwrap();
    let names: Vec<String> =
        register.readings(&register.figures[0]).iter().map(|reading| reading.name(&register)).collect();
    assert_eq!(names, ["as written", "twice", "at once", "at once, twice"]);
    let comparison = run(&register);
    let figures = [(0, &comparison)];
    let mut evidence = evaluate(&register, &figures).unwrap();
    assert_eq!(evidence[0].holds_in(), None);
    let made = made(&register);
    // Only the points by which the claim is judged are run.
    assert!(made.iter().all(|(.., comparison)| comparison.points.len() == 2));
    register.judge_alternative_readings(&mut evidence, &borrowed(&made)).unwrap();
    let read = &evidence[0].other_readings;
    assert_eq!(
        read.iter().map(|read| read.name.as_str()).collect::<Vec<_>>(),
        ["twice", "at once", "at once, twice"]
    );
    let agreeing = read.iter().filter(|read| read.verdict == Verdict::Agrees).count();
    let first = usize::from(evidence[0].verdict == Verdict::Agrees);
    assert_eq!(evidence[0].holds_in(), Some((agreeing + first, 4)));
    let values: Vec<f64> = read.iter().map(|read| read.measurement.as_ref().unwrap().value).collect();
    assert!(values[0] != values[1] && values[1] != values[2], "{values:?}");
}

#[test]
fn an_axis_varied_alone_adds_a_reading_for_each_other_answer() {
    let alone = "\
[[axis]]
id = \"window\"
words = \"a few segments\"
alone = true
[[axis.reading]]
name = \"the plan's\"
[[axis.reading]]
name = \"twelve\"
set = { \"tcp.initial_window\" = 12 }
[[axis.reading]]
name = \"one\"
set = { \"tcp.initial_window\" = 1 }
";
    // Its place among the axes does not matter: crossed readings come first, in their order.
    let (_folder, register) = register_with(&[alone, AXES].concat(), &claim(&format!("{WIDE}\nabove = 0")));
    let register = register.unwrap();
    let readings = register.readings(&register.figures[0]);
    let names: Vec<String> = readings.iter().map(|reading| reading.name(&register)).collect();
    assert_eq!(names, ["as written", "twice", "at once", "at once, twice", "twelve", "one"]);
    let comparison = run(&register);
    let mut evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    register.judge_alternative_readings(&mut evidence, &borrowed(&made(&register))).unwrap();
    assert_eq!(evidence[0].other_readings.len(), 5, "each of them is judged");
    assert_eq!(evidence[0].other_readings[3].name, "twelve");
    assert_eq!(evidence[0].other_readings[3].reading, readings[4]);
}

#[test]
fn an_axis_varied_alone_that_changes_no_run_of_a_claim_adds_no_reading() {
    // No timer is backed off as far as the longest timeout.
    let axis = |alone: &str| {
        format!(
            "[[axis]]\nid = \"timer\"\nwords = \"none\"\n{alone}[[axis.reading]]\nname = \"60 s\"\n\
             [[axis.reading]]\nname = \"61 s\"\nset = {{ \"tcp.max_rto_s\" = 61 }}\n"
        )
    };
    let read = |alone: &str| {
        let (_folder, register) = register_with(&axis(alone), &claim(&format!("{WIDE}\nabove = 0")));
        let register = register.unwrap();
        let comparison = run(&register);
        let mut evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
        let others = made(&register);
        let all = [register.as_written(&[(0, &comparison)]), borrowed(&others)].concat();
        register.judge_alternative_readings(&mut evidence, &all).unwrap();
        evidence[0].other_readings.len()
    };
    assert_eq!((read(""), read("alone = true\n")), (1, 0));
}

#[test]
fn an_axis_without_a_choice_or_of_another_figure_is_rejected() {
    let one = AXES.replace("[[axis.reading]]\nname = \"twice\"\nset = { duration_s = 4 }\n", "");
    let claims = claim(&format!("{WIDE}\nabove = 0"));
    let refused = |axes: &str| register_with(axes, &claims).1.unwrap_err().to_string();
    assert!(refused(&one).contains("the axis \"time\" has a single reading"));
    let elsewhere = AXES.replace("[\"chain\"]", "[\"chian\"]");
    assert!(refused(&elsewhere).contains("did you mean \"chain\"?"));
}

#[test]
fn an_answer_without_an_effect_is_rejected() {
    let axes = AXES.replace("{ duration_s = 4 }", "{ \"tcp.window\" = 5 }");
    let (_folder, register) = register_with(&axes, &claim(&format!("{WIDE}\nabove = 0")));
    let register = register.unwrap();
    let figure = &register.figures[0];
    let twice = register.readings(figure).swap_remove(1);
    let refused = register.plan_in_reading(figure, &twice, &[], Effort::Full).unwrap_err().to_string();
    assert!(refused.contains("\"twice\" of the axis \"time\" changes nothing in chain"), "{refused}");
}

#[test]
fn a_first_reading_that_sets_keys_is_rejected() {
    let axes =
        AXES.replace("name = \"delayed\"", "name = \"delayed\"\nset = { \"tcp.delayed_ack_ms\" = 200 }");
    let refused = register_with(&axes, &claim(&format!("{WIDE}\nabove = 0"))).1.unwrap_err().to_string();
    assert!(refused.contains("the first reading of the axis \"acks\" sets keys"), "{refused}");
    assert!(refused.contains("belong into the plans"), "{refused}");
}

#[test]
fn a_claim_of_this_project_has_no_alternative_readings() {
    let claims =
        [claim(&format!("{WIDE}\nabove = 0")), claim(&format!("{WIDE}\nabove = 0\nkind = \"ours\""))];
    let second = claims[1].replacen("X-1", "X-2", 1);
    let (_folder, register) = register_with(AXES, &[claims[0].as_str(), &second].concat());
    let register = register.unwrap();
    let comparison = run(&register);
    let figures = [(0, &comparison)];
    let mut evidence = evaluate(&register, &figures).unwrap();
    register.judge_alternative_readings(&mut evidence, &borrowed(&made(&register))).unwrap();
    assert_eq!((evidence[0].other_readings.len(), evidence[1].other_readings.len()), (3, 0));
}

#[test]
fn a_setting_that_a_reading_also_sets_is_rejected_in_that_reading() {
    let (_folder, register) = register_with(AXES, &claim(&format!("{WIDE}\nabove = 0")));
    let register = register.unwrap();
    let figure = &register.figures[0];
    let over = [Setting::parse("--set", "tcp.delayed_ack_ms=50").unwrap()];
    assert!(register.plan(figure, &over, Effort::Full).is_ok(), "another answer to what is left open");
    let refused = |reading: &Reading| register.plan_in_reading(figure, reading, &over, Effort::Full);
    let readings = register.readings(figure);
    assert!(refused(&readings[1]).is_ok());
    let refused = refused(&readings[2]).unwrap_err().to_string();
    assert!(
        refused.contains("the reading \"at once\" of the axis \"acks\" sets `tcp.delayed_ack_ms` (")
            && refused.contains("without --readings"),
        "{refused}"
    );
    assert!(register.alternative_plans_of(&register.claims[0], &over, Effort::Full).is_err());
}
