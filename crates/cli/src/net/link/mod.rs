//! `hopline link`.

mod auxiliary;
mod summary;
mod traces;

use crate::console;
use crate::net::args::{Link as Args, Rate, Share, Time};
use crate::net::children::Children;
use crate::net::main_command::{await_end, exit_code};
use crate::problems::{Failure, print_error_line};
use auxiliary::AuxiliaryCommand;
use hopline_config::source::Problem;
#[cfg(test)]
pub(super) use hopline_link::Condition;
use hopline_link::{DelayDistribution, Emulation, Side};
use hopline_linux::{Namespace, Network, netns};
use hopline_tools::link::{EndConfig, EndRole, NamespaceLink, Setup};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;
use summary::Verdict;
#[cfg(test)]
pub(super) use traces::replay;

/// Advice if namespaces can be created but interfaces cannot.
const TUN_HELP: &str = "run it as root, or let its user open /dev/net/tun: `modprobe tun`, `chmod 666 /dev/net/tun`; a container needs \
                        --device /dev/net/tun";
/// Time for the far command to begin to listen.
const HEAD_START: Duration = Duration::from_millis(300);
/// Interval between checks of whether the command has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs a command on one of two hosts, and returns its exit code.
pub(crate) fn execute(args: &Args) -> Result<ExitCode, Failure> {
    let setup = setup(args)?;
    netns::enter_user_namespace().map_err(|e| Failure::Other(e.to_string()))?;
    let link = NamespaceLink::with(setup).map_err(|e| match e.is_unavailable() {
        true => Failure::Other(format!("{e}; {TUN_HELP}")),
        false => Failure::Other(e.to_string()),
    })?;
    // Ctrl-C at a terminal also reaches the command, which gets time to end.
    console::catch_interrupts()?;
    let children = Children::adopt();
    let mut beside = start_auxiliary(args, &link)?;
    let near = if auxiliary::any_failed(&mut beside) {
        NearResult::NotStarted
    } else {
        let mut child = start(args, &link, link.host(Side::A), near_command(args))?;
        NearResult::Ended(await_end(&mut child, || {
            auxiliary::any_failed(&mut beside);
            Ok(())
        })?)
    };
    // State before the other commands are stopped: a server may fail just because its client has ended.
    let has_failed = beside.iter().any(AuxiliaryCommand::is_reported_failed);
    drop(children);
    beside.into_iter().for_each(AuxiliaryCommand::end);
    let stats = link.stats();
    let verdict = Verdict::of(stats.lateness.is_late(), args.strict);
    print_error_line(&summary::text(&stats, verdict));
    if let Some(place) = &args.json {
        let json = summary::json(&stats, args.seed);
        std::fs::write(place, json)
            .map_err(|e| Failure::Other(format!("writing {}: {e}", place.display())))?;
    }
    Ok(match near {
        NearResult::Ended(status) => exit_code(status, has_failed || verdict == Verdict::Failed),
        NearResult::NotStarted => ExitCode::FAILURE,
    })
}

/// Command of the near host.
enum NearResult {
    /// Another command failed before it began.
    NotStarted,
    Ended(ExitStatus),
}

/// Options of one direction of a link.
struct DirectionArgs<'a> {
    rate: Option<Rate>,
    rate_trace: Option<&'a Path>,
    replay: Option<&'a Path>,
    delay: Time,
    loss: Share,
}

fn emulation(args: &Args, way: &DirectionArgs<'_>) -> Result<Emulation, Problem> {
    Ok(Emulation::default()
        .with_latency(way.delay.0)
        .with_rate(way.rate.map(|rate| rate.0))
        .with_opportunities(way.rate_trace.map(traces::rate_trace).transpose()?.map(Arc::new))
        .with_conditions(way.replay.map(traces::replay).transpose()?.map(Arc::from))
        .with_queue(Some(args.queue as usize))
        .with_loss(way.loss.0)
        .with_burst(args.loss_burst)
        .with_jitter(args.jitter.0)
        .with_allow_reordering(args.overtake)
        .with_reorder(args.reorder.0.0)
        .with_extra_delay(args.reorder.1.0)
        .with_extra_distribution(DelayDistribution::Fixed)
        .with_duplicate(args.duplicate.0)
        .with_corrupt(args.corrupt.0)
        .with_blackouts(args.outage.iter().map(|outage| (outage.0, outage.1)).collect()))
}

