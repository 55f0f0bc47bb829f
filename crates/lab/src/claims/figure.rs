//! Figure or table of a paper.

use super::ablation::Ablations;
use super::keys;
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem, nearest};
use std::path::{Path, PathBuf};

/// A figure or table that can be reproduced.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name on the command line.
    pub id: String,
    /// Title.
    pub title: String,
    /// Its plan file.
    pub plan: PathBuf,
    /// Stand-ins of variants with the mechanism under test, if the figure names any.
    pub ablations: Option<Ablations>,
}

impl Figure {
    pub(super) fn of(section: &Section<'_>, folder: &Path) -> Result<Self, Problem> {
        let [id, title, plan] =
            [keys::figure::ID, keys::figure::TITLE, keys::figure::PLAN].map(|key| section.get(key));
        let shams = Ablations::of(section)?;
        Ok(Self { id: id.to_owned(), title: title.to_owned(), plan: folder.join(plan), ablations: shams })
    }
}

/// Refuses the id of a figure that does not exist.
pub(super) fn check_figure(id: &str, origin: &Origin, figures: &[Figure]) -> Result<(), Problem> {
    let known: Vec<&str> = figures.iter().map(|f| f.id.as_str()).collect();
    if known.contains(&id) {
        return Ok(());
    }
    let help = match nearest(id, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the figures are {}", known.join(", ")),
    };
    Err(Problem::new(format!("there is no figure \"{id}\"")).at(origin).help(help))
}
