//! User-defined algorithms: re-exports for programs that bring their own.

pub use hopline_queue::own::{
    Admission, HeadInfo, Loss as Lost, OwnDiscipline, PacketInfo, QueueInfo, Service,
};
pub use hopline_queue::{Capability, Class as PacketClass};
pub use hopline_sim::own::{Kind, Machines, Used};
pub use hopline_transport::tcp::{LawAck, LawLoss, LawState, LawTimeout, LossSign, OwnLaw, TimeoutAnswer};
