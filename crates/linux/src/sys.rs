//! System calls that no crate wraps safely.

#![allow(
    unsafe_code,
    reason = "ioctl, unshare, pthread_setschedparam, sched_setattr, bind, getsockopt, recvmmsg and getrusage are C"
)]

use libc::{c_char, c_int, c_ulong, ifreq, rtentry, sockaddr};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::ffi::CString;
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Lowest real-time priority: above every ordinary thread, below other real-time threads.
const PRIORITY: c_int = 1;

/// Moves the calling thread to a new network namespace.
pub(crate) fn leave_network_namespace() -> io::Result<()> {
    // SAFETY: only CLONE_FILES is dangerous, by dividing the table of descriptors between threads.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Moves the process, which has one thread, to a new mount namespace.
pub(crate) fn leave_mount_namespace() -> io::Result<()> {
    // SAFETY: only CLONE_FILES is dangerous, by dividing the table of descriptors between threads.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    Ok(())
}

/// Moves the process, which has one thread, to a new user namespace, with all privileges there.
pub(crate) fn leave_user_namespace() -> io::Result<()> {
    // SAFETY: only CLONE_FILES is dangerous, by dividing the table of descriptors between threads.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    Ok(())
}

/// Makes the process that `command` starts run in the network namespace, and end with the thread that starts it.
pub(crate) fn begin_in_namespace(command: &mut Command, namespace: OwnedFd) {
    let enter = move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        set_parent_process_death_signal(Some(Signal::TERM))?;
        Ok(())
    };
    // SAFETY: between fork and exec `enter` makes two system calls, and touches no memory but its own descriptor.
    unsafe { command.pre_exec(enter) };
}

/// Makes the process that `command` starts end with the thread that starts it.
pub(crate) fn end_with_this_thread(command: &mut Command) {
    let request = || Ok(set_parent_process_death_signal(Some(Signal::TERM))?);
    // SAFETY: between fork and exec `request` makes a system call, and touches no memory.
    unsafe { command.pre_exec(request) };
}

/// Makes the process that `command` starts have the same addresses in each run (`ADDR_NO_RANDOMIZE`), and end at once with the
/// thread that starts it.
pub fn make_repeatable(command: &mut Command) {
    let request = || {
        // SAFETY: it takes a number, and changes nothing but the flags of this process.
        let before = unsafe { libc::personality(0xffff_ffff) };
        answer(before)?;
        let flags = (before | libc::ADDR_NO_RANDOMIZE) as c_ulong;
        // SAFETY: as above.
        answer(unsafe { libc::personality(flags) })?;
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    };
    // SAFETY: between fork and exec `request` makes system calls, and touches no memory.
    unsafe { command.pre_exec(request) };
}

/// Layer of the packets of an interface that a process carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// IP packets.
    Tun,
    /// Ethernet frames.
    Tap,
}

/// Attaches `tun`, an open `/dev/net/tun`, to an interface. Returns the interface's name.
pub(crate) fn attach_tun(tun: BorrowedFd<'_>, name: &str, layer: Layer) -> io::Result<String> {
    let mut request = request(name)?;
    let kind = match layer {
        Layer::Tun => libc::IFF_TUN,
        Layer::Tap => libc::IFF_TAP,
    };
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as i16;
    ioctl(tun, libc::TUNSETIFF as c_ulong, &mut request)?;
    Ok(name_of(&request))
}

/// Sets whether the interface of `tun` persists after its last descriptor is closed (`TUNSETPERSIST`).
pub(crate) fn set_tun_lifetime(tun: BorrowedFd<'_>, persists: bool) -> io::Result<()> {
    let request = libc::TUNSETPERSIST as libc::Ioctl;
    let persists = c_ulong::from(persists);
    // SAFETY: the descriptor is open; the request takes a number.
    answer(unsafe { libc::ioctl(tun.as_raw_fd(), request, persists) })
}

pub(crate) fn set_address(socket: impl AsFd, name: &str, address: Ipv4Addr) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_addr = socket_address(address);
    ioctl(socket.as_fd(), libc::SIOCSIFADDR, &mut request)
}

