//! Drawings of maps.

use super::*;
use crate::map::{MapLink, MapNode};

fn node(name: &str, x_m: f64, y_m: f64) -> MapNode {
    MapNode {
        name: name.into(),
        interface: Attachment::Wireless,
        path: vec![Waypoint { at_s: 0.0, x_m, y_m }],
    }
}

fn flow(name: &str, src: usize, dst: usize) -> MapFlow {
    MapFlow { name: name.into(), src, dst, route: Some(vec![src, dst]) }
}

#[test]
fn everything_on_the_map_is_drawn_in_the_order_of_the_data() {
    let map = Map {
        nodes: vec![node("a", 0.0, 0.0), node("b", 100.0, 50.0)],
        links: vec![MapLink { a: 0, b: 1 }],
        flows: vec![flow("up", 0, 1), flow("down", 1, 0)],
        transmission_m: Some(250.0),
        carrier_sense_m: Some(550.0),
        duration_s: 10.0,
        notes: vec!["Mind the gap.".into()],
    };
    let view = MapView::of(&map).unwrap();
    for (class, count) in [
        ("\"node", 2),
        ("\"wire\"", 1),
        ("\"route\"", 2),
        ("\"arrow\"", 2),
        ("\"name\"", 2),
        ("\"reach\"", 1),
    ] {
        assert_eq!(view.svg.matches(&format!("class={class}")).count(), count, "{class}");
    }
    assert!(view.svg.contains(">down</text>"));
    assert!(!view.moving);
    assert!(view.caption.iter().any(|s| s.contains("250 m") && s.contains("550 m")), "{:?}", view.caption);
    assert_eq!(view.caption.last().map(String::as_str), Some("Mind the gap."));
}

#[test]
fn north_is_up_and_everything_is_inside() {
    let map = Map { nodes: vec![node("low", 0.0, 0.0), node("high", 300.0, 4000.0)], ..Map::default() };
    let projection = Projection::of(&map).unwrap();
    let (low, high) = (projection.start(&map.nodes[0]), projection.start(&map.nodes[1]));
    assert!(high.1 < low.1);
    for (x, y) in [low, high] {
        assert!(0.0 < x && x < WIDTH && 0.0 < y && y < projection.height, "{x} {y} {projection:?}");
    }
}

#[test]
fn one_node_none_and_equal_positions_are_drawn() {
    assert_eq!(MapView::of(&Map::default()), None);
    let one = Map { nodes: vec![node("a", 5.0, 5.0)], ..Map::default() };
    assert!(MapView::of(&one).unwrap().svg.contains(">a</text>"));
    let nowhere = Map { nodes: vec![node("a", f64::NAN, 0.0)], ..Map::default() };
    assert_eq!(MapView::of(&nowhere), None);
}

#[test]
fn data_for_the_script_cannot_end_its_element() {
    let map = Map { nodes: vec![node("</script><b>\u{2028}", 0.0, 0.0)], ..Map::default() };
    let view = MapView::of(&map).unwrap();
    assert!(!view.json.contains('<') && !view.json.contains('\u{2028}'), "{}", view.json);
    let back: serde_json::Value = serde_json::from_str(&view.json).unwrap();
    assert_eq!(back["names"][0], "</script><b>\u{2028}");
}

#[test]
fn only_the_first_of_many_flows_are_drawn_and_that_is_noted() {
    let flows = (0..1000).map(|i| flow(&format!("f{i}"), 0, 1)).collect();
    let map = Map { nodes: vec![node("a", 0.0, 0.0), node("b", 1.0, 0.0)], flows, ..Map::default() };
    let view = MapView::of(&map).unwrap();
    assert_eq!(view.svg.matches("class=\"arrow\"").count(), MAX_FLOWS);
    assert!(view.svg.starts_with("<svg class=\"map crowded\""), "their arrows are thin");
    assert!(view.caption.iter().any(|s| s == "Of 1000 flows the first 200 are drawn."));
}
