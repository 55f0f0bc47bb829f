/* TPA as published, and the selection between it and TCP. */
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

static int of(int protocol)
{
    int s = tpa_socket();
    CHECK(s >= 0);
    CHECK(get_int(s, TPA_PROTOCOL) == TPA_PROTOCOL_WIDE);
    CHECK(set_int(s, TPA_PROTOCOL, protocol) == 0);
    CHECK(get_int(s, TPA_PROTOCOL) == protocol);
    return s;
}

static unsigned protocol_of(int s)
{
    struct tpa_info info = {.size = sizeof info};
    CHECK(tpa_info(s, &info) == 0);
    CHECK(info.state == TPA_STATE_OPEN && info.mss > 0 && info.window > 0 && !*info.peer_fingerprint);
    CHECK((int)info.protocol == get_int(s, TPA_PROTOCOL));
    return info.protocol;
}

enum { MUCH = 300000 };

static void *send_much(void *s)
{
    static char bytes[MUCH];
    for (size_t i = 0; i < MUCH; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    CHECK(tpa_send(*(int *)s, bytes, MUCH, 0) == MUCH);
    CHECK(tpa_shutdown(*(int *)s, TPA_SHUT_WR) == 0);
    return NULL;
}

/* Receives to the end, and compares the bytes. */
static void receive_much(int s)
{
    char bytes[4096];
    size_t got = 0;
    ssize_t len;
    while ((len = tpa_recv(s, bytes, sizeof bytes, 0)) > 0)
        for (ssize_t i = 0; i < len; i++, got++)
            CHECK(bytes[i] == (char)(got * 31 + got / 251));
    CHECK(len == 0 && got == MUCH);
}

/* Sends in both directions, and ends both. */
static void talk(int client, int server)
{
    pthread_t sender;
    CHECK(pthread_create(&sender, NULL, send_much, &client) == 0);
    receive_much(server);
    CHECK(pthread_join(sender, NULL) == 0);
    CHECK(pthread_create(&sender, NULL, send_much, &server) == 0);
    receive_much(client);
    CHECK(pthread_join(sender, NULL) == 0);
    CHECK(tpa_close(client) == 0 && tpa_close(server) == 0);
}

static void both_ends(int protocol)
{
    struct sockaddr_in at, from, peer;
    socklen_t len = sizeof from;
    int listener = of(protocol), client = of(protocol);
    listening(listener, &at);
    CHECK(set_int(client, TPA_CWND_MAX, 12) == 0 && get_int(client, TPA_CWND_MAX) == 12);
    CHECK(set_int(client, TPA_CONNECT_TIMEOUT, 60000) == 0);
    CHECK(connecting(client, &at) == 0);
    int server = tpa_accept(listener, (struct sockaddr *)&from, &len);
    CHECK(server >= 0 && len == sizeof from);
    CHECK(protocol_of(client) == TPA_PROTOCOL_TPA && protocol_of(server) == TPA_PROTOCOL_TPA);
    CHECK(tpa_getpeername(client, (struct sockaddr *)&peer, &len) == 0 && peer.sin_port == at.sin_port);
    FAILS(set_int(client, TPA_PROTOCOL, TPA_PROTOCOL_WIDE), EINVAL);
    FAILS(connecting(client, &at), EISCONN);
    talk(client, server);
    /* The abandoned TCP connection is not visible. */
    CHECK(set_int(listener, TPA_NONBLOCK, 1) == 0);
    FAILS(tpa_accept(listener, NULL, NULL), EAGAIN);
    CHECK(tpa_close(listener) == 0);
}

static int listening_by_tcp(struct sockaddr_in *at)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t len = sizeof *at;
    *at = loopback(0);
    CHECK(s >= 0 && bind(s, (struct sockaddr *)at, len) == 0 && listen(s, 8) == 0);
    CHECK(getsockname(s, (struct sockaddr *)at, &len) == 0);
    return s;
}

