//! System calls on the host under test.

use crate::host::Host;
use crate::script::{Call, Expression};
use crate::socket::{Socket, SocketKind, SocketOptions};
use crate::tx_timestamps::ReceiveError;
use hopline_core::Length;
use hopline_transport::tcp::{SendError, State};

/// Outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It returned a value.
    Returned(i64),
    /// It returned −1 and set `errno`.
    Failed(&'static str),
    /// It blocks.
    Blocked,
    /// The runner does not have it, or this use of it.
    NotApplicable(String),
}

use Outcome::{Blocked, Failed, NotApplicable, Returned};

/// Flags of send and receive calls that change nothing for one connection in virtual time.
const HARMLESS_FLAGS: [&str; 4] = ["MSG_DONTWAIT", "MSG_NOSIGNAL", "MSG_PEEK", "MSG_TRUNC"];
/// Flags of send calls that the endpoint has.
const SEND_FLAGS: [&str; 2] = ["MSG_EOR", "MSG_MORE"];

impl Host {
    /// Makes a call, or tries a blocked one again.
    pub(crate) fn call(&mut self, call: &Call) -> Outcome {
        let outcome = self.dispatch(call);
        self.drain();
        outcome
    }

    fn dispatch(&mut self, call: &Call) -> Outcome {
        let arguments = call.arguments.as_slice();
        match call.name.as_str() {
            "socket" => return self.socket(call),
            "epoll_create" | "epoll_create1" | "epoll_ctl" | "epoll_wait" => return not("epoll"),
            "pipe" | "splice" => return not(&format!("the call {}", call.name)),
            "open" => return call.result.integer().map_or_else(|| not("a file without a number"), Returned),
            "poll" => return self.poll(call),
            "sleep" | "usleep" => return Returned(0),
            _ => {}
        }
        let Some(fd) = arguments.first().and_then(Expression::integer) else {
            return not(&format!("the call {}", call.name));
        };
        if !self.sockets.contains_key(&fd) {
            return Failed("EBADF");
        }
        if is_null(arguments.get(1))
            && matches!(call.name.as_str(), "read" | "recv" | "recvfrom" | "write" | "send" | "sendto")
        {
            return Failed("EFAULT");
        }
        match call.name.as_str() {
            "bind" => Returned(0),
            "listen" => self.listen(fd),
            "connect" => self.connect_socket(fd),
            "accept" | "accept4" => self.accept(fd, call),
            "read" | "recv" | "recvfrom" => self.receive(fd, length_of(arguments.get(2)), arguments.get(3)),
            "readv" => self.receive(fd, vector_length(arguments.get(1)), None),
            "recvmsg" => self.receive_message(fd, call),
            "write" | "send" => self.send(fd, length_of(arguments.get(2)), arguments.get(3)),
            "sendto" => self.send(fd, length_of(arguments.get(2)), arguments.get(3)),
            "writev" => self.send(fd, vector_length(arguments.get(1)), None),
            "sendmsg" => self.send_message(fd, call),
            "sendfile" => self.send(fd, length_of(arguments.get(3)), None),
            "close" => self.close(fd),
            "shutdown" => self.shutdown(fd, arguments.get(1)),
            "fcntl" => self.control_flags(fd, arguments),
            "setsockopt" => self.set_option(fd, arguments),
            "getsockopt" => self.get_option(fd, arguments),
            "ioctl" => self.input_output_control(fd, arguments),
            other => not(&format!("the call {other}")),
        }
    }

    fn socket(&mut self, call: &Call) -> Outcome {
        let Some(kind) = call.arguments.get(1) else { return not("a socket without a type") };
        if kind.has("SOCK_DGRAM") || kind.has("SOCK_RAW") || kind.has("SOCK_SEQPACKET") {
            return not("sockets other than TCP");
        }
        if call
            .arguments
            .get(2)
            .is_some_and(|protocol| protocol.has("IPPROTO_MPTCP") || protocol.has("IPPROTO_SCTP"))
        {
            return not("sockets other than TCP");
        }
        let nonblocking = kind.has("SOCK_NONBLOCK");
        let fd = self.free_descriptor(call);
        let options = SocketOptions { nonblocking, ..SocketOptions::default() };
        self.sockets.insert(fd, Socket { options, kind: SocketKind::New, listens_since: 0 });
        Returned(fd)
    }

