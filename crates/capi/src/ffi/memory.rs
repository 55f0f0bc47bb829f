//! Access to memory of the caller.

use crate::error::{Error, Result};
use libc::{c_void, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::{mem, ptr, slice};

/// Socket address in the representation of C.
pub(super) enum Address {
    V4(sockaddr_in),
    V6(sockaddr_in6),
}

/// Reads the number at `place`.
///
/// # Safety
/// Unless it is null, `place` points to a number.
pub(super) unsafe fn read<T: Copy>(place: *const T) -> Result<T> {
    not_null(place)?;
    // SAFETY: the caller guarantees it; the read allows any alignment.
    Ok(unsafe { ptr::read_unaligned(place) })
}

/// Writes a number to `place`.
///
/// # Safety
/// Unless it is null, `place` points to a number.
pub(super) unsafe fn write<T: Copy>(place: *mut T, value: T) -> Result<()> {
    not_null(place)?;
    // SAFETY: the caller guarantees it; the write allows any alignment.
    unsafe { ptr::write_unaligned(place, value) };
    Ok(())
}

/// Returns the `len` bytes at `place`, which is not accessed if `len` is 0.
///
/// # Safety
/// Unless it is null, `place` points to `len` bytes, and they do not change meanwhile.
pub(super) unsafe fn bytes<'a>(place: *const c_void, len: usize) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    check(place, len)?;
    // SAFETY: the caller guarantees it; `place` is not null, and `len` is not longer than a slice may be.
    Ok(unsafe { slice::from_raw_parts(place.cast(), len) })
}

/// Returns the buffer of `len` bytes at `place`, which is not accessed if `len` is 0.
///
/// # Safety
/// Unless it is null, `place` points to `len` bytes that only this call accesses. They are written before they are read.
pub(super) unsafe fn bytes_mut<'a>(place: *mut c_void, len: usize) -> Result<&'a mut [u8]> {
    if len == 0 {
        return Ok(&mut []);
    }
    check(place, len)?;
    // SAFETY: the caller guarantees it; `place` is not null, and `len` is not longer than a slice may be.
    Ok(unsafe { slice::from_raw_parts_mut(place.cast(), len) })
}

/// Returns the `count` structures at `place`.
///
/// # Safety
/// Unless it is null, `place` points to `count` structures that only this call accesses.
pub(super) unsafe fn array_mut<'a, T>(place: *mut T, count: usize) -> Result<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(place, count.saturating_mul(size_of::<T>()))?;
    if !place.is_aligned() {
        return Err(Error::new(libc::EFAULT, "a pointer is not aligned"));
    }
    // SAFETY: the caller guarantees it; `place` is not null and aligned, and the array is not longer than a slice may be.
    Ok(unsafe { slice::from_raw_parts_mut(place, count) })
}

/// Reads the address in the `len` bytes at `place`.
///
/// # Safety
/// Unless it is null, `place` points to `len` bytes.
pub(super) unsafe fn address(place: *const sockaddr, len: socklen_t) -> Result<SocketAddr> {
    not_null(place)?;
    let len = len as usize;
    if len < size_of::<sa_family_t>() {
        return Err(too_short(len));
    }
    // SAFETY: there are enough bytes for a family.
    let family = unsafe { ptr::read_unaligned(place.cast::<sa_family_t>()) };
    match i32::from(family) {
        libc::AF_INET if len >= size_of::<sockaddr_in>() => {
            // SAFETY: there are enough bytes, and any bytes are a valid structure.
            let found = unsafe { ptr::read_unaligned(place.cast::<sockaddr_in>()) };
            let ip = Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr));
            Ok(SocketAddrV4::new(ip, u16::from_be(found.sin_port)).into())
        }
        libc::AF_INET6 if len >= size_of::<sockaddr_in6>() => {
            // SAFETY: there are enough bytes, and any bytes are a valid structure.
            let found = unsafe { ptr::read_unaligned(place.cast::<sockaddr_in6>()) };
            let (ip, port) = (Ipv6Addr::from(found.sin6_addr.s6_addr), u16::from_be(found.sin6_port));
            Ok(SocketAddrV6::new(ip, port, found.sin6_flowinfo, found.sin6_scope_id).into())
        }
        libc::AF_INET | libc::AF_INET6 => Err(too_short(len)),
        other => {
            let what = format!("the address family {other} is neither AF_INET nor AF_INET6");
            Err(Error::new(libc::EAFNOSUPPORT, what))
        }
    }
}

