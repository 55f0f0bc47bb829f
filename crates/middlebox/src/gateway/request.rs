//! A request to the exit in progress.

use super::carrier::Carrier;
use super::early_data::EarlyData;
use super::handshake::{ANSWER_LEN, CHALLENGE_LEN};
use super::leg::{Leg, TcpLeg, TrunkLeg};
use std::task::{Context, Poll};

/// Side of a connection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedSide {
    Client,
    Exit,
}

/// Sends a request, passes on the client's data behind it, and reads the answer.
pub(super) struct PendingRequest<'a, P: Carrier> {
    pub(super) leg: TrunkLeg<P>,
    pub(super) early: &'a mut EarlyData,
    client: &'a mut TcpLeg,
    request: Vec<u8>,
    /// Bytes of the request that have been sent.
    sent: usize,
    /// The challenge, which an exit sends on every stream, and the answer.
    response: [u8; CHALLENGE_LEN + ANSWER_LEN],
    len: usize,
}

impl<'a, P: Carrier> PendingRequest<'a, P> {
    pub(super) fn new(
        leg: TrunkLeg<P>,
        request: Vec<u8>,
        client: &'a mut TcpLeg,
        early: &'a mut EarlyData,
    ) -> Self {
        Self { leg, early, client, request, sent: 0, response: [0; CHALLENGE_LEN + ANSWER_LEN], len: 0 }
    }

    /// Becomes ready with the answer, or with the side that has ended. `passes_on`: permits sending data of the client
    /// before the answer.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        passes_on: bool,
    ) -> Poll<Result<[u8; ANSWER_LEN], EndedSide>> {
        if self.client.poll_broken(context).is_ready() {
            return Poll::Ready(Err(EndedSide::Client));
        }
        while self.sent < self.request.len() {
            match self.leg.poll_write(context, &self.request[self.sent..]) {
                Poll::Ready(Ok(written @ 1..)) => self.sent += written,
                Poll::Ready(_) => return Poll::Ready(Err(EndedSide::Exit)),
                Poll::Pending => break,
            }
            self.leg.push();
        }
        if passes_on && self.sent == self.request.len() {
            self.early.poll(context, self.client, &mut self.leg);
        }
        while self.len < self.response.len() {
            match self.leg.poll_read(context, &mut self.response[self.len..]) {
                Poll::Ready(Ok(read @ 1..)) => self.len += read,
                Poll::Ready(_) => return Poll::Ready(Err(EndedSide::Exit)),
                Poll::Pending => return Poll::Pending,
            }
        }
        let answer = self.response.last_chunk().expect("an answer is a part of what is heard");
        Poll::Ready(Ok(*answer))
    }
}