    /// Returns the descriptor that the script names. Descriptors are names: a later socket may take over that of an earlier
    /// one.
    fn free_descriptor(&self, call: &Call) -> i64 {
        let named = call.result.integer().filter(|fd| *fd >= 0);
        // 0, 1 and 2 are open.
        named.unwrap_or_else(|| (3..).find(|fd| !self.sockets.contains_key(fd)).unwrap_or(i64::MAX))
    }

    fn listen(&mut self, fd: i64) -> Outcome {
        if let Some(socket) = self.sockets.get_mut(&fd) {
            socket.listens_since = self.connections.len();
            match socket.kind {
                SocketKind::New => socket.kind = SocketKind::Listener,
                SocketKind::Listener => {}
                SocketKind::Connection(_) => return Failed("EINVAL"),
            }
        }
        Returned(0)
    }

    fn connect_socket(&mut self, fd: i64) -> Outcome {
        let socket = self.sockets[&fd].clone();
        match socket.kind {
            SocketKind::Listener => Failed("EISCONN"),
            SocketKind::New => match self.connect(&socket.options) {
                Err(reason) => NotApplicable(reason),
                Ok(id) => {
                    if let Some(socket) = self.sockets.get_mut(&fd) {
                        socket.kind = SocketKind::Connection(id);
                    }
                    if socket.options.nonblocking { Failed("EINPROGRESS") } else { Blocked }
                }
            },
            SocketKind::Connection(id) => {
                let connection = &mut self.connections[id];
                if let Some(error) = connection.error.take() {
                    Failed(error)
                } else if connection.opened && socket.options.nonblocking {
                    Failed("EISCONN")
                } else if connection.opened {
                    Returned(0)
                } else if socket.options.nonblocking {
                    Failed("EALREADY")
                } else {
                    Blocked
                }
            }
        }
    }

    fn accept(&mut self, fd: i64, call: &Call) -> Outcome {
        let socket = &self.sockets[&fd];
        if socket.kind != SocketKind::Listener {
            return Failed("EINVAL");
        }
        let ready = self.connections.iter().position(|c| c.listener == Some(fd) && c.opened);
        let Some(id) = ready else {
            return if socket.options.nonblocking { Failed("EAGAIN") } else { Blocked };
        };
        let nonblocking = call.arguments.get(3).is_some_and(|flags| flags.has("SOCK_NONBLOCK"));
        let options = SocketOptions { nonblocking, ..socket.options.clone() };
        self.connections[id].listener = None;
        let fd = self.free_descriptor(call);
        self.sockets.insert(fd, Socket { options, kind: SocketKind::Connection(id), listens_since: 0 });
        Returned(fd)
    }

    fn receive(&mut self, fd: i64, len: Option<u64>, flags: Option<&Expression>) -> Outcome {
        if let Some(reason) = refused_flag(flags) {
            return not(reason);
        }
        let Some(len) = len else { return not("a read without a length") };
        let socket = &self.sockets[&fd];
        let SocketKind::Connection(id) = socket.kind else { return Failed("ENOTCONN") };
        let dont_wait = flags.is_some_and(|flags| flags.has("MSG_DONTWAIT"));
        let nonblocking = socket.options.nonblocking || dont_wait;
        let connection = &mut self.connections[id];
        if connection.readable() > 0 {
            let peek = flags.is_some_and(|flags| flags.has("MSG_PEEK"));
            return Returned(connection.read(len, peek) as i64);
        }
        match connection.error.take() {
            Some(error) => Failed(error),
            None if connection.is_at_end() => Returned(0),
            None if nonblocking => Failed("EAGAIN"),
            None => Blocked,
        }
    }