fn setup(args: &Args) -> Result<Setup, Problem> {
    let delays_differ = args.jitter.0.as_nanos() > 0 || args.replay.is_some() || args.replay_back.is_some();
    if args.overtake && !delays_differ {
        return Err(Problem::new("--overtake where all packets take as long").help(
            "--jitter 5ms, or --replay FILE with other delays; --reorder 5% holds single packets back",
        ));
    }
    let there = DirectionArgs {
        rate: args.rate,
        rate_trace: args.rate_trace.as_deref(),
        replay: args.replay.as_deref(),
        delay: args.delay,
        loss: args.loss,
    };
    // An own rate replaces a trace, and an own trace replaces a rate.
    let (rate, rate_trace) = match (args.rate_back, args.rate_trace_back.as_deref()) {
        (None, None) => (there.rate, there.rate_trace),
        other => other,
    };
    let back = DirectionArgs {
        rate,
        rate_trace,
        replay: args.replay_back.as_deref().or(there.replay),
        delay: args.delay_back.unwrap_or(args.delay),
        loss: args.loss_back.unwrap_or(args.loss),
    };
    let (forth, back) = (emulation(args, &there)?, emulation(args, &back)?);
    let end = |router: &Option<String>, networks: &[Network]| EndConfig {
        role: if router.is_some() { EndRole::Router } else { EndRole::Host },
        networks: networks.to_vec(),
    };
    let ends = [end(&args.near_router, &args.near_net), end(&args.far_router, &args.far_net)];
    Ok(Setup { path_mtu: args.mtu, ends, ..Setup::new(forth, back, args.seed) })
}

/// Starts the commands of routers and of the far host, and gives them time to begin to listen.
fn start_auxiliary(args: &Args, link: &NamespaceLink) -> Result<Vec<AuxiliaryCommand>, Failure> {
    let commands = [
        ("near-router", &args.near_router, link.router(Side::A)),
        ("far-router", &args.far_router, link.router(Side::B)),
        ("far", &args.far, Some(link.host(Side::B))),
    ];
    let mut all = Vec::new();
    for (name, words, host) in commands {
        let (Some(words), Some(host)) = (words, host) else { continue };
        all.push(AuxiliaryCommand::start(name, words, host, |host, command| {
            start(args, link, host, command)
        })?);
    }
    auxiliary::await_start(&mut all, HEAD_START);
    Ok(all)
}

fn near_command(args: &Args) -> Command {
    match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
        None => Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "sh".into())),
    }
}

/// Returns a path for `nsenter --net=`.
fn far_namespace(link: &NamespaceLink) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), link.host(Side::B).as_fd().as_raw_fd())
}

