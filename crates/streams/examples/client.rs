//! Sends its standard input to a server, and prints the answer: `client ADDRESS:PORT KEY_FILE [KNOWN_PEERS NAME]`.
#![expect(clippy::print_stderr, reason = "an example")]

use hopline_core::Duration as Span;
use hopline_streams::key_files::{self, KeyInFile};
use hopline_streams::wide::{Credentials, Trust, WideStream, config};
use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, ToSocketAddrs};
use std::time::Duration;
use std::{env, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let (address, credentials) = match &args[..] {
        [address, key] => match key_files::load_key(key.as_ref())? {
            KeyInFile::Shared(key) => (address, Credentials::Shared(key)),
            KeyInFile::Private(_) => return Err("a private key needs KNOWN_PEERS and NAME".into()),
        },
        [address, key, known_peers, name] => {
            let KeyInFile::Private(private) = key_files::load_key(key.as_ref())? else {
                return Err("this is a shared key, which needs no KNOWN_PEERS".into());
            };
            let known = key_files::load_peers(known_peers.as_ref())?;
            let server = known.get(&name.parse()?).ok_or("KNOWN_PEERS does not have NAME")?;
            (address, Credentials::Keys { private, trust: Trust::Only(vec![server.key]) })
        }
        _ => return Err("usage: client ADDRESS:PORT KEY_FILE [KNOWN_PEERS NAME]".into()),
    };
    let config = config(credentials);
    let transport = config.transport().with_silence_limit(Some(Span::from_secs(30))); // Then a server that is silent has failed.
    let config = config.with_transport(transport);

    let server = address.to_socket_addrs()?.next().ok_or("the name has no address")?;
    let stream =
        WideStream::connect_timeout(server, &config, Duration::from_secs(10)).map_err(|error| match error
            .kind()
        {
            ErrorKind::PermissionDenied => format!("another key than expected: {error}"),
            ErrorKind::ConnectionRefused => format!("no server there, or it does not know us: {error}"),
            ErrorKind::TimedOut => format!("no answer, or another shared key: {error}"),
            _ => error.to_string(),
        })?;
    eprintln!("connected to {}", stream.peer_addr());

    // Two threads may use `&WideStream`: one writes, one reads.
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            io::copy(&mut io::stdin().lock(), &mut &stream)?;
            stream.shutdown(Shutdown::Write) // The server reads to the end.
        });
        let mut answer = Vec::new();
        (&stream).read_to_end(&mut answer)?;
        io::stdout().write_all(&answer)?;
        sender.join().expect("the sender does not panic")
    })?;
    stream.close_within(Duration::from_secs(10))?;
    Ok(())
}
