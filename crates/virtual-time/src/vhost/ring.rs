//! Split virtqueue, from the side of the device (Virtual I/O Device 1.2 §2.7).

use super::memory::Memory;

/// Largest number of descriptors of a queue.
pub const MAX_SIZE: u16 = 32_768;

const DESCRIPTOR_LEN: u64 = 16;
/// Another descriptor continues the buffer.
const NEXT: u16 = 1;
/// The device writes to the buffer.
const WRITE: u16 = 2;
/// The driver wants no interrupts (in the available ring).
const NO_INTERRUPT: u16 = 1;
/// The device wants no notifications (in the used ring).
const NO_NOTIFY: u16 = 1;

/// A queue that the driver has broken: an address or index outside its memory, or a chain without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a broken virtqueue")]
pub struct Broken;

/// A buffer of the driver: a chain of descriptors.
#[derive(Debug, PartialEq, Eq)]
pub struct Chain {
    /// First descriptor.
    head: u16,
    /// Address and length of each part that the device reads.
    readable: Vec<(u64, u32)>,
    /// Address and length of each part that the device writes.
    writable: Vec<(u64, u32)>,
}

/// A virtqueue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring {
    /// Number of descriptors: a power of two.
    pub size: u16,
    /// Address of the descriptor table.
    pub descriptors: u64,
    /// Address of the available ring.
    pub available: u64,
    /// Address of the used ring.
    pub used: u64,
    /// Number of buffers taken from the available ring, modulo 2^16.
    next_available: u16,
    /// Number of buffers put into the used ring, modulo 2^16.
    next_used: u16,
}

impl Ring {
    /// Sets the number of buffers that were used before.
    pub fn set_base(&mut self, base: u16) {
        (self.next_available, self.next_used) = (base, base);
    }

    /// Returns whether the driver has set the queue up.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.size > 0 && self.descriptors != 0
    }

    /// Asks the driver not to notify the device of new buffers.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn stop_notifications(&self, memory: &impl Memory) -> Result<(), Broken> {
        memory.write(self.used, &NO_NOTIFY.to_le_bytes()).ok_or(Broken)
    }

    /// Returns whether the driver wants an interrupt when buffers were used.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn wants_interrupt(&self, memory: &impl Memory) -> Result<bool, Broken> {
        Ok(memory.u16(self.available).ok_or(Broken)? & NO_INTERRUPT == 0)
    }

    /// Takes the next buffer; `None` if there is none.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn take(&mut self, memory: &impl Memory) -> Result<Option<Chain>, Broken> {
        if !self.is_ready() {
            return Ok(None);
        }
        if memory.u16(self.available + 2).ok_or(Broken)? == self.next_available {
            return Ok(None);
        }
        let slot = u64::from(self.next_available % self.size);
        let head = memory.u16(self.available + 4 + 2 * slot).ok_or(Broken)?;
        self.next_available = self.next_available.wrapping_add(1);
        self.chain(memory, head).map(Some)
    }

    fn chain(&self, memory: &impl Memory, head: u16) -> Result<Chain, Broken> {
        let mut chain = Chain { head, readable: Vec::new(), writable: Vec::new() };
        let mut index = head;
        for _ in 0..self.size {
            if index >= self.size {
                return Err(Broken);
            }
            let at = self.descriptors + DESCRIPTOR_LEN * u64::from(index);
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = memory.array(at).ok_or(Broken)?;
            let part = (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([i, j, k, l]));
            let flags = u16::from_le_bytes([m, n]);
            match flags & WRITE {
                0 => chain.readable.push(part),
                _ => chain.writable.push(part),
            }
            if flags & NEXT == 0 {
                return Ok(chain);
            }
            index = u16::from_le_bytes([o, p]);
        }
        Err(Broken)
    }

    /// Gives a buffer back to the driver, with the number of bytes that were written to it.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn give_back(&mut self, memory: &impl Memory, chain: &Chain, written: u32) -> Result<(), Broken> {
        let slot = u64::from(self.next_used % self.size);
        let mut element = [0; 8];
        element[..4].copy_from_slice(&u32::from(chain.head).to_le_bytes());
        element[4..].copy_from_slice(&written.to_le_bytes());
        memory.write(self.used + 4 + 8 * slot, &element).ok_or(Broken)?;
        self.next_used = self.next_used.wrapping_add(1);
        memory.write(self.used + 2, &self.next_used.to_le_bytes()).ok_or(Broken)
    }
}

impl Chain {
    /// Reads what the driver has written, at most `limit` bytes.
    ///
    /// # Errors
    /// [`Broken`], also if it is longer.
    pub fn read(&self, memory: &impl Memory, limit: usize) -> Result<Vec<u8>, Broken> {
        let mut bytes = Vec::new();
        for &(address, len) in &self.readable {
            let from = bytes.len();
            if from + len as usize > limit {
                return Err(Broken);
            }
            bytes.resize(from + len as usize, 0);
            memory.read(address, &mut bytes[from..]).ok_or(Broken)?;
        }
        Ok(bytes)
    }

