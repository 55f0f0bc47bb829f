//! Charts of variants that are settings of one mechanism: gain of a run in each, and its deviation from run
//! to run.

use super::dots::{WIDTH, padded};
use super::parameters;
use super::picture::{Area, DrawResult, Extras, HPos, fill, legible, line, picture, text, text_style, units};
use super::role::Role;
use super::sweep::{ENTRY, HEIGHT, XAxis, frame};
use super::{Experiment, Family, FamilyMember, Measured, marker};
use std::ops::Range;

/// The two curves of a chart: style and name.
const MEAN: (usize, &str) = (0, "mean gain of a run (%)");
const DEVIATION: (usize, &str) = (1, "its standard deviation from run to run (percentage points)");
/// Maximum number of settings of a chart: more would overlap.
const MAX_MEMBERS: usize = 64;

/// Returns title and picture of a chart for each family, all with the same scale.
pub(super) fn charts(experiment: &Experiment) -> Vec<(String, String)> {
    let families = &experiment.families;
    let y = padded(
        families
            .iter()
            .flat_map(|f| &f.members)
            .flat_map(FamilyMember::measured)
            .flat_map(Measured::extent)
            .chain([0.0]),
    );
    families.iter().map(|family| (title(family), chart(family, y.clone()))).collect()
}

/// Returns the setting in words: `door.t1=1 door.t2=4`.
pub(super) fn setting(family: &Family, member: &FamilyMember) -> String {
    let settings = family.keys.iter().zip(&member.setting);
    settings.map(|(key, value)| format!("{key}={}", parameters::text(value))).collect::<Vec<_>>().join(" ")
}

impl FamilyMember {
    fn measured(&self) -> impl Iterator<Item = &Measured> {
        self.gain.iter().chain(&self.deviation)
    }
}

fn title(family: &Family) -> String {
    let of = match family.flow.as_str() {
        "" => "goodput".to_owned(),
        flow => format!("the goodput of {}", legible(flow, 20)),
    };
    format!("{}: what a run gains in {of}", legible(&family.name, 60))
}

fn chart(family: &Family, y: Range<f64>) -> String {
    let members = &family.members[..family.members.len().min(MAX_MEMBERS)];
    let (groups, axis) = (groups(family, members), x_axis(members));
    let name = match &family.keys[..] {
        [first, .., last] => format!("{last}, in groups of {first}"),
        [only] => only.clone(),
        [] => String::new(),
    };
    picture((WIDTH, HEIGHT + 2.5 * ENTRY), &title(family), |area, extras| {
        let scale = frame(area, 2.5 * ENTRY, &axis, y.clone(), &legible(&name, 40))?;
        let (left, right) = (scale((-0.5, 0.0)).0, scale((members.len() as f64 - 0.5, 0.0)).0);
        line(area, vec![(left, scale((0.0, 0.0)).1), (right, scale((0.0, 0.0)).1)], Role::Zero, 1.0)?;
        for group in &groups {
            draw_group(area, group, members.len(), &scale, &y)?;
            for (curve, of) in [(MEAN, gain as MeasuredFn), (DEVIATION, deviation)] {
                let points = group.members.clone().filter_map(|i| Some((i, of(&members[i])?)));
                draw_curve(area, curve.0, &points.collect::<Vec<_>>(), &scale)?;
            }
        }
        for (i, member) in members.iter().enumerate() {
            spots(extras, family, member, i, &scale);
        }
        legend(area)
    })
}

type MeasuredFn = fn(&FamilyMember) -> Option<&Measured>;

fn gain(member: &FamilyMember) -> Option<&Measured> {
    member.gain.as_ref()
}

fn deviation(member: &FamilyMember) -> Option<&Measured> {
    member.deviation.as_ref()
}

/// Adjacent members with the same value of the first key, and its name; of a family with one key there is one
/// group without a name.
struct Group {
    name: String,
    members: Range<usize>,
}

fn groups(family: &Family, members: &[FamilyMember]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (i, member) in members.iter().enumerate() {
        let name = match (family.keys.len(), member.setting.first()) {
            (2.., Some(value)) => format!("{}={}", family.keys[0], parameters::text(value)),
            _ => String::new(),
        };
        match groups.last_mut() {
            Some(last) if last.name == name => last.members.end = i + 1,
            _ => groups.push(Group { name, members: i..i + 1 }),
        }
    }
    groups
}

/// Returns the axis with a place for each member, labelled with the value of its last key.
fn x_axis(members: &[FamilyMember]) -> XAxis {
    let label = |member: &FamilyMember| member.setting.last().map(parameters::text).unwrap_or_default();
    XAxis::of_places(&members.iter().map(label).collect::<Vec<_>>())
}

/// Draws the name of a group, and a line between it and the one before.
fn draw_group(
    area: &Area<'_>,
    group: &Group,
    members: usize,
    scale: &impl Fn((f64, f64)) -> (i32, i32),
    y: &Range<f64>,
) -> DrawResult {
    let (first, end) = (group.members.start as f64, group.members.end as f64);
    if group.members.start > 0 {
        line(area, vec![scale((first - 0.5, y.start)), scale((first - 0.5, y.end))], Role::Grid, 1.0)?;
    }
    let room = (WIDTH - 80.0) * (end - first) / members as f64 / 5.6;
    let (x, top) = scale(((first + end - 1.0) / 2.0, y.end));
    let style = text_style(Role::Muted, 10.0, HPos::Center);
    text(area, &legible(&group.name, room.max(3.0) as usize), (x, top + units(7.0)), &style)
}

