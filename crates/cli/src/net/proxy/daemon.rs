//! Daemon that `status` and `top` query.

use crate::net::args::DaemonArgs;
use crate::problems::Failure;
use hopline_daemon::DaemonId;
use hopline_daemon::status::Status;
use hopline_lab::Problem;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::path::Path;

/// Default folder of daemons.
const DEFAULT_FOLDER: &str = "/run/hopline";
/// Default name of a daemon.
const DEFAULT_NAME: &str = "hopline";

/// Returns the name and folder of the daemon that the options name.
pub(super) fn daemon_id(asked: &DaemonArgs) -> Result<DaemonId, Failure> {
    if let Some(file) = &asked.file {
        if access(file, Access::READ_OK) == Err(Errno::ACCESS) {
            let what = format!("{}: this user may not read it", file.display());
            return Err(Problem::new(what)
                .help("`--name NAME` asks without the file: NAME is what the file says as name = \"…\"")
                .into());
        }
        return Ok(DaemonId::load(file)?);
    }
    let name =
        asked.name.clone().unwrap_or_else(|| only_name(hopline_daemon::names(Path::new(DEFAULT_FOLDER))));
    Ok(DaemonId { name, state_dir: DEFAULT_FOLDER.into() })
}

/// Returns the name of the daemon to query if none is given: the only one, or the default.
fn only_name(mut names: Vec<String>) -> String {
    match names.len() {
        1 => names.remove(0),
        _ => DEFAULT_NAME.to_owned(),
    }
}

/// Queries the status of a daemon.
pub(super) fn query(place: &DaemonId) -> Result<Status, Failure> {
    hopline_daemon::query(&place.state_dir, &place.name).map_err(|error| Failure::Other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_name_the_only_daemon_is_queried_or_the_default() {
        let asked = |names: &[&str]| only_name(names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!([asked(&[]), asked(&["hut"]), asked(&["a", "hut"])], ["hopline", "hut", "hopline"]);
    }
}
