//! Journal of the rules that a daemon made, which survives the daemon.

use super::program::RuleError;
use super::steps::CreatedObject;
use crate::folder::{Access, Folder};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// File that lists rules in the order of their creation; each line is written before its rule is made.
#[derive(Debug)]
pub(super) struct Journal<'a> {
    folder: &'a Folder,
    name: String,
}

impl<'a> Journal<'a> {
    /// Returns the journal of a daemon.
    pub(super) fn of(owner: &str, folder: &'a Folder) -> Self {
        Self { folder, name: format!("{owner}.rules") }
    }

    /// Adds a line, and syncs it to disk.
    pub(super) fn add(&self, made: &CreatedObject) -> Result<(), RuleError> {
        let write = || {
            let mut file = self.folder.open_or_make(&self.name, Access::Append)?;
            let line = added(made, last_byte(&mut file)?);
            file.write_all(line.as_bytes())?;
            file.sync_data()
        };
        write().map_err(|e| self.failed(e))
    }

    /// Returns the entries of the journal.
    pub(super) fn read(&self) -> Result<Vec<CreatedObject>, RuleError> {
        let read = || {
            let mut bytes = Vec::new();
            let file = self.folder.read(&self.name)?;
            file.map(|mut file| file.read_to_end(&mut bytes)).transpose()?;
            Ok(bytes)
        };
        read().map(|bytes| listed(&bytes)).map_err(|e| self.failed(e))
    }

    /// Replaces the entries.
    pub(super) fn rewrite(&self, made: impl Iterator<Item = CreatedObject>) -> Result<(), RuleError> {
        let text: String = made.map(|made| line(&made)).collect();
        let other = format!("{}.new", self.name);
        let write = || {
            // A killed process may have left one.
            self.folder.replace_file(&other)?.write_all(text.as_bytes())?;
            self.folder.rename(&other, &self.name)
        };
        write().map_err(|e| self.failed(e))
    }

    /// Removes the journal.
    pub(super) fn remove(&self) -> Result<(), RuleError> {
        self.folder.remove(&self.name).map_err(|e| self.failed(e))
    }

    fn failed(&self, error: io::Error) -> RuleError {
        RuleError::Journal(self.folder.path().join(&self.name).display().to_string(), error)
    }
}

/// Returns the entries of a journal. An unfinished or damaged line is ignored, and so is a line with an object that no
/// daemon makes, because its words would become arguments of programs.
pub(super) fn listed(journal: &[u8]) -> Vec<CreatedObject> {
    let lines = journal.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter(CreatedObject::belongs_to_a_daemon)
        .collect()
}

/// Returns the text to append after `last`, the last byte of a journal. An unfinished line does not corrupt the next one.
pub(super) fn added(made: &CreatedObject, last: Option<u8>) -> String {
    let end = if matches!(last, None | Some(b'\n')) { "" } else { "\n" };
    format!("{end}{}", line(made))
}

fn last_byte(file: &mut File) -> io::Result<Option<u8>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(Some(byte[0]))
}

fn line(made: &CreatedObject) -> String {
    serde_json::to_string(made).expect("words and numbers") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Tun;
    use crate::rules::family::Family;
    use std::fs;

    fn folder() -> (tempfile::TempDir, Folder) {
        let folder = tempfile::tempdir().unwrap();
        let opened = Folder::open(folder.path()).unwrap();
        (folder, opened)
    }

    fn with(bytes: &[u8], body: impl FnOnce(Journal<'_>)) {
        let (folder, opened) = folder();
        fs::write(folder.path().join("test.rules"), bytes).unwrap();
        body(Journal::of("test", &opened));
    }

    #[test]
    fn an_incomplete_line_does_not_damage_the_next() {
        let table = CreatedObject::Table("hopline-test".into());
        let tun = CreatedObject::Tun(Tun::new(
            "tun0",
            ["10.0.0.1/24".parse().unwrap()],
            ["fd00::/8".parse().unwrap()],
        ));
        with(format!("{}{{\"Route\":[\"V4", line(&table)).as_bytes(), |journal| {
            journal.add(&CreatedObject::Route(Family::V6, 7)).unwrap();
            journal.add(&tun).unwrap();
            assert_eq!(journal.read().unwrap(), [table, CreatedObject::Route(Family::V6, 7), tun]);
        });
    }

    #[test]
    fn only_its_owner_may_read_and_write_the_journal() {
        use std::os::unix::fs::MetadataExt;
        let (path, folder) = folder();
        let journal = Journal::of("test", &folder);
        let mode = || fs::metadata(path.path().join("test.rules")).unwrap().mode() & 0o7777;
        journal.add(&CreatedObject::Route(Family::V6, 7)).unwrap();
        assert_eq!(mode(), 0o600);
        fs::write(path.path().join("test.rules.new"), "left").unwrap();
        journal.rewrite([CreatedObject::Route(Family::V4, 7)].into_iter()).unwrap();
        assert_eq!((mode(), journal.read().unwrap()), (0o600, vec![CreatedObject::Route(Family::V4, 7)]));
    }

    #[test]
    fn a_damaged_line_does_not_prevent_removal_of_the_others() {
        with(b"\xff\xfe\0\n{\"Route\":[\"V4\",7]}\n", |journal| {
            assert_eq!(journal.read().unwrap(), [CreatedObject::Route(Family::V4, 7)]);
        });
    }

    #[test]
    fn objects_that_no_daemon_makes_are_not_removed() {
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
            with(line.as_bytes(), |journal| assert_eq!(journal.read().unwrap(), [], "{line}"));
        }
    }
}
