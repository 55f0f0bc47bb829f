//! Path of a file that a section names, and problems with that file.

use crate::folder::Folder;
use crate::schema::Section;
use hopline_config::source::Problem;
use std::path::{Path, PathBuf};

/// Returns the path of the file that `section` names, if it does.
pub(super) fn named_file(section: Section<'_>, folder: &Folder) -> Option<PathBuf> {
    section.word("file").map(|name| folder.join(name))
}

/// Returns a problem with that file as a whole, at the place that names it.
pub(super) fn at_named_file(problem: Problem, section: Section<'_>, path: &Path) -> Problem {
    let problem = problem.at(section.origin_of("file"));
    if path.exists() {
        return problem;
    }
    problem.help("file names are relative to the folder of the scenario")
}
