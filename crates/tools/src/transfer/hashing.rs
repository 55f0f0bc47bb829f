//! Hashes of files, with a cache.

use blake3::{Hash, Hasher};
use rustix::fs::{Stat, fstat};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Minimum age of the last change before a hash is cached: two changes within a tick of a file system's clock have the
/// same time. The coarsest clock, that of FAT, has ticks of 2 s.
const MIN_AGE: Duration = Duration::from_secs(2);

/// Cache of hashes of whole files.
pub(super) static FILE_HASHES: HashCache<Hash> = HashCache::new(1 << 14);

/// Cache of hasher states at the end of partial files.
pub(super) static PARTIAL_HASHES: HashCache<Hasher> = HashCache::new(1 << 8);

/// Feeds at most `most` bytes of `reader` to `hasher`. Returns the number of bytes.
pub(super) fn hash_into(hasher: &mut Hasher, reader: &mut impl Read, most: u64) -> std::io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut reader = reader.take(most);
    let mut total = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                total += read as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Identity and metadata of a file. The same stamp implies the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn of(file: &impl AsFd) -> rustix::io::Result<Self> {
        fstat(file).map(|stat| Self::from(&stat))
    }

    /// Returns whether any later change would change the stamp.
    fn is_settled(&self, now: Duration) -> bool {
        let changed = Duration::from_secs(u64::try_from(self.changed.0).unwrap_or(0));
        // Times are truncated to whole seconds, and the clock may have been set back.
        now.checked_sub(changed).is_some_and(|age| age > MIN_AGE)
    }
}

impl From<&Stat> for FileStamp {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

/// Bounded cache of values by file stamp; the oldest entry is evicted first.
#[derive(Debug)]
pub(super) struct HashCache<V> {
    max_entries: usize,
    table: Mutex<Table<V>>,
}

#[derive(Debug)]
struct Table<V> {
    entries: BTreeMap<FileStamp, (u64, V)>,
    /// Stamps by age.
    order: BTreeMap<u64, FileStamp>,
    next: u64,
}

impl<V: Clone> HashCache<V> {
    pub(super) const fn new(most: usize) -> Self {
        let table = Table { entries: BTreeMap::new(), order: BTreeMap::new(), next: 0 };
        Self { max_entries: most, table: Mutex::new(table) }
    }

    pub(super) fn get(&self, stamp: &FileStamp) -> Option<V> {
        self.table().entries.get(stamp).map(|(_, value)| value.clone())
    }

    /// Caches a value read from a file, if its stamp is still `before`, and it was old enough when reading began.
    pub(super) fn insert_if_unchanged(&self, before: (FileStamp, Duration), file: &impl AsFd, value: V) {
        let (stamp, began) = before;
        if stamp.is_settled(began) && FileStamp::of(file) == Ok(stamp) {
            self.insert(stamp, value);
        }
    }

    pub(super) fn insert(&self, stamp: FileStamp, value: V) {
        let mut table = self.table();
        table.remove(&stamp);
        let number = table.next;
        table.next += 1;
        table.entries.insert(stamp, (number, value));
        table.order.insert(number, stamp);
        while table.entries.len() > self.max_entries
            && let Some((_, oldest)) = table.order.pop_first()
        {
            table.entries.remove(&oldest);
        }
    }

    pub(super) fn remove(&self, stamp: &FileStamp) {
        self.table().remove(stamp);
    }

    fn table(&self) -> MutexGuard<'_, Table<V>> {
        self.table.lock().expect("no thread panics while it holds the table")
    }
}

impl<V> Table<V> {
    fn remove(&mut self, stamp: &FileStamp) {
        if let Some((number, _)) = self.entries.remove(stamp) {
            self.order.remove(&number);
        }
    }
}

/// Returns the wall-clock time since 1970.
#[expect(clippy::disallowed_methods, reason = "file systems have times of day")]
pub(super) fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(inode: u64, changed: i64) -> FileStamp {
        FileStamp { device: 1, inode, size: 2, modified: (0, 0), changed: (changed, 0) }
    }

    #[test]
    fn the_oldest_entry_is_evicted_first() {
        let remembered = HashCache::new(2);
        for inode in [1, 2, 1, 3] {
            remembered.insert(stamp(inode, 0), inode);
        }
        let known = [1, 2, 3].map(|inode| remembered.get(&stamp(inode, 0)));
        assert_eq!(known, [Some(1), None, Some(3)]);
        remembered.remove(&stamp(3, 0));
        assert_eq!(remembered.get(&stamp(3, 0)), None);
        assert_eq!(remembered.get(&stamp(1, 1)), None, "it has changed");
    }

    #[test]
    fn a_file_is_settled_two_whole_seconds_after_its_last_change() {
        let rested =
            |seconds, millis: u32| stamp(1, 100).is_settled(Duration::new(seconds, millis * 1_000_000));
        assert!(!rested(102, 0));
        assert!(rested(102, 1));
        assert!(!rested(99, 0), "the clock was set back");
    }
}
