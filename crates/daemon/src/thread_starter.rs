//! Real-time threads of a daemon that has dropped the right to start them: a thread inherits the priority of the one that
//! starts it.

use crate::config::Scheduling;
use hopline_linux::sched::{self, Priority};
use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use tracing::info;

/// Channel to the thread that starts real-time threads. There is one for the process, as for privileges.
static STARTER: OnceLock<Sender<StartRequest>> = OnceLock::new();

struct StartRequest {
    name: String,
    body: Box<dyn FnOnce() + Send>,
    started: Sender<io::Result<JoinHandle<()>>>,
}

/// Prepares for real-time threads, if they are permitted now, then calls `give_up`, which drops privileges for good. Returns
/// its result.
pub(crate) fn begin<T>(give_up: impl FnOnce() -> T) -> io::Result<T> {
    let priority = sched::request_real_time();
    let left = give_up();
    let (orders, incoming) = channel::<StartRequest>();
    let start = move || {
        for StartRequest { name, body, started } in incoming {
            let _ = started.send(Builder::new().name(name).spawn(body));
        }
    };
    let begun = Builder::new().name("starter".into()).spawn(start);
    sched::reset_scheduling();
    begun?;
    let _ = STARTER.set(orders);
    match priority {
        Priority::RealTime => info!("packets are served in real time"),
        Priority::Ordinary => {
            info!(
                "packets are served as others run: real time needs CAP_SYS_NICE at the start, or LimitRTPRIO=1"
            );
        }
    }
    Ok(left)
}

/// Starts a thread with this timing.
pub(crate) fn spawn(
    timing: Scheduling,
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let Some(starter) = STARTER.get().filter(|_| timing == Scheduling::RealTime) else {
        return Builder::new().name(name).spawn(body);
    };
    let (started, answer) = channel();
    let order = StartRequest { name, body: Box::new(body), started };
    starter.send(order).map_err(|_| io::Error::other("who starts threads has ended"))?;
    answer.recv().map_err(io::Error::other)?
}
