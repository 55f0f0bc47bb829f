//! What runs until it is told to stop, and says meanwhile what it has done: what a daemon is made of.

mod notice;
mod together;

pub use notice::{Listener, Notice, Tone};
pub use together::Together;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Something that runs: a queue with a machine behind it, a listener and its connections, an agent.
///
/// It has been opened by whoever made it, with all privileges that this takes; running takes none. What it holds goes when it ends.
pub trait Service: Send {
    /// Runs until `stop` can be read. Blocks. Writes into `ledger` at least once a second while anything changes, and at its end.
    ///
    /// # Errors
    /// Why it cannot go on: its interface has vanished, or the system refuses.
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &Ledger) -> io::Result<()>;
}

/// Counters and notices of a [`Service`], which other threads read meanwhile.
#[derive(Debug, Default)]
pub struct Ledger {
    figures: Mutex<Vec<Figure>>,
    notices: Mutex<Vec<Notice>>,
    listener: Option<Arc<dyn Listener>>,
}

/// One number of a [`Ledger`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name: words in lower case, joined by `_`, with the unit last, as Prometheus wants it without prefix and `_total`.
    pub name: &'static str,
    /// What it counts.
    pub doc: &'static str,
    /// How it moves.
    pub kind: FigureKind,
    /// How much it is now.
    pub value: u64,
}

/// How a [`Figure`] moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Upwards only, since the service began.
    Counter,
    /// Up and down.
    Gauge,
}

impl Ledger {
    /// One whose listener is told of each notice when it changes.
    #[must_use]
    pub fn heard_by(listener: Arc<dyn Listener>) -> Self {
        Self { listener: Some(listener), ..Self::default() }
    }

    /// Says how something is. Where that is new, the listener is told.
    pub fn say(&self, notice: Notice) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let of_this = notices.iter_mut().find(|other| other.about == notice.about);
        match of_this {
            Some(same) if *same == notice => return,
            Some(other) => other.clone_from(&notice),
            None => notices.push(notice.clone()),
        }
        drop(notices);
        self.listener.iter().for_each(|listener| listener.hear(&notice));
    }

    /// Returns the latest notice about each subject.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces all notices, of which the listener has heard. An empty list forgets what a service has said that has ended.
    pub fn take_over(&self, notices: Vec<Notice>) {
        *self.notices.lock().unwrap_or_else(PoisonError::into_inner) = notices;
    }

    /// Replaces all figures.
    pub fn write(&self, figures: Vec<Figure>) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// The figures as they were written last. Empty before.
    #[must_use]
    pub fn read(&self) -> Vec<Figure> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Figure {
    /// A number that only grows.
    #[must_use]
    pub const fn counter(name: &'static str, doc: &'static str, value: u64) -> Self {
        Self { name, doc, kind: FigureKind::Counter, value }
    }

    /// A number that comes and goes.
    #[must_use]
    pub const fn gauge(name: &'static str, doc: &'static str, value: u64) -> Self {
        Self { name, doc, kind: FigureKind::Gauge, value }
    }
}
