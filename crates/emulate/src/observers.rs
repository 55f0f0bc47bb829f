//! Observers of the simulated network of an emulation. They run in the thread of its events.

use crate::flows::FlowTracker;
use crate::links::LinkRecorder;
use crate::writer::BlockSink;
use hopline_core::{Instant, NodeId};
use hopline_sim::trace::{CaptureFilter, PcapTracer, TraceEvent};
use hopline_sim::{Spec, Tracer};
use std::fmt;
use std::io;

/// Observation besides that of flows.
#[derive(Debug, Default)]
pub struct Observation {
    /// Capture of the frames of some nodes, and where it is written.
    pub capture: Option<(BlockSink, CaptureFilter)>,
    /// Measurement of delay and loss of links.
    pub links: LinkMeasurement,
    /// Further observers.
    pub others: Vec<Observer>,
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

/// All observers of a network.
pub(crate) struct Observers {
    pub(crate) flows: FlowTracker,
    pub(crate) capture: Option<PcapTracer<BlockSink>>,
    pub(crate) links: Option<LinkRecorder>,
    others: Vec<Observer>,
}

impl Observers {
    pub(crate) fn new(spec: &Spec, observed: Observation) -> io::Result<Self> {
        let capture = observed.capture;
        Ok(Self {
            flows: FlowTracker::new(spec),
            capture: capture.map(|(sink, nodes)| PcapTracer::with_filter(sink, spec, &nodes)).transpose()?,
            links: (observed.links == LinkMeasurement::On).then(LinkRecorder::default),
            others: observed.others,
        })
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