fn start(
    args: &Args,
    link: &NamespaceLink,
    host: &Namespace,
    mut command: Command,
) -> Result<std::process::Child, Failure> {
    for (name, side) in [("HOPLINE_NEAR", Side::A), ("HOPLINE_FAR", Side::B)] {
        command.env(name, link.host_v4(side).to_string());
        if let Some(address) = link.host_v6(side) {
            command.env(format!("{name}6"), address.to_string());
        }
    }
    command.env("HOPLINE_FAR_NETNS", far_namespace(link)).env("HOPLINE_LINK_SEED", args.seed.to_string());
    let program = command.get_program().to_string_lossy().into_owned();
    let started = host.spawn(command);
    started.map_err(|e| Failure::Other(format!("{program} cannot be started: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args as All, Command as Any};
    use crate::net::Command;
    use clap::Parser;
    use hopline_core::{Duration as Span, Instant as Moment};

    fn setup_of(options: &str) -> Setup {
        let words = format!("hopline link {options} -- true");
        let Any::Net(Command::Link(args)) = All::parse_from(words.split_whitespace()).command else {
            panic!("{words}")
        };
        setup(&args).unwrap()
    }

    #[test]
    fn lateness_fails_a_run_only_with_strict() {
        let of = [(true, false), (true, true), (false, true)].map(|(late, strict)| Verdict::of(late, strict));
        assert_eq!(of, [Verdict::Late, Verdict::Failed, Verdict::OnTime]);
    }

    #[test]
    fn routers_and_networks_are_created_at_their_ends() {
        let setup =
            setup_of("--near-router true --near-net 10.9.0.0/24 --near-net fd09::/64 --far-net 10.8.0.0/16");
        let [near, far] = &setup.ends;
        assert_eq!((near.role, far.role), (EndRole::Router, EndRole::Host));
        assert_eq!(near.networks, ["10.9.0.0/24".parse(), "fd09::/64".parse()].map(Result::unwrap));
        assert_eq!(far.networks, ["10.8.0.0/16".parse().unwrap()]);
    }

    #[test]
    fn without_options_the_link_has_no_impairment() {
        let way = Emulation::default()
            .with_queue(Some(100))
            .with_extra_distribution(DelayDistribution::Fixed)
            .with_extra_delay(Span::from_millis(30));
        assert_eq!(setup_of(""), Setup::new(way.clone(), way, 1));
    }

    #[test]
    fn every_option_sets_its_parameter_in_both_directions() {
        let way = Emulation::default()
            .with_latency(Span::from_millis(25))
            .with_rate(Some(20_000_000))
            .with_queue(Some(50))
            .with_loss(0.05)
            .with_burst(Some(4.0))
            .with_jitter(Span::from_millis(3))
            .with_allow_reordering(true)
            .with_reorder(0.02)
            .with_extra_delay(Span::from_millis(10))
            .with_extra_distribution(DelayDistribution::Fixed)
            .with_duplicate(0.01)
            .with_corrupt(0.001)
            .with_blackouts(vec![
                (Moment::from_secs(1), Moment::from_secs(2)),
                (Moment::from_secs(60), Moment::from_secs(120)),
            ]);
        let expected = Setup { path_mtu: Some(1400), ..Setup::new(way.clone(), way, 7) };
        let options = "--rate 20mbit --delay 25ms --jitter 3ms --overtake --loss 5% --loss-burst 4 --reorder 2%:10ms --duplicate 1% --corrupt 0.1% \
                       --queue 50 --mtu 1400 --outage 1s..2s --outage 60s..2min --seed 7";
        assert_eq!(setup_of(options), expected);
    }

    #[test]
    fn traces_apply_to_both_directions_unless_the_reverse_one_has_its_own_or_a_rate() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (trace, replay) = (file("trace", "5\n10\n"), file("replay.csv", "time_s,loss\n1,0.5\n"));
        let both = setup_of(&format!("--rate-trace {trace} --replay {replay}"));
        assert!(both.forward.opportunities().is_some() && both.forward.conditions().is_some());
        assert_eq!(both.forward, both.reverse);
        let rated = setup_of(&format!("--rate-trace {trace} --rate-back 1mbit"));
        assert_eq!((rated.reverse.opportunities(), rated.reverse.rate()), (None, Some(1_000_000)));
        let other = file("other", "7\n");
        let traced = setup_of(&format!("--rate 1mbit --rate-trace-back {other}"));
        assert_eq!((traced.reverse.opportunities().is_some(), traced.reverse.rate()), (true, None));
    }

    #[test]
    fn the_reverse_direction_may_differ() {
        let setup =
            setup_of("--rate 20mbit --rate-back 1mbit --delay 25ms --delay-back 0 --loss 5% --loss-back 1%");
        let figures = |way: &Emulation| (way.rate(), way.latency(), way.loss());
        assert_eq!(figures(&setup.forward), (Some(20_000_000), Span::from_millis(25), 0.05));
        assert_eq!(figures(&setup.reverse), (Some(1_000_000), Span::ZERO, 0.01));
    }
}
