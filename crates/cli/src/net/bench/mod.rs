//! `hopline bench`.

mod date;
mod json;
mod observer;
mod row;
mod text;

use self::observer::{BenchPrinter, Style};
use crate::console;
use crate::net::args::{Bench as Args, BitRate, Test};
use crate::problems::{Failure, print_error_line};
use hopline_lab::Problem;
use hopline_tools::bench::{
    CongestionControl, ConnectOptions, CopyMode, Direction, Ending, Error, Limit, Nagle, Output, Plan,
    Report, Server, SocketOptions, TestCount, Transport, TransportProblem, measure,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Default duration of a test, seconds.
const DEFAULT_SECONDS: u32 = 10;

/// Runs a server or a client.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    match &args.client {
        Some(host) => run_client(args, host),
        None => run_server(args),
    }
}

fn run_server(args: &Args) -> Result<(), Failure> {
    let any =
        if args.version6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let address = args.bind.unwrap_or(any);
    if !is_wanted(args, address) {
        return Err(Problem::new("--bind has an address of the other version of IP than -4 or -6").into());
    }
    let place = SocketAddr::new(address, args.port);
    let cannot = |e| Failure::Other(format!("cannot listen on {place}: {e}"));
    let mut show = BenchPrinter::new(Style::Text, args)?;
    let server = Server::bind(address, args.port).map_err(cannot)?.limit_streams(args.max_streams);
    let port = server.local_addr().map_err(cannot)?.port();
    console::catch_interrupts()?;
    print_error_line(&format!("waiting on UDP and TCP port {port} for `hopline bench -c` and `iperf3 -c`"));
    let tests = if args.one_off { TestCount::One } else { TestCount::All };
    let result = server.serve(tests, args.interval.0, &mut show);
    show.write_result?;
    result.map_err(failure)
}

fn run_client(args: &Args, host: &str) -> Result<(), Failure> {
    let test = &args.test;
    let plan = plan(test)?;
    console::catch_interrupts()?;
    let style = match (test.json, test.json_stream) {
        (true, _) => Style::Json,
        (false, true) => Style::JsonStream { host: host.into(), port: args.port },
        (false, false) => Style::Text,
    };
    let mut show = BenchPrinter::new(style, args)?;
    show.begin(&plan);
    let patience = test.connect_timeout.map(|ms| Duration::from_millis(ms.into()));
    let result = addresses(args, host).and_then(|peers| {
        let call = ConnectOptions { peers, local_address: args.bind, timeout: patience };
        measure(&plan, &call, args.interval.0, &mut show)
    });
    show.print_result(host, args.port, &plan, &result);
    show.write_result?;
    match result {
        Ok(Report { ending: Ending::Complete, .. }) => Ok(()),
        Ok(Report { ending: Ending::Stopped, .. }) => Err(Failure::Interrupted("interrupted")),
        Err(error) => Err(failure(error)),
    }
}

/// Returns the addresses of the server that are of a requested IP version, at least one.
fn addresses(args: &Args, host: &str) -> Result<Vec<SocketAddr>, Error> {
    let unusable = |source| Error::Name { host: host.to_owned(), source };
    let resolved = (host, args.port).to_socket_addrs().map_err(unusable)?;
    let peers: Vec<_> = resolved.filter(|peer| is_wanted(args, peer.ip())).collect();
    if peers.is_empty() {
        return Err(unusable(io::Error::other("no address of the version of IP that -4 or -6 asks for")));
    }
    Ok(peers)
}

fn is_wanted(args: &Args, address: IpAddr) -> bool {
    !(args.version4 && address.is_ipv6() || args.version6 && address.is_ipv4())
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Interrupted => Failure::Interrupted("interrupted"),
        error => Failure::Other(error.to_string()),
    }
}

fn transport(test: &Test) -> Result<Transport, Failure> {
    if test.udp {
        return Ok(Transport::Udp);
    }
    let Some(name) = &test.congestion else {
        return Ok(test
            .transport
            .clone()
            .unwrap_or(Transport::Tpa { cwnd_max: hopline_tools::bench::DEFAULT_CWND_MAX }));
    };
    // The sender needs the algorithm, and in reverse that is not this side.
    if !test.reverse {
        let named = format!("tcp:{name}").parse();
        return named.map_err(|e: TransportProblem| Problem::new(format!("--congestion {name}: {e}")).into());
    }
    let control = CongestionControl::new(name)
        .ok_or_else(|| Problem::new(format!("--congestion {name}: no name of a congestion control")))?;
    Ok(Transport::Tcp { congestion_control: Some(control) })
}

fn plan(test: &Test) -> Result<Plan, Failure> {
    let transport = match (transport(test)?, test.window) {
        (Transport::Tpa { .. }, Some(cwnd_max)) => Transport::Tpa { cwnd_max },
        (other, Some(_)) => {
            let help = "leave out --window, or take TPA";
            let what = format!("--window is TPA's, and the transport is {}", other.protocol());
            return Err(Problem::new(what).help(help).into());
        }
        (transport, None) => transport,
    };
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let default = Plan::new(transport);
    let plan = Plan {
        direction: match (test.reverse, test.bidir) {
            (_, true) => Direction::Both,
            (true, false) => Direction::Reverse,
            (false, false) => Direction::Forward,
        },
        limit: match test.bytes {
            Some(bytes) => Limit::Bytes(bytes),
            None => Limit::Time(seconds(test.time.unwrap_or(DEFAULT_SECONDS))),
        },
        omit: seconds(test.omit),
        streams: test.parallel,
        length: test.length,
        rate: test.bitrate.map_or(default.rate, |BitRate(rate)| rate),
        socket_options: SocketOptions {
            nagle: if test.no_delay { Nagle::Off } else { Nagle::On },
            copy: if test.zerocopy { CopyMode::ZeroCopy } else { CopyMode::Copy },
            buffer: test.socket_buffer,
            mss: test.set_mss,
            tos: test.tos.unwrap_or(0),
        },
        probes: Some(test.latency).filter(|time| !time.is_zero()),
        output: if test.get_server_output { Output::WithServer } else { Output::ClientOnly },
        title: test.title.clone(),
        ..default
    };
    check_sockets(&plan)?;
    plan.validate().map_err(|error| Problem::new(error.to_string()))?;
    Ok(plan)
}

/// Rejects options that the transport does not support.
fn check_sockets(plan: &Plan) -> Result<(), Failure> {
    let sockets = &plan.socket_options;
    let tcp = matches!(plan.transport, Transport::Tcp { .. });
    let tpa = matches!(plan.transport, Transport::Tpa { .. } | Transport::TpaWide);
    let wrong = [
        ("--socket-buffer is for TCP and UDP", tpa && sockets.buffer.is_some()),
        ("--tos is for TCP and UDP", tpa && sockets.tos > 0),
        ("--set-mss is for TCP", !tcp && sockets.mss.is_some()),
        ("--no-delay is for TCP", !tcp && sockets.nagle == Nagle::Off),
        ("--zerocopy is for TCP", !tcp && sockets.copy == CopyMode::ZeroCopy),
    ];
    match wrong.iter().find(|(_, is_wrong)| *is_wrong) {
        None => Ok(()),
        Some((what, _)) => {
            let what = format!("{what}, and the transport is {}", plan.transport.protocol());
            Err(Problem::new(what).help("add -u for UDP, --transport tcp for TCP, or leave it out").into())
        }
    }
}
