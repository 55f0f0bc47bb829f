//! Network of an animation for the page's script: positions in metres, during the recording only.

use super::recording::Animation;
use crate::map::{MapNode, Waypoint};
use crate::report::legible;
use hopline_sim::spec::Attachment;
use serde_json::{Value as Json, json};

/// Maximum length of the name of a node or flow, characters.
const MAX_CHARACTERS: usize = 40;

/// Returns the distinct networks of `animations` as JSON, and the index of each animation's network.
pub(crate) fn distinct_scenes(animations: &[Animation]) -> (Vec<String>, Vec<usize>) {
    let mut scenes: Vec<String> = Vec::new();
    let number = |animation: &Animation| {
        let scene = scene_of(animation).to_string();
        scenes.iter().position(|known| *known == scene).unwrap_or_else(|| {
            scenes.push(scene);
            scenes.len() - 1
        })
    };
    let numbers = animations.iter().map(number).collect();
    (scenes, numbers)
}

fn scene_of(animation: &Animation) -> Json {
    let map = &animation.map;
    let window = (animation.from_s, animation.requested_end_s);
    json!({
        "names": map.nodes.iter().map(|node| legible(&node.name, MAX_CHARACTERS)).collect::<Vec<_>>(),
        "wired": map.nodes.iter().map(|node| u8::from(node.interface == Attachment::Wired)).collect::<Vec<_>>(),
        "paths": map.nodes.iter().map(|node| path(node, window)).collect::<Vec<_>>(),
        "links": map.links.iter().map(|link| [link.a, link.b]).collect::<Vec<_>>(),
        "flows": map.flows.iter().map(|f| (legible(&f.name, MAX_CHARACTERS), f.src, f.dst)).collect::<Vec<_>>(),
        "reach": map.transmission_m,
        "sense": map.carrier_sense_m,
    })
}

/// Returns seconds, metres to the right and up, of each corner of a path within the window, and of the
/// nearest ones outside.
fn path(node: &MapNode, (from_s, to_s): (f64, f64)) -> Vec<f64> {
    let first = node.path.iter().rposition(|corner| corner.at_s <= from_s).unwrap_or(0);
    let last = node.path.iter().position(|corner| corner.at_s >= to_s).unwrap_or(node.path.len() - 1);
    let round = |v: f64, parts: f64| if v.is_finite() { libm::round(v * parts) / parts } else { 0.0 };
    let flat = |at: &Waypoint| [round(at.at_s, 1e3), round(at.x_m, 1e2), round(at.y_m, 1e2)];
    node.path[first..=last.max(first)].iter().flat_map(flat).collect()
}
