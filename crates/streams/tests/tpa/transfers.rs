//! Delivery of written data.

use crate::tpa::relay::Relay;
use crate::tpa::*;
use hopline_streams::tpa::{AsyncListener, AsyncStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn a_megabyte_goes_there_and_back_byte_exact() {
    let (client, server) = pair();
    let data = pattern(1, 1_000_000);
    let back = thread::scope(|scope| {
        scope.spawn(|| echo(&server));
        through_echo(&client, &data)
    });
    assert!(back == data, "{} bytes of {}", back.len(), data.len());
    let info = client.info();
    assert_eq!((info.stats.bytes_acked, info.stats.bytes_received), (1_000_000, 1_000_000));
    assert!(info.srtt.is_some());
}

#[test]
fn over_ipv6_too() {
    let listener = TpaListener::bind("[::1]:0", &quick()).unwrap();
    let client = TpaStream::connect(listener.local_addr().unwrap(), &quick()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let data = pattern(2, 100_000);
    let back = thread::scope(|scope| {
        scope.spawn(|| echo(&server));
        through_echo(&client, &data)
    });
    assert!(back == data);
}

#[test]
fn who_has_ended_its_stream_still_reads() {
    let (mut client, mut server) = pair();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0; 9]).unwrap(), 0);
    let data = pattern(3, 200_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(&data).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        assert!(got == data);
    });
    assert_eq!(client.write(b"more").unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn what_was_written_before_the_drop_arrives() {
    let (mut client, mut server) = pair();
    let data = pattern(4, 150_000);
    client.write_all(&data).unwrap();
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(&mut got).unwrap();
    assert!(got == data);
}

#[test]
fn close_returns_when_the_peer_has_everything() {
    let (mut client, mut server) = pair();
    let data = pattern(5, 50_000);
    client.write_all(&data).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut got = Vec::new();
            server.read_to_end(&mut got).map(|_| got).unwrap()
        });
        client.close().unwrap();
        assert!(reader.join().unwrap() == data);
    });
}

#[test]
fn flush_does_not_wait_for_the_block_to_fill() {
    let (listener, address) = listener();
    let patient = Config { block_fill: Span::from_secs(3600), ..quick() };
    let mut client = TpaStream::connect(address, &patient).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"now").unwrap();
    client.flush().unwrap();
    let mut got = [0; 3];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"now");
}

#[test]
fn two_hundred_connections_at_once_share_a_socket_on_each_side() {
    const CONNECTIONS: usize = 200;
    let (server, listener, client) = hosts();
    let address = server.local_addr().unwrap();
    // With so many connections, datagrams are lost. The side that closes first must still exist when the peer retransmits
    // its FIN.
    let patient = Config { time_wait: Span::from_secs(3), ..quick() };
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..CONNECTIONS {
                let (stream, _) = listener.accept().unwrap();
                scope.spawn(move || echo(&stream));
            }
        });
        for number in 0..CONNECTIONS {
            let client = &client;
            scope.spawn(move || {
                let stream = client.connect(address, &patient, None).unwrap();
                let data = pattern(number, 20_000 + number);
                assert!(through_echo(&stream, &data) == data, "connection {number}");
            });
        }
    });
    assert_eq!(server.stats().accepted, 200);
    until("all connections are over", || server.stats().connections + client.stats().connections == 0);
}

#[test]
fn a_connection_survives_a_new_address_of_the_peer() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    let lively = Config { keep_alive: Some(Span::from_millis(100)), ..quick() };
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
fn asynchronous_streams_echo() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let listener = AsyncListener::bind(ANY, &quick()).unwrap();
        let address = listener.get_ref().local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (mut reader, mut writer) = tokio::io::split(stream);
            assert_eq!(tokio::io::copy(&mut reader, &mut writer).await.unwrap(), 500_000);
            writer.shutdown().await.unwrap();
        });
        let stream = AsyncStream::connect(address, &quick()).await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(stream);
        let data = pattern(7, 500_000);
        let sent = data.clone();
        let sender = tokio::spawn(async move {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        let mut back = Vec::new();
        reader.read_to_end(&mut back).await.unwrap();
        assert!(back == data);
        sender.await.unwrap();
        server.await.unwrap();
    });
}

#[test]
fn an_asynchronous_connect_that_is_refused_says_so() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let nobody_listens = Host::bind(ANY).unwrap();
    let result = runtime.block_on(AsyncStream::connect(nobody_listens.local_addr().unwrap(), &quick()));
    assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn of_several_tasks_that_accept_none_is_forgotten() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let listener = std::sync::Arc::new(AsyncListener::bind(ANY, &quick()).unwrap());
        let address = listener.get_ref().local_addr().unwrap();
        let accepting: Vec<_> = (0..3)
            .map(|_| {
                let listener = listener.clone();
                tokio::spawn(async move { listener.accept().await.unwrap().1 })
            })
            .collect();
        // All three wait before the first connection arrives.
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(AsyncStream::connect(address, &quick()).await.unwrap());
        }
        let mut ports = Vec::new();
        for task in accepting {
            ports.push(task.await.unwrap().port());
        }
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 3, "each has another connection");
    });
}
