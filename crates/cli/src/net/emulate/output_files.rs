//! Files that options name: checks before an emulation that may take hours.

use crate::problems::Failure;
use hopline_config::source::Problem;
use hopline_lab::output::{CAPTURE, FLOWS, MANIFEST, NEIGHBORHOODS, SERIES, check_file};
use hopline_scenario::Program;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the directory of results, which is there at the end.
    InResults,
    /// In a folder that is there.
    Elsewhere,
}

/// Checks that each file can be made, with the option that names it, and that no other output has its place. `results`: the
/// directory of results. Returns the places.
pub(super) fn check<const N: usize>(
    results: Option<&Path>,
    files: [(&'static str, Option<&Path>); N],
    programs: &[Program],
) -> Result<[Option<Place>; N], Failure> {
    let results = results.map(resolved);
    for (number, (option, file)) in files.iter().enumerate() {
        let same = files[..number].iter().find(|(_, other)| {
            file.is_some_and(|file| !is_device(file)) && other.map(resolved) == file.map(resolved)
        });
        if let (Some((other, _)), Some(file)) = (same, file) {
            let problem = Problem::new(format!("{other} and {option} both name {}", file.display()));
            return Err(problem.help("choose another file for one of them").into());
        }
    }
    let mut places = [None; N];
    for (place, (option, file)) in places.iter_mut().zip(files) {
        *place = file.map(|file| place_of(option, file, results.as_deref(), programs)).transpose()?;
    }
    Ok(places)
}

fn place_of(
    option: &str,
    file: &Path,
    results: Option<&Path>,
    programs: &[Program],
) -> Result<Place, Failure> {
    let refused =
        |problem: String, help: &str| Err(Problem::new(format!("{option}: {problem}")).help(help).into());
    let at = resolved(file);
    if let Some(results) = results.filter(|results| at.starts_with(results)) {
        let shown = file.display();
        return match at.parent() {
            _ if at == results => refused(format!("{shown} is the directory of -o"), "choose another file"),
            Some(folder) if folder == results && is_result(at.file_name(), programs) => {
                refused(format!("{shown} is a file of the results"), "choose another name")
            }
            Some(folder) if folder == results => Ok(Place::InResults),
            _ => refused(
                format!("{shown} is in a folder of the directory of -o, which is made anew"),
                "choose a file in that directory itself, or elsewhere",
            ),
        };
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return refused(
            format!("there is no folder {}", folder.display()),
            "make it, or choose another file",
        );
    }
    match fs::metadata(file) {
        Ok(found) if found.is_dir() => {
            return refused(format!("{} is a folder", file.display()), "choose a file");
        }
        Ok(found) if !found.is_file() => {} // a device or a pipe
        _ => check_file(file)?,
    }
    Ok(Place::Elsewhere)
}

/// Returns the path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(whole) = fs::canonicalize(path) {
        return whole;
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => resolved(folder).join(name),
        _ => path,
    }
}

/// Returns whether a path is that of a device or a pipe, which takes several outputs.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Returns whether results have a file of this name.
fn is_result(name: Option<&OsStr>, programs: &[Program]) -> bool {
    let Some(name) = name.and_then(OsStr::to_str) else { return false };
    let is_output = |program: &Program| {
        name.strip_prefix(&*program.name).is_some_and(|kind| [".stdout", ".stderr"].contains(&kind))
    };
    [CAPTURE, FLOWS, MANIFEST, NEIGHBORHOODS, SERIES].contains(&name) || programs.iter().any(is_output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_lab::Scenario;

    /// Returns the places of `--json` and `--record` in a folder, or the problem and its help.
    fn checked(
        results: Option<&str>,
        files: [&str; 2],
        prepare: impl FnOnce(&Path),
    ) -> Result<[Place; 2], String> {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("one.toml");
        let program = "[[program]]\nname = \"ping\"\nnode = \"n0\"\ncommand = [\"ping\"]\n";
        let network = "duration_s = 1\nradio.preset = \"ns2-wavelan\"\n[nodes]\nlayout = \"chain\"\ncount = 1\nspacing_m = 1\n";
        fs::write(&scenario, format!("{network}{program}")).unwrap();
        let programs = Scenario::load_network(&scenario, &[]).unwrap().programs(1).unwrap();
        prepare(folder.path());
        let [json, record] = files.map(|file| folder.path().join(file));
        let results = results.map(|name| folder.path().join(name));
        let files = [("--json", Some(&*json)), ("--record", Some(&*record))];
        let places = check(results.as_deref(), files, &programs).map_err(|failure| match failure {
            Failure::Input(problems) => {
                let text = format!("{} | {}", problems.0[0].message, problems.0[0].help.as_deref().unwrap());
                text.replace(&format!("{}/", folder.path().display()), "")
            }
            other => panic!("{other:?}"),
        })?;
        Ok(places.map(|place| place.unwrap()))
    }

    #[test]
    fn files_may_be_in_the_directory_of_results() {
        let places = Ok([Place::InResults, Place::Elsewhere]);
        assert_eq!(checked(Some("res"), ["res/sum.json", "links.json"], |_| ()), places);
        let exists = |folder: &Path| fs::create_dir(folder.join("res")).unwrap();
        assert_eq!(checked(Some("res/"), ["./res/sum.json", "links.json"], exists), places);
    }

    #[test]
    fn files_that_would_be_lost_or_overwritten_are_refused() {
        for (results, files, expected) in [
            (None, ["same", "./same"], "--json and --record both name ./same | choose another file for one"),
            (None, ["no/x", "y"], "--json: there is no folder no | make it"),
            (Some("res"), ["res", "y"], "--json: res is the directory of -o | choose another"),
            (
                Some("res"),
                ["x", "res/flows.csv"],
                "--record: res/flows.csv is a file of the results | choose",
            ),
            (Some("res"), ["x", "res/ping.stderr"], "--record: res/ping.stderr is a file of the results | "),
            (Some("res"), ["res/sub/x", "y"], "--json: res/sub/x is in a folder of the directory of -o"),
        ] {
            let problem = checked(results, files, |_| ()).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}\n{expected}");
        }
        let link = |folder: &Path| {
            fs::write(folder.join("x"), "").unwrap();
            std::os::unix::fs::symlink("x", folder.join("y")).unwrap();
        };
        let problem = checked(None, ["x", "y"], link).unwrap_err();
        assert!(problem.starts_with("--json and --record both name y"), "{problem}");
    }

    #[test]
    fn a_device_takes_several_outputs() {
        let place = Ok([Place::Elsewhere; 2]);
        assert_eq!(checked(None, ["/dev/null", "/dev/null"], |_| ()), place);
    }
}
