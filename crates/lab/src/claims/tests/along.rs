//! Claims at the other values of a key.

use super::*;

const ALONG: &str = "along = \"nodes.count\"\n";

/// A register whose head names a key.
fn along(claims: &str) -> (tempfile::TempDir, Result<Register, Problems>) {
    let (folder, _) = paper(claims);
    let file = folder.path().join(FILE);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{ALONG}{text}")).unwrap();
    let register = Register::load(folder.path());
    (folder, register)
}

#[test]
fn a_claim_is_judged_at_each_value_of_the_key_by_the_runs_there() {
    let (_folder, register) = along(&claim(&format!("{WIDE}\nclaimed = 1000\ntolerance = 1")));
    let register = register.unwrap();
    let comparison = run(&register);
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap().remove(0);
    assert_eq!(evidence.along.iter().map(Along::label).collect::<Vec<_>>(), ["3", "4"]);
    let [here, there] = &evidence.along[..] else { panic!("two values") };
    assert_eq!((&here.measurement, here.verdict), (&evidence.measurement, evidence.verdict));
    let is = |p: &PointDescription, variant: &str| {
        p.variant.as_deref() == Some(variant) && p.settings["nodes.count"] == 4
    };
    let place = |variant| {
        let point = comparison.description.points.iter().position(|p| is(p, variant)).unwrap();
        (point, (Level::Run, "", "aggregate_goodput_bps"))
    };
    let expected = comparison.between(place("wide"), place("narrow")).unwrap();
    let measured = there.measurement.as_ref().unwrap();
    assert_is(measured, expected.percent.unwrap());
    assert_eq!(measured.point, "wide nodes.count=4");
    assert_eq!(measured.against.as_deref(), Some("narrow nodes.count=4"));
    let json = evidence.json();
    assert_eq!(json["along"][1]["value"], 4);
    assert_eq!(json["along"][1]["mean"], measured.value);
}

#[test]
fn a_claim_that_says_nothing_of_the_key_and_values_without_a_point_are_left_out() {
    let of_all = claim("point = { variant = \"wide\" }\nof_several = \"mean\"\nabove = 1");
    let (folder, _) = along(&(claim(&format!("{NARROW}\nabove = 1")) + &of_all.replace("X-1", "X-2")));
    // The chain of four nodes has no narrow window.
    let plan = "scenario = \"two-hops.toml\"\nruns = 2\n[[variant]]\nname = \"narrow\"\nset = { \"tcp.window\" = 2, \"nodes.count\" = 3 }\n\
        [[variant]]\nname = \"wide\"\nset = { \"nodes.count\" = 4 }\n";
    fs::write(folder.path().join("chain.toml"), plan).unwrap();
    let register = Register::load(folder.path()).unwrap();
    let comparison = run(&register);
    let evidence = evaluate(&register, &[(0, &comparison)]).unwrap();
    let values = |i: usize| evidence[i].along.iter().map(Along::label).collect::<Vec<_>>();
    assert_eq!(values(0), ["3"]);
    assert!(values(1).is_empty());
}

#[test]
fn a_claim_that_compares_two_values_of_the_key_is_left_out() {
    let point = "point = { variant = \"wide\", \"nodes.count\" = 4 }";
    let against = "against = { variant = \"wide\", \"nodes.count\" = 3 }";
    let (_folder, register) = along(&claim(&format!("{point}\n{against}\nwithin = 5")));
    let register = register.unwrap();
    let evidence = evaluate(&register, &[(0, &run(&register))]).unwrap().remove(0);
    assert!(evidence.measurement.is_some() && evidence.along.is_empty());
}

#[test]
fn a_key_that_no_claim_gives_a_value_is_refused_with_the_nearest() {
    let (folder, _) = along(&claim(&format!("{NARROW}\nabove = 1")));
    let file = folder.path().join(FILE);
    let text = fs::read_to_string(&file).unwrap().replacen("nodes.count", "nodes.cuont", 1);
    fs::write(&file, text).unwrap();
    let problem = Register::load(folder.path()).unwrap_err().to_string();
    assert!(problem.contains("no `point` of a claim has \"nodes.cuont\""), "{problem}");
    assert!(problem.contains("did you mean \"nodes.count\"?"), "{problem}");
    assert!(problem.contains("claims.toml:1:9"), "{problem}");
}
