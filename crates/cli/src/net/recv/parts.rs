//! Abandoned partial files.

use crate::console;
use crate::net::args::Recv as Args;
use crate::net::clock;
use crate::problems::{Failure, print_error_line};
use hopline_tools::transfer::{Directory, FoundPart};
use indicatif::HumanBytes;
use std::time::{Duration, Instant};

/// Interval between searches for old files.
const SEARCH_INTERVAL: Duration = Duration::from_secs(3600);
const DAY: u64 = 86_400;

/// Removal of old partial files.
pub(super) struct Expiry {
    /// Age of removal; `None`: never.
    age: Option<Duration>,
    last_search: Option<Instant>,
    quiet: bool,
}

impl Expiry {
    pub(super) fn new(args: &Args) -> Self {
        let age = (args.expire > 0).then(|| Duration::from_secs(u64::from(args.expire) * DAY));
        Self { age, last_search: None, quiet: args.show.quiet }
    }

    /// Searches, if the last search was an hour ago.
    pub(super) fn remove_expired(&mut self, directory: &Directory) {
        let Some(age) = self.age else { return };
        if self.last_search.is_some_and(|at| at.elapsed() < SEARCH_INTERVAL) {
            return;
        }
        self.last_search = Some(clock::now());
        // An unreadable directory is tried again in an hour.
        for part in directory.remove_parts(age).unwrap_or_default() {
            if !self.quiet {
                print_error_line(&format!("removed {}: nobody came back for it", describe(&part)));
            }
        }
    }
}

/// Lists and removes all partial files that are not being received.
pub(super) fn clean(args: &Args, directory: &Directory) -> Result<(), Failure> {
    let failed = |e: hopline_tools::transfer::Error| Failure::Other(e.to_string());
    let removed = directory.remove_parts(Duration::ZERO).map_err(failed)?;
    let kept = directory.parts().map_err(failed)?;
    let line = |word: &str, part: &FoundPart| {
        if args.show.json {
            let values = serde_json::json!({ "event": word, "path": part.to_string(), "bytes": part.bytes });
            format!("{values}\n")
        } else {
            format!("{word}: {}\n", describe(part))
        }
    };
    for part in &removed {
        console::print(&line("removed", part))?;
    }
    for part in &kept {
        console::print(&line("in use", part))?;
    }
    if !args.show.json {
        console::print(&format!("{} removed, {} in use\n", removed.len(), kept.len()))?;
    }
    Ok(())
}

fn describe(part: &FoundPart) -> String {
    let days = part.age.as_secs() / DAY;
    format!("{part} ({}, {days} days old)", HumanBytes(part.bytes))
}