    fn receive_message(&mut self, fd: i64, call: &Call) -> Outcome {
        let message = call.arguments.get(1);
        if call.arguments.get(2).is_some_and(|flags| flags.has("MSG_ERRQUEUE")) {
            return self.receive_report(fd, message);
        }
        let control = message.and_then(|message| message.member("msg_control"));
        let Some(Expression::Array(items)) = control else {
            return self.receive(fd, message_length(message), call.arguments.get(2));
        };
        let is_inquiry =
            |item: &Expression| item.member("cmsg_type").is_some_and(|kind| kind.has("TCP_CM_INQ"));
        if !items.iter().all(is_inquiry) {
            return not("ancillary data");
        }
        let outcome = self.receive(fd, message_length(message), call.arguments.get(2));
        let unread = self.unread_with_fin(fd);
        let differs =
            |item: &Expression| item.member("cmsg_data").and_then(Expression::integer) != Some(unread);
        match outcome {
            Returned(_) if items.iter().any(differs) => Failed("another number of unread bytes"),
            other => other,
        }
    }

    /// Receives from the error queue.
    fn receive_report(&mut self, fd: i64, message: Option<&Expression>) -> Outcome {
        let SocketKind::Connection(id) = self.sockets[&fd].kind else { return Failed("EAGAIN") };
        let control = message.and_then(|message| message.member("msg_control"));
        match self.connections[id].tx_timestamps.receive(control, self.settings.tolerance) {
            Ok(()) => Returned(0),
            Err(ReceiveError::Empty) => Failed("EAGAIN"),
            Err(ReceiveError::Differs) => Failed("another report on the error queue"),
            Err(ReceiveError::Unsupported) => not("this use of the error queue"),
        }
    }

    /// Returns the bytes left to read, and one for the end of the stream (Linux, `TCP_CM_INQ`).
    fn unread_with_fin(&self, fd: i64) -> i64 {
        let SocketKind::Connection(id) = self.sockets[&fd].kind else { return 0 };
        let connection = &self.connections[id];
        connection.readable() as i64 + i64::from(connection.peer_closed)
    }

    fn send(&mut self, fd: i64, len: Option<u64>, flags: Option<&Expression>) -> Outcome {
        if let Some(reason) = refused_flag(flags) {
            return not(reason);
        }
        let Some(len) = len else { return not("a write without a length") };
        let socket = &self.sockets[&fd];
        let SocketKind::Connection(id) = socket.kind else { return Failed("EPIPE") };
        let dont_wait = flags.is_some_and(|flags| flags.has("MSG_DONTWAIT"));
        let nonblocking = socket.options.nonblocking || dont_wait;
        let now = self.now;
        let connection = &mut self.connections[id];
        if let Some(error) = connection.error.take() {
            return Failed(error);
        }
        if connection.shut_down || connection.is_closed() {
            return Failed("EPIPE");
        }
        if !connection.opened {
            return if nonblocking { Failed("EAGAIN") } else { Blocked };
        }
        let room = connection.endpoint.send_capacity();
        let accepted = if nonblocking { len.min(room) } else { len };
        if accepted == 0 && len > 0 {
            return Failed("EAGAIN");
        }
        let has = |flag| flags.is_some_and(|flags| flags.has(flag));
        let (endpoint, data) = (&mut connection.endpoint, Length(accepted));
        let sent = if has("MSG_EOR") {
            endpoint.send_record(now, data)
        } else if has("MSG_MORE") {
            endpoint.send_more(now, data)
        } else {
            endpoint.send(now, data)
        };
        if sent.is_ok() {
            connection.written += accepted;
            connection.tx_timestamps.on_write(connection.written);
        }
        match sent {
            Ok(()) => Returned(accepted as i64),
            Err(SendError::Full { .. }) => Blocked,
            Err(_) => Failed("EPIPE"),
        }
    }

