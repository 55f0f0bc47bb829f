//! `hopline link`.

mod children;
mod far;
mod summary;

use crate::console;
use crate::net::args::Link as Args;
use crate::net::clock;
use crate::problems::{Failure, say};
use children::Children;
use far::Voice;
use hopline_link::{Emulation, Extra, Side};
use hopline_net::link::{NamespaceLink, Setup};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// How long the far command has to begin to listen.
const HEAD_START: Duration = Duration::from_millis(300);
/// How often it is seen whether the command has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long a command that Ctrl-C went to has before it is told again.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a command on one of two hosts, and passes on how it ended.
pub(crate) fn execute(args: &Args) -> Result<ExitCode, Failure> {
    let setup = setup(args);
    let link = NamespaceLink::with(setup).map_err(|e| Failure::Other(e.to_string()))?;
    // Ctrl-C at a terminal goes to the command as well, which has a while to come to its end.
    console::catch_interrupts()?;
    let children = Children::adopt();
    let voice = args.far.as_ref().map(|far| start_far(args, &link, far)).transpose()?;
    let mut child = start(args, &link, Side::A, near(args))?;
    let status = await_end(&mut child)?;
    drop(children);
    if let Some(voice) = voice {
        voice.end();
    }
    let stats = link.stats();
    say(&summary::text(&stats));
    if let Some(place) = &args.json {
        let json = summary::json(&stats, args.seed);
        std::fs::write(place, json)
            .map_err(|e| Failure::Other(format!("writing {}: {e}", place.display())))?;
    }
    Ok(exit_code(status, stats.lateness.is_late()))
}

fn setup(args: &Args) -> Setup {
    let way = |rate: Option<crate::net::args::Rate>,
               delay: crate::net::args::Time,
               loss: crate::net::args::Share| Emulation {
        latency: delay.0,
        rate: rate.map(|rate| rate.0),
        queue: Some(args.queue as usize),
        loss: loss.0,
        burst: args.loss_burst,
        jitter: args.jitter.0,
        reorder: args.reorder.0.0,
        extra_delay: args.reorder.1.0,
        extra: Extra::Exactly,
        duplicate: args.duplicate.0,
        corrupt: args.corrupt.0,
        blackouts: args.outage.iter().map(|outage| (outage.0, outage.1)).collect(),
        ..Emulation::default()
    };
    let forth = way(args.rate, args.delay, args.loss);
    let back = way(
        args.rate_back.or(args.rate),
        args.delay_back.unwrap_or(args.delay),
        args.loss_back.unwrap_or(args.loss),
    );
    Setup { path_mtu: args.mtu, ..Setup::new(forth, back, args.seed) }
}

/// Starts the far command, and gives it the time to begin to listen.
fn start_far(args: &Args, link: &NamespaceLink, far: &str) -> Result<Voice, Failure> {
    let mut shell = Command::new("sh");
    // Ctrl-C is not for it: it is stopped when the other has ended.
    shell.args(["-c", far]).process_group(0);
    let voice = Voice::of(&mut shell)?;
    start(args, link, Side::B, shell)?;
    thread::sleep(HEAD_START);
    Ok(voice)
}

fn near(args: &Args) -> Command {
    match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
        None => Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "sh".into())),
    }
}

/// A path that `nsenter --net=` takes.
fn far_namespace(link: &NamespaceLink) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), link.host(Side::B).as_fd().as_raw_fd())
}

fn start(
    args: &Args,
    link: &NamespaceLink,
    side: Side,
    mut command: Command,
) -> Result<std::process::Child, Failure> {
    command
        .env("HOPLINE_NEAR", link.address_a().to_string())
        .env("HOPLINE_FAR", link.address_b().to_string())
        .env("HOPLINE_FAR_NETNS", far_namespace(link))
        .env("HOPLINE_LINK_SEED", args.seed.to_string());
    let program = command.get_program().to_string_lossy().into_owned();
    let started = link.host(side).spawn(command);
    started.map_err(|e| Failure::Other(format!("{program} cannot be started: {e}")))
}

