//! A server and a client of TPA-wide as tasks of one thread with tokio: `asynchronous [MEGABYTES]`.
//!
//! Each listener and stream is served by a thread of its host, so that the runtime needs neither timers nor I/O.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example")]

use hopline_streams::wide::{AsyncListener, AsyncStream, Credentials, PreSharedKey, config};
use std::error::Error;
use std::io;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};

fn main() -> Result<(), Box<dyn Error>> {
    let megabytes = std::env::args().nth(1).map_or(Ok(10), |text| text.parse::<usize>())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(run(megabytes))?;
    Ok(())
}

async fn run(megabytes: usize) -> io::Result<()> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    let shared = || config(Credentials::Shared(PreSharedKey::new(secret))); // Between hosts: `key_files::load_key`.

    let listener = AsyncListener::bind("127.0.0.1:0", &shared())?;
    let address = listener.get_ref().local_addr()?;
    let server = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(echo(stream));
        }
        #[expect(unreachable_code, reason = "the type of the task")]
        io::Result::Ok(())
    });

    let data = vec![7; megabytes * 1_000_000];
    let began = Instant::now();
    let (mut reader, mut writer) = split(AsyncStream::connect(address, &shared()).await?);
    let sent = data.clone();
    let sending = tokio::spawn(async move {
        writer.write_all(&sent).await?;
        writer.shutdown().await
    });
    let mut back = Vec::with_capacity(data.len());
    reader.read_to_end(&mut back).await?;
    sending.await??;
    server.abort();
    assert!(back == data, "{} of {} bytes came back", back.len(), data.len());
    println!("{megabytes} MB echoed in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Sends back what the client sends, to the end of its stream.
async fn echo(stream: AsyncStream) -> io::Result<u64> {
    let (mut reader, mut writer) = split(stream);
    let bytes = copy(&mut reader, &mut writer).await?;
    writer.shutdown().await?;
    Ok(bytes)
}
