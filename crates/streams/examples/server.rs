//! Echoes what clients send: `server ADDRESS:PORT KEY_FILE [KNOWN_PEERS]`.
#![expect(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout, reason = "an example")]

use hopline_streams::key_files::{self, KeyInFile};
use hopline_streams::wide::{Credentials, Trust, WideListener, WideStream, config};
use std::error::Error;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;
use std::{env, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [address, key, known_peers @ ..] = &args[..] else {
        return Err("usage: server ADDRESS:PORT KEY_FILE [KNOWN_PEERS]".into());
    };
    let credentials = credentials(key.as_ref(), known_peers.first().map(Path::new))?;
    let listener = WideListener::bind(address.as_str(), &config(credentials))?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, client) = listener.accept()?;
        thread::spawn(move || match echo(stream) {
            Ok(bytes) => println!("{client}: {bytes} bytes echoed"),
            Err(error) => eprintln!("{client}: {error}"),
        });
    }
}

/// Reads the kind of key from the file: a shared key, or a private key, which needs a file of known peers.
fn credentials(key: &Path, known_peers: Option<&Path>) -> Result<Credentials, Box<dyn Error>> {
    Ok(match key_files::load_key(key)? {
        KeyInFile::Shared(key) => Credentials::Shared(key),
        KeyInFile::Private(private) => {
            let known = key_files::load_peers(known_peers.ok_or("a private key needs KNOWN_PEERS")?)?;
            let trusted = known.peers().iter().map(|peer| peer.key).collect();
            Credentials::Keys { private, trust: Trust::Only(trusted) }
        }
    })
}

fn echo(mut stream: WideStream) -> io::Result<u64> {
    stream.set_read_timeout(Some(Duration::from_secs(60))); // Then `read` returns `WouldBlock`.
    let (mut buffer, mut bytes) = ([0; 16 * 1024], 0);
    loop {
        match stream.read(&mut buffer)? {
            0 => break, // The client has ended its direction.
            len => {
                stream.write_all(&buffer[..len])?;
                bytes += len as u64;
            }
        }
    }
    stream.close_within(Duration::from_secs(10))?; // Waits until the client has everything.
    Ok(bytes)
}
