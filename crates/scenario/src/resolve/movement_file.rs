//! Movement file of `[mobility]`.

use super::named_file::{at_named_file, named_file};
use crate::folder::Folder;
use crate::keys;
use crate::movements::{MovementFormat, RecordedNode, Recording};
use crate::schema::Section;
use hopline_config::source::{Origin, Problem, Source};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Largest movement file.
const MAX_FILE: u64 = 1 << 30;

/// A movement file that has been read.
#[derive(Debug)]
pub(super) struct MovementFile {
    path: PathBuf,
    format: MovementFormat,
    /// Its text.
    pub(super) source: Arc<Source>,
    /// Recording in the file.
    pub(super) recording: Recording,
}

/// Reads the movement file that `[mobility]` names, unless it is the one that has been read before.
pub(super) fn load(
    section: Section<'_>,
    folder: &Folder,
    before: Option<&Arc<MovementFile>>,
) -> Result<Option<Arc<MovementFile>>, Problem> {
    let format = match section.get(keys::mobility::MODEL) {
        "ns2" => MovementFormat::Ns2,
        "bonnmotion" => MovementFormat::BonnMotion,
        "sumo" => MovementFormat::Sumo,
        "csv" => MovementFormat::Csv,
        "gpx" => MovementFormat::Gpx,
        // A file that is given all the same is refused later, as keys of another model are.
        _without_file => return Ok(None),
    };
    let Some(path) = named_file(section, folder) else { return Ok(None) };
    if let Some(known) = before.filter(|known| known.path == path && known.format == format) {
        return Ok(Some(known.clone()));
    }
    let source = folder.read(&path, MAX_FILE).map_err(|problem| at_named_file(problem, section, &path))?;
    let recording = Recording::parse(format, &source.text).map_err(|error| {
        let place = Origin { source: source.clone(), span: error.span };
        Problem::new(error.message).at(&place).help(error.help)
    })?;
    Ok(Some(Arc::new(MovementFile { path, format, source, recording })))
}

impl MovementFile {
    /// Returns the nodes of the file that have names.
    pub(super) fn by_name<'a>(&'a self) -> BTreeMap<&'a str, usize> {
        let named = |(index, node): (usize, &'a RecordedNode)| Some((node.name.as_deref()?, index));
        self.recording.nodes.iter().enumerate().filter_map(named).collect()
    }

    /// Returns the place of node `index` in the file.
    pub(super) fn place(&self, index: usize) -> Origin {
        Origin { source: self.source.clone(), span: self.recording.nodes[index].first.clone() }
    }

    pub(super) fn end(&self) -> Origin {
        let end = self.source.text.trim_end().len();
        Origin { source: self.source.clone(), span: end..end }
    }
}
