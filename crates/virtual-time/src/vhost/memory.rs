//! Memory of a kernel, as far as it shares it with its devices.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Memory at guest addresses.
pub trait Memory {
    /// Reads from an address on. Returns `None` unless all of it is shared memory.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()>;
    /// Writes from an address on. Returns `None` unless all of it is shared memory.
    fn write(&self, address: u64, bytes: &[u8]) -> Option<()>;

    /// Reads an array of bytes.
    fn array<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Some(bytes)
    }

    /// Reads a number of 16 bits.
    fn u16(&self, address: u64) -> Option<u16> {
        self.array(address).map(u16::from_le_bytes)
    }
}

/// Regions of a file that a kernel has as its memory.
#[derive(Debug, Default)]
pub struct SharedMemory {
    regions: Vec<Region>,
}

/// A region.
#[derive(Debug)]
pub struct Region {
    /// First address, as descriptors of buffers have it.
    pub guest_address: u64,
    /// Length in bytes.
    pub len: u64,
    /// The same first address, as addresses of rings have it.
    pub user_address: u64,
    /// Offset of the first byte in `file`.
    pub offset: u64,
    /// The memory.
    pub file: File,
}

impl SharedMemory {
    /// Creates memory of these regions.
    #[must_use]
    pub const fn new(regions: Vec<Region>) -> Self {
        Self { regions }
    }

    /// Returns the guest address of an address of a ring.
    #[must_use]
    pub fn guest_address(&self, user_address: u64) -> Option<u64> {
        let region = self
            .regions
            .iter()
            .find(|r| (r.user_address..r.user_address.saturating_add(r.len)).contains(&user_address))?;
        region.guest_address.checked_add(user_address - region.user_address)
    }

    /// Returns the file with `len` bytes from `address` on, and their offset.
    fn place(&self, address: u64, len: usize) -> Option<(&File, u64)> {
        let end = address.checked_add(len as u64)?;
        let within = |r: &&Region| address >= r.guest_address && end <= r.guest_address.saturating_add(r.len);
        let region = self.regions.iter().find(within)?;
        Some((&region.file, region.offset.checked_add(address - region.guest_address)?))
    }
}

impl Memory for SharedMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        let (file, offset) = self.place(address, bytes.len())?;
        file.read_exact_at(bytes, offset).ok()
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        let (file, offset) = self.place(address, bytes.len())?;
        file.write_all_at(bytes, offset).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};

    fn memory() -> SharedMemory {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).expect("a file in memory"));
        file.set_len(0x3000).expect("its length");
        let region =
            Region { guest_address: 0x1000, len: 0x1000, user_address: 0x9000, offset: 0x2000, file };
        SharedMemory::new(vec![region])
    }

    #[test]
    fn what_is_written_is_read_at_the_same_address() {
        let memory = memory();
        assert_eq!(memory.write(0x1ffe, &[1, 2]), Some(()));
        assert_eq!(memory.u16(0x1ffe), Some(0x0201));
    }

    #[test]
    fn nothing_beyond_a_region_is_touched() {
        let memory = memory();
        for address in [0, 0xfff, 0x1fff, 0x2000, u64::MAX] {
            assert_eq!(memory.u16(address), None, "{address:#x}");
            assert_eq!(memory.write(address, &[0; 2]), None, "{address:#x}");
        }
    }

    #[test]
    fn addresses_of_rings_are_translated() {
        let memory = memory();
        assert_eq!(memory.guest_address(0x9010), Some(0x1010));
        assert_eq!((memory.guest_address(0x8fff), memory.guest_address(0xa000)), (None, None));
    }
}
