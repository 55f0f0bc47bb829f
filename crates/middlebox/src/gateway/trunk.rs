//! Trunk that an entrance keeps open, and the connections through it.

use super::carrier::{BoundTransport, Carrier, Role, TrunkTransport};
use super::config::EntranceConfig;
use super::destination::Destination;
use super::early_data::EarlyData;
use super::exit_state::{
    AbsenceReason, ExitMonitor, LastHeard, Limits, Liveness, LogLine as Remark, LoggedState, Reporter,
    TrunkState,
};
use super::handshake::{
    ANSWER_LEN, CHALLENGE_LEN, Challenge, Denial, Hello, Malformed, Nonce, Request, Session, Verdict,
};
use super::leg::{TcpLeg, TrunkLeg};
use super::metrics::EntranceFigures;
use super::onward;
use super::request::{EndedSide, PendingRequest};
use super::service::Notices;
use super::spare_pool::{SparePool, Wanted};
use crate::service::{Notice, Severity};
use hopline_streams::{AsyncStream, Host};
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// Timeout of the exit's answer to a request: longer than its waiting for a place and its connection attempt together.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before the next stream to an exit that has closed the previous one or refuses connections.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// Trunk manager of an entrance.
#[derive(Debug)]
pub(super) struct Trunk<P: Carrier> {
    hosts: Vec<Host<P>>,
    transport: TrunkTransport<P>,
    config: EntranceConfig,
    metrics: Arc<EntranceFigures>,
    state: watch::Sender<TrunkState<Arc<ActiveTrunk<P>>>>,
    reporter: Mutex<Reporter>,
    notices: Arc<Notices>,
    /// Signals a connection that needs the exit.
    wanted: Notify,
}

/// Time of the first opening of a trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenPolicy {
    Eager,
    /// With the first connection for the exit.
    OnDemand,
}

/// An open trunk.
#[derive(Debug)]
pub(super) struct ActiveTrunk<P: Carrier> {
    host: Host<P>,
    exit: SocketAddr,
    session: Session,
    /// The shared key, bound to this trunk.
    bound_key: super::key::Key,
    /// Number of the last request.
    last_request: AtomicU64,
    pub(super) last_heard: Arc<LastHeard>,
    /// Silence after which the exit may be lost.
    suspect_after: Duration,
    pub(super) spare: SparePool<P>,
    ended: watch::Sender<bool>,
}

/// A connection through the trunk.
#[derive(Debug)]
pub(super) struct TrunkConnection<P: Carrier> {
    pub(super) leg: TrunkLeg<P>,
    /// The trunk. When it ends, all its connections end.
    pub(super) trunk: Arc<ActiveTrunk<P>>,
}

/// Reason that the exit does not carry a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CarryError {
    /// There is no exit.
    Absent(AbsenceReason),
    /// The exit has denied the request.
    Denied(Denial),
    /// The stream broke, or another gateway answered in the exit's place.
    Rejected,
    /// The client has closed the connection.
    ClientClosed,
    /// The exit did not answer in time after data of the client had been sent to it.
    TimedOut,
}

impl<P: Carrier> Trunk<P> {
    pub(super) fn new(
        ready: BoundTransport<P>,
        config: EntranceConfig,
        (figures, notices): (Arc<EntranceFigures>, Arc<Notices>),
    ) -> Arc<Self> {
        let BoundTransport { hosts, transport: line } = ready;
        let standing = watch::Sender::new(TrunkState::Opening);
        let (reporter, wanted) = (Mutex::default(), Notify::new());
        Arc::new(Self {
            hosts,
            transport: line,
            config,
            metrics: figures,
            state: standing,
            reporter,
            notices,
            wanted,
        })
    }

    /// Keeps the trunk open, and reopens it whenever it ends.
    pub(super) async fn run(self: Arc<Self>, opens: OpenPolicy) {
        if self.config.may_fall_back_unencrypted() {
            let exit = &self.config.exit;
            let text = format!("while the exit {exit} does not answer, connections go by TCP, IN CLEAR");
            self.notices.push(Notice { subject: "fallback".into(), severity: Severity::Warning, text });
        }
        if opens == OpenPolicy::OnDemand {
            self.wanted.notified().await;
        }
        loop {
            match self.open().await {
                Ok((control, open)) => {
                    let filling = tokio::spawn(Arc::clone(&self).keep_spares(Arc::clone(&open)));
                    let said = self.monitor(control, &open).await;
                    filling.abort();
                    open.end();
                    let standing = match said {
                        // The exit may be back at once.
                        LoggedState::Restarted => TrunkState::Opening,
                        _ => TrunkState::Absent(AbsenceReason::Silent),
                    };
                    self.set_state(standing, said);
                }
                Err(absence) => {
                    self.set_state(TrunkState::Absent(absence), LoggedState::Absent(absence));
                    sleep(self.config.retry_after).await;
                }
            }
        }
    }

