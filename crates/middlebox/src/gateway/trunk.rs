//! Trunk that an entrance keeps open, and the connections through it.

use super::asking::{Asking, Over};
use super::carrier::{Carrier, End, Line, Ready};
use super::config::EntranceConfig;
use super::destination::Destination;
use super::early::Early;
use super::figures::EntranceFigures;
use super::greeting::{
    ANSWER_LEN, CHALLENGE_LEN, Challenge, Denial, Hello, Malformed, Nonce, Request, Session, Verdict,
};
use super::leg::{TcpLeg, TrunkLeg};
use super::onward;
use super::presence::{Absence, Life, Limits, Line as Remark, Pulse, Reporter, Said, Standing, Watch};
use super::service::Notices;
use super::spare::{Spare, Wanted};
use crate::service::{Notice, Tone};
use hopline_streams::streams::{AsyncStream, Host};
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
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// Pause before the next stream to an exit that has closed the previous one or refuses connections.
const RESPITE: Duration = Duration::from_millis(250);

/// Trunk manager of an entrance.
#[derive(Debug)]
pub(super) struct Trunk<P: Carrier> {
    hosts: Vec<Host<P>>,
    line: Line<P>,
    config: EntranceConfig,
    figures: Arc<EntranceFigures>,
    standing: watch::Sender<Standing<Arc<Open<P>>>>,
    reporter: Mutex<Reporter>,
    notices: Arc<Notices>,
    /// Signals a connection that needs the exit.
    wanted: Notify,
}

/// Time of the first opening of a trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    AtOnce,
    /// With the first connection for the exit.
    OnDemand,
}

/// An open trunk.
#[derive(Debug)]
pub(super) struct Open<P: Carrier> {
    host: Host<P>,
    exit: SocketAddr,
    session: Session,
    /// The shared key, bound to this trunk.
    bound: super::key::Key,
    /// Number of the last request.
    number: AtomicU64,
    pub(super) pulse: Arc<Pulse>,
    /// Silence after which the exit may be lost.
    doubtful: Duration,
    pub(super) spare: Spare<P>,
    ended: watch::Sender<bool>,
}

/// A connection through the trunk.
#[derive(Debug)]
pub(super) struct Carried<P: Carrier> {
    pub(super) leg: TrunkLeg<P>,
    /// The trunk. When it ends, all its connections end.
    pub(super) trunk: Arc<Open<P>>,
}

/// Reason that the exit does not carry a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwilling {
    /// There is no exit.
    Absent(Absence),
    /// The exit has denied the request.
    Denied(Denial),
    /// The stream broke, or another gateway answered in the exit's place.
    Rejected,
    /// The client has closed the connection.
    Deserted,
    /// The exit did not answer in time after data of the client had been sent to it.
    TimedOut,
}

impl<P: Carrier> Trunk<P> {
    pub(super) fn new(
        ready: Ready<P>,
        config: EntranceConfig,
        (figures, notices): (Arc<EntranceFigures>, Arc<Notices>),
    ) -> Arc<Self> {
        let Ready { hosts, line } = ready;
        let standing = watch::Sender::new(Standing::Opening);
        let (reporter, wanted) = (Mutex::default(), Notify::new());
        Arc::new(Self { hosts, line, config, figures, standing, reporter, notices, wanted })
    }

