//! Cores, memory, disk.

use super::finding::{Availability, Finding, State, read};
use std::num::NonZero;

/// Free disk space that result directories with captures soon fill, bytes.
const LOW_DISK: u64 = 1 << 30;

/// Returns the findings about resources of runs.
pub(super) fn findings() -> Vec<Finding> {
    let version = (State::Present, env!("CARGO_PKG_VERSION").to_owned());
    vec![
        Finding::new("hopline", version, "this program", ""),
        Finding::new(
            "cores",
            cores(),
            "paired runs go side by side, one a core",
            "see what limits this process",
        ),
        Finding::new(
            "memory",
            memory(),
            "runs in memory: megabytes for tens of nodes, more for thousands",
            "read MemAvailable in /proc/meminfo, if there is one",
        ),
        Finding::new(
            "disk",
            disk(),
            "result directories, below the current one; captures are large",
            "make room, or write to another disk",
        ),
    ]
}

fn cores() -> Availability {
    match std::thread::available_parallelism().map(NonZero::get) {
        Ok(1) => (State::Present, "1 core".into()),
        Ok(n) => (State::Present, format!("{n} cores")),
        Err(error) => (State::Unknown, error.to_string()),
    }
}

fn memory() -> Availability {
    match read("/proc/meminfo").as_deref().and_then(parse_meminfo) {
        Some((total, available)) => {
            (State::Present, format!("{} of {} available", bytes(available), bytes(total)))
        }
        None => (State::Unknown, "/proc/meminfo does not say".into()),
    }
}

/// Returns total and available bytes.
fn parse_meminfo(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?.strip_prefix(':')?;
        rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some((field("MemTotal")?, field("MemAvailable")?))
}

fn disk() -> Availability {
    match rustix::fs::statvfs(".") {
        Ok(fs) => {
            let free = fs.f_bavail.saturating_mul(fs.f_frsize);
            let state = if free < LOW_DISK { State::Missing } else { State::Present };
            (state, format!("{} free", bytes(free)))
        }
        Err(error) => (State::Unknown, error.to_string()),
    }
}

/// Formats a size for people.
fn bytes(n: u64) -> String {
    let gib = n as f64 / f64::from(1 << 30);
    if gib >= 1.0 { format!("{gib:.1} GiB") } else { format!("{:.0} MiB", gib * 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_kilobytes() {
        let text = "MemTotal:        8125092 kB\nMemFree: 12 kB\nMemAvailable:    6000000 kB\n";
        assert_eq!(parse_meminfo(text), Some((8_125_092 * 1024, 6_000_000 * 1024)));
        for broken in ["", "MemTotal: 5 kB\n", "MemTotal: x kB\nMemAvailable: 5 kB\n", "MemTotal"] {
            assert_eq!(parse_meminfo(broken), None, "{broken}");
        }
        assert_eq!(parse_meminfo(&format!("MemTotal: {} kB\nMemAvailable: 1 kB", u64::MAX)), None);
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(8_125_092 * 1024), "7.7 GiB");
        assert_eq!(bytes(5 << 20), "5 MiB");
        assert_eq!(bytes(0), "0 MiB");
    }
}
