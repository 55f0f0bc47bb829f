//! `hopline tcp`.

use crate::console;
use crate::net::args::Tcp as Args;
use crate::problems::{Failure, print_error_line};
use hopline_config::document::Setting;
use hopline_lab::Problem;
use hopline_middlebox::gateway::{Destination, ListenerConfig};
use hopline_middlebox::host_stack::{
    AcceptPort, HostStack, HostStackConfig, KeepAlive, StackConfig, is_forwarding,
};
use hopline_middlebox::service::{Metric, Service, ServiceStatus};
use hopline_scenario::endpoint::tcp_config;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Runs a TCP host stack until a signal.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let config = config(args)?;
    if config.listeners.is_empty() && config.accept.is_empty() {
        return Err(Problem::new("no program would reach the stack, and no peer a program")
            .help("-L 8080:HOST:80, --socks 1080 or --accept 2222:127.0.0.1:22")
            .into());
    }
    let host = HostStack::open(config).map_err(|error| Problem::new(error.to_string()))?;
    announce(args, &host);
    warn_of_on_link_addresses(&host);
    let (mut stop, stopped) = UnixStream::pair().map_err(|e| Failure::Other(e.to_string()))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let told = stop.try_clone().and_then(|stop| pipe::register(signal, stop));
        told.map_err(|e| Failure::Other(format!("cannot catch signal {signal}: {e}")))?;
    }
    if let Some(time) = args.lasting {
        std::thread::Builder::new()
            .spawn(move || {
                std::thread::sleep(Duration::from_nanos(time.0.as_nanos()));
                // Fails if the stack has ended.
                let _ = stop.write_all(b"x");
            })
            .map_err(|e| Failure::Other(format!("starting a thread: {e}")))?;
    }
    let ledger = ServiceStatus::default();
    let ended = Box::new(host).run(stopped.as_fd(), &ledger);
    report(args, &ledger.metrics())?;
    ended.map_err(|e| Failure::Other(format!("the stack could not go on: {e}")))
}

fn config(args: &Args) -> Result<HostStackConfig, Failure> {
    let settings: Result<Vec<_>, _> = args.set.iter().map(|text| Setting::parse("--set", text)).collect();
    let tcp = tcp_config(&args.transport, &settings?)?;
    let forwards = args
        .forward
        .iter()
        .map(|forward| ListenerConfig::Forward { listen: forward.0, to: forward.1.clone() });
    let socks = args.socks.iter().map(|listen| ListenerConfig::Socks { listen: listen.0, login: None });
    if let Some(open) = args.socks.iter().find(|listen| !listen.0.ip().is_loopback()) {
        let what = format!("SOCKS at {} would let every host there use this stack", open.0);
        return Err(Problem::new(what).help("an address of the loopback interface").into());
    }
    args.forward.iter().try_for_each(|forward| check_external(&forward.1, args))?;
    let config = HostStackConfig::new(tcp, args.address.clone())
        .map_err(|e| Failure::Other(format!("random numbers: {e}")))?;
    let most = args.max_connections as usize;
    Ok(HostStackConfig {
        interface: args.tun.clone(),
        listeners: forwards.chain(socks).collect(),
        accept: args.accept.iter().map(|a| AcceptPort { port: a.0, to: a.1.clone() }).collect(),
        stack: StackConfig {
            mtu: args.mtu,
            max_connections: most,
            max_half_open: config.stack.max_half_open.min(most),
            max_memory: u64::from(args.max_memory) << 20,
            keep_alive: keep_alive(args),
            ..config.stack
        },
        ..config
    })
}

/// Rejects a destination that belongs to the stack or to this machine: none of its packets would leave.
fn check_external(to: &Destination, args: &Args) -> Result<(), Failure> {
    let Destination::Address(address) = to else { return Ok(()) };
    if !address.ip().is_loopback() && !args.address.contains(&address.ip()) {
        return Ok(());
    }
    let what = format!("-L leads to {to}, which the stack does not reach: its packets go to other hosts");
    Err(Problem::new(what).help("the address of a peer; --accept leads peers to programs here").into())
}

/// Returns the keep-alive of all connections: the interval of probes is not longer than the time before the first.
fn keep_alive(args: &Args) -> Option<KeepAlive> {
    let idle = args.keep_alive.map_or(KeepAlive::DEFAULT.idle(), |time| time.0);
    let interval = idle.min(KeepAlive::DEFAULT.interval());
    (idle.as_nanos() > 0).then_some(KeepAlive::DEFAULT.with_idle(idle).with_interval(interval))
}

/// Prints a description of the stack, and causes that keep its packets on this machine.
fn announce(args: &Args, host: &HostStack) {
    let addresses: Vec<_> = args.address.iter().map(ToString::to_string).collect();
    print_error_line(&format!("{}: {} at {}", host.interface(), args.transport, addresses.join(", ")));
    for &address in args.address.iter().filter(|&&address| !is_forwarding(address)) {
        let key = if address.is_ipv4() { "net.ipv4.ip_forward" } else { "net.ipv6.conf.all.forwarding" };
        print_error_line(&format!(
            "warning: this machine does not forward packets, so that the stack reaches nothing beyond it: `sysctl -w {key}=1`"
        ));
    }
}

/// Warns of addresses that a host of a local network may have.
fn warn_of_on_link_addresses(host: &HostStack) {
    for (address, interface) in host.on_link_addresses() {
        print_error_line(&format!(
            "warning: {address} lies in the network of {interface}: hosts there look for it on the link, where the stack does not \
             answer, and one of them may have it; an address of no network here, such as 10.88.0.2, has neither problem"
        ));
    }
}

/// Prints the counters of the stack.
fn report(args: &Args, figures: &[Metric]) -> Result<(), Failure> {
    if args.json {
        let all: serde_json::Map<_, _> =
            figures.iter().map(|figure| (figure.name.to_owned(), figure.value.into())).collect();
        return console::print(&format!("{}\n", serde_json::Value::from(all)));
    }
    let counted = figures.iter().filter(|figure| figure.value > 0);
    let counted: Vec<_> = counted.map(|figure| format!("{}: {}", figure.doc, figure.value)).collect();
    if !counted.is_empty() {
        print_error_line(&counted.join("\n"));
    }
    Ok(())
}