/* Plain TCP program that echoes until the end. */
static void *echo(void *listener)
{
    char bytes[1000];
    ssize_t len;
    int s = accept(*(int *)listener, NULL, NULL);
    CHECK(s >= 0);
    while ((len = recv(s, bytes, sizeof bytes, 0)) > 0)
        CHECK(send(s, bytes, (size_t)len, 0) == len);
    CHECK(len == 0 && close(s) == 0);
    return NULL;
}

static void a_peer_without_tpa(void)
{
    struct sockaddr_in at;
    pthread_t server;
    int listener = listening_by_tcp(&at), s = of(TPA_PROTOCOL_TPA_OR_TCP);
    CHECK(pthread_create(&server, NULL, echo, &listener) == 0);
    CHECK(set_int(s, TPA_NODELAY, 1) == 0 && set_int(s, TPA_RECV_TIMEOUT, 50) == 0);
    CHECK(connecting(s, &at) == 0 && protocol_of(s) == TPA_PROTOCOL_TCP);
    char bytes[6];
    FAILS(tpa_recv(s, bytes, sizeof bytes, 0), EAGAIN);
    CHECK(set_int(s, TPA_RECV_TIMEOUT, 0) == 0);
    CHECK(tpa_send(s, "there", 6, 0) == 6);
    CHECK(tpa_recv(s, bytes, 6, 0) == 6 && strcmp(bytes, "there") == 0);
    CHECK(tpa_shutdown(s, TPA_SHUT_WR) == 0);
    FAILS(tpa_send(s, "more", 4, 0), EPIPE);
    CHECK(tpa_recv(s, bytes, 1, 0) == 0);
    CHECK(tpa_close(s) == 0 && pthread_join(server, NULL) == 0 && close(listener) == 0);
}

/* Without waiting, with a TCP peer: tpa_poll, and poll with the handle. */
static void without_waiting(void)
{
    struct sockaddr_in at;
    static char bytes[1 << 20];
    int listener = listening_by_tcp(&at), s = of(TPA_PROTOCOL_TPA_OR_TCP);
    CHECK(set_int(s, TPA_NONBLOCK, 1) == 0);
    FAILS(connecting(s, &at), EINPROGRESS);
    struct tpa_pollfd one = {.handle = s, .events = TPA_POLLOUT};
    CHECK(tpa_poll(&one, 1, 60000) == 1 && one.revents == TPA_POLLOUT);
    CHECK(get_int(s, TPA_ERROR) == 0 && protocol_of(s) == TPA_PROTOCOL_TCP);
    int server = accept(listener, NULL, NULL);
    CHECK(server >= 0);
    /* Nothing has arrived. */
    struct pollfd handle = {.fd = s, .events = POLLIN};
    one.events = TPA_POLLIN;
    CHECK(tpa_poll(&one, 1, 0) == 0 && poll(&handle, 1, 0) == 0);
    FAILS(tpa_recv(s, bytes, 1, 0), EAGAIN);
    /* No room: the handle becomes readable once there is room again. */
    size_t sent = 0;
    ssize_t len;
    while ((len = tpa_send(s, bytes, sizeof bytes, 0)) > 0)
        sent += (size_t)len;
    CHECK(len == -1 && errno == EAGAIN);
    CHECK(poll(&handle, 1, 0) == 0);
    size_t got = 0;
    while (poll(&handle, 1, 0) == 0 && got < sent) {
        CHECK((len = recv(server, bytes, sizeof bytes, 0)) > 0);
        got += (size_t)len;
    }
    CHECK(poll(&handle, 1, 60000) == 1);
    one.events = TPA_POLLOUT;
    CHECK(tpa_poll(&one, 1, 60000) == 1 && one.revents == TPA_POLLOUT);
    CHECK(tpa_send(s, bytes, 1, 0) == 1);
    CHECK(poll(&handle, 1, 0) == 0);
    /* Data, and the end of the stream. */
    CHECK(send(server, "x", 1, 0) == 1);
    CHECK(poll(&handle, 1, 60000) == 1 && tpa_recv(s, bytes, 10, 0) == 1 && *bytes == 'x');
    CHECK(tpa_abort(s) == 0);
    while ((len = recv(server, bytes, sizeof bytes, 0)) > 0)
        ;
    CHECK(len == -1 && errno == ECONNRESET);
    close(server);
    close(listener);
}

