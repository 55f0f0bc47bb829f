//! Destinations of accepted connections, and reports of the outcome to their clients.

use super::config::ListenerConfig;
use super::destination::Destination;
use super::handshake::Denial;
use super::leg::{Leg, TcpLeg};
use super::listeners::OriginalDestination;
use super::socks::{Negotiation, Refusal, Step, reply};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::time::timeout;

/// Way in which a client learns the outcome of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutcomeReport {
    /// By the data that arrive, or a reset.
    Implicit,
    /// By a SOCKS reply before the data.
    Socks,
}

impl ListenerConfig {
    /// Returns the way in which clients learn the outcome.
    pub(crate) fn outcome_report(&self) -> OutcomeReport {
        match self {
            Self::Socks { .. } => OutcomeReport::Socks,
            Self::Forward { .. } | Self::Transparent { .. } => OutcomeReport::Implicit,
        }
    }

    /// Returns the destination of `client`, which connected to `called`. `None` if it does not name one within `limit`.
    pub(crate) async fn destination(
        &self,
        client: &mut TcpLeg,
        called: OriginalDestination,
        limit: Duration,
    ) -> Option<Destination> {
        match self {
            Self::Forward { to, .. } => Some(to.clone()),
            Self::Socks { login, .. } => {
                let negotiation = Negotiation::new(login.clone());
                timeout(limit, negotiate(client, negotiation)).await.ok()?.ok()
            }
            Self::Transparent { .. } => match called {
                // A direct connection to the listener would be forwarded to itself in a loop.
                OriginalDestination::Local => None,
                OriginalDestination::Diverted(server) => Destination::at(server),
            },
        }
    }
}

impl OutcomeReport {
    /// Reports success: data follow.
    pub(crate) async fn report_connected(self, client: &mut TcpLeg) -> io::Result<()> {
        match self {
            Self::Implicit => Ok(()),
            Self::Socks => client.write_all(&reply(Ok(()))).await,
        }
    }

    /// Reports failure.
    pub(crate) async fn report_refused(self, mut client: TcpLeg, denial: Denial) {
        match self {
            // An accepted connection that fails is reset.
            Self::Implicit => drop(client),
            Self::Socks => {
                if client.write_all(&reply(Err(denial))).await.is_ok() {
                    client.close();
                }
            }
        }
    }
}

async fn negotiate(client: &mut TcpLeg, mut negotiation: Negotiation) -> io::Result<Destination> {
    let mut buffer = [0; 512];
    loop {
        let wants = negotiation.missing_bytes().min(buffer.len());
        let read = client.read(&mut buffer[..wants]).await?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        match negotiation.handle_bytes(&buffer[..read]) {
            Ok(Step::More) => {}
            Ok(Step::Answer(answer)) => client.write_all(&answer).await?,
            Ok(Step::Connect(destination)) => return Ok(destination),
            Err(Refusal { reason: why, answer }) => {
                client.write_all(&answer).await?;
                client.mark_delivered();
                return Err(io::Error::new(ErrorKind::InvalidData, why));
            }
        }
    }
}