pub(crate) fn set_netmask(socket: impl AsFd, name: &str, mask: Ipv4Addr) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_netmask = socket_address(mask);
    ioctl(socket.as_fd(), libc::SIOCSIFNETMASK, &mut request)
}

/// Returns the IPv4 address of the interface `name`.
pub(crate) fn address(socket: impl AsFd, name: &str) -> io::Result<Ipv4Addr> {
    let mut request = request(name)?;
    ioctl(socket.as_fd(), libc::SIOCGIFADDR, &mut request)?;
    // SAFETY: the kernel has written a `sockaddr`, and any bytes are one.
    let address = unsafe { request.ifr_ifru.ifru_addr };
    let [_, _, a, b, c, d, ..] = address.sa_data.map(|byte| byte as u8);
    Ok(Ipv4Addr::new(a, b, c, d))
}

/// Returns the MAC address of the interface `name`; `None` if it is not Ethernet.
pub(crate) fn ethernet_address(socket: impl AsFd, name: &str) -> io::Result<Option<[u8; 6]>> {
    let mut request = request(name)?;
    ioctl(socket.as_fd(), libc::SIOCGIFHWADDR, &mut request)?;
    // SAFETY: the kernel has written a `sockaddr`, and any bytes are one.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    let [a, b, c, d, e, f, ..] = address.sa_data.map(|byte| byte as u8);
    Ok((address.sa_family == libc::ARPHRD_ETHER).then_some([a, b, c, d, e, f]))
}

/// Sets the MAC address of the interface `name`.
pub(crate) fn set_ethernet_address(socket: impl AsFd, name: &str, address: [u8; 6]) -> io::Result<()> {
    let mut request = request(name)?;
    let mut hardware = sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
    for (to, from) in hardware.sa_data.iter_mut().zip(address) {
        *to = from as c_char;
    }
    request.ifr_ifru.ifru_hwaddr = hardware;
    ioctl(socket.as_fd(), libc::SIOCSIFHWADDR, &mut request)
}

/// Binds a packet socket to all frames of the interface with this index.
pub(crate) fn bind_to_frames(socket: impl AsFd, interface: u32) -> io::Result<()> {
    // SAFETY: a C structure of numbers, for which all zeros are a value.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface as c_int;
    let (fd, len) = (socket.as_fd().as_raw_fd(), size_of::<libc::sockaddr_ll>() as libc::socklen_t);
    // SAFETY: the descriptor is open, and the kernel reads `len` bytes, the size of `address`.
    answer(unsafe { libc::bind(fd, (&raw const address).cast(), len) })
}

pub(crate) fn set_mtu(socket: impl AsFd, name: &str, bytes: u16) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_mtu = bytes.into();
    ioctl(socket.as_fd(), libc::SIOCSIFMTU, &mut request)
}

/// Multicast at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Multicast {
    /// It does not.
    Off,
    /// It does.
    On,
}