    /// Returns whether a call writes to a socket with a send buffer that the script has set.
    pub(crate) fn is_limited_by_memory(&self, call: &Call) -> bool {
        let fd = call.arguments.first().and_then(Expression::integer);
        let socket = fd.and_then(|fd| self.sockets.get(&fd));
        matches!(call.name.as_str(), "write" | "send" | "sendmsg")
            && socket.is_some_and(|socket| socket.options.send_buffer.is_some())
    }

    fn send_message(&mut self, fd: i64, call: &Call) -> Outcome {
        let message = call.arguments.get(1);
        if message.and_then(|message| message.member("msg_control")).is_some_and(is_filled) {
            return not("ancillary data");
        }
        self.send(fd, message_length(message), call.arguments.get(2))
    }

    fn close(&mut self, fd: i64) -> Outcome {
        let Some(socket) = self.sockets.remove(&fd) else { return Failed("EBADF") };
        let SocketKind::Connection(id) = socket.kind else {
            self.abort_backlog(fd);
            return Returned(0);
        };
        let now = self.now;
        let connection = &mut self.connections[id];
        connection.orphaned = true;
        // RFC 2525 §2.17: unread data means that the peer has to know.
        if connection.readable() > 0 || socket.options.resets_on_close {
            connection.endpoint.abort(now);
        } else if !connection.shut_down {
            // A connection that is closed already stays so.
            let _closed = connection.endpoint.close(now);
        }
        Returned(0)
    }

    fn abort_backlog(&mut self, fd: i64) {
        let now = self.now;
        for connection in self.connections.iter_mut().filter(|c| c.listener == Some(fd)) {
            connection.endpoint.abort(now);
        }
    }

    fn shutdown(&mut self, fd: i64, how: Option<&Expression>) -> Outcome {
        let SocketKind::Connection(id) = self.sockets[&fd].kind else { return Failed("ENOTCONN") };
        let how = how.and_then(Expression::symbol).unwrap_or_default();
        let now = self.now;
        let connection = &mut self.connections[id];
        if connection.is_closed() {
            return Failed("ENOTCONN");
        }
        connection.reads_ended |= how != "SHUT_WR";
        if how != "SHUT_RD" && !connection.shut_down {
            connection.shut_down = true;
            // SYN-SENT ends, other states send a FIN.
            let _closed = connection.endpoint.close(now);
        }
        Returned(0)
    }

    fn control_flags(&mut self, fd: i64, arguments: &[Expression]) -> Outcome {
        let Some(socket) = self.sockets.get_mut(&fd) else { return Failed("EBADF") };
        match arguments.get(1).and_then(Expression::symbol) {
            Some("F_GETFL") => Returned(if socket.options.nonblocking { 0x802 } else { 2 }),
            Some("F_SETFL") => {
                socket.options.nonblocking = arguments.get(2).is_some_and(|flags| flags.has("O_NONBLOCK"));
                Returned(0)
            }
            _ => not("this use of fcntl"),
        }
    }

    fn input_output_control(&mut self, fd: i64, arguments: &[Expression]) -> Outcome {
        let SocketKind::Connection(id) = self.sockets[&fd].kind else { return Failed("EINVAL") };
        let connection = &self.connections[id];
        let value = match arguments.get(1).and_then(Expression::symbol) {
            Some("SIOCINQ" | "FIONREAD") => connection.readable(),
            Some("SIOCOUTQ" | "TIOCOUTQ") => connection.endpoint.unacknowledged(),
            _ => return not("this use of ioctl"),
        };
        match arguments.get(2).and_then(Expression::integer) {
            Some(expected) if expected == value as i64 => Returned(0),
            Some(_) => Returned(value as i64),
            None => Returned(0),
        }
    }