/* Without waiting, over TPA. */
static void without_waiting_for_tpa(void)
{
    struct sockaddr_in at;
    char byte;
    int listener = of(TPA_PROTOCOL_TPA_OR_TCP), s = of(TPA_PROTOCOL_TPA_OR_TCP);
    listening(listener, &at);
    CHECK(set_int(s, TPA_NONBLOCK, 1) == 0 && set_int(s, TPA_NODELAY, 1) == 0);
    FAILS(connecting(s, &at), EINPROGRESS);
    struct pollfd handle = {.fd = s, .events = POLLIN};
    while (tpa_send(s, "a", 1, 0) < 0) {
        CHECK(errno == EAGAIN);
        CHECK(poll(&handle, 1, 60000) == 1);
    }
    int server = tpa_accept(listener, NULL, NULL);
    CHECK(server >= 0 && tpa_recv(server, &byte, 1, 0) == 1 && byte == 'a');
    CHECK(protocol_of(s) == TPA_PROTOCOL_TPA);
    CHECK(tpa_abort(s) == 0);
    FAILS(tpa_recv(server, &byte, 1, 0), ECONNRESET);
    CHECK(tpa_abort(server) == 0 && tpa_close(listener) == 0);
}

static void *end_receiving(void *s)
{
    CHECK(tpa_shutdown(*(int *)s, TPA_SHUT_RD) == 0);
    return NULL;
}

/* Another thread can end a call that waits, over TCP as over TPA. */
static void threads(void)
{
    struct sockaddr_in at;
    char byte;
    pthread_t other;
    int listener = of(TPA_PROTOCOL_TPA_OR_TCP);
    listening(listener, &at);
    int plain = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(plain, (struct sockaddr *)&at, sizeof at) == 0);
    int server = tpa_accept(listener, NULL, NULL);
    CHECK(server >= 0 && protocol_of(server) == TPA_PROTOCOL_TCP);
    CHECK(pthread_create(&other, NULL, end_receiving, &server) == 0);
    CHECK(tpa_recv(server, &byte, 1, 0) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(tpa_close(server) == 0 && tpa_close(listener) == 0 && close(plain) == 0);
}

static void a_port_of_our_own(void)
{
    struct sockaddr_in at, ours = loopback(0), from;
    socklen_t len = sizeof from;
    int listener = listening_by_tcp(&at), s = of(TPA_PROTOCOL_TPA_OR_TCP);
    CHECK(tpa_bind(s, (struct sockaddr *)&ours, sizeof ours) == 0);
    CHECK(tpa_getsockname(s, (struct sockaddr *)&ours, &len) == 0 && ours.sin_port != 0);
    FAILS(set_int(s, TPA_PROTOCOL, TPA_PROTOCOL_TPA), EINVAL);
    CHECK(connecting(s, &at) == 0);
    int server = accept(listener, (struct sockaddr *)&from, &len);
    CHECK(server >= 0 && from.sin_port == ours.sin_port);
    CHECK(tpa_getsockname(s, (struct sockaddr *)&from, &len) == 0 && from.sin_port == ours.sin_port);
    CHECK(close(server) == 0 && tpa_close(s) == 0 && close(listener) == 0);
}

