//! The network under an animation, as the page's script takes it: in metres, and only while it is played.

use super::Animation;
use crate::map::{MapNode, Waypoint};
use crate::report::legible;
use hopline_sim::spec::Interface;
use serde_json::{Value as Json, json};

/// Longest name of a node or flow.
const MOST_CHARACTERS: usize = 40;

/// The networks of `animations` as JSON, each once, and which one each has.
pub(crate) fn distinct(animations: &[Animation]) -> (Vec<String>, Vec<usize>) {
    let mut scenes: Vec<String> = Vec::new();
    let number = |animation: &Animation| {
        let scene = of(animation).to_string();
        scenes.iter().position(|known| *known == scene).unwrap_or_else(|| {
            scenes.push(scene);
            scenes.len() - 1
        })
    };
    let numbers = animations.iter().map(number).collect();
    (scenes, numbers)
}

fn of(animation: &Animation) -> Json {
    let map = &animation.map;
    let window = (animation.from_s, animation.asked_to_s);
    json!({
        "names": map.nodes.iter().map(|node| legible(&node.name, MOST_CHARACTERS)).collect::<Vec<_>>(),
        "wired": map.nodes.iter().map(|node| u8::from(node.interface == Interface::Wired)).collect::<Vec<_>>(),
        "paths": map.nodes.iter().map(|node| path(node, window)).collect::<Vec<_>>(),
        "links": map.links.iter().map(|link| [link.a, link.b]).collect::<Vec<_>>(),
        "flows": map.flows.iter().map(|f| (legible(&f.name, MOST_CHARACTERS), f.src, f.dst)).collect::<Vec<_>>(),
        "reach": map.transmission_m,
        "sense": map.carrier_sense_m,
    })
}

/// Seconds, metres to the right and up, of each corner; those outside of the window are left out, but for the nearest.
fn path(node: &MapNode, (from_s, to_s): (f64, f64)) -> Vec<f64> {
    let first = node.path.iter().rposition(|corner| corner.at_s <= from_s).unwrap_or(0);
    let last = node.path.iter().position(|corner| corner.at_s >= to_s).unwrap_or(node.path.len() - 1);
    let round = |v: f64, parts: f64| if v.is_finite() { libm::round(v * parts) / parts } else { 0.0 };
    let flat = |at: &Waypoint| [round(at.at_s, 1e3), round(at.x_m, 1e2), round(at.y_m, 1e2)];
    node.path[first..=last.max(first)].iter().flat_map(flat).collect()
}