    /// Keeps the trunk open, and reopens it whenever it ends.
    pub(super) async fn keep(self: Arc<Self>, opens: Opens) {
        if self.config.falls_back_in_clear() {
            let exit = &self.config.exit;
            let text = format!("while the exit {exit} does not answer, connections go by TCP, IN CLEAR");
            self.notices.say(Notice { about: "fallback".into(), tone: Tone::Bad, text });
        }
        if opens == Opens::OnDemand {
            self.wanted.notified().await;
        }
        loop {
            match self.open().await {
                Ok((control, open)) => {
                    let filling = tokio::spawn(Arc::clone(&self).fill(Arc::clone(&open)));
                    let said = self.watch(control, &open).await;
                    filling.abort();
                    open.end();
                    let standing = match said {
                        // The exit may be back at once.
                        Said::Restarted => Standing::Opening,
                        _ => Standing::Absent(Absence::Silent),
                    };
                    self.stand(standing, said);
                }
                Err(absence) => {
                    self.stand(Standing::Absent(absence), Said::Absent(absence));
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
        early: &mut Early,
    ) -> Result<Carried<P>, Unwilling> {
        let first = self.try_connect((destination, source), client, early).await;
        match first {
            // A stream may have broken unnoticed, or together with a trunk that is being reopened.
            Err(Unwilling::Rejected) if early.is_unsent() => {
                self.try_connect((destination, source), client, early).await
            }
            done => done,
        }
    }

    async fn try_connect(
        self: &Arc<Self>,
        (destination, source): (&Destination, Option<SocketAddr>),
        client: &mut TcpLeg,
        early: &mut Early,
    ) -> Result<Carried<P>, Unwilling> {
        let trunk = self.present().await.map_err(Unwilling::Absent)?;
        let leg = match trunk.spare.take().await {
            Some(leg) => leg,
            None => match timeout(self.config.fallback_after, self.stream(&trunk)).await {
                Ok(Ok(leg)) => leg,
                Ok(Err(_)) => return Err(Unwilling::Rejected),
                Err(_) => return Err(Unwilling::Absent(Absence::Silent)),
            },
        };
        let number = trunk.number.fetch_add(1, Relaxed) + 1;
        let request = Request { number, destination: destination.clone(), source };
        let mut asking = Asking::new(leg, request.encode(&trunk.session), client, early);
        let answered = timeout(ANSWERS_WITHIN, self.answer(&trunk, &mut asking)).await;
        let answer = answered.unwrap_or(Err(Unwilling::TimedOut))?;
        match Verdict::decode(&answer, &trunk.session, number) {
            Ok(Verdict::Connected) => Ok(Carried { leg: asking.leg, trunk }),
            Ok(Verdict::Refused(denial)) => Err(Unwilling::Denied(denial)),
            Err(_) => Err(Unwilling::Rejected),
        }
    }

    /// Waits for the answer of the exit, as long as the trunk is open.
    async fn answer(
        &self,
        trunk: &Open<P>,
        asking: &mut Asking<'_, P>,
    ) -> Result<[u8; ANSWER_LEN], Unwilling> {
        let mut standing = self.standing.subscribe();
        let mut absent = pin!(async move {
            match standing.wait_for(|now| !matches!(now, Standing::Present(_))).await.as_deref() {
                Ok(Standing::Absent(absence)) => Unwilling::Absent(*absence),
                // The connection is worth another attempt.
                _ => Unwilling::Rejected,
            }
        });
        poll_fn(|context| {
            // A lost exit may have passed on data of the client; they must not be sent again.
            let is_sure = trunk.pulse.now().saturating_sub(trunk.pulse.heard()) < trunk.doubtful;
            if let Poll::Ready(answer) = asking.poll(context, is_sure) {
                return Poll::Ready(answer.map_err(|over| match over {
                    Over::Client => Unwilling::Deserted,
                    Over::Exit => Unwilling::Rejected,
                }));
            }
            let gone = ready!(absent.as_mut().poll(context));
            Poll::Ready(Err(if asking.early.is_unsent() { gone } else { Unwilling::TimedOut }))
        })
        .await
    }

    /// Returns the trunk, after its opening has succeeded or failed.
    async fn present(&self) -> Result<Arc<Open<P>>, Absence> {
        self.wanted.notify_one();
        let mut standing = self.standing.subscribe();
        let known = standing.wait_for(|now| !matches!(now, Standing::Opening));
        let Ok(Ok(now)) = timeout(self.config.fallback_after, known).await else {
            return Err(Absence::Silent);
        };
        match &*now {
            Standing::Present(trunk) => Ok(Arc::clone(trunk)),
            Standing::Absent(absence) => Err(*absence),
            Standing::Opening => Err(Absence::Silent),
        }
    }

    /// Opens another stream to the exit of `trunk`.
    async fn stream(&self, trunk: &Open<P>) -> io::Result<TrunkLeg<P>> {
        let stream = AsyncStream::connect_from(&trunk.host, trunk.exit, &self.line.config).await?;
        let bound = self.line.bound(&self.config.key, stream.get_ref(), End::Entrance);
        let leg = TrunkLeg::that_beats(stream, Arc::clone(&trunk.pulse));
        // A man in the middle would have another key than the exit of this trunk.
        if bound == Some(trunk.bound) { Ok(leg) } else { Err(ErrorKind::PermissionDenied.into()) }
    }

    /// Keeps spare streams open.
    async fn fill(self: Arc<Self>, trunk: Arc<Open<P>>) {
        loop {
            if trunk.spare.wanted().await == Wanted::InPlace {
                // Pause: the exit may close every stream at once.
                sleep(RESPITE).await;
            }
            match timeout(self.config.fallback_after, self.stream(&trunk)).await {
                Ok(Ok(leg)) => trunk.spare.put(leg),
                _ => sleep(RESPITE).await,
            }
        }
    }

    /// Opens a trunk to the first address of the exit that answers.
    async fn open(&self) -> Result<(TrunkLeg<P>, Arc<Open<P>>), Absence> {
        let resolved = timeout(self.config.fallback_after, onward::resolve(&self.config.exit)).await;
        let addresses = resolved.ok().and_then(Result::ok).ok_or(Absence::Unresolved)?;
        let mut absence = Absence::Silent;
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
    ) -> Result<(TrunkLeg<P>, Arc<Open<P>>), Absence> {
        let limit = self.config.fallback_after;
        let first = timeout(limit, self.challenge(host, exit)).await.unwrap_or(Err(Absence::Silent));
        let (mut leg, bound, challenge, pulse) = first?;
        let hello =
            Hello { name: self.config.name.clone(), nonce: Nonce::new().map_err(|_| Absence::Silent)? };
        let session = Session::new(&bound, &challenge, &hello.nonce);
        let answered = timeout(limit, async {
            leg.stream().write_all(&hello.encode(&bound, &challenge)).await?;
            leg.stream().flush().await?;
            let mut answer = [0; ANSWER_LEN];
            leg.stream().read_exact(&mut answer).await.map(|_| answer)
        });
        let answer = match answered.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.kind() != ErrorKind::TimedOut => return Err(Absence::Rejected),
            _ => return Err(Absence::Silent),
        };
        if Verdict::decode(&answer, &session, 0) != Ok(Verdict::Connected) {
            return Err(Absence::Rejected);
        }
        pulse.beat();
        let open = Open {
            host: host.clone(),
            exit,
            session,
            bound,
            number: AtomicU64::new(0),
            pulse,
            doubtful: 2 * self.limits().ask,
            spare: Spare::new(self.config.spare_connections as usize),
            ended: watch::Sender::new(false),
        };
        Ok((leg, Arc::new(open)))
    }

    /// Opens a first stream to the exit, and reads its challenge.
    async fn challenge(
        &self,
        host: &Host<P>,
        exit: SocketAddr,
    ) -> Result<(TrunkLeg<P>, super::key::Key, Challenge, Arc<Pulse>), Absence> {
        let stream = loop {
            match AsyncStream::connect_from(host, exit, &self.line.config).await {
                Ok(stream) => break stream,
                // Any host can forge an ICMP rejection; it is no reason to continue unencrypted.
                Err(error)
                    if error.kind() == ErrorKind::ConnectionRefused && self.config.falls_back_in_clear() =>
                {
                    sleep(RESPITE).await;
                }
                Err(_) => return Err(Absence::Silent),
            }
        };
        let bound =
            self.line.bound(&self.config.key, stream.get_ref(), End::Entrance).ok_or(Absence::Silent)?;
        let pulse = Arc::new(Pulse::new());
        let mut leg = TrunkLeg::that_beats(stream, Arc::clone(&pulse));
        let mut bytes = [0; CHALLENGE_LEN];
        leg.stream().read_exact(&mut bytes).await.map_err(|_| Absence::Silent)?;
        match Challenge::decode(&bytes) {
            Ok(challenge) => Ok((leg, bound, challenge, pulse)),
            Err(Malformed::Version(version)) => Err(Absence::Version(version)),
            Err(_) => Err(Absence::Rejected),
        }
    }

    fn limits(&self) -> Limits {
        Limits::new(self.config.fallback_after, self.config.reset_after)
    }

    /// Sends keep-alive messages until the exit has closed the trunk or has timed out.
    async fn watch(&self, mut control: TrunkLeg<P>, trunk: &Arc<Open<P>>) -> Said {
        let mut watch = Watch::new(self.limits(), trunk.pulse.now());
        let silent = Said::Absent(Absence::Silent);
        loop {
            let now = trunk.pulse.now();
            watch.wake(now);
            watch.hear(trunk.pulse.heard());
            match watch.life(now) {
                Life::Answers => self.stand(Standing::Present(Arc::clone(trunk)), Said::Present),
                Life::Silent => self.stand(Standing::Absent(Absence::Silent), silent),
                Life::Lost => return silent,
            }
            if watch.asks(now) {
                let stream = control.stream();
                if stream.write_all(&super::greeting::SIGN_OF_LIFE).await.is_err() {
                    return Said::Restarted;
                }
                let _ = stream.flush().await;
            }
            let mut signs = [0; 64];
            match timeout(watch.patience(now), control.stream().read(&mut signs)).await {
                Ok(Ok(1..)) => watch.answered(trunk.pulse.now()),
                Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => return silent,
                Ok(_) => return Said::Restarted,
                Err(_) => {}
            }
        }
    }

    /// Sets the state of the trunk, and logs a change.
    fn stand(&self, now: Standing<Arc<Open<P>>>, said: Said) {
        let is_present = matches!(now, Standing::Present(_));
        let is_absent = matches!(now, Standing::Absent(_));
        let goes_in_clear = is_absent && self.config.falls_back_in_clear() && now_falls_back(&now);
        let was_absent = matches!(self.standing.send_replace(now), Standing::Absent(_));
        self.figures.exit_present.set(is_present.into());
        self.figures.clear_fallback.set(goes_in_clear.into());
        if is_absent && !was_absent {
            self.figures.exit_absences.add();
        }
        if self.reporter.lock().unwrap_or_else(PoisonError::into_inner).is_new(said) {
            let (exit, fallback) = (&self.config.exit, self.config.fallback());
            let remark = Remark { exit, said, fallback, encrypts: self.config.transport.encrypts() };
            let tone = if said == Said::Present { Tone::Good } else { Tone::Bad };
            self.notices.say(Notice { about: "peer".into(), tone, text: remark.to_string() });
        }
    }
}

/// Returns whether connections now go by TCP, if permitted.
fn now_falls_back<T>(standing: &Standing<T>) -> bool {
    matches!(standing, Standing::Absent(absence) if *absence != Absence::Rejected)
}

impl<P: Carrier> Open<P> {
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