    /// Asks the exit to connect to `destination` under the address `source`, if any. `early` buffers data of the client
    /// meanwhile.
    pub(super) async fn connect(
        self: &Arc<Self>,
        (destination, source): (&Destination, Option<SocketAddr>),
        client: &mut TcpLeg,
        early: &mut EarlyData,
    ) -> Result<TrunkConnection<P>, CarryError> {
        let first = self.try_connect((destination, source), client, early).await;
        match first {
            // A stream may have broken unnoticed, or together with a trunk that is being reopened.
            Err(CarryError::Rejected) if early.is_unsent() => {
                self.try_connect((destination, source), client, early).await
            }
            done => done,
        }
    }

    async fn try_connect(
        self: &Arc<Self>,
        (destination, source): (&Destination, Option<SocketAddr>),
        client: &mut TcpLeg,
        early: &mut EarlyData,
    ) -> Result<TrunkConnection<P>, CarryError> {
        let trunk = self.wait_for_trunk().await.map_err(CarryError::Absent)?;
        let leg = match trunk.spare.take().await {
            Some(leg) => leg,
            None => match timeout(self.config.fallback_after, self.open_stream(&trunk)).await {
                Ok(Ok(leg)) => leg,
                Ok(Err(_)) => return Err(CarryError::Rejected),
                Err(_) => return Err(CarryError::Absent(AbsenceReason::Silent)),
            },
        };
        let number = trunk.last_request.fetch_add(1, Relaxed) + 1;
        let request = Request { number, destination: destination.clone(), source };
        let mut asking = PendingRequest::new(leg, request.encode(&trunk.session), client, early);
        let answered = timeout(ANSWER_TIMEOUT, self.answer(&trunk, &mut asking)).await;
        let answer = answered.unwrap_or(Err(CarryError::TimedOut))?;
        match Verdict::decode(&answer, &trunk.session, number) {
            Ok(Verdict::Connected) => Ok(TrunkConnection { leg: asking.leg, trunk }),
            Ok(Verdict::Refused(denial)) => Err(CarryError::Denied(denial)),
            Err(_) => Err(CarryError::Rejected),
        }
    }

    /// Waits for the answer of the exit, as long as the trunk is open.
    async fn answer(
        &self,
        trunk: &ActiveTrunk<P>,
        asking: &mut PendingRequest<'_, P>,
    ) -> Result<[u8; ANSWER_LEN], CarryError> {
        let mut standing = self.state.subscribe();
        let mut absent = pin!(async move {
            match standing.wait_for(|now| !matches!(now, TrunkState::Present(_))).await.as_deref() {
                Ok(TrunkState::Absent(absence)) => CarryError::Absent(*absence),
                // The connection is worth another attempt.
                _ => CarryError::Rejected,
            }
        });
        poll_fn(|context| {
            // A lost exit may have passed on data of the client; they must not be sent again.
            let is_sure =
                trunk.last_heard.now().saturating_sub(trunk.last_heard.heard()) < trunk.suspect_after;
            if let Poll::Ready(answer) = asking.poll(context, is_sure) {
                return Poll::Ready(answer.map_err(|over| match over {
                    EndedSide::Client => CarryError::ClientClosed,
                    EndedSide::Exit => CarryError::Rejected,
                }));
            }
            let gone = ready!(absent.as_mut().poll(context));
            Poll::Ready(Err(if asking.early.is_unsent() { gone } else { CarryError::TimedOut }))
        })
        .await
    }

    /// Returns the trunk, after its opening has succeeded or failed.
    async fn wait_for_trunk(&self) -> Result<Arc<ActiveTrunk<P>>, AbsenceReason> {
        self.wanted.notify_one();
        let mut standing = self.state.subscribe();
        let known = standing.wait_for(|now| !matches!(now, TrunkState::Opening));
        let Ok(Ok(now)) = timeout(self.config.fallback_after, known).await else {
            return Err(AbsenceReason::Silent);
        };
        match &*now {
            TrunkState::Present(trunk) => Ok(Arc::clone(trunk)),
            TrunkState::Absent(absence) => Err(*absence),
            TrunkState::Opening => Err(AbsenceReason::Silent),
        }
    }

