//! Connection of the stack, as one side of a relayed connection.

use super::shared::Shared;
use crate::gateway::handshake::Denial;
use crate::gateway::leg::Leg;
use hopline_stack::{ConnectError, ConnectionId, EndReason, Status, UnreachableReason};
use hopline_transport::tcp::State;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// A connection of the stack. Dropping it resets the connection; only `leave` closes it cleanly.
pub(super) struct StackLeg {
    shared: Arc<Shared>,
    id: ConnectionId,
    is_closed: bool,
}

impl StackLeg {
    /// Wraps a connection that a peer has opened.
    pub(super) const fn accepted(shared: Arc<Shared>, id: ConnectionId) -> Self {
        Self { shared, id, is_closed: false }
    }

    /// Opens a connection to `remote` within `limit`.
    pub(super) async fn connect(
        shared: &Arc<Shared>,
        remote: SocketAddr,
        limit: Duration,
    ) -> Result<Self, Denial> {
        let id = shared.call(|stack, now| stack.connect(now, remote)).map_err(|error| match error {
            ConnectError::NoAddress => Denial::NetworkUnreachable,
            ConnectError::InvalidRemote => Denial::NotAllowed,
            ConnectError::TooManyConnections | ConnectError::OutOfMemory => Denial::TooMany,
        })?;
        let leg = Self::accepted(Arc::clone(shared), id);
        let opened = timeout(limit, poll_fn(|context| leg.poll_open(context))).await;
        opened.unwrap_or(Err(Denial::TimedOut)).map(|()| leg)
    }

    /// Returns addresses of the stack and of the peer.
    pub(super) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.shared.lock().stack.addresses(self.id)
    }

    fn poll_open(&self, context: &mut Context<'_>) -> Poll<Result<(), Denial>> {
        let Some(status) = self.status(context) else { return Poll::Ready(Err(Denial::Failed)) };
        match status.end {
            Some(end) => Poll::Ready(Err(denial(end))),
            None if status.state.is_synchronized() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }

    /// Returns the state of the connection. The task is woken at the next event.
    fn status(&self, context: &Context<'_>) -> Option<Status> {
        self.shared.wait(self.id, context.waker());
        self.shared.lock().stack.status(self.id)
    }
}

/// Returns the error of a connection that has ended abnormally.
fn failure(status: Option<Status>) -> Option<io::Error> {
    let kind = match status.map(|status| status.end) {
        Some(None | Some(EndReason::Closed)) => return None,
        None | Some(Some(EndReason::Aborted)) => ErrorKind::ConnectionAborted,
        Some(Some(EndReason::Refused | EndReason::Reset)) => ErrorKind::ConnectionReset,
        Some(Some(EndReason::TimedOut)) => ErrorKind::TimedOut,
        Some(Some(EndReason::Unreachable(_))) => ErrorKind::HostUnreachable,
    };
    Some(kind.into())
}

const fn denial(end: EndReason) -> Denial {
    match end {
        EndReason::Refused | EndReason::Reset | EndReason::Unreachable(UnreachableReason::Port) => {
            Denial::Refused
        }
        EndReason::TimedOut => Denial::TimedOut,
        EndReason::Unreachable(UnreachableReason::Network) => Denial::NetworkUnreachable,
        EndReason::Unreachable(UnreachableReason::Host) => Denial::HostUnreachable,
        EndReason::Unreachable(UnreachableReason::Prohibited) => Denial::NotAllowed,
        EndReason::Closed | EndReason::Aborted => Denial::Failed,
    }
}

impl Leg for StackLeg {
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let status = self.status(context);
        if status.is_some_and(|status| status.readable) {
            // Without data, it is the peer's end of the stream that can be read.
            let data = self.shared.call(|stack, now| stack.receive(now, self.id, buffer.len()));
            let data = data.unwrap_or_default();
            buffer[..data.len()].copy_from_slice(&data);
            return Poll::Ready(Ok(data.len()));
        }
        failure(status).map_or(Poll::Pending, |error| Poll::Ready(Err(error)))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let status = self.status(context);
        if let Some(error) = failure(status) {
            return Poll::Ready(Err(error));
        }
        if !status.is_some_and(|status| status.state.may_send()) {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        match self.shared.call(|stack, now| stack.send(now, self.id, data)) {
            0 => Poll::Pending,
            sent => Poll::Ready(Ok(sent)),
        }
    }

    fn push(&mut self) {}

    fn poll_end(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.call(|stack, now| stack.close(now, self.id));
        Poll::Ready(Ok(()))
    }

    fn poll_broken(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        failure(self.status(context)).map_or(Poll::Pending, Poll::Ready)
    }

    fn poll_settled(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let status = self.status(context);
        if let Some(error) = failure(status) {
            return Poll::Ready(Err(error));
        }
        let is_settled = status
            .is_some_and(|status| matches!(status.state, State::Closed | State::TimeWait | State::FinWait2));
        if is_settled { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn close(mut self) {
        self.is_closed = true;
    }
}

impl Drop for StackLeg {
    fn drop(&mut self) {
        self.shared.forget(self.id);
        let is_left = self.is_closed;
        self.shared.call(|stack, now| match is_left {
            true => stack.orphan(now, self.id),
            false => stack.abort(now, self.id),
        });
    }
}
