//! Functions of the C interface, called with any handles, options, addresses and lengths. AddressSanitizer detects access
//! beyond the memory of the caller; without it, the bytes behind that memory are compared.
#![allow(unsafe_code, reason = "callers of C functions say themselves that their pointers are right")]

use crate::machines::Choices;
use hopline_capi::abi::{tpa_info, tpa_option, tpa_pollfd, tpa_protocol};
use hopline_capi::ffi;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

/// Most sockets of a script.
const MOST_SOCKETS: usize = 3;
/// Most calls of a script: sockets cost more than steps of other scripts.
const MOST_CALLS: usize = 24;
/// Value of the bytes behind the memory that callees may use.
const CANARY: u8 = 0xa5;
/// Protocols of sockets.
const PROTOCOLS: [tpa_protocol; 2] = [tpa_protocol::TPA_PROTOCOL_WIDE, tpa_protocol::TPA_PROTOCOL_TPA];
/// Key of sockets of TPA-wide, so that none reads the user's key.
const KEY: [u8; 32] = [7; 32];

/// Script of calls. Each returns −1 with a reason, or a valid result; it writes only to memory that it may use.
pub fn capi(data: &[u8]) {
    let mut choices = Choices(data);
    let mut script = Script { handles: Vec::new() };
    for _ in 0..MOST_CALLS {
        if choices.is_over() {
            break;
        }
        script.call(&mut choices);
    }
    for handle in script.handles {
        let _ = ffi::tpa_abort(handle);
    }
}

struct Script {
    handles: Vec<c_int>,
}

impl Script {
    fn call(&mut self, choices: &mut Choices<'_>) {
        let byte = choices.byte();
        let handle = self.handle(choices);
        let returned = match byte % 16 {
            0 => self.socket(PROTOCOLS[usize::from(byte / 16) % PROTOCOLS.len()]),
            1 | 2 => set(handle, choices),
            3 => get(handle, choices),
            4 => with_address(choices, |address, len| {
                // SAFETY: the memory has that many bytes.
                unsafe { ffi::tpa_bind(handle, address, len) }
            }),
            5 => ffi::tpa_listen(handle, c_int::from(choices.byte()) - 2),
            6 => self.accept(handle, choices),
            7 => with_address(choices, |address, len| {
                // SAFETY: the memory has that many bytes.
                unsafe { ffi::tpa_connect(handle, address, len) }
            }),
            8 => send(handle, choices),
            9 => receive(handle, choices),
            10 => ffi::tpa_shutdown(handle, c_int::from(choices.byte() % 5) - 1),
            11 => self.end(handle, ffi::tpa_close),
            12 => self.end(handle, ffi::tpa_abort),
            13 => named(choices, |address, len| {
                // SAFETY: the memory has as many bytes as `len` says, or a pointer is null.
                unsafe { ffi::tpa_getsockname(handle, address, len) }
            }),
            14 => info(handle, choices),
            _ => self.poll(choices),
        };
        check_result(returned);
    }

    /// Returns a handle of the script, or any number.
    fn handle(&self, choices: &mut Choices<'_>) -> c_int {
        let at = choices.byte();
        let known = self.handles.get(usize::from(at) % MOST_SOCKETS).copied();
        if at < 240 {
            known.unwrap_or(-1)
        } else {
            c_int::from_ne_bytes([choices.byte(), at, 0, choices.byte()])
        }
    }

    /// Creates a socket. TPA-wide gets a key; TPA as published has none.
    fn socket(&mut self, protocol: tpa_protocol) -> c_int {
        if self.handles.len() >= MOST_SOCKETS {
            return 0;
        }
        let handle = ffi::tpa_socket();
        assert!(handle >= 0, "there is room for a socket");
        do_not_wait(handle);
        let number = (protocol as c_int).to_ne_bytes();
        let (option, value) = match protocol {
            tpa_protocol::TPA_PROTOCOL_WIDE => (tpa_option::TPA_PSK, &KEY[..]),
            _ => (tpa_option::TPA_PROTOCOL, &number[..]),
        };
        let (pointer, len) = (value.as_ptr().cast(), value.len() as u32);
        // SAFETY: the value has that many bytes.
        assert_eq!(unsafe { ffi::tpa_setsockopt(handle, option as c_int, pointer, len) }, 0);
        self.handles.push(handle);
        handle
    }

