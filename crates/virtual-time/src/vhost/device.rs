//! A network device without I/O of its own besides the memory of the kernel.

use super::memory::{Region, SharedMemory};
use super::message::{self, Header, request, u32_at, u64_at};
use super::ring::{Broken, MAX_SIZE, Ring};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Number of the queue in which the kernel offers buffers for frames that it receives.
pub const RECEIVE: usize = 0;
/// Number of the queue in which the kernel sends.
pub const TRANSMIT: usize = 1;

/// The device has a MAC address (`VIRTIO_NET_F_MAC`).
const F_MAC: u64 = 1 << 5;
/// The connection has protocol features (`VHOST_USER_F_PROTOCOL_FEATURES`).
const F_PROTOCOL_FEATURES: u64 = 1 << 30;
/// The device follows version 1 of virtio or later (`VIRTIO_F_VERSION_1`).
const F_VERSION_1: u64 = 1 << 32;
const FEATURES: u64 = F_MAC | F_PROTOCOL_FEATURES | F_VERSION_1;

/// Answers, requests of the device, configuration, and notifications as messages: without the last ones the order of
/// events would depend on real time.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

/// Length of the header before each frame, in bytes (`struct virtio_net_hdr`, version 1).
const FRAME_HEADER_LEN: usize = 12;
/// Position of the number of buffers in the header of a received frame.
const NUM_BUFFERS: usize = 10;
/// Longest frame with its header that the kernel may send, in bytes.
const MAX_LEN: usize = 65_562;
/// Frames that wait for a buffer of the kernel; later ones are dropped.
const BACKLOG: usize = 1024;

/// A request of the kernel that this device cannot follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// A message that is not understood.
    #[error("request {0} of vhost-user, which is unknown or malformed")]
    Request(u32),
    /// The kernel and this program have no common ground.
    #[error("the kernel refuses the features of the network device that virtual time needs: it has {0:#x}")]
    Features(u64),
    /// Damaged queues.
    #[error("the network device has {0}")]
    Queue(#[from] Broken),
}

/// Answer to a message.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Message to send back, if the kernel waits for one.
    pub reply: Option<Vec<u8>>,
    /// Work of the caller before it sends the reply.
    pub work: Work,
}

/// Work of the caller.
#[derive(Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    None,
    /// To fetch the frames that the kernel sends.
    Transmit,
}

/// Interrupts that the kernel is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// None.
    None,
    /// Of the queue of received frames.
    Receive,
}

/// The device of one kernel.
#[derive(Debug)]
pub struct NetDevice {
    mac: [u8; 6],
    memory: SharedMemory,
    rings: [Ring; 2],
    /// Descriptor on which this device sends requests.
    requests: Option<Arc<OwnedFd>>,
    /// Frames for which the kernel had no buffer.
    backlog: VecDeque<Bytes>,
    overflow: u64,
}

impl NetDevice {
    /// Creates a device with a MAC address.
    #[must_use]
    pub fn new(mac: [u8; 6]) -> Self {
        Self {
            mac,
            memory: SharedMemory::default(),
            rings: [Ring::default(); 2],
            requests: None,
            backlog: VecDeque::new(),
            overflow: 0,
        }
    }

    /// Returns the descriptor for requests of the device, once the kernel has sent it.
    #[must_use]
    pub const fn requests(&self) -> Option<&Arc<OwnedFd>> {
        self.requests.as_ref()
    }

    /// Returns the number of frames that were lost since the kernel gave no buffers for them, or too short ones.
    #[must_use]
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Handles a message of the kernel, with the descriptors that came with it.
    ///
    /// # Errors
    /// A message that this device cannot follow.
    pub fn handle(
        &mut self,
        header: Header,
        payload: &[u8],
        descriptors: Vec<OwnedFd>,
    ) -> Result<Answer, DeviceError> {
        let malformed = DeviceError::Request(header.request);
        let mut work = Work::None;
        let payload = match header.request {
            request::GET_FEATURES => Some(FEATURES.to_ne_bytes().to_vec()),
            request::GET_PROTOCOL_FEATURES => Some(PROTOCOL_FEATURES.to_ne_bytes().to_vec()),
            request::GET_CONFIG => Some(self.configuration(payload).ok_or(malformed)?),
            other => {
                work = self.set(other, payload, descriptors)?;
                header.needs_reply().then(|| 0u64.to_ne_bytes().to_vec())
            }
        };
        Ok(Answer { reply: payload.map(|payload| message::reply(header.request, &payload)), work })
    }

