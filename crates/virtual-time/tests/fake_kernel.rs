//! Kernel of a test: keeps both protocols as user-mode Linux does, and runs a role in the place of programs.

use hopline_virtual_time::guest::plan::{PLAN_FILE, Plan, ProgramEnd, end_file, errors_file, output_file};
use hopline_virtual_time::time_travel::{MESSAGE_LEN, Message, Operation};
use hopline_virtual_time::vhost::message::{HEADER_LEN, request};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

/// Address of the memory, and its length. Queue 0 is at its beginning, queue 1 at 4096, buffers from 32768 on.
const MEMORY: u64 = 0x10_0000;
const MEMORY_LEN: u64 = 0x1_0000;
const QUEUE_SIZE: u32 = 4;
const BUFFERS: u64 = 0x8000;
const BUFFER_LEN: u32 = 2048;
/// Flags of a message that asks for an acknowledgment.
const NEED_REPLY: u32 = 1 | 1 << 3;
/// Length of the header before a frame.
const FRAME_HEADER: usize = 12;

struct Kernel {
    time: UnixStream,
    net: UnixStream,
    interrupts: OwnedFd,
    memory: File,
    mac: [u8; 6],
    sequence: u32,
    now: u64,
}

/// Is a kernel in the present folder. The first program of the plan is its role, with the socket of its only interface.
pub(crate) fn run() -> ! {
    let plan: Plan = serde_json::from_slice(&fs::read(PLAN_FILE).unwrap()).unwrap();
    let program = &plan.programs[0];
    let mut kernel = Kernel::boot(program.command.get(1).map_or("net", String::as_str));
    let output = match &*program.command[0] {
        "send" => kernel.send(),
        "receive" => kernel.receive(),
        "spin" => loop {
            std::thread::park();
        },
        "cheat" => kernel.cheat(),
        role => {
            println!("Kernel panic: no {role}");
            std::process::exit(1);
        }
    };
    let end =
        ProgramEnd { code: Some(0), signal: None, error: None, was_stopped: false, ended_ns: kernel.now };
    fs::write(output_file(&program.name), output).unwrap();
    fs::write(errors_file(&program.name), "").unwrap();
    fs::write(end_file(&program.name), serde_json::to_vec(&end).unwrap()).unwrap();
    std::process::exit(0);
}

impl Kernel {
    fn boot(interface: &str) -> Self {
        let time = UnixStream::connect("time").unwrap();
        let memory = File::from(memfd_create("memory", MemfdFlags::CLOEXEC).unwrap());
        memory.set_len(MEMORY_LEN).unwrap();
        // The connection to the device comes later, as that of a driver does.
        let mut start = Self::message(Operation::Start, 1, 0);
        (&time).write_all(&start.emit()).unwrap();
        let mut bytes = [0; MESSAGE_LEN];
        (&time).read_exact(&mut bytes).unwrap();
        start = Message::parse(&bytes).unwrap();
        assert_eq!((start.operation, start.sequence), (Operation::Ack, 1));
        let net = UnixStream::connect(interface).unwrap();
        let (interrupts, theirs) = UnixStream::pair().unwrap();
        let mut kernel =
            Self { time, net, interrupts: interrupts.into(), memory, mac: [0; 6], sequence: 1, now: 0 };
        kernel.set_up(theirs.into());
        kernel
    }

    const fn message(operation: Operation, sequence: u32, time: u64) -> Message {
        Message { operation, sequence, time }
    }

    /// Sets the device up.
    fn set_up(&mut self, interrupts: OwnedFd) {
        let [features, protocol] = [request::GET_FEATURES, request::GET_PROTOCOL_FEATURES]
            .map(|request| u64::from_ne_bytes(self.ask(request, &[]).try_into().unwrap()));
        self.tell(request::SET_FEATURES, &features.to_ne_bytes());
        self.tell(request::SET_PROTOCOL_FEATURES, &protocol.to_ne_bytes());
        self.tell_with(request::SET_BACKEND_REQ_FD, &[], &[interrupts.as_fd()]);
        let asked: Vec<u8> = [0u32, 6, 0].iter().flat_map(|n| n.to_ne_bytes()).chain([0; 6]).collect();
        self.mac = self.ask(request::GET_CONFIG, &asked)[12..].try_into().unwrap();
        let table = [1, MEMORY, MEMORY_LEN, MEMORY, 0].map(u64::to_ne_bytes).concat();
        let memory = self.memory.try_clone().unwrap();
        self.tell_with(request::SET_MEM_TABLE, &table, &[memory.as_fd()]);
        for queue in 0..2u32 {
            let base = MEMORY + u64::from(queue) * 4096;
            let state = |value: u32| [queue, value].map(u32::to_ne_bytes).concat();
            let addresses = [u64::from(queue), base, base + 1024, base + 2048, u64::MAX];
            self.tell(request::SET_VRING_NUM, &state(QUEUE_SIZE));
            self.tell(request::SET_VRING_BASE, &state(0));
            self.tell(request::SET_VRING_ADDR, &addresses.map(u64::to_ne_bytes).concat());
            self.tell(request::SET_VRING_ENABLE, &state(1));
        }
    }