fn draw_curve(
    area: &Area<'_>,
    look: usize,
    points: &[(usize, &Measured)],
    scale: &impl Fn((f64, f64)) -> (i32, i32),
) -> DrawResult {
    let finite = || points.iter().filter(|(_, m)| m.mean.is_finite());
    let middle: Vec<(i32, i32)> = finite().map(|(i, m)| scale((*i as f64, m.mean))).collect();
    if middle.len() >= 2 {
        line(area, middle.clone(), Role::Band(look), 2.0)?;
    }
    for (i, m) in finite() {
        if let Some([low, high]) = m.interval.filter(|ends| ends.iter().all(|end| end.is_finite())) {
            line(area, vec![scale((*i as f64, low)), scale((*i as f64, high))], Role::Variant(look), 1.5)?;
        }
    }
    middle.into_iter().try_for_each(|at| fill(area, marker::at(at, 40.0, look), Role::Variant(look)))
}

fn spots(
    extras: &mut Extras,
    family: &Family,
    member: &FamilyMember,
    i: usize,
    scale: &impl Fn((f64, f64)) -> (i32, i32),
) {
    let called = format!("{} {}", legible(&family.name, 40), legible(&setting(family, member), 60));
    let written =
        |m: &Measured, of: MeasuredFn| if of(member) == gain(member) { m.signed() } else { m.text() };
    for (of, what) in [(gain as MeasuredFn, "mean gain"), (deviation, "deviation")] {
        if let Some(m) = of(member).filter(|m| m.mean.is_finite()) {
            extras.spot(scale((i as f64, m.mean)), &format!("{called}: {what} {} %", written(m, of)));
        }
    }
}

fn legend(area: &Area<'_>) -> DrawResult {
    for (row, (look, name)) in [MEAN, DEVIATION].into_iter().enumerate() {
        let y = units(HEIGHT + ENTRY * (row as f64 + 0.7));
        fill(area, marker::at((units(66.0), y), 45.0, look), Role::Variant(look))?;
        text(area, name, (units(80.0), y), &text_style(Role::Text, 11.0, HPos::Left))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn member(setting: &[Json], gain: Option<f64>) -> FamilyMember {
        let measured =
            |mean: f64| Measured { mean, interval: Some([mean - 2.0, mean + 2.0]), runs: Vec::new() };
        FamilyMember {
            variant: 1,
            setting: setting.to_vec(),
            gain: gain.map(measured),
            deviation: gain.map(|gain| measured(gain / 2.0)),
            positive: 9,
            runs: 10,
            excluded: 0,
        }
    }

    fn family(keys: &[&str], members: Vec<FamilyMember>) -> Experiment {
        let keys = keys.iter().map(|&key| key.to_owned()).collect();
        Experiment {
            families: vec![Family { name: "All".into(), flow: "tcp".into(), keys, members }],
            ..Experiment::default()
        }
    }

    fn squares() -> Vec<FamilyMember> {
        let settings = (0..4).map(|i| (1 << (i / 2), 1 << (i % 2)));
        settings.map(|(a, b)| member(&[json!(a), json!(b)], Some(f64::from(10 * a + b)))).collect()
    }

    #[test]
    fn a_chart_has_groups_marks_intervals_and_words() {
        let all = charts(&family(&["door.t1", "door.t2"], squares()));
        let [(title, svg)] = &all[..] else { panic!("{} charts", all.len()) };
        assert_eq!(title, "All: what a run gains in the goodput of tcp");
        assert!(svg.contains(">door.t1=1<") && svg.contains(">door.t1=2<"), "{svg}");
        assert!(svg.contains(">door.t2, in groups of door.t1<"), "{svg}");
        assert_eq!(svg.matches(r#"class="v0 f""#).count(), 4 + 1, "and one in the legend");
        assert_eq!(svg.matches(r#"class="v1 f""#).count(), 4 + 1);
        assert_eq!(svg.matches(r#"class="v0 l""#).count(), 4, "intervals");
        assert!(svg.contains("<title>All door.t1=2 door.t2=1: mean gain +21.0 ± 2.0 %</title>"), "{svg}");
        assert!(svg.contains(r#"class="zero l""#));
    }

    #[test]
    fn one_key_makes_one_group_without_a_name() {
        let members = [1, 2, 4].map(|t| member(&[json!(t)], Some(-3.0)));
        let svg = &charts(&family(&["door.t1"], members.to_vec()))[0].1;
        assert!(svg.contains(">door.t1<") && !svg.contains("in groups of"), "{svg}");
        assert!(svg.contains("mean gain −3.0 ± 2.0 %"), "{svg}");
    }

    #[test]
    fn an_unmeasured_member_leaves_a_gap() {
        let mut members = squares();
        members[1] = member(&[json!(1), json!(2)], None);
        members[2] = member(&[json!(2), json!(1)], Some(f64::NAN));
        let svg = &charts(&family(&["a", "b"], members))[0].1;
        assert_eq!(svg.matches(r#"class="v0 f""#).count(), 2 + 1);
    }

    #[test]
    fn empty_and_large_families_are_drawn() {
        assert!(charts(&Experiment::default()).is_empty());
        assert_eq!(charts(&family(&[], Vec::new())).len(), 1);
        let many = (0..500).map(|i| member(&[json!(i), json!(i)], Some(1.0))).collect();
        let svg = &charts(&family(&["a<b", "c"], many))[0].1;
        assert_eq!(svg.matches(r#"class="v0 f""#).count(), MAX_MEMBERS + 1);
        assert!(svg.len() < 120_000, "{}", svg.len());
    }
}
