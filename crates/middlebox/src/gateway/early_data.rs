//! First data of a client, before the outcome of its connection is known.

use super::leg::{Leg, TcpLeg};
use std::task::{Context, Poll};

/// Data of the client. They are kept, in case they have to be sent by another route.
#[derive(Debug)]
pub(super) struct EarlyData {
    buffered: Vec<u8>,
    /// Bytes passed to the trunk.
    sent: usize,
    max: usize,
    reading: ReadState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    Open,
    /// The client has closed or broken the connection; the next read reports it again.
    Closed,
}

impl EarlyData {
    /// Creates a buffer for at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { buffered: Vec::new(), sent: 0, max: most, reading: ReadState::Open }
    }

    /// Returns whether no byte has been sent, so that another route is possible.
    pub(super) fn is_unsent(&self) -> bool {
        self.sent == 0
    }

    /// Passes the data of `client` on to `far`.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, client: &mut TcpLeg, far: &mut impl Leg) {
        let mut buffer = [0; 4096];
        while self.reading == ReadState::Open && self.buffered.len() < self.max {
            let room = (self.max - self.buffered.len()).min(buffer.len());
            match client.poll_read(context, &mut buffer[..room]) {
                Poll::Ready(Ok(read @ 1..)) => self.buffered.extend_from_slice(&buffer[..read]),
                Poll::Ready(_) => self.reading = ReadState::Closed,
                Poll::Pending => break,
            }
        }
        let before = self.sent;
        while self.sent < self.buffered.len() {
            // The error of a broken stream is reported by the read of its answer.
            let Poll::Ready(Ok(written @ 1..)) = far.poll_write(context, &self.buffered[self.sent..]) else {
                break;
            };
            self.sent += written;
        }
        if self.sent > before {
            far.push();
        }
    }

    /// Returns the bytes that have not been sent on the stream yet.
    pub(super) fn into_unsent(mut self) -> Vec<u8> {
        self.buffered.split_off(self.sent)
    }

    /// Returns all bytes, for another route.
    pub(super) fn into_all(self) -> Vec<u8> {
        self.buffered
    }
}
