//! Observers of the simulated network of an emulation. They run in the thread of its events.

use crate::flows::{FlowTracker, RealFlows};
use crate::links::{LinkRecorder, RecordedLink};
use hopline_core::{Instant, NodeId};
use hopline_sim::trace::{CaptureFilter, PcapTracer, TraceEvent};
use hopline_sim::{Spec, Tracer};
use std::fmt;
use std::io::{self, Write};

/// Observation besides that of flows.
#[derive(Debug, Default)]
pub struct Observation {
    /// Capture of the frames of some nodes.
    pub capture: Option<Capture>,
    /// Measurement of delay and loss of links.
    pub links: LinkMeasurement,
    /// Further observers.
    pub others: Vec<Observer>,
}

/// Capture of the frames of some nodes.
pub struct Capture {
    /// File to which it is written. Each call of `write` is a block of the file.
    pub file: Box<dyn Write + Send>,
    /// The nodes.
    pub nodes: CaptureFilter,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

/// Measurement of delay and loss of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkMeasurement {
    /// They are not measured.
    #[default]
    Off,
    /// They are measured.
    On,
}

/// Function that receives each event of a network: time, node, event.
pub type EventFunction = dyn FnMut(Instant, NodeId, TraceEvent<'_>) + Send;

/// Callback for each event of the simulated network. It must not block.
pub struct Observer(pub Box<EventFunction>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// All observers of a network, with those of flows.
pub struct Observers {
    flows: FlowTracker,
    capture: Option<PcapTracer<Box<dyn Write + Send>>>,
    links: Option<LinkRecorder>,
    others: Vec<Observer>,
}

/// Results of observation.
#[derive(Debug)]
pub struct Observed {
    /// Flows of real programs.
    pub flows: RealFlows,
    /// Delay and loss of links, if they were measured.
    pub links: Vec<RecordedLink>,
    /// First error of writing the capture.
    pub capture: io::Result<()>,
}

impl Observers {
    /// Prepares to observe a network.
    ///
    /// # Errors
    /// If the beginning of the capture cannot be written.
    pub fn new(spec: &Spec, observed: Observation) -> io::Result<Self> {
        let capture = observed.capture;
        let start = |Capture { file, nodes }| PcapTracer::with_filter(file, spec, &nodes);
        Ok(Self {
            flows: FlowTracker::new(spec),
            capture: capture.map(start).transpose()?,
            links: (observed.links == LinkMeasurement::On).then(|| LinkRecorder::new(spec.nodes.len())),
            others: observed.others,
        })
    }

    /// Ends the observation at `now`, the time that the network has reached.
    #[must_use]
    pub fn finish(self, now: Instant) -> Observed {
        Observed {
            flows: self.flows.finish(now),
            links: self.links.map(LinkRecorder::finish).unwrap_or_default(),
            capture: self.capture.map_or(Ok(()), |capture| capture.finish()?.flush()),
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observers")
    }
}

impl Tracer for Observers {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        self.flows.trace(now, node, event);
        self.capture.trace(now, node, event);
        self.links.trace(now, node, event);
        for observer in &mut self.others {
            observer.0(now, node, event);
        }
    }
}
