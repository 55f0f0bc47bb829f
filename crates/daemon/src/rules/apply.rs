//! Creation and removal of rules.

use super::claim::{self, Keep};
use super::journal::Journal;
use super::program::{Program, RuleError};
use super::steps::{CreatedObject, Step, unmake};
use super::{Rules, TrackingMonitor};
use crate::config::Config;
use crate::folder::Folder;

/// Result of removing rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Number of removed objects.
    pub removed: usize,
}

/// Makes all rules of `config`, or none. Rules of an earlier daemon of this name, which was killed, are removed first, so
/// that they are not mistaken for a use of connection tracking. `folder`: folder of the journal; the caller holds the
/// daemon's lock.
///
/// # Errors
/// The reason why there are none.
pub(crate) fn set_up(config: &Config, folder: &Folder) -> Result<TrackingMonitor, RuleError> {
    undo(&config.name, folder, Keep::TunInterfaces)?;
    let watch = TrackingMonitor::start();
    let rules = Rules::of(config, watch.tracking());
    claim::remove_others(&rules.tuns, &rules.owner, folder)?;
    let journal = Journal::of(&rules.owner, folder);
    let steps = rules.steps_possible_now();
    steps.iter().try_for_each(check_absent)?;
    for step in &steps {
        let made = journal.add(&step.object).and_then(|()| run(&step.create));
        if let Err(error) = made {
            // The first error says more than its consequences.
            let _ = undo(&rules.owner, folder, Keep::TunInterfaces);
            return Err(error);
        }
    }
    Ok(watch)
}

/// Changes the rules of the daemon to `rules`. Rules in both sets are changed at once, so that no packet passes in between.
/// Rules that another program has removed are made again.
///
/// # Errors
/// Changes that failed. The rules are the old ones, or partly the new ones.
pub(crate) fn change(rules: &Rules, folder: &Folder) -> Result<(), RuleError> {
    let journal = Journal::of(&rules.owner, folder);
    let before = journal.read()?;
    let steps = rules.steps_possible_now();
    steps.iter().filter(|step| !before.contains(&step.object)).try_for_each(check_absent)?;
    for step in &steps {
        let is_known = before.contains(&step.object);
        if !is_known {
            journal.add(&step.object)?;
        }
        let is_intact = is_known && step.object.is_intact()?;
        run(if is_intact { &step.update } else { &step.create })?;
    }
    let stays =
        |made: &&CreatedObject| matches!(made, CreatedObject::Tun(tun) if rules.tuns.contains(&tun.name));
    let goes = |made: &&CreatedObject| !stays(made) && !steps.iter().any(|step| step.object == **made);
    for made in before.iter().rev().filter(goes) {
        unmake(made)?;
    }
    // The older lines have the state before the daemon.
    let known =
        |step: &Step| before.iter().find(|made| **made == step.object).unwrap_or(&step.object).clone();
    journal.rewrite(before.iter().filter(stays).cloned().chain(steps.iter().map(known)))
}

/// Removes everything that the daemon `owner` made, except for `leave`, the latest first. A missing rule is no error, nor is
/// a second call.
///
/// # Errors
/// Rules that could not be removed. The rest is removed, and those left stay in the journal.
pub(crate) fn undo(owner: &str, folder: &Folder, leave: Keep) -> Result<Removed, RuleError> {
    let journal = Journal::of(owner, folder);
    let listed = journal.read()?;
    let left: Vec<&CreatedObject> = match leave {
        Keep::Nothing => Vec::new(),
        Keep::TunInterfaces => listed.iter().filter_map(claim::kept_part).collect(),
    };
    let (mut removed, mut first_error) = (0, None);
    for made in listed.iter().rev().filter(|made| !left.contains(made)) {
        match unmake(made) {
            Ok(was_there) => removed += usize::from(was_there),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) => Err(error),
        None if left.is_empty() => journal.remove().map(|()| Removed { removed }),
        None => journal.rewrite(left.into_iter().cloned()).map(|()| Removed { removed }),
    }
}

fn run(programs: &[Program]) -> Result<(), RuleError> {
    programs.iter().try_for_each(|program| program.run().map(drop))
}

/// Checks that a rule does not exist: one of another program must not be emptied, and not be removed at the end.
fn check_absent(step: &Step) -> Result<(), RuleError> {
    match (step.object.exists()?, step.object.other_object()) {
        (false, None) => Ok(()),
        (_, other) => Err(step.object.conflict(other)),
    }
}
