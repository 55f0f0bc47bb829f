//! Encoder of messages to the kernel about a queue (linux/netfilter/nfnetlink_queue.h).

use hopline_linux::netlink::{attribute, put_attribute};

/// Bytes of the general header of all nfnetlink messages.
pub(super) const NFNL_HEADER_LEN: usize = 4;

/// Returns the netlink type of a message about queues.
pub(super) const fn kind(message: libc::c_int) -> u16 {
    (libc::NFNL_SUBSYS_QUEUE << 8 | message) as u16
}

/// A setting of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Binds the queue to this process.
    Bind,
    /// Requests whole packets.
    CopyAll,
    /// Maximum number of packets in the queue.
    Length(u32),
    /// Sets the flags in `mask` to `set`, and leaves the rest.
    Flags {
        /// Flags that change.
        mask: u32,
        /// Flags that are set.
        set: u32,
    },
}

/// Maximum bytes copied of a packet: all of it.
const COPY_RANGE: u32 = 0xffff;

impl Setting {
    /// Encodes a request that the kernel acknowledges.
    pub(super) fn request(self, queue: u16, sequence: u32) -> Vec<u8> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        let mut out = Vec::new();
        let message = begin(&mut out, libc::NFQNL_MSG_CONFIG, flags, (queue, sequence));
        out.extend(self.attributes());
        end(&mut out, message);
        out
    }

    fn attributes(self) -> Vec<u8> {
        match self {
            // The command, a padding byte, and a protocol family that only older kernels read.
            Self::Bind => attribute(libc::NFQA_CFG_CMD as u16, &[libc::NFQNL_CFG_CMD_BIND as u8, 0, 0, 0]),
            Self::CopyAll => {
                let [a, b, c, d] = COPY_RANGE.to_be_bytes();
                let parameters = [a, b, c, d, libc::NFQNL_COPY_PACKET as u8];
                attribute(libc::NFQA_CFG_PARAMS as u16, &parameters)
            }
            Self::Length(packets) => attribute(libc::NFQA_CFG_QUEUE_MAXLEN as u16, &packets.to_be_bytes()),
            Self::Flags { mask, set } => [
                attribute(libc::NFQA_CFG_FLAGS as u16, &set.to_be_bytes()),
                attribute(libc::NFQA_CFG_MASK as u16, &mask.to_be_bytes()),
            ]
            .concat(),
        }
    }
}

/// Appends a verdict on packet `id` alone. A payload replaces the packet.
pub(super) fn put_verdict(
    out: &mut Vec<u8>,
    queue: u16,
    id: u32,
    verdict: libc::c_int,
    payload: Option<&[u8]>,
) {
    let message = begin(out, libc::NFQNL_MSG_VERDICT, libc::NLM_F_REQUEST, (queue, 0));
    put_attribute(out, libc::NFQA_VERDICT_HDR as u16, &verdict_header(id, verdict));
    if let Some(payload) = payload {
        put_attribute(out, libc::NFQA_PAYLOAD as u16, payload);
    }
    end(out, message);
}

/// Appends a verdict that accepts all waiting packets up to `id`.
pub(super) fn put_pass_up_to(out: &mut Vec<u8>, queue: u16, id: u32) {
    let message = begin(out, libc::NFQNL_MSG_VERDICT_BATCH, libc::NLM_F_REQUEST, (queue, 0));
    put_attribute(out, libc::NFQA_VERDICT_HDR as u16, &verdict_header(id, libc::NF_ACCEPT));
    end(out, message);
}

fn verdict_header(id: u32, verdict: libc::c_int) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (verdict.to_be_bytes(), id.to_be_bytes());
    [a, b, c, d, e, f, g, h]
}

/// Starts a message. Returns its offset for [`end`].
fn begin(
    out: &mut Vec<u8>,
    message: libc::c_int,
    flags: libc::c_int,
    (queue, sequence): (u16, u32),
) -> usize {
    let start = out.len();
    out.extend([0; 4]); // its length, when it is known
    out.extend(kind(message).to_ne_bytes());
    out.extend((flags as u16).to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend([0; 4]); // to the kernel
    out.extend([libc::AF_UNSPEC as u8, libc::NFNETLINK_V0 as u8]);
    out.extend(queue.to_be_bytes());
    start
}

fn end(out: &mut [u8], start: usize) {
    let len = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&len.to_ne_bytes());
}
