//! qlog: a log of each end of each connection, for viewers such as qvis.
//!
//! A file is a sequence of JSON texts (RFC 7464) by the schema of qlog 0.3: the drafts qlog-main-schema and
//! qlog-quic-events of the IETF's QUIC working group. `docs/qlog.md` describes how transports other than QUIC are mapped.

mod content;
mod end;
mod events;
mod ledger;
#[cfg(test)]
mod tests;

use end::{Description, EndLog};
use events::ConnectionRole;
use hopline_core::{Instant, NodeId};
use hopline_sim::spec::{FlowSpec, Traffic, Transport};
use hopline_sim::trace::{Side, TraceEvent, TransportEvent};
use hopline_sim::{Spec, Tracer};
use std::collections::BTreeSet;
use std::io;

/// Bytes of text after which they are written to the file. There may be thousands of files, so none stays open.
const FLUSH_BYTES: usize = 16 << 10;
/// Most bytes of a flow's name in the name of a file.
const MAX_NAME_BYTES: usize = 100;
/// End of the names of files, by which viewers know the format.
pub const EXTENSION: &str = ".sqlog";

/// Returns whether a flow of `spec` has a transport protocol.
#[must_use]
pub fn has_connections(spec: &Spec) -> bool {
    spec.flows.iter().any(|flow| flow.traffic.transport().is_some())
}

/// Writes a file for each end of each flow that has a transport protocol. `A` appends text to a file by its name.
///
/// After the first write error nothing more is written; [`QlogTracer::finish`] returns it.
#[derive(Debug)]
pub struct QlogTracer<A> {
    append: A,
    /// By flow and end.
    flows: Vec<Option<[(String, EndLog); 2]>>,
    failed: Result<(), (String, io::Error)>,
}

impl<A: FnMut(&str, &[u8]) -> io::Result<()>> QlogTracer<A> {
    /// Begins the files of all flows. `title`: scenario and run.
    pub fn new(spec: &Spec, title: &str, append: A) -> Self {
        let mut names = BTreeSet::new();
        let flows = spec.flows.iter().map(|flow| {
            let over = flow.traffic.transport()?;
            let file = file_name(&flow.name, &mut names);
            let of_end = |side| {
                let description = describe(spec, title, flow, over, side);
                (format!("{file}-{}{EXTENSION}", side_name(side)), EndLog::new(description))
            };
            Some([of_end(Side::Source), of_end(Side::Sink)])
        });
        Self { append, flows: flows.collect(), failed: Ok(()) }
    }

    /// Writes the rest of all files.
    ///
    /// # Errors
    /// The first error that writing met, and the name of the file.
    pub fn finish(mut self) -> Result<(), (String, io::Error)> {
        for (name, log) in self.flows.iter_mut().flatten().flatten() {
            flush(&mut self.append, name, log, &mut self.failed);
        }
        self.failed
    }
}

fn flush(
    append: &mut impl FnMut(&str, &[u8]) -> io::Result<()>,
    name: &str,
    log: &mut EndLog,
    failed: &mut Result<(), (String, io::Error)>,
) {
    if failed.is_ok() {
        *failed = append(name, log.text()).map_err(|error| (name.to_owned(), error));
    }
    log.text().clear();
}

impl<A: FnMut(&str, &[u8]) -> io::Result<()> + 'static> Tracer for QlogTracer<A> {
    fn trace(&mut self, now: Instant, _node: NodeId, event: TraceEvent<'_>) {
        let TraceEvent::Transport { flow, side, endpoint, event } = event else { return };
        let Some(ends) = &mut self.flows[flow.index()] else { return };
        let (here, there) = match ends {
            [source, sink] if side == Side::Source => (source, sink),
            [source, sink] => (sink, source),
        };
        let (name, log) = here;
        match event {
            TransportEvent::Sent { number, segment } => log.on_sent(now, endpoint, number, segment),
            TransportEvent::Received { number, segment } => {
                log.numbering[1].learn_offset(segment, &there.1.numbering[0]);
                log.on_received(now, endpoint, number, segment);
            }
            TransportEvent::Drained => log.on_drained(now, endpoint),
        }
        if log.text().len() >= FLUSH_BYTES {
            flush(&mut self.append, name, log, &mut self.failed);
        }
    }
}

const fn side_name(side: Side) -> &'static str {
    match side {
        Side::Source => "sender",
        Side::Sink => "receiver",
    }
}

fn describe(spec: &Spec, title: &str, flow: &FlowSpec, over: &Transport, side: Side) -> Description {
    // The end at the source opens the connection, except that a client asks a server for its data.
    let client = if matches!(flow.traffic, Traffic::Exchange { .. }) { Side::Sink } else { Side::Source };
    let role = if side == client { ConnectionRole::Client } else { ConnectionRole::Server };
    let here = flow.end_transports[side as usize].as_ref().unwrap_or(over);
    let node = |id: NodeId| &spec.nodes[id.index()].name;
    let addresses = [flow.src.ipv4(), flow.dst.ipv4()];
    let [src, dst] = [node(flow.src), node(flow.dst)];
    Description {
        title: title.to_owned(),
        name: format!("{} {}", flow.name, side_name(side)),
        role,
        flow: format!("{} from {src} to {dst}", flow.labels.transport),
        protocol: match here {
            Transport::Tcp(_) => "TCP",
            Transport::Tpa(_) => "TPA",
            Transport::Wide(_) => "TPA-wide",
            Transport::Quic(_) => "QUIC",
        },
        transport: flow.labels.transport.clone(),
        addresses: match side {
            Side::Source => addresses,
            Side::Sink => [addresses[1], addresses[0]],
        },
        mss: here.mss(),
        start: flow.start.min(Instant::ZERO + spec.duration),
    }
}

/// Returns a name for the files of a flow that no other has, with characters that every file system accepts.
fn file_name(flow: &str, taken: &mut BTreeSet<String>) -> String {
    let accepted = |c: char| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '_' };
    let plain: String = flow.chars().map(accepted).take(MAX_NAME_BYTES).collect();
    // A leading point would hide the file, and a leading hyphen looks like an option.
    let plain = plain.trim_start_matches(['.', '-']);
    let plain = if plain.is_empty() { "flow" } else { plain };
    let numbered = (2..).map(|n| format!("{plain}-{n}"));
    // Names that differ in case alone are the same to some file systems.
    let free =
        std::iter::once(plain.to_owned()).chain(numbered).find(|name| taken.insert(name.to_lowercase()));
    free.expect("there are more numbers than flows")
}
