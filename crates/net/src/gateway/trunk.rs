//! Streams from the entrance to the exit, and whether there is an exit.

use super::carrier::{Carrier, End, Line, Ready};
use super::config::EntranceConfig;
use super::destination::Destination;
use super::figures::EntranceFigures;
use super::greeting::{ANSWER_LEN, CHALLENGE_LEN, Challenge, Denial, Nonce, Request, Verdict};
use super::key::Key;
use super::leg::TrunkLeg;
use crate::streams::{AsyncStream, Host};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

/// How long an exit may take to connect onward and to say so: longer than any may wait for a destination.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// The way to the exit.
#[derive(Debug)]
pub(super) struct Trunk<P: Carrier> {
    host: Host<P>,
    line: Line<P>,
    config: EntranceConfig,
    figures: Arc<EntranceFigures>,
    /// Whether the exit did not answer when it was tried last.
    absent: AtomicBool,
}

/// A stream on which the exit has said its challenge.
pub(super) struct Greeted<P: Carrier> {
    leg: TrunkLeg<P>,
    challenge: Challenge,
    /// The key, as it is used on this stream.
    key: Key,
}

/// What an exit did not do.
#[derive(Debug)]
pub(super) enum Unwilling {
    /// It says why.
    Denied(Denial),
    /// It ended the stream, or somebody else speaks in its place: the two do not have the same key.
    Rejected,
    /// It fell silent.
    Silent,
}

impl<P: Carrier> Trunk<P> {
    pub(super) fn new(ready: Ready<P>, config: EntranceConfig, figures: Arc<EntranceFigures>) -> Arc<Self> {
        let Ready { host, line } = ready;
        Arc::new(Self { host, line, config, figures, absent: AtomicBool::new(false) })
    }

    /// A stream to the exit; `None` if it does not answer, or did not lately.
    pub(super) async fn open(self: &Arc<Self>) -> Option<Greeted<P>> {
        if self.absent.load(Relaxed) {
            return None;
        }
        let greeted = self.try_open().await;
        if greeted.is_none() {
            self.is_lost();
        }
        greeted
    }

    /// Asks the exit to connect to `destination`, in the name of `source` if there is one.
    pub(super) async fn ask(
        self: &Arc<Self>,
        greeted: Greeted<P>,
        destination: &Destination,
        source: Option<SocketAddr>,
    ) -> Result<TrunkLeg<P>, Unwilling> {
        let Greeted { mut leg, challenge, key } = greeted;
        let request = self.request(destination, source).map_err(|_| Unwilling::Denied(Denial::Failed))?;
        let answered = timeout(ANSWERS_WITHIN, self.exchange(leg.stream(), &request, &challenge, &key)).await;
        match answered {
            Ok(Ok(Verdict::Connected)) => Ok(leg),
            Ok(Ok(Verdict::Refused(denial))) => Err(Unwilling::Denied(denial)),
            Ok(Err(error)) if error.kind() != ErrorKind::TimedOut => Err(Unwilling::Rejected),
            _ => {
                self.is_lost();
                Err(Unwilling::Silent)
            }
        }
    }

    /// The exit fell silent: until it answers again there is none.
    pub(super) fn is_lost(self: &Arc<Self>) {
        if !self.absent.swap(true, Relaxed) {
            self.figures.exit_absences.add();
            tokio::spawn(Arc::clone(self).await_return());
        }
    }

    async fn await_return(self: Arc<Self>) {
        loop {
            sleep(self.config.retry_after).await;
            if self.try_open().await.is_some() {
                self.absent.store(false, Relaxed);
                return;
            }
        }
    }

    async fn try_open(&self) -> Option<Greeted<P>> {
        let opened = timeout(self.config.fallback_after, self.greet()).await;
        opened.ok().and_then(Result::ok)
    }

    async fn greet(&self) -> io::Result<Greeted<P>> {
        let stream = AsyncStream::connect_from(&self.host, self.config.exit, &self.line.config).await?;
        let key = self.line.bound(&self.config.key, stream.get_ref(), End::Entrance);
        let key = key.ok_or(ErrorKind::NotConnected)?;
        let mut leg = TrunkLeg::new(stream);
        let mut bytes = [0; CHALLENGE_LEN];
        leg.stream().read_exact(&mut bytes).await?;
        let challenge = Challenge::decode(&bytes).map_err(invalid)?;
        Ok(Greeted { leg, challenge, key })
    }

    fn request(&self, destination: &Destination, source: Option<SocketAddr>) -> io::Result<Request> {
        let (name, destination) = (self.config.name.clone(), destination.clone());
        Ok(Request { name, nonce: Nonce::new()?, destination, source })
    }

    async fn exchange(
        &self,
        stream: &mut AsyncStream<P>,
        request: &Request,
        challenge: &Challenge,
        key: &Key,
    ) -> io::Result<Verdict> {
        stream.write_all(&request.encode(key, challenge)).await?;
        stream.flush().await?;
        let mut bytes = [0; ANSWER_LEN];
        stream.read_exact(&mut bytes).await?;
        Verdict::decode(&bytes, key, challenge, &request.nonce).map_err(invalid)
    }
}

fn invalid(error: super::greeting::Malformed) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
