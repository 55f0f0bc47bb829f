//! `hopline bench`.

mod json;
mod text;

use crate::args::{Bench as Args, Test};
use crate::console;
use crate::problems::{Failure, say};
use hopline_lab::Problem;
use hopline_net::bench::{
    Connected, Direction, Ending, Error, Interval, Limit, Plan, Report, Server, Tests, Transport, Watch,
    measure,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// How long a test is if nothing is said.
const SECONDS: u32 = 10;

/// Serves, or measures.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    match &args.client {
        Some(host) => run_client(args, host),
        None => run_server(args),
    }
}

fn run_server(args: &Args) -> Result<(), Failure> {
    let address = args.bind.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let place = SocketAddr::new(address, args.port);
    let cannot = |e| Failure::Other(format!("cannot listen on {place}: {e}"));
    let server = Server::bind(address, args.port).map_err(cannot)?;
    let port = server.local_addr().map_err(cannot)?.port();
    console::catch_interrupts()?;
    say(&format!("waiting on UDP and TCP port {port} for `hopline bench -c`"));
    let tests = if args.one_off { Tests::One } else { Tests::All };
    let mut show = Show::new(Style::Text);
    let result = server.serve(tests, args.interval.0, &mut show);
    show.printed?;
    result.map_err(failure)
}

fn run_client(args: &Args, host: &str) -> Result<(), Failure> {
    let plan = plan(&args.test)?;
    let resolved = (host, args.port).to_socket_addrs();
    let peers: Vec<_> = resolved.map_err(|e| Failure::Other(format!("{host}: {e}")))?.collect();
    console::catch_interrupts()?;
    let mut show = Show::new(if args.test.json { Style::Json } else { Style::Text });
    show.plan = Some(plan.clone());
    let result = measure(&plan, &peers, args.interval.0, &mut show);
    if show.style == Style::Json {
        let session = json::Session { host, port: args.port, plan: &plan, streams: &show.streams };
        console::print(&format!("{:#}\n", json::document(&session, &show.intervals, &result)))?;
    } else if let Ok(report) = &result {
        show.summarise(&plan, report);
        show.line(&text::costs(&plan, report));
    }
    show.printed?;
    match result {
        Ok(Report { ending: Ending::Complete, .. }) => Ok(()),
        Ok(Report { ending: Ending::Stopped, .. }) => Err(Failure::MeasurementStopped),
        Err(error) => Err(failure(error)),
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Interrupted => Failure::MeasurementStopped,
        error => Failure::Other(error.to_string()),
    }
}

fn plan(test: &Test) -> Result<Plan, Failure> {
    let transport = match (&test.transport, test.window) {
        (Transport::Tpa { .. }, Some(cwnd_max)) => Transport::Tpa { cwnd_max },
        (Transport::Tcp { .. }, Some(_)) => {
            let help = "leave out --window, or --transport";
            return Err(Problem::new("--window is TPA's, and the transport is TCP").help(help).into());
        }
        (transport, None) => transport.clone(),
    };
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    Ok(Plan {
        transport,
        direction: if test.reverse { Direction::Reverse } else { Direction::Forward },
        limit: match test.bytes {
            Some(bytes) => Limit::Bytes(bytes),
            None => Limit::Time(seconds(test.time.unwrap_or(SECONDS))),
        },
        omit: seconds(test.omit),
        streams: test.parallel,
        length: test.length,
    })
}

/// The one who watches tests and tells.
struct Show {
    style: Style,
    /// Of the test that is going on.
    plan: Option<Plan>,
    streams: Vec<Connected>,
    /// Those of a test that is told at its end.
    intervals: Vec<Interval>,
    /// The first failure to write to stdout.
    printed: Result<(), Failure>,
}

/// How a test is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// Line by line, as it goes.
    Text,
    /// At its end.
    Json,
}

impl Show {
    fn new(style: Style) -> Self {
        Self { style, plan: None, streams: Vec::new(), intervals: Vec::new(), printed: Ok(()) }
    }

    fn line(&mut self, text: &str) {
        if self.printed.is_ok() {
            self.printed = console::print(text);
        }
    }

    fn summarise(&mut self, plan: &Plan, report: &Report) {
        self.line(&text::summary(plan, report));
    }
}

impl Watch for Show {
    fn accepted(&mut self, client: SocketAddr, plan: &Plan) {
        self.line(&text::accepted(client, plan));
        self.plan = Some(plan.clone());
    }

    fn connected(&mut self, streams: &[Connected]) {
        self.streams = streams.to_vec();
        if self.style == Style::Text {
            let plan = self.plan.take().expect("streams are of a test");
            self.line(&text::connected(&plan, streams));
            self.plan = Some(plan);
        }
    }

    fn interval(&mut self, interval: &Interval) {
        match self.style {
            Style::Text => self.line(&text::interval(interval)),
            Style::Json => self.intervals.push(interval.clone()),
        }
    }

    fn ended(&mut self, result: &Result<Report, Error>) {
        let plan = self.plan.take();
        match (result, plan) {
            (Ok(report), Some(plan)) => self.summarise(&plan, report),
            (Err(Error::Interrupted) | Ok(_), _) => {}
            (Err(error), _) => say(&error.to_string()),
        }
    }

    fn interrupted(&self) -> bool {
        console::interrupted() || self.printed.is_err()
    }
}
