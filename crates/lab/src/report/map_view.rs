//! Map as SVG: the static drawing of a page, and the data with which the script moves it.

use super::measured::shortest;
use super::picture::legible;
use crate::counted::count_text;
use crate::map::{Map, MapFlow, MapNode, Waypoint};
use hopline_sim::spec::Attachment;
use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// Width of the drawing in CSS pixels.
const WIDTH: f64 = 640.0;
/// Minimum and maximum height as a share of the width.
const ASPECT: (f64, f64) = (0.36, 0.8);
/// Maximum number of nodes with names beside them.
const NAMED_NODES: usize = 40;
/// Maximum number of nodes of a network in which ranges are drawn with room.
const SMALL: usize = 12;
/// Maximum number of flows with names.
const NAMED_FLOWS: usize = 8;
/// Maximum number of flows that are drawn.
const MAX_FLOWS: usize = 200;

/// A map, ready for the page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MapView {
    /// Drawing at the start of the run.
    pub(super) svg: String,
    /// Data of the script: names, paths, ends of flows, in the units of the drawing. Safe inside a `script`
    /// element.
    pub(super) json: String,
    /// `true` if any node moves, so that there is a slider.
    pub(super) moving: bool,
    /// `true` if a node can be selected, to show its ranges.
    pub(super) radio: bool,
    /// Last second of the slider.
    pub(super) duration_s: String,
    /// Meaning of colours and lines, and omissions.
    pub(super) caption: Vec<String>,
}

/// Projection from metres to units of the drawing.
#[derive(Clone, Copy, Debug)]
struct Projection {
    left_m: f64,
    top_m: f64,
    px_per_m: f64,
    height: f64,
}

impl MapView {
    /// `None` if there are no nodes.
    pub(super) fn of(map: &Map) -> Option<Self> {
        let projection = Projection::of(map)?;
        // The source of the first flow is selected: it is certainly of interest.
        let selected = map.flows.first().map_or(0, |flow| flow.src).min(map.nodes.len() - 1);
        Some(Self {
            svg: svg(map, projection, selected),
            json: in_script(&json(map, projection, selected).to_string()),
            moving: map.is_moving(),
            radio: map.transmission_m.is_some(),
            duration_s: shortest(libm::round(map.duration_s * 10.0) / 10.0).replace('\u{202f}', ""),
            caption: caption(map),
        })
    }
}

impl Projection {
    fn of(map: &Map) -> Option<Self> {
        let mut all = map.nodes.iter().flat_map(|node| &node.path);
        let finite = |p: &&Waypoint| p.x_m.is_finite() && p.y_m.is_finite();
        let first = all.clone().find(finite)?;
        let start = (first.x_m, first.x_m, first.y_m, first.y_m);
        let (left, right, bottom, top) = all
            .by_ref()
            .filter(finite)
            .fold(start, |(l, r, b, t), p| (l.min(p.x_m), r.max(p.x_m), b.min(p.y_m), t.max(p.y_m)));
        let extent = (right - left).max(top - bottom);
        let reach = map.transmission_m.unwrap_or(0.0);
        // In a small network ranges have room; a large one fills the picture by itself.
        let room = if map.nodes.len() <= SMALL { 0.45 } else { 0.1 };
        let pad = (room * extent).min(1.05 * reach).max(0.08 * extent).max(1.0);
        let (width_m, height_m) = (right - left + 2.0 * pad, top - bottom + 2.0 * pad);
        // As wide as the page, unless it would be too high.
        let aspect = (height_m / width_m).max(ASPECT.0);
        let (aspect, width_m) =
            if aspect > ASPECT.1 { (ASPECT.1, width_m * aspect / ASPECT.1) } else { (aspect, width_m) };
        Some(Self {
            left_m: (left + right - width_m) / 2.0,
            top_m: (top + bottom + width_m * aspect) / 2.0,
            px_per_m: WIDTH / width_m,
            height: WIDTH * aspect,
        })
    }

    fn point(self, at: Waypoint) -> (f64, f64) {
        let tenth = |v: f64| if v.is_finite() { libm::round(v * 10.0) / 10.0 } else { 0.0 };
        (tenth((at.x_m - self.left_m) * self.px_per_m), tenth((self.top_m - at.y_m) * self.px_per_m))
    }

    fn start(self, node: &MapNode) -> (f64, f64) {
        self.point(node.path[0])
    }
}

