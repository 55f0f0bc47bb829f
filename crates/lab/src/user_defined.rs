//! User-defined algorithms: re-exports for programs that bring their own.

pub use hopline_queue::custom::{
    CustomDiscipline, DequeueDecision, DropCause as Lost, EnqueueDecision, HeadOfQueue, PacketInfo, QueueInfo,
};
pub use hopline_queue::{Class as PacketClass, EcnCapability};
/// The crate that controllers for QUIC are written against.
#[cfg(feature = "quic")]
pub use hopline_quic::quinn_proto;
/// The crate that controllers in the shape of s2n-quic are written against.
#[cfg(feature = "s2n-quic")]
pub use hopline_quic::s2n_quic_core;
pub use hopline_sim::custom::{AlgorithmKind, CustomAlgorithms, UsedAlgorithm};
pub use hopline_transport::tcp::{
    CongestionSignal, CustomCcAck, CustomCcLoss, CustomCcState, CustomCcTimeout, CustomCongestionControl,
    TimeoutResultUse,
};