    /// Handles a message that asks for nothing but an acknowledgment.
    fn set(
        &mut self,
        request: u32,
        payload: &[u8],
        mut descriptors: Vec<OwnedFd>,
    ) -> Result<Work, DeviceError> {
        let malformed = DeviceError::Request(request);
        match request {
            request::SET_OWNER | request::SET_CONFIG | request::SET_VRING_ENABLE => {}
            request::SET_FEATURES => accept(FEATURES, u64_at(payload, 0).ok_or(malformed)?)?,
            request::SET_PROTOCOL_FEATURES => {
                accept(PROTOCOL_FEATURES, u64_at(payload, 0).ok_or(malformed)?)?;
            }
            request::SET_MEM_TABLE => {
                self.memory = SharedMemory::new(regions(payload, descriptors).ok_or(malformed)?);
            }
            request::SET_BACKEND_REQ_FD => {
                self.requests = Some(Arc::new(descriptors.pop().ok_or(malformed)?));
            }
            request::SET_VRING_NUM | request::SET_VRING_BASE | request::SET_VRING_ADDR => {
                self.set_ring(request, payload).ok_or(malformed)?;
            }
            request::VRING_KICK => {
                let index = u32_at(payload, 0).ok_or(malformed)?;
                return Ok(if index as usize == TRANSMIT { Work::Transmit } else { Work::None });
            }
            _ => return Err(malformed),
        }
        Ok(Work::None)
    }

    fn set_ring(&mut self, request: u32, payload: &[u8]) -> Option<()> {
        let ring = self.rings.get_mut(u32_at(payload, 0)? as usize)?;
        let number = || u16::try_from(u32_at(payload, 4)?).ok();
        match request {
            request::SET_VRING_NUM => {
                ring.size = number().filter(|&size| size.is_power_of_two() && size <= MAX_SIZE)?;
            }
            request::SET_VRING_BASE => ring.set_base(number()?),
            _ => {
                let address = |at| self.memory.guest_address(u64_at(payload, at)?);
                (ring.descriptors, ring.used, ring.available) = (address(8)?, address(16)?, address(24)?);
            }
        }
        Some(())
    }

    /// Returns the answer to a request for bytes of the configuration: the MAC address, and nothing else that is used.
    fn configuration(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let (offset, size) = (u32_at(payload, 0)? as usize, u32_at(payload, 4)? as usize);
        let mut answer = payload.get(..12)?.to_vec();
        if size > message::MAX_PAYLOAD {
            return None;
        }
        let all = self.mac.iter().copied().chain(std::iter::repeat(0));
        answer.extend(all.skip(offset).take(size));
        Some(answer)
    }

    /// Takes the next frame that the kernel sends.
    ///
    /// # Errors
    /// A damaged queue.
    pub fn take_frame(&mut self) -> Result<Option<Bytes>, DeviceError> {
        let ring = &mut self.rings[TRANSMIT];
        let Some(chain) = ring.take(&self.memory)? else { return Ok(None) };
        let bytes = chain.read(&self.memory, MAX_LEN)?;
        ring.give_back(&self.memory, &chain, 0)?;
        // The network refuses and counts a frame that is too short.
        let header = FRAME_HEADER_LEN.min(bytes.len());
        Ok(Some(Bytes::from(bytes).slice(header..)))
    }

    /// Puts a frame into the memory of the kernel, or keeps it until there is a buffer. Returns the interrupt to send.
    ///
    /// # Errors
    /// A damaged queue.
    pub fn deliver(&mut self, frame: Bytes) -> Result<Interrupt, DeviceError> {
        if self.backlog.len() >= BACKLOG {
            self.overflow += 1;
            return Ok(Interrupt::None);
        }
        self.backlog.push_back(frame);
        self.deliver_backlog()
    }

    /// Returns whether frames wait for buffers.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Tries again to deliver frames for which the kernel had no buffer.
    ///
    /// # Errors
    /// A damaged queue.
    pub fn deliver_backlog(&mut self) -> Result<Interrupt, DeviceError> {
        let ring = &mut self.rings[RECEIVE];
        let mut delivered = false;
        while let Some(frame) = self.backlog.front() {
            let Some(chain) = ring.take(&self.memory)? else { break };
            let mut bytes = vec![0; FRAME_HEADER_LEN];
            bytes[NUM_BUFFERS] = 1;
            bytes.extend_from_slice(frame);
            let written = chain.write(&self.memory, &bytes)?;
            if (written as usize) < bytes.len() {
                // The driver has buffers for the usual MTU, whatever its interface is told later.
                self.overflow += 1;
            }
            ring.give_back(&self.memory, &chain, written)?;
            self.backlog.pop_front();
            delivered = true;
        }
        if !delivered {
            return Ok(Interrupt::None);
        }
        // New buffers need no notification: they are looked for when there is a frame.
        ring.stop_notifications(&self.memory)?;
        Ok(if ring.wants_interrupt(&self.memory)? { Interrupt::Receive } else { Interrupt::None })
    }
}

/// Checks that the kernel uses all of the features that are offered.
const fn accept(offered: u64, used: u64) -> Result<(), DeviceError> {
    if used & offered == offered { Ok(()) } else { Err(DeviceError::Features(used)) }
}

