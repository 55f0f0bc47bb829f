//! Delivery of written data.

use super::{ANY, Transport, connections, over_both, pair};
use hopline_core::Duration as Span;
use hopline_streams::{AsyncListener, AsyncStream, Host, Listener, Stream};
use hopline_testkit::streams::{echo, pattern, through_echo, until};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

over_both!(
    a_large_transfer_is_echoed_byte_exact,
    transfers_work_over_ipv6,
    a_half_closed_stream_can_be_read,
    data_written_before_the_drop_arrive,
    close_returns_when_the_peer_has_everything,
    two_hundred_connections_at_once_share_a_socket_on_each_side,
    asynchronous_streams_echo,
    each_of_several_accepting_tasks_gets_a_connection,
);

fn a_large_transfer_is_echoed_byte_exact<T: Transport>() {
    let (client, server) = pair::<T>();
    let data = pattern(1, T::LARGE);
    let back = thread::scope(|scope| {
        scope.spawn(|| echo(&server));
        through_echo(&client, &data)
    });
    assert!(back == data, "{} bytes of {}", back.len(), data.len());
    let info = client.info();
    assert_eq!(T::bytes(&info), (T::LARGE as u64, T::LARGE as u64));
    assert!(T::is_measured(&info));
}

fn transfers_work_over_ipv6<T: Transport>() {
    let listener = Listener::<T>::bind("[::1]:0", &T::quick()).unwrap();
    let client = Stream::<T>::connect(listener.local_addr().unwrap(), &T::quick()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let data = pattern(2, 300_000);
    let back = thread::scope(|scope| {
        scope.spawn(|| echo(&server));
        through_echo(&client, &data)
    });
    assert!(back == data);
}

fn a_half_closed_stream_can_be_read<T: Transport>() {
    let (mut client, mut server) = pair::<T>();
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
    assert_eq!(client.write(b"more").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

fn data_written_before_the_drop_arrive<T: Transport>() {
    let (mut client, mut server) = pair::<T>();
    let data = pattern(4, 150_000);
    client.write_all(&data).unwrap();
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(&mut got).unwrap();
    assert!(got == data);
}

fn close_returns_when_the_peer_has_everything<T: Transport>() {
    let (mut client, mut server) = pair::<T>();
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

fn two_hundred_connections_at_once_share_a_socket_on_each_side<T: Transport<Config: Sync>>() {
    const CONNECTIONS: usize = 200;
    let [server, client] = [(); 2].map(|()| Host::<T>::bind(ANY).unwrap());
    // With so many connections, datagrams are lost. The side that closes first must still exist when the peer retransmits
    // its FIN.
    let patient = T::lingering(Span::from_secs(3));
    let listener = server.listen(&patient, 300).unwrap();
    let address = server.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..CONNECTIONS {
                let (stream, _) = listener.accept().unwrap();
                scope.spawn(move || echo(&stream));
            }
        });
        for number in 0..CONNECTIONS {
            let (client, patient) = (&client, &patient);
            scope.spawn(move || {
                let stream = client.connect(address, patient, None).unwrap();
                let data = pattern(number, 20_000 + number);
                assert!(through_echo(&stream, &data) == data, "connection {number}");
            });
        }
    });
    assert_eq!(T::connections(&server.stats()).1, 200);
    until("all connections are over", || connections(&server) + connections(&client) == 0);
}

fn asynchronous_streams_echo<T: Transport>() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let listener = AsyncListener::<T>::bind(ANY, &T::quick()).unwrap();
        let address = listener.get_ref().local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (mut reader, mut writer) = tokio::io::split(stream);
            assert_eq!(tokio::io::copy(&mut reader, &mut writer).await.unwrap(), 500_000);
            writer.shutdown().await.unwrap();
        });
        let stream = AsyncStream::<T>::connect(address, &T::quick()).await.unwrap();
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

fn each_of_several_accepting_tasks_gets_a_connection<T: Transport>() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let listener = Arc::new(AsyncListener::<T>::bind(ANY, &T::quick()).unwrap());
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
            clients.push(AsyncStream::<T>::connect(address, &T::quick()).await.unwrap());
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