    /// Opens another stream to the exit of `trunk`.
    async fn open_stream(&self, trunk: &ActiveTrunk<P>) -> io::Result<TrunkLeg<P>> {
        let stream = AsyncStream::connect_from(&trunk.host, trunk.exit, &self.transport.config).await?;
        let bound = self.transport.channel_bound_key(&self.config.key, stream.get_ref(), Role::Entrance);
        let leg = TrunkLeg::with_last_heard(stream, Arc::clone(&trunk.last_heard));
        // A man in the middle would have another key than the exit of this trunk.
        if bound == Some(trunk.bound_key) { Ok(leg) } else { Err(ErrorKind::PermissionDenied.into()) }
    }

    /// Keeps spare streams open.
    async fn keep_spares(self: Arc<Self>, trunk: Arc<ActiveTrunk<P>>) {
        loop {
            if trunk.spare.wanted().await == Wanted::Replacement {
                // Pause: the exit may close every stream at once.
                sleep(RETRY_DELAY).await;
            }
            match timeout(self.config.fallback_after, self.open_stream(&trunk)).await {
                Ok(Ok(leg)) => trunk.spare.put(leg),
                _ => sleep(RETRY_DELAY).await,
            }
        }
    }

    /// Opens a trunk to the first address of the exit that answers.
    async fn open(&self) -> Result<(TrunkLeg<P>, Arc<ActiveTrunk<P>>), AbsenceReason> {
        let resolved = timeout(self.config.fallback_after, onward::resolve(&self.config.exit)).await;
        let addresses = resolved.ok().and_then(Result::ok).ok_or(AbsenceReason::Unresolved)?;
        let mut absence = AbsenceReason::Silent;
        for address in addresses {
            let alike =
                |host: &&Host<P>| host.local_addr().is_ok_and(|own| own.is_ipv4() == address.is_ipv4());
            let only = if self.hosts.len() == 1 { self.hosts.first() } else { None };
            let Some(host) = self.hosts.iter().find(alike).or(only) else { continue };
            match self.open_to(host, address).await {
                Ok(opened) => return Ok(opened),
                Err(why) => absence = why,
            }
        }
        Err(absence)
    }