fn regions(payload: &[u8], descriptors: Vec<OwnedFd>) -> Option<Vec<Region>> {
    if u32_at(payload, 0)? as usize != descriptors.len() {
        return None;
    }
    let region = |(index, file): (usize, OwnedFd)| {
        let number = |at| u64_at(payload, 8 + 32 * index + at);
        let (guest_address, len, user_address, offset) = (number(0)?, number(8)?, number(16)?, number(24)?);
        // So that no sum of addresses in it overflows.
        let ends = [guest_address, user_address, offset].map(|start| start.checked_add(len));
        let is_sane = ends.into_iter().all(|end| end.is_some_and(|end| end < 1 << 62));
        is_sane.then(|| Region { guest_address, len, user_address, offset, file: File::from(file) })
    };
    descriptors.into_iter().enumerate().map(region).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::os::unix::fs::FileExt;

    const NEED_REPLY: u32 = 1 | 1 << 3;
    /// Address of the first byte of memory, for buffers and for rings.
    const GUEST: u64 = 0x10_0000;
    const USER: u64 = 0x6000_0000;
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

    /// Kernel of a test: 64 kB of memory, with the rings at the beginning.
    struct Kernel {
        device: NetDevice,
        memory: File,
    }

    impl Kernel {
        fn new() -> Self {
            let memory = File::from(memfd_create("test", MemfdFlags::CLOEXEC).expect("a file in memory"));
            memory.set_len(0x1_0000).expect("its length");
            let mut kernel = Self { device: NetDevice::new(MAC), memory };
            let table: Vec<u8> =
                [1, GUEST, 0x1_0000, USER, 0].iter().flat_map(|n: &u64| n.to_le_bytes()).collect();
            let file = kernel.memory.try_clone().expect("a descriptor").into();
            kernel.say_with(request::SET_MEM_TABLE, &table, vec![file]);
            for queue in 0..2u32 {
                let base = USER + u64::from(queue) * 0x1000;
                let state = |value: u32| [queue.to_le_bytes(), value.to_le_bytes()].concat();
                let addresses = [u64::from(queue), base, base + 0x400, base + 0x800, u64::MAX];
                kernel.say(request::SET_VRING_NUM, &state(4));
                kernel.say(request::SET_VRING_BASE, &state(0));
                kernel.say(request::SET_VRING_ADDR, &addresses.map(u64::to_le_bytes).concat());
            }
            kernel
        }

        fn say(&mut self, request: u32, payload: &[u8]) -> Work {
            self.say_with(request, payload, Vec::new())
        }

        fn say_with(&mut self, request: u32, payload: &[u8], descriptors: Vec<OwnedFd>) -> Work {
            let header = Header { request, flags: NEED_REPLY, len: payload.len() as u32 };
            let answer = self.device.handle(header, payload, descriptors).expect("understood");
            assert_eq!(answer.reply, Some(message::reply(request, &[0; 8])), "request {request}");
            answer.work
        }

        /// Makes a buffer of queue `queue` available, as its buffer of this number.
        fn offer(&self, queue: u64, number: u16, address: u64, len: u32, flags: u16) {
            let ring = queue * 0x1000;
            let descriptor = u64::from(number % 4);
            let parts =
                [&(GUEST + address).to_le_bytes()[..], &len.to_le_bytes(), &flags.to_le_bytes(), &[0; 2]];
            self.memory.write_all_at(&parts.concat(), ring + 16 * descriptor).expect("written");
            let slot = ring + 0x804 + 2 * descriptor;
            self.memory.write_all_at(&(number % 4).to_le_bytes(), slot).expect("written");
            self.memory.write_all_at(&(number + 1).to_le_bytes(), ring + 0x802).expect("written");
        }

        fn bytes(&self, address: u64, len: usize) -> Vec<u8> {
            let mut bytes = vec![0; len];
            self.memory.read_exact_at(&mut bytes, address).expect("read");
            bytes
        }
    }

    #[test]
    fn a_frame_is_sent_without_its_header() {
        let mut kernel = Kernel::new();
        kernel.memory.write_all_at(&[&[9; 12][..], b"a frame"].concat(), 0x8000).expect("written");
        kernel.offer(1, 0, 0x8000, 19, 0);
        assert_eq!(kernel.say(request::VRING_KICK, &[1, 0, 0, 0, 0, 0, 0, 0]), Work::Transmit);
        assert_eq!(kernel.device.take_frame(), Ok(Some(Bytes::from_static(b"a frame"))));
        assert_eq!(kernel.device.take_frame(), Ok(None));
        assert_eq!(kernel.bytes(0x1402, 2), [1, 0], "the buffer was given back");
    }

    #[test]
    fn a_frame_is_received_behind_a_header_with_an_interrupt() {
        let mut kernel = Kernel::new();
        kernel.offer(0, 0, 0x8000, 100, 2);
        assert_eq!(kernel.device.deliver(Bytes::from_static(b"hello")), Ok(Interrupt::Receive));
        assert_eq!(kernel.bytes(0x8000, 17), [&[0; 10][..], &[1, 0], b"hello"].concat());
        assert_eq!(kernel.bytes(0x404, 8), [0, 0, 0, 0, 17, 0, 0, 0]);
    }

    #[test]
    fn a_polling_kernel_gets_no_interrupt() {
        let mut kernel = Kernel::new();
        kernel.offer(0, 0, 0x8000, 100, 2);
        kernel.memory.write_all_at(&[1, 0], 0x800).expect("written");
        assert_eq!(kernel.device.deliver(Bytes::from_static(b"hello")), Ok(Interrupt::None));
    }

    #[test]
    fn a_frame_waits_for_a_buffer() {
        let mut kernel = Kernel::new();
        assert_eq!(kernel.device.deliver(Bytes::from_static(b"hello")), Ok(Interrupt::None));
        assert!(kernel.device.has_backlog());
        kernel.offer(0, 0, 0x8000, 100, 2);
        assert_eq!(kernel.device.deliver_backlog(), Ok(Interrupt::Receive));
        assert!(!kernel.device.has_backlog());
    }

    #[test]
    fn a_long_backlog_drops_and_counts() {
        let mut kernel = Kernel::new();
        for _ in 0..=BACKLOG {
            assert_eq!(kernel.device.deliver(Bytes::from_static(b"hello")), Ok(Interrupt::None));
        }
        assert_eq!(kernel.device.overflow(), 1);
    }

    #[test]
    fn a_frame_that_is_longer_than_the_buffer_is_counted() {
        let mut kernel = Kernel::new();
        kernel.offer(0, 0, 0x8000, 100, 2);
        let longest = Bytes::from(vec![7; 100 - FRAME_HEADER_LEN]);
        assert_eq!(kernel.device.deliver(longest), Ok(Interrupt::Receive));
        assert_eq!(kernel.device.overflow(), 0);
        kernel.offer(0, 1, 0x8000, 100, 2);
        let _ = kernel.device.deliver(Bytes::from(vec![7; 101 - FRAME_HEADER_LEN])).expect("a whole queue");
        assert_eq!(kernel.device.overflow(), 1);
    }

    #[test]
    fn the_configuration_begins_with_the_mac_address() {
        let mut device = NetDevice::new(MAC);
        let payload: Vec<u8> = [0u32, 8, 0].iter().flat_map(|n| n.to_le_bytes()).chain([0; 8]).collect();
        let header = Header { request: request::GET_CONFIG, flags: 1, len: payload.len() as u32 };
        let answer = device.handle(header, &payload, Vec::new()).expect("understood");
        let expected = [&payload[..12], &MAC, &[0; 2]].concat();
        assert_eq!(answer.reply, Some(message::reply(request::GET_CONFIG, &expected)));
    }

    #[test]
    fn a_kernel_without_notifications_in_band_is_refused() {
        let mut device = NetDevice::new(MAC);
        let header = Header { request: request::SET_PROTOCOL_FEATURES, flags: 1, len: 8 };
        let used = PROTOCOL_FEATURES & !(1 << 14);
        assert_eq!(device.handle(header, &used.to_ne_bytes(), Vec::new()), Err(DeviceError::Features(used)));
    }

    #[test]
    fn malformed_requests_are_errors() {
        let wide = [1, u64::MAX - 5, 100, 0, 0].map(u64::to_le_bytes).concat();
        let high_queue = [2u32, 4].map(u32::to_le_bytes).concat();
        let odd_size = [0u32, 3].map(u32::to_le_bytes).concat();
        let no_memory = [0u64, USER, USER, USER, 0].map(u64::to_le_bytes).concat();
        let requests = [
            (0, &[][..]),
            (request::SET_FEATURES, &[1, 2]),
            (request::SET_MEM_TABLE, &[1, 0, 0, 0, 0, 0, 0, 0]),
            (request::SET_MEM_TABLE, &wide),
            (request::SET_BACKEND_REQ_FD, &[]),
            (request::SET_VRING_NUM, &high_queue),
            (request::SET_VRING_NUM, &odd_size),
            (request::SET_VRING_ADDR, &no_memory),
            (request::VRING_KICK, &[]),
            (request::GET_CONFIG, &[0; 4]),
        ];
        for (request, payload) in requests {
            let header = Header { request, flags: 1, len: payload.len() as u32 };
            let answer = NetDevice::new(MAC).handle(header, payload, Vec::new());
            assert_eq!(answer, Err(DeviceError::Request(request)), "{payload:?}");
        }
    }
}