    fn poll(&mut self, call: &Call) -> Outcome {
        let Some(Expression::Array(items)) = call.arguments.first() else { return not("this use of poll") };
        let mut ready = 0;
        for item in items {
            let Some(fd) = item.member("fd").and_then(Expression::integer) else {
                return not("this use of poll");
            };
            let events = self.ready_events(fd);
            let wanted = item.member("events");
            let is_ready = events.iter().any(|event| {
                matches!(*event, "POLLHUP" | "POLLERR") || wanted.is_some_and(|wanted| wanted.has(event))
            });
            ready += i64::from(is_ready);
        }
        let timeout = call.arguments.get(2).and_then(Expression::integer).unwrap_or(0);
        if ready > 0 || timeout == 0 { Returned(ready) } else { Blocked }
    }

    fn ready_events(&self, fd: i64) -> Vec<&'static str> {
        match self.sockets.get(&fd).map(|socket| socket.kind) {
            Some(SocketKind::Listener) => {
                let any = self.connections.iter().any(|c| c.listener == Some(fd) && c.opened);
                if any { vec!["POLLIN"] } else { Vec::new() }
            }
            Some(SocketKind::Connection(id)) => {
                let connection = &self.connections[id];
                let mut events = Vec::new();
                if connection.readable() > 0 || connection.is_at_end() {
                    events.push("POLLIN");
                }
                if connection.opened && connection.endpoint.send_capacity() > 0 {
                    events.push("POLLOUT");
                }
                if connection.peer_closed {
                    events.push("POLLRDHUP");
                }
                if connection.is_closed() || (connection.peer_closed && connection.shut_down) {
                    events.push("POLLHUP");
                }
                if connection.error.is_some() {
                    events.push("POLLERR");
                }
                events
            }
            _ => Vec::new(),
        }
    }

    /// Returns the state of the connection of a socket.
    pub(crate) fn state_of(&self, fd: i64) -> Option<State> {
        match self.sockets.get(&fd)?.kind {
            SocketKind::Connection(id) => Some(self.connections[id].endpoint.state()),
            _ => None,
        }
    }
}

pub(crate) fn not(reason: &str) -> Outcome {
    NotApplicable(reason.to_owned())
}

fn refused_flag(flags: Option<&Expression>) -> Option<&'static str> {
    let flags = flags?;
    for (flag, reason) in [
        ("MSG_ZEROCOPY", "MSG_ZEROCOPY"),
        ("MSG_FASTOPEN", "TCP Fast Open"),
        ("MSG_EOF", "MSG_EOF"),
        ("MSG_OOB", "urgent data"),
        ("MSG_WAITALL", "MSG_WAITALL"),
        ("MSG_ERRQUEUE", "the error queue"),
        ("MSG_CTRUNC", "ancillary data"),
    ] {
        if flags.has(flag) {
            return Some(reason);
        }
    }
    match flags {
        Expression::Symbol(name)
            if !HARMLESS_FLAGS.contains(&name.as_str()) && !SEND_FLAGS.contains(&name.as_str()) =>
        {
            Some("this flag")
        }
        _ => None,
    }
}

fn length_of(argument: Option<&Expression>) -> Option<u64> {
    argument.and_then(Expression::integer).and_then(|len| u64::try_from(len).ok())
}

/// Returns the total length of `[{..., 100}, {..., 200}]`.
fn vector_length(argument: Option<&Expression>) -> Option<u64> {
    let Some(Expression::Array(items)) = argument else { return None };
    items.iter().map(element_length).sum()
}

fn element_length(item: &Expression) -> Option<u64> {
    let Expression::Record(members) = item else { return None };
    length_of(members.last().map(|(_, value)| value))
}

fn message_length(message: Option<&Expression>) -> Option<u64> {
    vector_length(message?.member("msg_iov"))
}

fn is_null(argument: Option<&Expression>) -> bool {
    argument.is_some_and(|argument| argument.has("NULL"))
}

fn is_filled(value: &Expression) -> bool {
    matches!(value, Expression::Array(items) if !items.is_empty())
}
