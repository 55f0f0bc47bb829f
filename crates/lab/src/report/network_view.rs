//! Player of a run on the map: its data, and the words around it.

use super::map_view::in_script;
use super::measured::shortest;
use super::picture::legible;
use super::{Experiment, Played, Report};
use crate::animation::{self, Animation, BUDGET_BYTES};
use crate::experiment::MAX_ANIMATED;
use hopline_sim::trace::FrameLossReason;
use serde_json::{Value as Json, json};

/// Maximum length of the name of a variant, characters.
const MAX_CHARACTERS: usize = 200;

/// A player, ready for the page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NetworkView {
    /// Data of the script besides the events. Safe inside a `script` element.
    pub(super) json: String,
    /// The events of each run, in base64.
    pub(super) texts: Vec<String>,
    /// For each run the shown part, and the omissions.
    pub(super) shown: Vec<String>,
    /// Omissions of the whole.
    pub(super) notes: Vec<String>,
}

impl NetworkView {
    /// `None` if there is nothing to play.
    pub(super) fn of(experiment: &Experiment) -> Option<Self> {
        if experiment.played.is_empty() {
            return None;
        }
        let animations: Vec<Animation> = experiment.played.iter().map(|p| p.animation.clone()).collect();
        let (scenes, numbers) = animation::distinct_scenes(&animations);
        let runs = experiment.played.iter().zip(numbers);
        let runs: Vec<Json> = runs.map(|(played, scene)| run(experiment, played, scene)).collect();
        let losses = FrameLossReason::ALL.map(FrameLossReason::describe);
        let head = json!({ "runs": runs, "losses": losses }).to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        let mut notes = Vec::new();
        if experiment.variants.len() > experiment.played.len() && experiment.played.len() == MAX_ANIMATED {
            let variants = experiment.variants.len();
            notes.push(format!("Of {variants} variants the first {MAX_ANIMATED} are played."));
        }
        Some(Self {
            json: in_script(&format!("{head},\"scenes\":[{}]}}", scenes.join(","))),
            texts: animations.iter().map(Animation::text).collect(),
            shown: animations.iter().map(shown).collect(),
            notes,
        })
    }
}

fn run(experiment: &Experiment, played: &Played, scene: usize) -> Json {
    let Played { variant, animation } = played;
    let label = experiment.variants.get(*variant).map_or("", |variant| variant.label.as_str());
    json!({
        "label": legible(label, MAX_CHARACTERS),
        "run": animation.run,
        "scene": scene,
        "from": animation.from_s,
        "to": animation.to_s(),
        "shown": shown(animation),
        "reasons": animation.reasons,
    })
}

/// Returns the part of a run that can be played, and the reason if it is cut.
fn shown(animation: &Animation) -> String {
    let Animation { run, from_s, requested_end_s: asked_to_s, .. } = animation;
    let seconds = |s: f64| shortest(libm::floor(s * 1e3) / 1e3);
    let part = format!("Shown: {} s to {} s of run {run}", seconds(*from_s), seconds(animation.to_s()));
    if animation.is_cut() {
        let most = BUDGET_BYTES / 1_000_000;
        return format!("{part}; {most} MB hold no more (asked for: up to {} s).", seconds(*asked_to_s));
    }
    format!("{part}.")
}

/// Returns the style of players, if `report` has any.
pub(super) fn style(report: &Report) -> &'static str {
    if has_player(report) { include_str!("../../templates/network.css") } else { "" }
}

/// Script of players, with the files of further parts.
macro_rules! player_script {
    ($($file:expr),*) => {
        concat!(
            "(function () {\n  'use strict';\n",
            include_str!("../../templates/network/read.js"),
            include_str!("../../templates/network/stage.js"),
            include_str!("../../templates/network/story.js"),
            $(include_str!($file),)*
            include_str!("../../templates/network/player.js"),
            "})();\n",
        )
    };
}

/// Script of a player that follows a network while it runs.
pub(super) const LIVE_SCRIPT: &str = player_script!("../../templates/network/live.js");
/// Its style.
pub(super) const LIVE_STYLE: &str = include_str!("../../templates/network.css");

/// Returns the script of players, if `report` has any.
pub(super) fn script(report: &Report) -> &'static str {
    if has_player(report) { player_script!() } else { "" }
}

fn has_player(report: &Report) -> bool {
    report.experiments.iter().any(|experiment| !experiment.played.is_empty())
}
