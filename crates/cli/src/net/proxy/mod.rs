//! `hopline proxy`.

mod asked;
mod keyboard;
mod rates;
mod status;
mod top;

use crate::console;
use crate::net::args::{Proxy as Args, ProxyCommand, ProxySetup, ProxyUndo};
use crate::problems::{Failure, say};
use hopline_daemon::rules::{Leave, Rules, Tracking};
use hopline_daemon::{Config, RunError, router};
use hopline_lab::Problem;
use std::path::Path;

/// Executes a subcommand for a daemon or its file.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    match &args.command {
        ProxyCommand::Check(given) => check(&given.file),
        ProxyCommand::Setup(given) => set_up(given),
        ProxyCommand::Undo(given) => undo(given),
        ProxyCommand::Run(given) => hopline_daemon::run(&given.file, keeper).map_err(failure),
        ProxyCommand::Status(given) => status::execute(given),
        ProxyCommand::Top(given) => top::execute(given),
        ProxyCommand::HostKey(given) => {
            console::print(&format!("{}\n", hopline_daemon::host_key(&given.network, given.home)?))
        }
        ProxyCommand::Keep(given) => hopline_daemon::keep(&given.name, &given.folder).map_err(failure),
    }
}

fn check(file: &Path) -> Result<(), Failure> {
    let config = Config::load(file)?;
    let list: Vec<String> =
        config.proxies.iter().map(|proxy| format!("{} ({})", proxy.name, proxy.task.kind())).collect();
    let report = router::inspect(&config);
    report.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    warn_of_needs(&config);
    if let Some(obstacle) = report.obstacles.first() {
        return Err(Problem::new(obstacle.clone()).into());
    }
    let tracking = Tracking::here();
    if let Some(obstacle) = router::of_tracked_moves(&config, tracking) {
        return Err(Problem::new(obstacle).into());
    }
    let tracking = Rules::of(&config, tracking).on_tracking();
    let tracking = tracking.map_or_else(String::new, |sentence| format!("{sentence}\n"));
    console::print(&format!("{}: right; proxies: {}\n{tracking}", file.display(), list.join(", ")))
}

/// Warns of interfaces and addresses that do not exist now: they may appear later, or be mistyped.
fn warn_of_needs(config: &Config) {
    config.needs.iter().filter(|need| !need.is_met()).for_each(|need| say(&format!("warning: {need}")));
}

fn set_up(given: &ProxySetup) -> Result<(), Failure> {
    let config = Config::load(&given.file.file)?;
    warn_of_needs(&config);
    if given.dry_run {
        let rules = Rules::of(&config, Tracking::here());
        rules.on_tracking().iter().for_each(|sentence| say(sentence));
        return console::print(&rules.to_string());
    }
    hopline_daemon::set_up(&config).map_err(failure)?;
    say(&format!("set up; `hopline proxy undo {}` takes it back", given.file.file.display()));
    Ok(())
}

fn undo(given: &ProxyUndo) -> Result<(), Failure> {
    let config = Config::load(&given.file.file)?;
    let leave = if given.tunnels { Leave::Nothing } else { Leave::Tuns };
    let undone = hopline_daemon::undo(&config.name, &config.state_dir, leave).map_err(failure)?;
    say(match undone.removed {
        0 => "nothing was there".to_owned(),
        removed => format!("{removed} removed"),
    }
    .as_str());
    Ok(())
}

/// Returns the arguments with which this program runs as a daemon's keeper.
fn keeper(config: &Config) -> Vec<std::ffi::OsString> {
    vec!["proxy".into(), "keep".into(), config.name.clone().into(), config.state_dir.clone().into()]
}

/// Converts an error. Unless rules could not be removed, nothing was set up, and the cause is the input or the machine.
fn failure(error: RunError) -> Failure {
    match error {
        RunError::Config(problems) => problems.into(),
        error @ RunError::Undo(_) => Failure::Other(error.to_string()),
        error => Problem::new(error.to_string()).into(),
    }
}
