//! User-defined algorithms: re-exports for programs that bring their own.

pub use hopline_queue::custom::{
    CustomDiscipline, DequeueDecision, DropCause as Lost, EnqueueDecision, HeadOfQueue, PacketInfo, QueueInfo,
};
pub use hopline_queue::{Class as PacketClass, EcnCapability};
/// The crate that controllers for QUIC are written against.
#[cfg(feature = "quic")]
pub use hopline_quic::quinn_proto;
pub use hopline_sim::custom::{AlgorithmKind, CustomAlgorithms, UsedAlgorithm};
pub use hopline_transport::tcp::{
    CongestionSignal, CustomCcAck, CustomCcLoss, CustomCcState, CustomCcTimeout, CustomCongestionControl,
    TimeoutResultUse,
};
