//! The list of what was made, which outlives whoever made it.

use super::program::RuleError;
use super::steps::Made;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Permissions of the file: what it lists is undone.
const MODE: u32 = 0o600;

/// A file that lists what was made, in its order; each line is written before its thing is made.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
}

impl Journal {
    /// That of a daemon.
    pub(super) fn of(owner: &str, folder: &Path) -> Self {
        Self { path: folder.join(format!("{owner}.rules")) }
    }

    /// Adds a line, and sees to it that it is there.
    pub(super) fn add(&self, made: &Made) -> Result<(), RuleError> {
        let write = || {
            let mut options = fs::File::options();
            let mut file = options.create(true).read(true).append(true).mode(MODE).open(&self.path)?;
            let line = added(made, last_byte(&mut file)?);
            file.write_all(line.as_bytes())?;
            file.sync_data()
        };
        write().map_err(|e| self.failed(e))
    }

    /// Returns the entries of the journal.
    pub(super) fn read(&self) -> Result<Vec<Made>, RuleError> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(listed(&bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Has it list these and no others.
    pub(super) fn rewrite(&self, made: impl Iterator<Item = Made>) -> Result<(), RuleError> {
        let text: String = made.map(|made| line(&made)).collect();
        let other = self.path.with_extension("rules.new");
        let write = || {
            // Left by a process that was killed here.
            match fs::remove_file(&other) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = fs::File::options().create_new(true).write(true).mode(MODE).open(&other)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&other, &self.path)
        };
        write().map_err(|e| self.failed(e))
    }

    /// Removes it.
    pub(super) fn remove(&self) -> Result<(), RuleError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    fn failed(&self, error: io::Error) -> RuleError {
        RuleError::Journal(self.path.display().to_string(), error)
    }
}

/// Returns the entries of a journal. A line that was not finished, or is damaged, lists nothing that was made; nor does one that names
/// what no daemon makes, as the words of these become arguments of programs.
pub(super) fn listed(journal: &[u8]) -> Vec<Made> {
    let lines = journal.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).filter(Made::is_of_a_daemon).collect()
}

/// Returns the text that is written behind `last`, the last byte of a journal. A line that was not finished does not take the next one with it.
pub(super) fn added(made: &Made, last: Option<u8>) -> String {
    let end = if matches!(last, None | Some(b'\n')) { "" } else { "\n" };
    format!("{end}{}", line(made))
}

fn last_byte(file: &mut fs::File) -> io::Result<Option<u8>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(Some(byte[0]))
}

fn line(made: &Made) -> String {
    serde_json::to_string(made).expect("words and numbers") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Tun;
    use crate::rules::family::Family;

    fn journal(bytes: &[u8]) -> (tempfile::TempDir, Journal) {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::of("test", folder.path());
        fs::write(&journal.path, bytes).unwrap();
        (folder, journal)
    }

    #[test]
    fn a_line_that_was_not_finished_does_not_take_the_next_one_with_it() {
        let table = Made::Table("hopline-test".into());
        let tun =
            Made::Tun(Tun::new("tun0", ["10.0.0.1/24".parse().unwrap()], ["fd00::/8".parse().unwrap()]));
        let (_folder, journal) = journal(format!("{}{{\"Route\":[\"V4", line(&table)).as_bytes());
        journal.add(&Made::Route(Family::V6, 7)).unwrap();
        journal.add(&tun).unwrap();
        assert_eq!(journal.read().unwrap(), [table, Made::Route(Family::V6, 7), tun]);
    }

    #[test]
    fn its_owner_alone_may_read_and_write_it() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::of("test", folder.path());
        let mode = || fs::metadata(&journal.path).unwrap().mode() & 0o7777;
        journal.add(&Made::Route(Family::V6, 7)).unwrap();
        assert_eq!(mode(), 0o600);
        fs::write(journal.path.with_extension("rules.new"), "left").unwrap();
        journal.rewrite([Made::Route(Family::V4, 7)].into_iter()).unwrap();
        assert_eq!((mode(), journal.read().unwrap()), (0o600, vec![Made::Route(Family::V4, 7)]));
    }

    #[test]
    fn a_damaged_line_does_not_keep_the_others_from_being_undone() {
        let (_folder, journal) = journal(b"\xff\xfe\0\n{\"Route\":[\"V4\",7]}\n");
        assert_eq!(journal.read().unwrap(), [Made::Route(Family::V4, 7)]);
    }

    #[test]
    fn what_no_daemon_makes_is_not_undone() {
        for line in [
            r#"{"Table":"hopline-x; flush ruleset"}"#,
            r#"{"Table":"filter"}"#,
            r#"{"Queue":{"interface":"lo root handle 1:","length_before":null}}"#,
            r#"{"Rule":["V4","from all pref 1000"]}"#,
            r#"{"Tun":{"name":"-x","addresses":[],"routes":[]}}"#,
            r#"{"Tun":{"name":"tun0","addresses":["10.0.0.1/24 dev lo"],"routes":[]}}"#,
            r#"{"Rule":["V4","fwmark 0x1/0xffff0000 lookup 7 pref 10"]}"#,
            r#"{"Chain":{"family":"V4","table":"filter","name":"HOPLINE-a","hook":"INPUT"}}"#,
            r#"{"Chain":{"family":"V4","table":"security","name":"INPUT","hook":"INPUT"}}"#,
        ] {
            let (_folder, journal) = journal(line.as_bytes());
            assert_eq!(journal.read().unwrap(), [], "{line}");
        }
    }
}
