//! Daemon that `status` and `top` query.

use crate::net::args::Asked;
use crate::problems::Failure;
use hopline_daemon::Place;
use hopline_daemon::status::Status;
use hopline_lab::Problem;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::path::Path;

/// Default folder of daemons.
const FOLDER: &str = "/run/hopline";
/// Default name of a daemon.
const NAME: &str = "hopline";

/// Returns the name and folder of the daemon that the options name.
pub(super) fn place(asked: &Asked) -> Result<Place, Failure> {
    if let Some(file) = &asked.file {
        if access(file, Access::READ_OK) == Err(Errno::ACCESS) {
            let what = format!("{}: this user may not read it", file.display());
            return Err(Problem::new(what)
                .help("`--name NAME` asks without the file: NAME is what the file says as name = \"…\"")
                .into());
        }
        return Ok(Place::load(file)?);
    }
    let name = asked.name.clone().unwrap_or_else(|| only(hopline_daemon::names(Path::new(FOLDER))));
    Ok(Place { name, state_dir: FOLDER.into() })
}

/// Returns the name of the daemon to query if none is given: the only one, or the default.
fn only(mut names: Vec<String>) -> String {
    match names.len() {
        1 => names.remove(0),
        _ => NAME.to_owned(),
    }
}

/// Queries the status of a daemon.
pub(super) fn ask(place: &Place) -> Result<Status, Failure> {
    hopline_daemon::ask(&place.state_dir, &place.name).map_err(|error| Failure::Other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_name_the_only_daemon_is_asked_or_that_called_hopline() {
        let asked = |names: &[&str]| only(names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!([asked(&[]), asked(&["hut"]), asked(&["a", "hut"])], ["hopline", "hut", "hopline"]);
    }
}
