//! Requests for the page that shows an emulation while it runs.

use std::io::{self, BufRead};

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAnswer {
    /// The page.
    Page,
    /// The events of the network, for as long as it runs.
    Events,
    /// Status line of HTTP, without the version.
    Refused(&'static str),
}

/// Reads a request of HTTP/1.1 without a body (RFC 9112), and returns the answer to it. Requests are refused unless all of
/// their `Host` fields name the loopback interface with `port`. The caller limits length and time.
///
/// # Errors
/// Those of the reader.
pub fn answer_to_request(request: impl BufRead, port: u16) -> io::Result<PageAnswer> {
    let mut lines = request
        .split(b'\n')
        .map(|line| line.map(|line| String::from_utf8_lossy(&line).trim_end().to_owned()));
    let first = lines.next().transpose()?.unwrap_or_default();
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let (mut hosts, mut own_hosts) = (0, 0);
    loop {
        let Some(line) = lines.next().transpose()? else {
            return Ok(PageAnswer::Refused("400 Bad Request"));
        };
        if line.is_empty() {
            break;
        }
        if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("host")) {
            hosts += 1;
            own_hosts += usize::from(own.contains(&value.trim().to_ascii_lowercase()));
        }
    }
    if hosts == 0 || own_hosts < hosts {
        return Ok(PageAnswer::Refused("403 Forbidden"));
    }
    Ok(match first.split(' ').collect::<Vec<_>>()[..] {
        ["GET", "/", _] => PageAnswer::Page,
        ["GET", "/events", _] => PageAnswer::Events,
        ["GET", ..] => PageAnswer::Refused("404 Not Found"),
        _ => PageAnswer::Refused("405 Method Not Allowed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_this_machine_alone_are_answered() {
        let of = |request: &str| answer_to_request(request.as_bytes(), 8080).unwrap();
        let get = |path: &str, host: &str| {
            of(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n"))
        };
        assert_eq!(get("/", "127.0.0.1:8080"), PageAnswer::Page);
        assert_eq!(get("/events", "LOCALHOST:8080"), PageAnswer::Events);
        assert_eq!(get("/favicon.ico", "localhost:8080"), PageAnswer::Refused("404 Not Found"));
        for host in
            ["example.org:8080", "127.0.0.1:8081", "127.0.0.1", "", "localhost:8080\r\nHost: example.org"]
        {
            assert_eq!(get("/", host), PageAnswer::Refused("403 Forbidden"), "{host}");
        }
        assert_eq!(of("GET / HTTP/1.1\r\n\r\n"), PageAnswer::Refused("403 Forbidden"));
        assert_eq!(
            of("POST / HTTP/1.1\r\nhost: localhost:8080\r\n\r\n"),
            PageAnswer::Refused("405 Method Not Allowed")
        );
    }
}
