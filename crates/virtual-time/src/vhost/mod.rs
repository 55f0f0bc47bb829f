//! Network device of a host: the back-end of a vhost-user connection (`docs/interop/vhost-user.rst` of QEMU) to the
//! virtio-net driver of the host's kernel (Virtual I/O Device 1.2 §5.1).
//!
//! The kernel shares its memory as a file. The device reads and writes it with system calls: a few for each frame, which
//! takes less than the messages that go with it, and no memory is mapped that another process changes.
//!
//! The crates of rust-vmm do not fit: `vhost` answers messages by itself, while here the answer to a kick has to wait for
//! the scheduler, and has no notifications in band; `virtio-queue` works on mapped memory.

pub mod device;
pub mod memory;
pub mod message;
pub mod ring;
