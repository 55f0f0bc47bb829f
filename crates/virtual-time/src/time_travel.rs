//! Messages of the time-travel protocol of user-mode Linux (`include/uapi/linux/um_timetravel.h` of Linux).
//!
//! Each is 16 bytes in the byte order of the machine: operation, sequence number, time in nanoseconds. The receiver of a
//! message answers it with an [`Operation::Ack`] of the same sequence number.

/// Length of a message in bytes.
pub const MESSAGE_LEN: usize = 16;

/// Operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// Answer to a message. The time is only used in answers to [`Self::Get`] and [`Self::GetTimeOfDay`].
    Ack = 0,
    /// First message of a host.
    Start = 1,
    /// A host asks to run at a time, in place of the time that it asked for before.
    Request = 2,
    /// A host has nothing to do before the requested time.
    Wait = 3,
    /// A host asks for the current time.
    Get = 4,
    /// A host reports the time that it has reached.
    Update = 5,
    /// The scheduler lets a host run, from this time on.
    Run = 6,
    /// The scheduler lets a host advance its time, up to but not including this one, without a request.
    FreeUntil = 7,
    /// A host asks for the time of day that belongs to the current time.
    GetTimeOfDay = 8,
    /// A host sends a number to all others.
    Broadcast = 9,
}

impl Operation {
    const ALL: [Self; 10] = [
        Self::Ack,
        Self::Start,
        Self::Request,
        Self::Wait,
        Self::Get,
        Self::Update,
        Self::Run,
        Self::FreeUntil,
        Self::GetTimeOfDay,
        Self::Broadcast,
    ];
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its operation.
    pub operation: Operation,
    /// Its sequence number: one above that of the sender's previous message, or in an ACK that of the acknowledged message.
    pub sequence: u32,
    /// Time in nanoseconds, if the operation has one.
    pub time: u64,
}

impl Message {
    /// Parses a message; the error is the unknown operation.
    ///
    /// # Errors
    /// An operation that this protocol does not have.
    pub fn parse(bytes: &[u8; MESSAGE_LEN]) -> Result<Self, u32> {
        let [a, b, c, d, e, f, g, h, time @ ..] = *bytes;
        let operation = u32::from_ne_bytes([a, b, c, d]);
        let known = Operation::ALL.into_iter().find(|&known| known as u32 == operation);
        Ok(Self {
            operation: known.ok_or(operation)?,
            sequence: u32::from_ne_bytes([e, f, g, h]),
            time: u64::from_ne_bytes(time),
        })
    }

    /// Returns the bytes of the message.
    #[must_use]
    pub fn emit(&self) -> [u8; MESSAGE_LEN] {
        let mut bytes = [0; MESSAGE_LEN];
        bytes[..4].copy_from_slice(&(self.operation as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for operation in Operation::ALL {
            let message = Message { operation, sequence: 7, time: 0x0102_0304_0506_0708 };
            assert_eq!(Message::parse(&message.emit()), Ok(message));
        }
    }

    #[test]
    fn an_unknown_operation_is_an_error() {
        assert_eq!(Message::parse(&[0xff; MESSAGE_LEN]), Err(u32::MAX));
    }
}
