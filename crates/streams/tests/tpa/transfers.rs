//! Delivery of written data.

use crate::tpa::relay::Relay;
use crate::tpa::*;
use hopline_streams::tpa::AsyncStream;

#[test]
fn flush_does_not_wait_for_the_block_to_fill() {
    let (listener, address) = listener();
    let patient = quick().with_block_fill(Span::from_secs(3600));
    let mut client = TpaStream::connect(address, &patient).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"now").unwrap();
    client.flush().unwrap();
    let mut got = [0; 3];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"now");
}

#[test]
fn a_connection_survives_a_new_address_of_the_peer() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    let lively = quick().with_keep_alive(Some(Span::from_millis(100)));
    let mut client = TpaStream::connect(relay.address, &lively).unwrap();
    let (mut server, before) = listener.accept().unwrap();
    let data = pattern(6, 300_000);
    thread::scope(|scope| {
        scope.spawn(|| server.write_all(&data).unwrap());
        let mut got = vec![0; data.len()];
        client.read_exact(&mut got[..100_000]).unwrap();
        // The client sends acknowledgements only; its keep-alive probes reveal its new address to the server.
        relay.rebind();
        client.read_exact(&mut got[100_000..]).unwrap();
        assert!(got == data);
    });
    assert_ne!(server.peer_addr(), before);
}

#[test]
fn a_refused_asynchronous_connect_is_an_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let nobody_listens = Host::bind(ANY).unwrap();
    let result = runtime.block_on(AsyncStream::connect(nobody_listens.local_addr().unwrap(), &quick()));
    assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
}
