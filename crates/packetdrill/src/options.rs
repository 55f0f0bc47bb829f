//! `setsockopt` and `getsockopt`.

use crate::calls::{Outcome, not};
use crate::host::Host;
use crate::script::Expression;
use crate::socket::{SocketKind, SocketOptions, seconds};
use hopline_core::Duration;
use hopline_transport::tcp::{Nagle, State};

use Outcome::{Failed, Returned};

impl Host {
    pub(crate) fn set_option(&mut self, fd: i64, arguments: &[Expression]) -> Outcome {
        let Some(name) = arguments.get(2).and_then(Expression::symbol) else {
            return not("a socket option by number");
        };
        let value = arguments.get(3);
        let Some(socket) = self.sockets.get_mut(&fd) else { return Failed("EBADF") };
        if let Err(outcome) = change(&mut socket.options, name, value) {
            return outcome;
        }
        if let SocketKind::Connection(id) = socket.kind {
            let connection = &mut self.connections[id];
            let acknowledged = connection.acknowledged();
            let endpoint = &mut connection.endpoint;
            match name {
                "SO_TIMESTAMPING" => match value {
                    Some(Expression::Array(flags)) if flags.len() == 1 => {
                        connection.tx_timestamps.set(&flags[0], acknowledged);
                    }
                    _ => return not("this use of SO_TIMESTAMPING"),
                },
                "TCP_NODELAY" => {
                    endpoint.set_nagle(if socket.options.no_delay { Nagle::Off } else { Nagle::On });
                }
                "TCP_CORK" => endpoint.set_cork(value.and_then(Expression::integer) == Some(1)),
                "TCP_USER_TIMEOUT" => endpoint.set_user_timeout(self.now, socket.options.user_timeout),
                "SO_KEEPALIVE" | "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT" => {
                    endpoint.set_keep_alive(self.now, socket.options.keep_alive);
                }
                _ => {}
            }
        }
        Returned(0)
    }

    pub(crate) fn get_option(&mut self, fd: i64, arguments: &[Expression]) -> Outcome {
        let Some(name) = arguments.get(2).and_then(Expression::symbol) else {
            return not("a socket option by number");
        };
        let expected = arguments.get(3);
        if name == "SO_ERROR" {
            return self.get_error(fd, expected);
        }
        if name == "TCP_INFO" {
            return self.get_info(fd, expected);
        }
        let Some(expected) = expected.and_then(Expression::integer) else {
            return not(&format!("this use of {name}"));
        };
        match self.option_value(fd, name) {
            None if name == "SO_SNDBUF" => not("Linux's accounting of send memory"),
            None => not(&format!("reading {name}")),
            Some(value) if value == expected => Returned(0),
            Some(value) => Outcome::NotApplicable(format!("{name} with another value than {value}")),
        }
    }

    fn option_value(&self, fd: i64, name: &str) -> Option<i64> {
        let options = &self.sockets.get(&fd)?.options;
        Some(match name {
            "TCP_NODELAY" => i64::from(options.no_delay),
            "TCP_MAXSEG" => match self.sockets.get(&fd)?.kind {
                SocketKind::Connection(id) => i64::from(self.connections[id].endpoint.effective_mss()),
                _ => i64::from(options.mss?),
            },
            "SO_KEEPALIVE" => i64::from(options.keep_alive.is_some()),
            "SO_RCVBUF" => i64::from(match self.sockets.get(&fd)?.kind {
                SocketKind::Connection(id) if self.connections[id].endpoint.state() != State::SynSent => {
                    options.buffer_of(&self.settings)
                }
                _ => options.receive_buffer.unwrap_or(self.settings.config.receive_buffer()),
            }),
            _ => return None,
        })
    }

    fn get_error(&mut self, fd: i64, expected: Option<&Expression>) -> Outcome {
        let error = match self.sockets.get(&fd).map(|socket| socket.kind) {
            Some(SocketKind::Connection(id)) => self.connections[id].error.take(),
            _ => None,
        };
        let is_expected = match (error, expected) {
            (_, None | Some(Expression::Ellipsis)) => true,
            (None, Some(expected)) => expected.integer() == Some(0),
            (Some(error), Some(expected)) => expected.symbol() == Some(error),
        };
        // A wrong error is reported as that of the call.
        if is_expected { Returned(0) } else { Failed(error.unwrap_or("no pending error")) }
    }

    fn get_info(&self, fd: i64, expected: Option<&Expression>) -> Outcome {
        let Some(Expression::Record(members)) = expected else { return not("this use of TCP_INFO") };
        for (name, value) in members {
            match (name.as_str(), value.symbol()) {
                ("tcpi_state", Some(expected)) => {
                    if self.state_of(fd).is_none_or(|state| bsd_name(state) != expected) {
                        return Failed("another state");
                    }
                }
                _ => return not(&format!("{name} of TCP_INFO in a structure")),
            }
        }
        Returned(0)
    }
}