    /// Writes bytes for the driver, and returns how many found room.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn write(&self, memory: &impl Memory, mut bytes: &[u8]) -> Result<u32, Broken> {
        let mut written = 0;
        for &(address, len) in &self.writable {
            let (now, later) = bytes.split_at(bytes.len().min(len as usize));
            memory.write(address, now).ok_or(Broken)?;
            written += now.len() as u32;
            bytes = later;
        }
        Ok(written)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Memory from address zero on.
    pub(in super::super) struct Plain(pub(in super::super) RefCell<Vec<u8>>);

    impl Memory for Plain {
        fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
            let at = usize::try_from(address).ok()?;
            bytes.copy_from_slice(self.0.borrow().get(at..at.checked_add(bytes.len())?)?);
            Some(())
        }

        fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
            let at = usize::try_from(address).ok()?;
            self.0.borrow_mut().get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
            Some(())
        }
    }

    const SIZE: u16 = 4;
    const AVAILABLE: u64 = 0x200;
    const USED: u64 = 0x300;
    const DATA: u64 = 0x400;

    fn ring() -> (Ring, Plain) {
        let ring =
            Ring { size: SIZE, descriptors: 0x100, available: AVAILABLE, used: USED, ..Ring::default() };
        (ring, Plain(RefCell::new(vec![0; 0x800])))
    }

    fn describe(memory: &Plain, index: u16, address: u64, len: u32, flags: u16, next: u16) {
        let at = 0x100 + 16 * u64::from(index);
        let parts =
            [&address.to_le_bytes()[..], &len.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()];
        memory.write(at, &parts.concat()).expect("within");
    }

    /// Makes a chain available, as the buffer of this number.
    fn offer(memory: &Plain, number: u16, head: u16) {
        let slot = u64::from(number % SIZE);
        memory.write(AVAILABLE + 4 + 2 * slot, &head.to_le_bytes()).expect("within");
        memory.write(AVAILABLE + 2, &number.wrapping_add(1).to_le_bytes()).expect("within");
    }

    #[test]
    fn a_chain_is_read_in_order_and_given_back() {
        let (mut ring, memory) = ring();
        assert_eq!(ring.take(&memory), Ok(None));
        memory.write(DATA, b"header body").expect("within");
        describe(&memory, 2, DATA, 6, NEXT, 0);
        describe(&memory, 0, DATA + 7, 4, 0, 0);
        offer(&memory, 0, 2);
        let chain = ring.take(&memory).expect("whole").expect("one");
        assert_eq!(chain.read(&memory, 10), Ok(b"headerbody".to_vec()));
        assert_eq!(chain.read(&memory, 9), Err(Broken));
        ring.give_back(&memory, &chain, 0).expect("within");
        assert_eq!((memory.u16(USED + 2), memory.u16(USED + 4)), (Some(1), Some(2)));
        assert_eq!(ring.take(&memory), Ok(None));
    }

    #[test]
    fn indices_wrap_around() {
        let (mut ring, memory) = ring();
        ring.set_base(u16::MAX);
        describe(&memory, 1, DATA, 8, WRITE, 0);
        for number in [u16::MAX, 0, 1] {
            offer(&memory, number, 1);
            let chain = ring.take(&memory).expect("whole").expect("one");
            assert_eq!(chain.write(&memory, b"123456789"), Ok(8), "a frame that is too long is cut");
            ring.give_back(&memory, &chain, 8).expect("within");
        }
        assert_eq!(memory.u16(USED + 2), Some(2));
    }

    #[test]
    fn a_hostile_driver_breaks_its_own_queue_alone() {
        for (head, address, flags, next) in
            [(9, DATA, 0, 0), (0, DATA, NEXT, 0), (0, DATA, NEXT, 7), (0, 0x7ff, 0, 0), (0, u64::MAX, 0, 0)]
        {
            let (mut ring, memory) = ring();
            describe(&memory, 0, address, 8, flags, next);
            offer(&memory, 0, head);
            let read = ring.take(&memory).and_then(|chain| chain.expect("one").read(&memory, 100));
            assert_eq!(read, Err(Broken), "{head} {address:#x} {flags} {next}");
        }
        let mut outside = Ring { size: SIZE, descriptors: 1, available: u64::MAX - 9, ..Ring::default() };
        assert_eq!(outside.take(&ring().1), Err(Broken));
    }

    #[test]
    fn interrupts_and_notifications_can_be_refused() {
        let (ring, memory) = ring();
        assert_eq!(ring.wants_interrupt(&memory), Ok(true));
        memory.write(AVAILABLE, &NO_INTERRUPT.to_le_bytes()).expect("within");
        assert_eq!(ring.wants_interrupt(&memory), Ok(false));
        ring.stop_notifications(&memory).expect("within");
        assert_eq!(memory.u16(USED), Some(NO_NOTIFY));
    }
}