/// Brings an interface up. Without multicast it sends no membership reports.
pub(crate) fn bring_up(socket: impl AsFd, name: &str, multicast: Multicast) -> io::Result<()> {
    let mut request = request(name)?;
    ioctl(socket.as_fd(), libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the kernel has written flags, and any number is some.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let multicast_flag = libc::IFF_MULTICAST as i16;
    let up = flags | (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    request.ifr_ifru.ifru_flags = match multicast {
        Multicast::Off => up & !multicast_flag,
        Multicast::On => up | multicast_flag,
    };
    ioctl(socket.as_fd(), libc::SIOCSIFFLAGS, &mut request)
}

pub(crate) fn add_route(
    socket: impl AsFd,
    name: &str,
    destination: Ipv4Addr,
    mask: Ipv4Addr,
) -> io::Result<()> {
    let name = CString::new(name)?;
    // SAFETY: a C structure of numbers and pointers, for which all zeros are a value.
    let mut route: rtentry = unsafe { mem::zeroed() };
    route.rt_dst = socket_address(destination);
    route.rt_genmask = socket_address(mask);
    route.rt_flags = libc::RTF_UP;
    // `name` outlives the call, and the kernel only reads it.
    route.rt_dev = name.as_ptr().cast_mut();
    ioctl(socket.as_fd(), libc::SIOCADDRT, &mut route)
}

/// Sets `SCHED_FIFO` for the calling thread.
pub(crate) fn become_real_time() -> io::Result<()> {
    schedule(libc::SCHED_FIFO, PRIORITY)
}

/// Sets `SCHED_OTHER` for the calling thread.
pub(crate) fn become_ordinary() -> io::Result<()> {
    schedule(libc::SCHED_OTHER, 0)
}

fn schedule(policy: c_int, priority: c_int) -> io::Result<()> {
    // SAFETY: a C structure of numbers, for which all zeros are a value; musl has more of them than glibc.
    let mut parameter: libc::sched_param = unsafe { mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: it takes nothing, and cannot fail.
    let this = unsafe { libc::pthread_self() };
    // musl refuses sched_setscheduler(2), which is of a whole process in POSIX.
    // SAFETY: the calling thread is alive, and the parameter is only read, during the call.
    match unsafe { libc::pthread_setschedparam(this, policy, &raw const parameter) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Sets the time slice of the calling thread, unless it runs in real time.
pub(crate) fn set_time_slice(turn: Duration) -> io::Result<()> {
    // SAFETY: a C structure of numbers, for which all zeros are a value.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let len = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `len` bytes, the size of `attributes`.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, len, 0) };
    answer(got as c_int)?;
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.sched_runtime = turn.as_nanos() as u64;
    // SAFETY: the kernel only reads `attributes`, which begin with their size.
    answer(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } as c_int)
}

/// Returns the kernel's statistics of a TCP connection (`TCP_INFO`).
pub fn tcp_info(socket: impl AsFd) -> io::Result<libc::tcp_info> {
    // SAFETY: a C structure of numbers, for which all zeros are a value.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the kernel writes at most `len` bytes, the size of `info`.
    let result = unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut len)
    };
    answer(result).map(|()| info)
}

/// Stops the reporting of ICMP errors on `socket`.
pub fn ignore_icmp_errors(socket: impl AsFd) -> io::Result<()> {
    // An IPv4 socket has no such IPv6 option.
    let _ = set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 0);
    set_option(&socket, libc::IPPROTO_IP, libc::IP_RECVERR, 0)
}

/// Sets a numeric socket option.
pub fn set_option(socket: impl AsFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let len = size_of::<c_int>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the kernel reads `len` bytes, the size of `value`.
    answer(unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), len) })
}

/// Sets a socket option to these bytes, which must have the format of `option`.
pub(crate) fn set_option_bytes(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
    value: &[u8],
) -> io::Result<()> {
    let (fd, len) = (socket.as_fd().as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the descriptor is open, and the kernel reads `len` bytes, the length of `value`.
    answer(unsafe { libc::setsockopt(fd, level, option, value.as_ptr().cast(), len) })
}

/// Reads a socket option into `value`. Fails unless the kernel fills all of it.
pub(crate) fn option_bytes(
    socket: impl AsFd,
    level: c_int,
    option: c_int,
    value: &mut [u8],
) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let mut len = value.len() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `len` bytes, the length of `value`.
    answer(unsafe { libc::getsockopt(fd, level, option, value.as_mut_ptr().cast(), &raw mut len) })?;
    if len as usize == value.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Bytes in the buffer.
    pub len: usize,
    /// `true` if the datagram was truncated.
    pub truncated: bool,
}

/// Receives waiting datagrams, at most one for each buffer. Does not block: an empty queue is an error.
pub fn receive_many(socket: impl AsFd, buffers: &mut [Box<[u8]>]) -> io::Result<Vec<Datagram>> {
    let mut parts: Vec<libc::iovec> = buffers
        .iter_mut()
        .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() })
        .collect();
    let message = |part: &mut libc::iovec| {
        // SAFETY: a C structure of numbers and pointers, for which all zeros are a value.
        let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message
    };
    let mut messages: Vec<libc::mmsghdr> = parts.iter_mut().map(message).collect();
    let (fd, count) = (socket.as_fd().as_raw_fd(), messages.len() as libc::c_uint);
    let (first, no_limit) = (messages.as_mut_ptr(), std::ptr::null_mut());
    let flags = libc::MSG_DONTWAIT as _; // unsigned in musl
    // SAFETY: the descriptor is open; `messages` has `count` elements, each with one part that is a buffer of ours alone; all of them
    // outlive the call.
    let received = unsafe { libc::recvmmsg(fd, first, count, flags, no_limit) };
    answer(received)?;
    let datagram = |message: &libc::mmsghdr| Datagram {
        len: message.msg_len as usize,
        truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
    };
    Ok(messages[..received as usize].iter().map(datagram).collect())
}