/// Changes an option that is kept with the socket.
fn change(options: &mut SocketOptions, name: &str, value: Option<&Expression>) -> Result<(), Outcome> {
    let number = value.and_then(Expression::integer);
    let positive = || number.filter(|number| *number >= 0).map(i64::unsigned_abs);
    // The ranges of Linux. Without a least interval, probes would never end.
    let most = match name {
        "TCP_KEEPIDLE" | "TCP_KEEPINTVL" => 32_767,
        "TCP_KEEPCNT" => 127,
        _ => i64::MAX,
    };
    if most < i64::MAX && number.is_none_or(|number| !(1..=most).contains(&number)) {
        return Err(Failed("EINVAL"));
    }
    match name {
        "SO_RCVBUF" => options.receive_buffer = positive().map(|bytes| bytes.clamp(1, 1 << 30) as u32),
        // Linux doubles it (socket(7)).
        "SO_SNDBUF" => options.send_buffer = positive().map(|bytes| 2 * bytes),
        "TCP_MAXSEG" => options.mss = positive().map(|bytes| bytes.min(65_495) as u32),
        "TCP_SYNCNT" => options.syn_count = positive().map(|count| count as u32),
        "TCP_NODELAY" => options.no_delay = number.is_some_and(|number| number != 0),
        "SO_KEEPALIVE" => options.enable_keep_alive(number.is_some_and(|number| number != 0)),
        "TCP_KEEPIDLE" => options.set_keep_alive(|times| times.with_idle(seconds(number.unwrap_or(0)))),
        "TCP_KEEPINTVL" => options.set_keep_alive(|times| times.with_interval(seconds(number.unwrap_or(0)))),
        "TCP_KEEPCNT" => options.set_keep_alive(|times| times.with_probes(number.unwrap_or(0) as u32)),
        "TCP_USER_TIMEOUT" => {
            let timeout = number.filter(|millis| *millis > 0);
            options.user_timeout =
                timeout.map(|millis| Duration::from_millis(millis.min(i64::from(u32::MAX)).unsigned_abs()));
        }
        "TCP_CONGESTION" => match value {
            Some(Expression::Text(name)) => options.algorithm = Some(name.clone()),
            Some(Expression::Array(items)) if let [Expression::Text(name)] = items.as_slice() => {
                options.algorithm = Some(name.clone());
            }
            _ => return Err(not("this use of TCP_CONGESTION")),
        },
        "SO_LINGER" => {
            let member = |name| value.and_then(|value| value.member(name)).and_then(Expression::integer);
            options.resets_on_close = member("onoff") == Some(1) && member("linger") == Some(0);
        }
        "TCP_CORK" | "TCP_INQ" | "SO_TIMESTAMPING" | "IP_MTU_DISCOVER" | "IPV6_MTU_DISCOVER" => {}
        "SO_REUSEADDR" | "SO_REUSEPORT" | "SO_MARK" | "SO_PRIORITY" | "SO_BUSY_POLL" | "IP_TTL"
        | "IP_TOS" | "IP_FREEBIND" | "IPV6_V6ONLY" | "IPV6_UNICAST_HOPS" | "IPV6_TCLASS" => {}
        "TCP_FASTOPEN" | "TCP_FASTOPEN_CONNECT" | "TCP_FASTOPEN_KEY" | "TCP_FASTOPEN_NO_COOKIE" => {
            return Err(not("TCP Fast Open"));
        }
        "TCP_REMOTE_UDP_ENCAPS_PORT" => return Err(not("UDP encapsulation")),
        "TCP_MD5SIG" => return Err(not("TCP MD5 signatures")),
        other => return Err(not(&format!("the socket option {other}"))),
    }
    Ok(())
}

/// Returns the name of a state as FreeBSD's `TCP_INFO` has it.
pub(crate) fn bsd_name(state: State) -> &'static str {
    match state {
        State::Closed => "TCPS_CLOSED",
        State::Listen => "TCPS_LISTEN",
        State::SynSent => "TCPS_SYN_SENT",
        State::SynReceived => "TCPS_SYN_RECEIVED",
        State::Established => "TCPS_ESTABLISHED",
        State::CloseWait => "TCPS_CLOSE_WAIT",
        State::FinWait1 => "TCPS_FIN_WAIT_1",
        State::FinWait2 => "TCPS_FIN_WAIT_2",
        State::Closing => "TCPS_CLOSING",
        State::LastAck => "TCPS_LAST_ACK",
        State::TimeWait => "TCPS_TIME_WAIT",
    }
}