    async fn open_to(
        &self,
        host: &Host<P>,
        exit: SocketAddr,
    ) -> Result<(TrunkLeg<P>, Arc<ActiveTrunk<P>>), AbsenceReason> {
        let limit = self.config.fallback_after;
        let first =
            timeout(limit, self.read_challenge(host, exit)).await.unwrap_or(Err(AbsenceReason::Silent));
        let (mut leg, bound, challenge, pulse) = first?;
        let hello =
            Hello { name: self.config.name.clone(), nonce: Nonce::new().map_err(|_| AbsenceReason::Silent)? };
        let session = Session::new(&bound, &challenge, &hello.nonce);
        let answered = timeout(limit, async {
            leg.stream().write_all(&hello.encode(&bound, &challenge)).await?;
            leg.stream().flush().await?;
            let mut answer = [0; ANSWER_LEN];
            leg.stream().read_exact(&mut answer).await.map(|_| answer)
        });
        let answer = match answered.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.kind() != ErrorKind::TimedOut => return Err(AbsenceReason::Rejected),
            _ => return Err(AbsenceReason::Silent),
        };
        if Verdict::decode(&answer, &session, 0) != Ok(Verdict::Connected) {
            return Err(AbsenceReason::Rejected);
        }
        pulse.record();
        let open = ActiveTrunk {
            host: host.clone(),
            exit,
            session,
            bound_key: bound,
            last_request: AtomicU64::new(0),
            last_heard: pulse,
            suspect_after: 2 * self.limits().keep_alive,
            spare: SparePool::new(self.config.spare_connections as usize),
            ended: watch::Sender::new(false),
        };
        Ok((leg, Arc::new(open)))
    }

    /// Opens a first stream to the exit, and reads its challenge.
    async fn read_challenge(
        &self,
        host: &Host<P>,
        exit: SocketAddr,
    ) -> Result<(TrunkLeg<P>, super::key::Key, Challenge, Arc<LastHeard>), AbsenceReason> {
        let stream = loop {
            match AsyncStream::connect_from(host, exit, &self.transport.config).await {
                Ok(stream) => break stream,
                // Any host can forge an ICMP rejection; it is no reason to continue unencrypted.
                Err(error)
                    if error.kind() == ErrorKind::ConnectionRefused
                        && self.config.may_fall_back_unencrypted() =>
                {
                    sleep(RETRY_DELAY).await;
                }
                Err(_) => return Err(AbsenceReason::Silent),
            }
        };
        let bound = self
            .transport
            .channel_bound_key(&self.config.key, stream.get_ref(), Role::Entrance)
            .ok_or(AbsenceReason::Silent)?;
        let pulse = Arc::new(LastHeard::new());
        let mut leg = TrunkLeg::with_last_heard(stream, Arc::clone(&pulse));
        let mut bytes = [0; CHALLENGE_LEN];
        leg.stream().read_exact(&mut bytes).await.map_err(|_| AbsenceReason::Silent)?;
        match Challenge::decode(&bytes) {
            Ok(challenge) => Ok((leg, bound, challenge, pulse)),
            Err(Malformed::Version(version)) => Err(AbsenceReason::Version(version)),
            Err(_) => Err(AbsenceReason::Rejected),
        }
    }

    fn limits(&self) -> Limits {
        Limits::new(self.config.fallback_after, self.config.reset_after)
    }

    /// Sends keep-alive messages until the exit has closed the trunk or has timed out.
    async fn monitor(&self, mut control: TrunkLeg<P>, trunk: &Arc<ActiveTrunk<P>>) -> LoggedState {
        let mut watch = ExitMonitor::new(self.limits(), trunk.last_heard.now());
        let silent = LoggedState::Absent(AbsenceReason::Silent);
        loop {
            let now = trunk.last_heard.now();
            watch.handle_timeout(now);
            watch.handle_message(trunk.last_heard.heard());
            match watch.liveness(now) {
                Liveness::Responsive => {
                    self.set_state(TrunkState::Present(Arc::clone(trunk)), LoggedState::Present)
                }
                Liveness::Silent => self.set_state(TrunkState::Absent(AbsenceReason::Silent), silent),
                Liveness::Lost => return silent,
            }
            if watch.should_send_keep_alive(now) {
                let stream = control.stream();
                if stream.write_all(&super::handshake::KEEP_ALIVE).await.is_err() {
                    return LoggedState::Restarted;
                }
                let _ = stream.flush().await;
            }
            let mut signs = [0; 64];
            match timeout(watch.until_next_check(now), control.stream().read(&mut signs)).await {
                Ok(Ok(1..)) => watch.handle_keep_alive_answer(trunk.last_heard.now()),
                Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => return silent,
                Ok(_) => return LoggedState::Restarted,
                Err(_) => {}
            }
        }
    }

    /// Sets the state of the trunk, and logs a change.
    fn set_state(&self, now: TrunkState<Arc<ActiveTrunk<P>>>, said: LoggedState) {
        let is_present = matches!(now, TrunkState::Present(_));
        let is_absent = matches!(now, TrunkState::Absent(_));
        let goes_in_clear = is_absent && self.config.may_fall_back_unencrypted() && is_falling_back(&now);
        let was_absent = matches!(self.state.send_replace(now), TrunkState::Absent(_));
        self.metrics.exit_present.set(is_present.into());
        self.metrics.clear_fallback.set(goes_in_clear.into());
        if is_absent && !was_absent {
            self.metrics.exit_absences.add();
        }
        if self.reporter.lock().unwrap_or_else(PoisonError::into_inner).is_new(said) {
            let (exit, fallback) = (&self.config.exit, self.config.fallback());
            let remark = Remark { exit, state: said, fallback, encrypts: self.config.transport.encrypts() };
            let tone = if said == LoggedState::Present { Severity::Normal } else { Severity::Warning };
            self.notices.push(Notice { subject: "peer".into(), severity: tone, text: remark.to_string() });
        }
    }
}

/// Returns whether connections now go by TCP, if permitted.
fn is_falling_back<T>(standing: &TrunkState<T>) -> bool {
    matches!(standing, TrunkState::Absent(absence) if *absence != AbsenceReason::Rejected)
}

impl<P: Carrier> ActiveTrunk<P> {
    /// Waits until the trunk has ended.
    pub(super) async fn ended(&self) {
        // The sender lives as long as this trunk.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    fn end(&self) {
        self.ended.send_replace(true);
        self.spare.clear();
    }
}
