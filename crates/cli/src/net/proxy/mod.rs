//! `hopline proxy`.

mod daemon;
mod keyboard;
mod rates;
mod status;
mod top;

use crate::console;
use crate::net::args::{Proxy as Args, ProxyCommand, ProxySetup, ProxyUndo};
use crate::problems::{Failure, print_error_line};
use hopline_daemon::rules::{Keep, Rules, Tracking};
use hopline_daemon::{Config, RunError, router};
use hopline_lab::Problem;
use std::path::Path;

/// Executes a subcommand for a daemon or its file.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    match &args.command {
        ProxyCommand::Check(given) => check(&given.file),
        ProxyCommand::Setup(given) => setup(given),
        ProxyCommand::Undo(given) => undo(given),
        ProxyCommand::Run(given) => hopline_daemon::run(&given.file, keeper_arguments).map_err(failure),
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
    report.warnings.iter().for_each(|warning| print_error_line(&format!("warning: {warning}")));
    warn_of_missing(&config);
    if let Some(obstacle) = report.obstacles.first() {
        return Err(Problem::new(obstacle.clone()).into());
    }
    let tracking = Tracking::detect();
    if let Some(obstacle) = router::tracked_moves_warning(&config, tracking) {
        return Err(Problem::new(obstacle).into());
    }
    let tracking = Rules::of(&config, tracking).tracking_note();
    let tracking = tracking.map_or_else(String::new, |sentence| format!("{sentence}\n"));
    console::print(&format!("{}: right; proxies: {}\n{tracking}", file.display(), list.join(", ")))
}

/// Warns of interfaces and addresses that do not exist now: they may appear later, or be mistyped.
fn warn_of_missing(config: &Config) {
    config
        .requirements
        .iter()
        .filter(|need| !need.is_met())
        .for_each(|need| print_error_line(&format!("warning: {need}")));
}

fn setup(given: &ProxySetup) -> Result<(), Failure> {
    let config = Config::load(&given.file.file)?;
    warn_of_missing(&config);
    if given.dry_run {
        let rules = Rules::of(&config, Tracking::detect());
        rules.tracking_note().iter().for_each(|sentence| print_error_line(sentence));
        return console::print(&rules.to_string());
    }
    hopline_daemon::make_rules(&config).map_err(failure)?;
    print_error_line(&format!("set up; `hopline proxy undo {}` takes it back", given.file.file.display()));
    Ok(())
}

fn undo(given: &ProxyUndo) -> Result<(), Failure> {
    let config = Config::load(&given.file.file)?;
    let leave = if given.tunnels { Keep::Nothing } else { Keep::TunInterfaces };
    let undone = hopline_daemon::remove_rules(&config.name, &config.state_dir, leave).map_err(failure)?;
    print_error_line(
        match undone.removed {
            0 => "nothing was there".to_owned(),
            removed => format!("{removed} removed"),
        }
        .as_str(),
    );
    Ok(())
}

/// Returns the arguments with which this program runs as a daemon's keeper.
fn keeper_arguments(config: &Config) -> Vec<std::ffi::OsString> {
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
