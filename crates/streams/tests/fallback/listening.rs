//! Servers that listen over both transports.

use super::*;

#[test]
fn clients_of_either_transport_are_served() {
    let listener = Listener::bind(ANY, &quick(), 8).unwrap();
    let to = listener.local_addr();
    let over_tcp = Stream::Tcp(TcpStream::connect(to).unwrap());
    let (server, _) = listener.accept().unwrap();
    assert!(matches!(server, Stream::Tcp(_)));
    talk(&over_tcp, &server);
    let over_tpa = Stream::Tpa(TpaStream::connect(to, &quick().tpa()).unwrap());
    let (server, _) = listener.accept().unwrap();
    assert!(matches!(server, Stream::Tpa(_)));
    talk(&over_tpa, &server);
}

#[test]
fn neither_transport_delays_connections_of_the_other() {
    let listener = Listener::bind(ANY, &quick(), 16).unwrap();
    let to = listener.local_addr();
    let _over_tcp: Vec<_> = (0..3).map(|_| TcpStream::connect(to).unwrap()).collect();
    let _over_tpa: Vec<_> = (0..3).map(|_| TpaStream::connect(to, &quick().tpa()).unwrap()).collect();
    // The last one's handshake ends with its first data.
    let mut both = [0; 2];
    for _ in 0..4 {
        let (stream, _) = listener.accept().unwrap();
        both[usize::from(matches!(stream, Stream::Tcp(_)))] += 1;
    }
    assert!(both[0] > 0 && both[1] > 0, "{both:?}");
}

#[test]
fn both_sockets_have_the_same_port() {
    let port = Port::bind(ANY).unwrap();
    let _listener = port.listen(&quick(), 1).unwrap();
    let to = port.local_addr();
    assert_eq!(UdpSocket::bind(to).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(TcpListener::bind(to).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(port.listen(&quick(), 1).unwrap_err().kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_port_in_use_by_tcp_is_rejected() {
    let tcp = TcpListener::bind(ANY).unwrap();
    let refused = Listener::bind(tcp.local_addr().unwrap(), &quick(), 1).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_connection_uses_the_bound_port() {
    let listener = Listener::bind(ANY, &patient(), 8).unwrap();
    let port = Port::bind(ANY).unwrap();
    let connector = Connector::default();
    let client = connector.begin(Some(&port), listener.local_addr(), &patient()).unwrap().wait(HUNG).unwrap();
    let (server, from) = listener.accept().unwrap();
    assert_eq!(from, port.local_addr());
    talk(&client, &server);
    let tcp = TcpListener::bind(ANY).unwrap();
    // Of two connections to one host, ICMP does not say which one is refused: TPA is given up after its time.
    let client =
        connector.begin(Some(&port), tcp.local_addr().unwrap(), &quick()).unwrap().wait(HUNG).unwrap();
    let (server, from) = tcp.accept().unwrap();
    assert_eq!(from, port.local_addr());
    talk(&client, &Stream::Tcp(server));
}

#[test]
fn listening_works_over_ipv6() {
    let any = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0));
    let listener = Listener::bind(any, &patient(), 8).unwrap();
    let client = connect(listener.local_addr(), &patient());
    let (server, _) = listener.accept().unwrap();
    assert!(matches!(client, Stream::Tpa(_)));
    talk(&client, &server);
}