    /// Sends one frame to all, at 21 ms, and ends at 1 s.
    fn send(&mut self) -> String {
        self.wait_until(21_000_000);
        let frame = [&[0xff; 6][..], &self.mac, &[0x88, 0xb5], &[7; 50]].concat();
        self.memory.write_all_at(&[&[0; FRAME_HEADER][..], &frame].concat(), BUFFERS).unwrap();
        self.offer(1, (FRAME_HEADER + frame.len()) as u32, 0);
        self.say(Operation::Update, self.now);
        self.tell(request::VRING_KICK, &[1u32, 0].map(u32::to_ne_bytes).concat());
        self.wait_until(1_000_000_000);
        format!("sent {} bytes\n", frame.len())
    }

    /// Waits for a frame up to 1 s.
    fn receive(&mut self) -> String {
        self.offer(0, BUFFER_LEN, 2);
        self.wait_until(1_000_000_000);
        let at = self.now;
        let used: [u8; 8] = self.bytes(1024 + 4);
        let len = u32::from_ne_bytes(used[4..].try_into().unwrap()) as usize;
        if len == 0 {
            return "nothing\n".into();
        }
        let frame: [u8; BUFFER_LEN as usize] = self.bytes(BUFFERS);
        self.wait_until(1_000_000_000);
        format!("{:02x?} of {len} bytes at {at} ns\n", &frame[FRAME_HEADER..len][6..15])
    }

    /// Claims a time that it was not granted.
    fn cheat(&mut self) -> String {
        self.wait_until(1_000_000);
        self.say(Operation::Update, 5_000_000_000);
        String::new()
    }

    fn bytes<const N: usize>(&self, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    /// Makes the buffer available in a queue.
    fn offer(&self, queue: u64, len: u32, flags: u16) {
        let base = queue * 4096;
        let descriptor =
            [&(MEMORY + BUFFERS).to_ne_bytes()[..], &len.to_ne_bytes(), &flags.to_ne_bytes()].concat();
        self.memory.write_all_at(&descriptor, base).unwrap();
        self.memory.write_all_at(&1u16.to_ne_bytes(), base + 2048 + 2).unwrap();
    }

    /// Waits for the turn at a time, or after an interrupt.
    fn wait_until(&mut self, time: u64) {
        self.say(Operation::Request, time);
        self.say(Operation::Wait, u64::MAX);
        let mut has_run = false;
        while !has_run {
            match readable(&[self.time.as_fd(), self.interrupts.as_fd()]) {
                0 => has_run = self.answer() == Operation::Run,
                _ => self.note_interrupt(),
            }
        }
    }

    /// Handles a message of the scheduler.
    fn answer(&mut self) -> Operation {
        let message = self.read_message();
        if message.operation == Operation::Run {
            self.now = message.time;
        }
        let ack = Self::message(Operation::Ack, message.sequence, 0);
        self.time.write_all(&ack.emit()).unwrap();
        message.operation
    }

    /// Asks for the time, and to run at once.
    fn note_interrupt(&mut self) {
        let mut call = [0; HEADER_LEN + 8];
        let mut interrupts = UnixStream::from(self.interrupts.try_clone().unwrap());
        interrupts.read_exact(&mut call).unwrap();
        let now = self.say(Operation::Get, 0);
        self.say(Operation::Request, now);
        let reply = [4u32, 1 | 1 << 2, 8, 0, 0].map(u32::to_ne_bytes).concat();
        interrupts.write_all(&reply).unwrap();
    }

    fn read_message(&mut self) -> Message {
        let mut bytes = [0; MESSAGE_LEN];
        self.time.read_exact(&mut bytes).unwrap();
        Message::parse(&bytes).unwrap()
    }

    /// Sends a message to the scheduler, and returns the time of its ACK.
    fn say(&mut self, operation: Operation, time: u64) -> u64 {
        self.sequence += 1;
        let message = Self::message(operation, self.sequence, time);
        self.time.write_all(&message.emit()).unwrap();
        let ack = self.read_message();
        assert_eq!((ack.operation, ack.sequence), (Operation::Ack, self.sequence));
        ack.time
    }

    fn tell(&mut self, request: u32, payload: &[u8]) {
        self.tell_with(request, payload, &[]);
    }

    fn tell_with(&mut self, request: u32, payload: &[u8], descriptors: &[BorrowedFd<'_>]) {
        self.write(request, NEED_REPLY, payload, descriptors);
        assert_eq!(self.read_reply(), [0; 8], "request {request}");
    }

    fn ask(&mut self, request: u32, payload: &[u8]) -> Vec<u8> {
        self.write(request, 1, payload, &[]);
        self.read_reply()
    }

    fn write(&mut self, request: u32, flags: u32, payload: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let header = [request, flags, payload.len() as u32].map(u32::to_ne_bytes).concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let bytes = [header, payload.to_vec()].concat();
        sendmsg(&self.net, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    /// Waits for a reply of the device. As Linux does, it looks at the device before it looks at the time.
    fn read_reply(&mut self) -> Vec<u8> {
        while readable(&[self.net.as_fd(), self.time.as_fd()]) == 1 {
            self.answer();
        }
        let mut header = [0; HEADER_LEN];
        self.net.read_exact(&mut header).unwrap();
        let mut payload = vec![0; u32::from_ne_bytes(header[8..].try_into().unwrap()) as usize];
        self.net.read_exact(&mut payload).unwrap();
        payload
    }
}

/// Waits until one of the descriptors is readable, and returns the number of the first one.
fn readable(fds: &[BorrowedFd<'_>]) -> usize {
    let mut fds: Vec<_> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    poll(&mut fds, None).unwrap();
    fds.iter().position(|fd| !fd.revents().is_empty()).unwrap()
}
