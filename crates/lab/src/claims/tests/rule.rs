//! The rule in words, for one claim and for all.

use super::*;

/// Returns the printed rule of the single claim `what`.
fn rule_for(what: &str) -> String {
    let (_folder, register) = paper(&claim(what));
    let register = register.unwrap();
    let Test::Measure(measure) = &register.claims[0].test else { panic!("it is measured") };
    register.rule.describe_for(measure)
}

#[test]
fn a_single_claim_is_printed_with_the_rule_of_its_kind_and_its_numbers() {
    let size = rule_for(&format!("{NARROW}\nclaimed = 1000000"));
    assert!(size.contains("The claim is a size, 1000 ± 200 kb/s."), "{size}");
    assert!(size.contains("half-width is 500 kb/s at most"), "{size}");
    assert!(size.contains("differs if the interval misses") && !size.contains("direction"), "{size}");
    let gain = rule_for(&format!("{WIDE}\nclaimed = 40"));
    assert!(gain.contains("The claim is a gain or loss, +40 ± 8 %."), "{gain}");
    assert!(gain.contains("half-width is 20 % at most") && gain.contains("in direction only"), "{gain}");
    let bound = rule_for(&format!("{WIDE}\nabove = 5"));
    assert!(bound.contains("The claim is a bound, above +5 %. It agrees if the whole interval"), "{bound}");
    let margin = rule_for(&format!("{WIDE}\nwithin = 5"));
    assert!(margin.contains("The claim is no difference: within ± 5 %."), "{margin}");
    for other in [bound, margin] {
        assert!(!other.contains("estimate") && !other.contains("direction"), "{other}");
    }
}

#[test]
fn the_whole_rule_allows_a_direction_only_for_gains() {
    let (_folder, register) = paper(&claim(&format!("{NARROW}\nclaimed = 1000000")));
    let rule = register.unwrap().rule.describe();
    assert_eq!(rule.matches("direction").count(), 1, "{rule}");
    assert!(rule.contains("A gain or loss agrees in direction only"), "{rule}");
    assert!(rule.contains("A bound agrees if") && rule.contains("± 20 %"), "{rule}");
    assert!(!rule.contains("as ratios"), "{rule}");
}