    fn accept(&mut self, handle: c_int, choices: &mut Choices<'_>) -> c_int {
        let accepted = named(choices, |address, len| {
            // SAFETY: the memory has as many bytes as `len` says, or a pointer is null.
            unsafe { ffi::tpa_accept(handle, address, len) }
        });
        if accepted >= 0 {
            do_not_wait(accepted);
            self.handles.push(accepted);
        }
        accepted
    }

    fn end(&mut self, handle: c_int, how: extern "C" fn(c_int) -> c_int) -> c_int {
        let is_known = self.handles.contains(&handle);
        let returned = how(handle);
        assert!(is_known || returned == -1, "nothing has the handle {handle}");
        self.handles.retain(|other| *other != handle);
        returned
    }

    fn poll(&self, choices: &mut Choices<'_>) -> c_int {
        let count = usize::from(choices.byte() % 5);
        let mut polled: Vec<tpa_pollfd> = (0..count)
            .map(|_| tpa_pollfd { handle: self.handle(choices), events: choices.byte().into(), revents: 0 })
            .collect();
        let pointer = if count == 4 { ptr::null_mut() } else { polled.as_mut_ptr() };
        // SAFETY: there are `count` structures, or the pointer is null.
        let ready = unsafe { ffi::tpa_poll(pointer, count, c_int::from(choices.byte() % 2)) };
        assert!(ready <= count as c_int);
        ready
    }
}

/// Sets TPA_NONBLOCK: a script would not end with calls that wait.
fn do_not_wait(handle: c_int) {
    let one = (1 as c_int).to_ne_bytes();
    // SAFETY: the number has that many bytes.
    unsafe { ffi::tpa_setsockopt(handle, tpa_option::TPA_NONBLOCK as c_int, one.as_ptr().cast(), 4) };
}

/// Checks that a failure has a reason.
fn check_result(returned: c_int) {
    assert!(returned >= -1);
    // SAFETY: it is a text with a final NUL, valid until the next call of this thread.
    let words = unsafe { CStr::from_ptr(ffi::tpa_last_error()) };
    assert!(returned != -1 || !words.is_empty());
    assert!(!words.to_bytes().iter().any(u8::is_ascii_control), "{words:?}");
    assert!(!words.to_string_lossy().contains("a mistake in hopline"), "{words:?}");
}

/// Returns up to 40 bytes.
fn bytes(choices: &mut Choices<'_>) -> Vec<u8> {
    (0..choices.byte() % 41).map(|_| choices.byte()).collect()
}

fn set(handle: c_int, choices: &mut Choices<'_>) -> c_int {
    let option = c_int::from(choices.byte() % 21);
    let mut value = match choices.byte() % 3 {
        0 => bytes(choices),
        1 => c_int::from_ne_bytes([choices.byte(), choices.byte(), 0, choices.byte()]).to_ne_bytes().to_vec(),
        _ => b"hopline-fuzz-peer".to_vec(),
    };
    let names_a_file =
        (tpa_option::TPA_PSK_FILE as c_int..=tpa_option::TPA_KNOWN_PEERS as c_int).contains(&option);
    if names_a_file {
        value.splice(0..0, *b"/nonexistent/");
    }
    // A TCP connection would send arbitrary data to other programs of this machine.
    let calls_by_tcp = (tpa_protocol::TPA_PROTOCOL_TPA_OR_TCP as c_int).to_ne_bytes();
    if option == tpa_option::TPA_PROTOCOL as c_int && value == calls_by_tcp {
        value.pop();
    }
    let pointer = if choices.byte() == 0 { ptr::null() } else { value.as_ptr().cast::<c_void>() };
    // SAFETY: the memory has that many bytes, or the pointer is null.
    let returned = unsafe { ffi::tpa_setsockopt(handle, option, pointer, value.len() as u32) };
    do_not_wait(handle);
    returned
}