/// What a command that we wait for has been told.
#[derive(Clone, Copy)]
enum Told {
    Nothing,
    /// Ctrl-C, by the terminal, at this time.
    Interrupted(Instant),
    /// SIGTERM, by us; interrupted at this time.
    ToEnd(Instant),
}

/// Waits for the command. One that has been interrupted and goes on is told to end, and then made to.
fn await_end(child: &mut std::process::Child) -> Result<ExitStatus, Failure> {
    let failed = |e: std::io::Error| Failure::Other(format!("waiting for the command: {e}"));
    let mut told = Told::Nothing;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        match told {
            Told::Nothing if console::interrupted() => told = Told::Interrupted(clock::now()),
            Told::Interrupted(since) if since.elapsed() > PATIENCE => {
                children::tell_to_end(child.id());
                told = Told::ToEnd(since);
            }
            Told::ToEnd(since) if since.elapsed() > 2 * PATIENCE => child.kill().map_err(failed)?,
            Told::Nothing | Told::Interrupted(_) | Told::ToEnd(_) => {}
        }
        thread::sleep(LOOK);
    }
}

/// As shells have it.
fn exit_code(status: ExitStatus, late: bool) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(0), _) if late => ExitCode::FAILURE,
        (Some(code), _) => ExitCode::from(code as u8),
        (None, signal) => ExitCode::from(128_u8.saturating_add(signal.unwrap_or(0) as u8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args as All, Command as Any};
    use crate::net::Command;
    use clap::Parser;
    use hopline_core::{Duration as Span, Instant as Time};

    fn setup_of(options: &str) -> Setup {
        let words = format!("hopline link {options} -- true");
        let Any::Net(Command::Link(args)) = All::parse_from(words.split_whitespace()).command else {
            panic!("{words}")
        };
        setup(&args)
    }

    #[test]
    fn without_options_the_link_is_perfect() {
        let way = Emulation {
            queue: Some(100),
            extra: Extra::Exactly,
            extra_delay: Span::from_millis(30),
            ..Emulation::default()
        };
        assert_eq!(setup_of(""), Setup::new(way.clone(), way, 1));
    }

    #[test]
    fn every_option_becomes_what_it_says_both_ways() {
        let way = Emulation {
            latency: Span::from_millis(25),
            rate: Some(20_000_000),
            queue: Some(50),
            loss: 0.05,
            burst: Some(4.0),
            jitter: Span::from_millis(3),
            reorder: 0.02,
            extra_delay: Span::from_millis(10),
            extra: Extra::Exactly,
            duplicate: 0.01,
            corrupt: 0.001,
            mark: 0.0,
            blackouts: vec![
                (Time::from_secs(1), Time::from_secs(2)),
                (Time::from_secs(60), Time::from_secs(120)),
            ],
        };
        let expected = Setup { path_mtu: Some(1400), ..Setup::new(way.clone(), way, 7) };
        let options = "--rate 20mbit --delay 25ms --jitter 3ms --loss 5% --loss-burst 4 --reorder 2%:10ms --duplicate 1% --corrupt 0.1% \
                       --queue 50 --mtu 1400 --outage 1s..2s --outage 60s..2min --seed 7";
        assert_eq!(setup_of(options), expected);
    }

    #[test]
    fn the_way_back_may_be_another() {
        let setup =
            setup_of("--rate 20mbit --rate-back 1mbit --delay 25ms --delay-back 0 --loss 5% --loss-back 1%");
        let figures = |way: &Emulation| (way.rate, way.latency, way.loss);
        assert_eq!(figures(&setup.forth), (Some(20_000_000), Span::from_millis(25), 0.05));
        assert_eq!(figures(&setup.back), (Some(1_000_000), Span::ZERO, 0.01));
    }
}