fn svg(map: &Map, projection: Projection, selected: usize) -> String {
    let mut out = String::new();
    let nodes = map.nodes.len();
    let (links, flows) = (count_text(map.links.len(), "wired link"), count_text(map.flows.len(), "flow"));
    let class = if map.flows.len() > NAMED_FLOWS { "map crowded" } else { "map" };
    let label = format!("Map of {}, {links} and {flows}", count_text(nodes, "node"));
    write(
        &mut out,
        format_args!(
            r#"<svg class="{class}" role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {:.0}">"#,
            projection.height
        ),
    );
    ranges(&mut out, map, projection, selected);
    let start = |i: usize| projection.start(&map.nodes[i]);
    for link in &map.links {
        let ((x1, y1), (x2, y2)) = (start(link.a), start(link.b));
        write(&mut out, format_args!(r#"<line class="wire" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }
    for flow in drawn(map) {
        if let Some(route) = &flow.route {
            let points: Vec<String> =
                route.iter().map(|&i| start(i)).map(|(x, y)| format!("{x},{y}")).collect();
            write(&mut out, format_args!(r#"<polyline class="route" points="{}"/>"#, points.join(" ")));
        }
    }
    for flow in drawn(map) {
        arrow(&mut out, start(flow.src), start(flow.dst), flow, map.flows.len() <= NAMED_FLOWS);
    }
    for (i, node) in map.nodes.iter().enumerate() {
        let (x, y) = start(i);
        let kind = if node.interface == Attachment::Wired { "node wired" } else { "node" };
        let kind = if i == selected && map.transmission_m.is_some() {
            format!("{kind} selected")
        } else {
            kind.to_owned()
        };
        write(&mut out, format_args!(r#"<circle class="{kind}" cx="{x}" cy="{y}" r="{}"/>"#, radius(nodes)));
    }
    if nodes <= NAMED_NODES {
        for (i, node) in map.nodes.iter().enumerate() {
            let ((x, y), name) = (start(i), legible(&node.name, 16));
            let name = quick_xml::escape::escape(name.as_str());
            write(&mut out, format_args!(r#"<text class="name" x="{x}" y="{:.1}">{name}</text>"#, y + 19.0));
        }
    }
    if map.transmission_m.is_some() {
        scale_bar(&mut out, projection); // Of wires nobody asks how long they are.
    }
    out.push_str("</svg>");
    out
}

fn ranges(out: &mut String, map: &Map, projection: Projection, selected: usize) {
    let (x, y) = projection.start(&map.nodes[selected]);
    for (class, range_m) in [("sense", map.carrier_sense_m), ("reach", map.transmission_m)] {
        if let Some(range_m) = range_m {
            let r = range_m * projection.px_per_m;
            write(out, format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r:.1}"/>"#));
        }
    }
}

/// Draws an arrow from one node to another, bent aside so that it does not hide nodes between. The script
/// draws it the same way for moving nodes.
fn arrow(out: &mut String, from: (f64, f64), to: (f64, f64), flow: &MapFlow, named: bool) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let bend = (from.0 + dx / 2.0 + dy * 0.18, from.1 + dy / 2.0 - dx * 0.18);
    write(
        out,
        format_args!(
            r#"<path class="arrow" d="M{} {}Q{:.1} {:.1} {} {}" marker-end="url(#head)"/>"#,
            from.0, from.1, bend.0, bend.1, to.0, to.1
        ),
    );
    if named {
        let (x, y) = (from.0 + dx / 2.0 + dy * 0.12, from.1 + dy / 2.0 - dx * 0.12);
        let name = legible(&flow.name, 16);
        write(
            out,
            format_args!(
                r#"<text class="flow-name" x="{x:.1}" y="{y:.1}">{}</text>"#,
                quick_xml::escape::escape(name.as_str())
            ),
        );
    }
}

/// Draws a scale bar of a round length, about a fifth of the width.
fn scale_bar(out: &mut String, projection: Projection) {
    let wanted_m = WIDTH / 5.0 / projection.px_per_m;
    let power = libm::pow(10.0, libm::floor(libm::log10(wanted_m)));
    let round_m = [5.0, 2.0, 1.0].into_iter().map(|m| m * power).find(|m| *m <= wanted_m).unwrap_or(power);
    let (x, y, length) = (14.0, projection.height - 12.0, round_m * projection.px_per_m);
    write(
        out,
        format_args!(
            r#"<path class="bar" d="M{x} {:.1}v4h{length:.1}v-4"/><text class="bar-name" x="{:.1}" y="{y:.1}">{} m</text>"#,
            y - 4.0,
            x + length + 6.0,
            shortest(round_m)
        ),
    );
}

fn json(map: &Map, projection: Projection, selected: usize) -> serde_json::Value {
    let tenth = |v: f64| libm::round(v * 10.0) / 10.0;
    let path = |node: &MapNode| {
        let flat = |p: &Waypoint| {
            let (x, y) = projection.point(*p);
            [tenth(p.at_s), x, y]
        };
        node.path.iter().flat_map(flat).collect::<Vec<f64>>()
    };
    serde_json::json!({
        "selected": selected,
        "names": map.nodes.iter().map(|n| legible(&n.name, 40)).collect::<Vec<_>>(),
        "paths": map.nodes.iter().map(path).collect::<Vec<_>>(),
        "links": map.links.iter().map(|l| [l.a, l.b]).collect::<Vec<_>>(),
        "flows": drawn(map).map(|f| (legible(&f.name, 40), f.src, f.dst)).collect::<Vec<_>>(),
        "routes": drawn(map).filter_map(|f| f.route.clone()).collect::<Vec<_>>(),
        "metres": map.transmission_m.map(|_| 1.0 / projection.px_per_m),
    })
}

fn drawn(map: &Map) -> impl Iterator<Item = &MapFlow> {
    map.flows.iter().take(MAX_FLOWS)
}

fn caption(map: &Map) -> Vec<String> {
    let mut out = Vec::new();
    if let (Some(reach), Some(sense)) = (map.transmission_m, map.carrier_sense_m) {
        out.push(format!(
            "Inner circle: {:.0} m, up to which the selected node is understood; outer circle: {:.0} m, up to which it \
             keeps the medium busy.",
            reach, sense
        ));
    }
    out.push("Arrows are flows.".into());
    if map.flows.iter().any(|f| f.route.is_some()) {
        let when = if map.is_moving() { ", computed for the start of the run and never changed" } else { "" };
        out.push(format!("Wide lines are the static routes{when}."));
    }
    if map.flows.len() > MAX_FLOWS {
        out.push(format!("Of {} flows the first {MAX_FLOWS} are drawn.", map.flows.len()));
    }
    out.extend(map.notes.iter().cloned());
    out
}

fn radius(nodes: usize) -> f64 {
    if nodes <= NAMED_NODES { 6.0 } else { 3.5 }
}

/// Returns JSON that cannot end the `script` element around it.
pub(super) fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn write(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("memory takes everything");
}
