//! Queue disciplines.

use super::instance::{Class, Method, attached};
use hopline_lab::user_defined::{
    CustomDiscipline, DequeueDecision, EcnCapability, EnqueueDecision, HeadOfQueue, Lost, PacketClass,
    PacketInfo, QueueInfo,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A packet.
#[pyclass(frozen, get_all, module = "hopline.own")]
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Length, bytes.
    len_bytes: u32,
    /// Number of the flow and direction. Packets of other flows hardly ever have the same.
    flow: u64,
    /// True if it is a message of the routing protocol.
    is_routing: bool,
    /// True if it can be marked: its flow has tcp.ecn.
    markable: bool,
}

/// Packet at the head of the queue.
#[pyclass(frozen, get_all, module = "hopline.own")]
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// Length, bytes.
    len_bytes: u32,
    /// Number of the flow and direction. Packets of other flows hardly ever have the same.
    flow: u64,
    /// True if it is a message of the routing protocol.
    is_routing: bool,
    /// True if it can be marked: its flow has tcp.ecn.
    markable: bool,
    /// Queueing delay so far, s.
    waited_s: f64,
    /// Rank with which it was enqueued.
    rank: f64,
}

/// State of the queue, without the packet in question.
#[pyclass(frozen, get_all, module = "hopline.own")]
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// Virtual time, s.
    now_s: f64,
    /// Number of packets.
    packets: usize,
    /// Number of bytes.
    bytes: u64,
    /// Capacity, packets.
    capacity_packets: u16,
}

#[pymethods]
impl Packet {
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

#[pymethods]
impl Head {
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

#[pymethods]
impl Queue {
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl Packet {
    fn of(info: &PacketInfo) -> Self {
        Self {
            len_bytes: info.len_bytes,
            flow: info.flow,
            is_routing: info.class == PacketClass::Routing,
            markable: info.capability == EcnCapability::Capable,
        }
    }
}

impl Head {
    fn of(head: &HeadOfQueue) -> Self {
        let Packet { len_bytes, flow, is_routing, markable } = Packet::of(&head.packet);
        let waited_s = head.queueing_delay.as_secs_f64();
        Self { len_bytes, flow, is_routing, markable, waited_s, rank: head.rank }
    }
}

impl Queue {
    fn of(queue: &QueueInfo) -> Self {
        let QueueInfo { now, packets, bytes, capacity } = *queue;
        Self { now_s: now.as_secs_f64(), packets, bytes, capacity_packets: capacity.get() }
    }
}

/// Creates an instance of a discipline.
pub(super) fn instance(class: &Class, seed: u64) -> Result<Box<dyn CustomDiscipline>, String> {
    attached(|py| {
        let instance = class.make(py, seed)?;
        Ok(Box::new(Discipline {
            enqueue: Method::of(&instance, "enqueue")?,
            dequeue: Method::of(&instance, "dequeue")?,
            on_lost: Method::optional(&instance, "on_lost")?,
        }) as Box<dyn CustomDiscipline>)
    })
}

#[derive(Debug)]
struct Discipline {
    enqueue: Method,
    dequeue: Method,
    on_lost: Option<Method>,
}

impl CustomDiscipline for Discipline {
    fn enqueue(&mut self, packet: &PacketInfo, queue: &QueueInfo) -> Result<EnqueueDecision, String> {
        attached(|py| {
            let told = (Bound::new(py, Packet::of(packet))?, Bound::new(py, Queue::of(queue))?);
            admission(&self.enqueue.bind(py).call1(told)?)
        })
    }

    fn dequeue(&mut self, head: &HeadOfQueue, queue: &QueueInfo) -> Result<DequeueDecision, String> {
        attached(|py| {
            let told = (Bound::new(py, Head::of(head))?, Bound::new(py, Queue::of(queue))?);
            service(&self.dequeue.bind(py).call1(told)?)
        })
    }

    fn on_drop(&mut self, packet: &PacketInfo, loss: Lost, queue: &QueueInfo) -> Result<(), String> {
        let Some(on_lost) = &self.on_lost else { return Ok(()) };
        let reason = match loss {
            Lost::Full => "full",
            Lost::Displaced => "displaced",
            Lost::Removed => "removed",
        };
        attached(|py| {
            let told = (Bound::new(py, Packet::of(packet))?, reason, Bound::new(py, Queue::of(queue))?);
            on_lost.bind(py).call1(told).map(drop)
        })
    }
}

fn admission(answer: &Bound<'_, PyAny>) -> PyResult<EnqueueDecision> {
    let (word, rank): (String, f64) = match answer.extract::<String>() {
        Ok(word) => (word, 0.0),
        Err(_) => answer.extract().map_err(|_| not_known("enqueue", answer, ADMISSIONS))?,
    };
    match word.as_str() {
        "accept" => Ok(EnqueueDecision::Enqueue { rank }),
        "mark" => Ok(EnqueueDecision::Mark { rank }),
        "drop" => Ok(EnqueueDecision::Drop),
        _ => Err(not_known("enqueue", answer, ADMISSIONS)),
    }
}

fn service(answer: &Bound<'_, PyAny>) -> PyResult<DequeueDecision> {
    match answer.extract::<String>().as_deref() {
        Ok("serve") => Ok(DequeueDecision::Serve),
        Ok("mark") => Ok(DequeueDecision::Mark),
        Ok("drop") => Ok(DequeueDecision::Drop),
        _ => Err(not_known("dequeue", answer, "\"serve\", \"mark\" or \"drop\"")),
    }
}

const ADMISSIONS: &str = "\"accept\", \"mark\" or \"drop\", or one of them with a rank: (\"accept\", 2)";

fn not_known(method: &str, answer: &Bound<'_, PyAny>, known: &str) -> PyErr {
    let got = answer.repr().map_or_else(|_| "something else".to_owned(), |repr| repr.to_string());
    PyTypeError::new_err(format!("{method} returned {got}: it returns {known}"))
}