static void failures(void)
{
    struct sockaddr_in at;
    unsigned char key[32];
    memset(key, 7, sizeof key);
    int nobody = listening_by_tcp(&at), s = of(TPA_PROTOCOL_TPA_OR_TCP), t = of(TPA_PROTOCOL_TPA);
    CHECK(close(nobody) == 0);
    FAILS(connecting(s, &at), ECONNREFUSED);
    /* After an error it can be tried again. */
    CHECK(set_int(s, TPA_NONBLOCK, 1) == 0);
    FAILS(connecting(s, &at), EINPROGRESS);
    struct tpa_pollfd one = {.handle = s, .events = TPA_POLLOUT};
    CHECK(tpa_poll(&one, 1, 60000) == 1 && one.revents & TPA_POLLERR);
    CHECK(get_int(s, TPA_ERROR) == ECONNREFUSED && get_int(s, TPA_ERROR) == 0);
    FAILS(connecting(s, &at), EINPROGRESS);
    CHECK(tpa_close(s) == 0);
    FAILS(connecting(t, &at), ECONNREFUSED);
    /* Keys are for TPA-wide: a program must not assume that this is encrypted. */
    CHECK(tpa_setsockopt(t, TPA_PSK, key, sizeof key) == 0);
    FAILS(connecting(t, &at), EINVAL);
    SAYS("not encrypted");
    FAILS(tpa_listen(t, 1), EINVAL);
    FAILS(set_int(t, TPA_PROTOCOL, TPA_PROTOCOL_TCP), EINVAL);
    FAILS(set_int(t, TPA_PROTOCOL, 4), EINVAL);
    FAILS(set_int(t, TPA_CWND_MAX, 0), EINVAL);
    FAILS(set_int(t, TPA_CWND_MAX, 13), EINVAL);
    CHECK(tpa_close(t) == 0);
}

/* A UDP port that is bound and silent: with a time limit, no connection is left at the peer. */
static void a_limit(void)
{
    struct sockaddr_in at;
    int udp = socket(AF_INET, SOCK_DGRAM, 0), s = of(TPA_PROTOCOL_TPA_OR_TCP);
    int listener = listening_by_tcp(&at);
    if (bind(udp, (struct sockaddr *)&at, sizeof at) == 0) {
        CHECK(set_int(s, TPA_CONNECT_TIMEOUT, 20) == 0);
        FAILS(connecting(s, &at), ETIMEDOUT);
        SAYS("by TPA or by TCP");
        CHECK(fcntl(listener, F_SETFL, O_NONBLOCK) == 0);
        CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
        /* Another attempt uses TCP. */
        CHECK(set_int(s, TPA_CONNECT_TIMEOUT, 0) == 0);
        CHECK(connecting(s, &at) == 0 && protocol_of(s) == TPA_PROTOCOL_TCP);
    }
    CHECK(tpa_abort(s) == 0 && close(udp) == 0 && close(listener) == 0);
}

/* A peer that does not read for longer than the silence limit is not silent: it answers with a closed window. */
static void a_peer_that_does_not_read(void)
{
    static char much[1 << 16];
    struct sockaddr_in at;
    int listener = listening_by_tcp(&at), s = of(TPA_PROTOCOL_TPA_OR_TCP);
    CHECK(set_int(s, TPA_SILENCE, 400) == 0 && set_int(s, TPA_SEND_TIMEOUT, 2000) == 0);
    CHECK(connecting(s, &at) == 0 && protocol_of(s) == TPA_PROTOCOL_TCP);
    int server = accept(listener, NULL, NULL);
    size_t sent = 0, got = 0;
    ssize_t len;
    /* For 2 s there is no room. */
    while ((len = tpa_send(s, much, sizeof much, 0)) > 0)
        sent += (size_t)len;
    CHECK(errno == EAGAIN);
    struct tpa_pollfd one = {.handle = s, .events = TPA_POLLIN};
    CHECK(tpa_poll(&one, 1, 500) == 0);
    CHECK(tpa_shutdown(s, TPA_SHUT_WR) == 0);
    while ((len = read(server, much, sizeof much)) > 0)
        got += (size_t)len;
    CHECK(len == 0 && got == sent);
    CHECK(tpa_close(s) == 0 && close(server) == 0 && close(listener) == 0);
}

int main(void)
{
    alarm(120);
    both_ends(TPA_PROTOCOL_TPA);
    both_ends(TPA_PROTOCOL_TPA_OR_TCP);
    a_peer_without_tpa();
    without_waiting();
    without_waiting_for_tpa();
    threads();
    a_port_of_our_own();
    failures();
    a_limit();
    a_peer_that_does_not_read();
    return 0;
}
