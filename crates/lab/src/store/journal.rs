//! Records of an experiment, in a file to which each is appended as it ends.
//!
//! There is one line for each record. A process that is killed leaves at most its last line unfinished, which
//! is cut off when the file is opened again. Positions of records are kept in memory, the records are not.

use super::StoreError;
use crate::record::Record;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Records of an experiment.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Start and length of each record, by point and run.
    offsets: BTreeMap<(usize, u64), (u64, usize)>,
    /// Position of the next record.
    end: u64,
}

/// Fields that identify a record.
#[derive(Deserialize)]
struct RecordId {
    point: usize,
    run: u64,
}

/// Access to a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Writing; the file is created if it is missing.
    Append,
    /// Reading only.
    Read,
}

impl Journal {
    pub(super) fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let append = access == Access::Append;
        let options = OpenOptions::new().read(true).write(append).create(append).truncate(false).open(path);
        let file = options.map_err(|e| StoreError::io(path, e))?;
        let mut journal = Self { path: path.to_owned(), file, offsets: BTreeMap::new(), end: 0 };
        journal.scan()?;
        if append {
            journal.truncate_incomplete()?;
        }
        Ok(journal)
    }

    pub(super) fn has(&self, point: usize, run: u64) -> bool {
        self.offsets.contains_key(&(point, run))
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns points and runs of all records, in this order.
    pub(super) fn keys(&self) -> Vec<(usize, u64)> {
        self.offsets.keys().copied().collect()
    }

    pub(super) fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(record).expect("a record is made of strings and numbers");
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Earlier records stay readable even if this fails too: an unfinished line is cut off later.
            let _ = self.truncate_incomplete();
            return Err(StoreError::io(&self.path, error));
        }
        self.offsets.insert((record.point, record.run), (self.end, line.len()));
        self.end += line.len() as u64;
        Ok(())
    }

    /// Passes the records of runs 1 to `runs` to `each`, by point and run.
    pub(super) fn each<E: From<StoreError>>(
        &mut self,
        runs: u64,
        mut each: impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        for (point, run) in self.keys().into_iter().filter(|(_, run)| *run <= runs) {
            if let Some(record) = self.read(point, run)? {
                each(record)?;
            }
        }
        Ok(())
    }

    /// Returns the record of `run` of `point`.
    pub(super) fn read(&mut self, point: usize, run: u64) -> Result<Option<Record>, StoreError> {
        let Some(&(start, len)) = self.offsets.get(&(point, run)) else { return Ok(None) };
        let mut line = vec![0; len];
        let read = self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.read_exact(&mut line));
        let back = read.and_then(|()| self.file.seek(SeekFrom::Start(self.end)));
        back.map_err(|e| StoreError::io(&self.path, e))?;
        serde_json::from_slice(&line).map(Some).map_err(|e| self.damaged(point, run, &e))
    }

    /// Finds the records.
    fn scan(&mut self) -> Result<(), StoreError> {
        let mut reader = BufReader::new(&self.file);
        let mut line = Vec::new();
        for number in 1usize.. {
            line.clear();
            let len = reader.read_until(b'\n', &mut line).map_err(|e| StoreError::io(&self.path, e))?;
            if line.last() != Some(&b'\n') {
                break;
            }
            let known: RecordId = serde_json::from_slice(&line).map_err(|e| StoreError::Damaged {
                path: self.path.clone(),
                line: number,
                why: e.to_string(),
            })?;
            self.offsets.insert((known.point, known.run), (self.end, len));
            self.end += len as u64;
        }
        Ok(())
    }

    /// Cuts off what follows the last complete record.
    fn truncate_incomplete(&mut self) -> Result<(), StoreError> {
        let end = self.end;
        let cut = self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::Start(end)));
        cut.map(drop).map_err(|e| StoreError::io(&self.path, e))
    }

    fn damaged(&self, point: usize, run: u64, error: &serde_json::Error) -> StoreError {
        let line = self.offsets.values().filter(|place| **place < self.offsets[&(point, run)]).count() + 1;
        StoreError::Damaged { path: self.path.clone(), line, why: error.to_string() }
    }
}
