//! Signal strengths with which a mobile host receives stations.

use hopline_core::{Duration, Instant};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Source of the signal strengths of stations, asked at each beacon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SignalSource {
    /// No source. A host stays with its station as long as it hears that one, or changes by a timer.
    #[default]
    Unknown,
    /// A file that another program maintains. Each line has the address of a station and its strength in dBm, with a space
    /// between. Other lines are ignored. The first 64 KiB count. The file is best replaced as a whole (rename(2)).
    File(PathBuf),
}

/// Most bytes that are read of a file.
const MAX_FILE: u64 = 64 << 10;
/// Time between two looks into a file, whatever comes meanwhile.
const READ_INTERVAL: Duration = Duration::from_millis(20);

/// Looks up how strongly stations are heard.
#[derive(Debug)]
pub(super) struct SignalReader {
    source: SignalSource,
    strengths: BTreeMap<Ipv4Addr, f64>,
    stale_at: Instant,
}

impl SignalReader {
    pub(super) const fn new(source: SignalSource) -> Self {
        Self { source, strengths: BTreeMap::new(), stale_at: Instant::ZERO }
    }

    /// In dBm, if it is known.
    pub(super) fn strength_of(&mut self, now: Instant, station: Ipv4Addr) -> Option<f64> {
        if let SignalSource::File(path) = &self.source
            && self.stale_at <= now
        {
            self.strengths = read(path).unwrap_or_default();
            self.stale_at = now + READ_INTERVAL;
        }
        self.strengths.get(&station).copied()
    }
}

fn read(path: &Path) -> Option<BTreeMap<Ipv4Addr, f64>> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_FILE).read_to_string(&mut text).ok()?;
    Some(text.lines().filter_map(strength).collect())
}

fn strength(line: &str) -> Option<(Ipv4Addr, f64)> {
    let (station, dbm) = line.trim().split_once(' ')?;
    let dbm: f64 = dbm.trim().parse().ok()?;
    Some((station.parse().ok()?, dbm)).filter(|_| dbm.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn station(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    #[test]
    fn a_file_gives_the_strength_of_each_station() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "10.0.0.1 -60\n10.0.0.2   -71.5 \nnonsense\n10.0.0.3 NaN\n").unwrap();
        let mut meter = SignalReader::new(SignalSource::File(file.path().into()));
        let mut all =
            |ms| [1, 2, 3, 4].map(|last| meter.strength_of(Instant::from_millis(ms), station(last)));
        assert_eq!(all(0), [Some(-60.0), Some(-71.5), None, None]);
        std::fs::write(&file, "10.0.0.4 -50").unwrap();
        assert_eq!(all(19), [Some(-60.0), Some(-71.5), None, None], "a flood of beacons reads no file");
        assert_eq!(all(20), [None, None, None, Some(-50.0)]);
    }

    #[test]
    fn without_a_file_no_strength_is_known() {
        for source in [SignalSource::Unknown, SignalSource::File("/nonexistent/signals".into())] {
            assert_eq!(SignalReader::new(source).strength_of(Instant::ZERO, station(1)), None);
        }
    }
}