/// Writes an address to `place`, truncated to the room there, and its whole length to `len`.
///
/// # Safety
/// Unless they are null, `len` points to a number, and `place` to that many bytes.
pub(super) unsafe fn store_address(
    address: &Address,
    place: *mut sockaddr,
    len: *mut socklen_t,
) -> Result<()> {
    let (from, whole) = match address {
        Address::V4(address) => (ptr::from_ref(address).cast::<u8>(), size_of::<sockaddr_in>()),
        Address::V6(address) => (ptr::from_ref(address).cast::<u8>(), size_of::<sockaddr_in6>()),
    };
    // SAFETY: the caller guarantees it.
    let room = unsafe { read(len) }? as usize;
    not_null(place)?;
    // SAFETY: there are `whole` bytes of the address; the caller guarantees room for `room` bytes.
    unsafe { ptr::copy_nonoverlapping(from, place.cast::<u8>(), whole.min(room)) };
    // SAFETY: the caller guarantees it.
    unsafe { write(len, whole as socklen_t) }
}

impl Address {
    pub(super) fn of(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => {
                // SAFETY: a structure of numbers, for which all zeros are a value.
                let mut found: sockaddr_in = unsafe { mem::zeroed() };
                found.sin_family = libc::AF_INET as sa_family_t;
                found.sin_port = address.port().to_be();
                found.sin_addr.s_addr = u32::from(*address.ip()).to_be();
                Self::V4(found)
            }
            SocketAddr::V6(address) => {
                // SAFETY: a structure of numbers, for which all zeros are a value.
                let mut found: sockaddr_in6 = unsafe { mem::zeroed() };
                found.sin6_family = libc::AF_INET6 as sa_family_t;
                found.sin6_port = address.port().to_be();
                found.sin6_flowinfo = address.flowinfo();
                found.sin6_addr.s6_addr = address.ip().octets();
                found.sin6_scope_id = address.scope_id();
                Self::V6(found)
            }
        }
    }
}

fn check<T>(place: *const T, len: usize) -> Result<()> {
    not_null(place)?;
    if isize::try_from(len).is_err() {
        return Err(Error::new(libc::EINVAL, format!("no memory has {len} bytes")));
    }
    Ok(())
}

fn not_null<T>(place: *const T) -> Result<()> {
    if place.is_null() {
        return Err(Error::new(libc::EFAULT, "a pointer is NULL that should not be"));
    }
    Ok(())
}

fn too_short(len: usize) -> Error {
    Error::new(libc::EINVAL, format!("{len} bytes are too short for an address of its family"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> SocketAddr {
        let mut place = [0u8; 64];
        let mut len = place.len() as socklen_t;
        let at = place.as_mut_ptr().cast::<sockaddr>();
        // SAFETY: there is room for 64 bytes.
        unsafe { store_address(&Address::of(text.parse().unwrap()), at, &raw mut len) }.unwrap();
        // SAFETY: there are as many.
        unsafe { address(at, len) }.unwrap()
    }

    #[test]
    fn addresses_round_trip() {
        for text in ["192.0.2.1:7172", "0.0.0.0:0", "[2001:db8::1]:65535", "[fe80::1%3]:9"] {
            assert_eq!(round_trip(text).to_string(), text);
        }
    }

    #[test]
    fn a_truncated_address_reports_its_length() {
        let mut place = [0xAAu8; 8];
        let mut len = 4;
        let at = place.as_mut_ptr().cast::<sockaddr>();
        // SAFETY: there is room for 4 bytes.
        unsafe { store_address(&Address::of("192.0.2.1:1".parse().unwrap()), at, &raw mut len) }.unwrap();
        assert_eq!((len, &place[4..]), (16, &[0xAA; 4][..]));
    }
}
