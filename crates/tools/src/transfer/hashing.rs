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
const REST: Duration = Duration::from_secs(2);

/// Cache of hashes of whole files.
pub(super) static FILES: Remembered<Hash> = Remembered::new(1 << 14);

/// Cache of hasher states at the end of partial files.
pub(super) static PARTS: Remembered<Hasher> = Remembered::new(1 << 8);

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
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(file: &impl AsFd) -> rustix::io::Result<Self> {
        fstat(file).map(|stat| Self::from(&stat))
    }

    /// Returns whether any later change would change the stamp.
    fn has_rested(&self, now: Duration) -> bool {
        let changed = Duration::from_secs(u64::try_from(self.changed.0).unwrap_or(0));
        // Times are truncated to whole seconds, and the clock may have been set back.
        now.checked_sub(changed).is_some_and(|age| age > REST)
    }
}

impl From<&Stat> for Stamp {
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
pub(super) struct Remembered<V> {
    most: usize,
    table: Mutex<Table<V>>,
}

#[derive(Debug)]
struct Table<V> {
    known: BTreeMap<Stamp, (u64, V)>,
    /// Stamps by age.
    order: BTreeMap<u64, Stamp>,
    next: u64,
}

impl<V: Clone> Remembered<V> {
    pub(super) const fn new(most: usize) -> Self {
        let table = Table { known: BTreeMap::new(), order: BTreeMap::new(), next: 0 };
        Self { most, table: Mutex::new(table) }
    }

    pub(super) fn get(&self, stamp: &Stamp) -> Option<V> {
        self.table().known.get(stamp).map(|(_, value)| value.clone())
    }

    /// Caches a value read from a file, if its stamp is still `before`, and it was old enough when reading began.
    pub(super) fn remember_read(&self, before: (Stamp, Duration), file: &impl AsFd, value: V) {
        let (stamp, began) = before;
        if stamp.has_rested(began) && Stamp::of(file) == Ok(stamp) {
            self.remember(stamp, value);
        }
    }

    pub(super) fn remember(&self, stamp: Stamp, value: V) {
        let mut table = self.table();
        table.forget(&stamp);
        let number = table.next;
        table.next += 1;
        table.known.insert(stamp, (number, value));
        table.order.insert(number, stamp);
        while table.known.len() > self.most
            && let Some((_, oldest)) = table.order.pop_first()
        {
            table.known.remove(&oldest);
        }
    }

    pub(super) fn forget(&self, stamp: &Stamp) {
        self.table().forget(stamp);
    }

    fn table(&self) -> MutexGuard<'_, Table<V>> {
        self.table.lock().expect("no thread panics while it holds the table")
    }
}

impl<V> Table<V> {
    fn forget(&mut self, stamp: &Stamp) {
        if let Some((number, _)) = self.known.remove(stamp) {
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

    fn stamp(inode: u64, changed: i64) -> Stamp {
        Stamp { device: 1, inode, size: 2, modified: (0, 0), changed: (changed, 0) }
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let remembered = Remembered::new(2);
        for inode in [1, 2, 1, 3] {
            remembered.remember(stamp(inode, 0), inode);
        }
        let known = [1, 2, 3].map(|inode| remembered.get(&stamp(inode, 0)));
        assert_eq!(known, [Some(1), None, Some(3)]);
        remembered.forget(&stamp(3, 0));
        assert_eq!(remembered.get(&stamp(3, 0)), None);
        assert_eq!(remembered.get(&stamp(1, 1)), None, "it has changed");
    }

    #[test]
    fn a_file_rests_two_whole_seconds_after_its_last_change() {
        let rested =
            |seconds, millis: u32| stamp(1, 100).has_rested(Duration::new(seconds, millis * 1_000_000));
        assert!(!rested(102, 0));
        assert!(rested(102, 1));
        assert!(!rested(99, 0), "the clock was set back");
    }
}
