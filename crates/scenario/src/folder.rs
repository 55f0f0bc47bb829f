//! Folder of the files that a scenario names.

use hopline_config::source::{Problem, Source};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder, and the texts of files that came along with a scenario from another machine.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    path: PathBuf,
    transferred: Arc<BTreeMap<PathBuf, Arc<Source>>>,
}

impl Folder {
    /// Creates the folder `path`, with files as they lie there.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), transferred: Arc::default() }
    }

    /// Creates the folder `path` of another machine, with the files that were carried over from there: no
    /// other is read.
    #[must_use]
    pub fn transferred(
        path: impl Into<PathBuf>,
        files: impl IntoIterator<Item = impl Into<Arc<Source>>>,
    ) -> Self {
        let files = files.into_iter().map(Into::into).map(|file| (PathBuf::from(&file.name), file));
        Self { path: path.into(), transferred: Arc::new(files.collect()) }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file `name` in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Reads a file of at most `most` bytes, at a path that [`join`](Self::join) gave.
    pub(crate) fn read(&self, path: &Path, most: u64) -> Result<Arc<Source>, Problem> {
        match self.transferred.get(path) {
            Some(source) => Ok(source.clone()),
            None => Source::read_up_to(path, most),
        }
    }
}

impl From<&Path> for Folder {
    fn from(path: &Path) -> Self {
        Self::new(path)
    }
}

impl From<PathBuf> for Folder {
    fn from(path: PathBuf) -> Self {
        Self::new(path)
    }
}