fn get(handle: c_int, choices: &mut Choices<'_>) -> c_int {
    let option = c_int::from(choices.byte() % 21);
    let mut memory = Memory::new(usize::from(choices.byte() % 64));
    let mut len = memory.len as u32;
    let returned = match choices.byte() {
        // SAFETY: null pointers are rejected.
        0 => unsafe { ffi::tpa_getsockopt(handle, option, ptr::null_mut(), &raw mut len) },
        // SAFETY: null pointers are rejected.
        1 => unsafe { ffi::tpa_getsockopt(handle, option, memory.pointer(), ptr::null_mut()) },
        // SAFETY: the memory has as many bytes as `len` says.
        _ => unsafe { ffi::tpa_getsockopt(handle, option, memory.pointer(), &raw mut len) },
    };
    assert!(len as usize <= memory.len);
    memory.check();
    returned
}

fn send(handle: c_int, choices: &mut Choices<'_>) -> c_int {
    let data = bytes(choices);
    let pointer = if choices.byte() == 0 { ptr::null() } else { data.as_ptr().cast::<c_void>() };
    // SAFETY: the memory has that many bytes, or the pointer is null.
    let sent = unsafe { ffi::tpa_send(handle, pointer, data.len(), c_int::from(choices.byte() == 1)) };
    assert!(sent <= data.len() as isize);
    sent as c_int
}

fn receive(handle: c_int, choices: &mut Choices<'_>) -> c_int {
    let mut memory = Memory::new(usize::from(choices.byte() % 64));
    let pointer = if choices.byte() == 0 { ptr::null_mut() } else { memory.pointer() };
    // SAFETY: the memory has that many bytes, or the pointer is null.
    let received = unsafe { ffi::tpa_recv(handle, pointer, memory.len, c_int::from(choices.byte() == 1)) };
    assert!(received <= memory.len as isize);
    memory.check();
    received as c_int
}

fn info(handle: c_int, choices: &mut Choices<'_>) -> c_int {
    let room = usize::from(choices.u16() % 400).max(size_of::<usize>());
    let mut memory = Memory::new(room);
    memory.bytes[..size_of::<usize>()].copy_from_slice(&room.to_ne_bytes());
    // SAFETY: the memory begins with its size, is aligned as the structure is, and has that many bytes.
    let returned = unsafe { ffi::tpa_info(handle, memory.pointer().cast::<tpa_info>()) };
    memory.check();
    returned
}

/// Calls with an address of this host, or of an unknown family, and a length that may be wrong.
fn with_address(choices: &mut Choices<'_>, call: impl FnOnce(*const libc::sockaddr, u32) -> c_int) -> c_int {
    let mut memory = bytes(choices);
    let family = choices.pick(&[libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, 99]);
    let loopback: &[u8] = match family {
        libc::AF_INET => &[127, 0, 0, 1],
        _ => &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    };
    for (place, byte) in memory.iter_mut().zip((family as u16).to_ne_bytes()) {
        *place = byte;
    }
    for (place, byte) in memory.iter_mut().skip(4).zip(loopback) {
        *place = *byte;
    }
    let pointer = if choices.byte() == 0 { ptr::null() } else { memory.as_ptr().cast() };
    call(pointer, memory.len() as u32)
}

/// Calls a function that returns an address.
fn named(choices: &mut Choices<'_>, call: impl FnOnce(*mut libc::sockaddr, *mut u32) -> c_int) -> c_int {
    let mut memory = Memory::new(usize::from(choices.byte() % 40));
    let mut len = memory.len as u32;
    let pointer = memory.pointer().cast();
    let returned = match choices.byte() {
        0 => call(ptr::null_mut(), &raw mut len),
        1 => call(pointer, ptr::null_mut()),
        _ => call(pointer, &raw mut len),
    };
    memory.check();
    returned
}

/// Memory that a callee may use. The bytes behind it must not change.
struct Memory {
    bytes: Box<[u8]>,
    len: usize,
}

impl Memory {
    /// With AddressSanitizer no bytes follow, so that it detects a write there.
    fn new(len: usize) -> Self {
        let behind = if cfg!(feature = "libfuzzer") { 0 } else { 16 };
        Self { bytes: vec![CANARY; len + behind].into_boxed_slice(), len }
    }

    fn pointer(&mut self) -> *mut c_void {
        self.bytes.as_mut_ptr().cast()
    }

    fn check(&self) {
        assert!(
            self.bytes[self.len..].iter().all(|byte| *byte == CANARY),
            "written beyond {} bytes",
            self.len
        );
    }
}
