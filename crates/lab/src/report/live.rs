//! Page that shows a network on its map while it runs.

use super::map_view::{MapView, in_script};
use super::network_view::{LIVE_SCRIPT, LIVE_STYLE, NetworkView};
use super::page::palette;
use crate::animation::{self, Animation};
use crate::map::Map;
use askama::Template;
use hopline_sim::trace::FrameLossReason;
use serde_json::json;

#[derive(Template)]
#[template(path = "live.html")]
struct LivePage<'a> {
    title: &'a str,
    version: &'a str,
    section: LiveSection,
    style: String,
    script: &'a str,
}

/// As the sections of reports, which share the template of the map.
struct LiveSection {
    map: Option<MapView>,
    network: Option<NetworkView>,
}

/// Returns the page of a network, which follows the events that it finds at the address `events` beside it
/// ([`WatchedNetwork`](crate::animation::WatchedNetwork)). It loads nothing else.
#[must_use]
pub fn live(title: &str, map: &Map) -> String {
    let animation = Animation {
        run: 1,
        map: map.clone(),
        from_s: 0.0,
        requested_end_s: map.duration_s,
        reasons: Vec::new(),
        chunks: Vec::new(),
    };
    let (scenes, _) = animation::distinct_scenes(std::slice::from_ref(&animation));
    let run =
        json!({ "label": "", "run": 1, "scene": 0, "from": 0, "to": 0, "shown": "Live.", "reasons": [] });
    let losses = FrameLossReason::ALL.map(FrameLossReason::describe);
    let head = json!({ "runs": [run], "losses": losses, "live": true }).to_string();
    let head = head.strip_suffix('}').unwrap_or(&head);
    let network = NetworkView {
        json: in_script(&format!("{head},\"scenes\":[{}]}}", scenes.join(","))),
        texts: vec![String::new()],
        shown: vec!["Live.".into()],
        notes: Vec::new(),
    };
    let page = LivePage {
        title,
        version: env!("CARGO_PKG_VERSION"),
        section: LiveSection { map: MapView::of(map), network: Some(network) },
        style: palette() + include_str!("../../templates/report.css") + LIVE_STYLE,
        script: LIVE_SCRIPT,
    };
    page.render().expect("the template is checked when it is compiled, and memory takes everything")
}