/// Registers `descriptor` with the current runtime, which wakes tasks when it becomes readable.
#[cfg(feature = "tokio")]
pub fn watch(descriptor: OwnedFd) -> io::Result<tokio::io::unix::AsyncFd<OwnedFd>> {
    use tokio::io::{Interest, unix::AsyncFd};
    // SAFETY: an `OwnedFd` is open for as long as it lives, and always the same descriptor.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?)
}

/// Binds a packet socket to one interface and one protocol (packet(7)).
pub fn bind_to_interface(socket: impl AsFd, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: a C structure of numbers, for which all zeros are a value.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as c_int;
    let (fd, len) = (socket.as_fd().as_raw_fd(), size_of::<libc::sockaddr_ll>() as libc::socklen_t);
    // SAFETY: the descriptor is open, and the kernel reads `len` bytes, the size of `address`.
    answer(unsafe { libc::bind(fd, (&raw const address).cast(), len) })
}

/// Attaches a classic BPF program, which selects packets and limits their captured length.
pub fn attach_filter(socket: impl AsFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    let (fd, size) = (socket.as_fd().as_raw_fd(), size_of::<libc::sock_fprog>() as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
    // SAFETY: the descriptor is open; the kernel reads `size` bytes, the size of `program`, and `len` instructions, which outlive the call.
    answer(unsafe { libc::setsockopt(fd, level, option, (&raw const program).cast(), size) })
}

/// Returns the bytes written to a TCP socket that the peer has not acknowledged (`SIOCOUTQ`).
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: c_int = 0;
    ioctl(socket.as_fd(), libc::TIOCOUTQ as c_ulong, &mut bytes)?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Returns the bytes written to a TCP socket that have not been sent (`SIOCOUTQNSD`).
pub(crate) fn not_sent(socket: impl AsFd) -> io::Result<u64> {
    /// From linux/sockios.h; libc lacks it.
    const SIOCOUTQNSD: c_ulong = 0x894b;
    let mut bytes: c_int = 0;
    ioctl(socket.as_fd(), SIOCOUTQNSD, &mut bytes)?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Returns the resources used by the process so far.
pub fn resource_usage() -> io::Result<libc::rusage> {
    // SAFETY: a C structure of numbers, for which all zeros are a value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one `rusage`.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    answer(result).map(|()| usage)
}

/// Returns the argument of requests about the interface `name`.
fn request(name: &str) -> io::Result<ifreq> {
    // SAFETY: a C structure of numbers and pointers, for which all zeros are a value.
    let mut request: ifreq = unsafe { mem::zeroed() };
    // The last byte must stay zero.
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    Ok(request)
}

fn name_of(request: &ifreq) -> String {
    let bytes: Vec<u8> = request.ifr_name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The layout of `sockaddr_in`: two bytes of port, four of address.
fn socket_address(address: Ipv4Addr) -> sockaddr {
    let mut data = [0; 14];
    for (to, from) in data[2..6].iter_mut().zip(address.octets()) {
        *to = from as c_char;
    }
    sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}

/// Calls ioctl(2). `T` must be the argument type of `request`. All callers are above: they use `ifreq` or `rtentry` as in
/// netdevice(7) and the predecessor of rtnetlink, or `int` as in tcp(7).
fn ioctl<T>(fd: BorrowedFd<'_>, request: c_ulong, argument: &mut T) -> io::Result<()> {
    // It is an `int` in musl; only its bits matter.
    let request = request as libc::Ioctl;
    // SAFETY: the descriptor is open; `argument` is of the type that belongs to the request, and is ours alone.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(argument)) };
    answer(result)
}

fn answer(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
