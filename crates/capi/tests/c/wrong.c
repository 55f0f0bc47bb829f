/* Wrong calls return errors, never crash, and do not affect other sockets. */
#include "check.h"
#include <sys/un.h>

static void handles(void)
{
    int closed = tpa_socket(), files[2];
    CHECK(closed >= 0 && tpa_close(closed) == 0);
    CHECK(pipe(files) == 0);
    int wrong[] = {-1, -2147483647 - 1, 2147483647, 0, closed, files[0]};
    struct sockaddr_in at = loopback(9);
    struct tpa_info info = {.size = sizeof info};
    char byte = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int s = wrong[i], value = 1;
        socklen_t len = sizeof at;
        FAILS(set_int(s, TPA_NONBLOCK, 1), EBADF);
        FAILS(tpa_getsockopt(s, TPA_NONBLOCK, &value, &len), EBADF);
        FAILS(tpa_bind(s, (struct sockaddr *)&at, sizeof at), EBADF);
        FAILS(tpa_listen(s, 1), EBADF);
        FAILS(tpa_accept(s, NULL, NULL), EBADF);
        FAILS(connecting(s, &at), EBADF);
        FAILS(tpa_send(s, &byte, 1, 0), EBADF);
        FAILS(tpa_recv(s, &byte, 1, 0), EBADF);
        FAILS(tpa_shutdown(s, TPA_SHUT_WR), EBADF);
        FAILS(tpa_getsockname(s, (struct sockaddr *)&at, &len), EBADF);
        FAILS(tpa_getpeername(s, (struct sockaddr *)&at, &len), EBADF);
        FAILS(tpa_info(s, &info), EBADF);
        FAILS(tpa_close(s), EBADF);
        FAILS(tpa_abort(s), EBADF);
        struct tpa_pollfd one = {.handle = s, .events = TPA_POLLIN};
        CHECK(tpa_poll(&one, 1, 0) == (s < 0 ? 0 : 1));
        CHECK(one.revents == (s < 0 ? 0 : TPA_POLLNVAL));
    }
    close(files[0]);
    close(files[1]);
}

static void pointers_and_lengths(int client)
{
    int s = with_psk(7), value;
    struct sockaddr_in at = loopback(9);
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    socklen_t len = 1;
    FAILS(tpa_setsockopt(s, TPA_NONBLOCK, NULL, sizeof value), EFAULT);
    FAILS(tpa_getsockopt(s, TPA_NONBLOCK, &value, NULL), EFAULT);
    FAILS(tpa_getsockopt(s, TPA_NONBLOCK, NULL, &(socklen_t){4}), EFAULT);
    FAILS(tpa_getsockopt(s, TPA_NONBLOCK, &value, &len), EINVAL);
    FAILS(tpa_setsockopt(s, TPA_NONBLOCK, &value, 3), EINVAL);
    FAILS(tpa_setsockopt(s, TPA_PSK, "short", 5), EINVAL);
    FAILS(tpa_setsockopt(s, TPA_TRUST, "nonsense", 8), EINVAL);
    FAILS(set_int(s, TPA_RECV_TIMEOUT, -1), EINVAL);
    FAILS(set_int(s, 0, 1), ENOPROTOOPT);
    FAILS(set_int(s, 4711, 1), ENOPROTOOPT);
    FAILS(set_int(s, TPA_ERROR, 1), ENOPROTOOPT);
    FAILS(set_text(s, TPA_PSK_FILE, "/does/not/exist"), ENOENT);
    FAILS(tpa_bind(s, NULL, sizeof at), EFAULT);
    FAILS(tpa_connect(s, NULL, sizeof at), EFAULT);
    FAILS(tpa_connect(s, (struct sockaddr *)&at, 1), EINVAL);
    FAILS(tpa_connect(s, (struct sockaddr *)&at, 15), EINVAL);
    FAILS(tpa_connect(s, (struct sockaddr *)&path, sizeof path), EAFNOSUPPORT);
    FAILS(tpa_send(client, NULL, 1, 0), EFAULT);
    FAILS(tpa_recv(client, NULL, 1, 0), EFAULT);
    FAILS(tpa_send(client, &value, (size_t)-1, 0), EINVAL);
    FAILS(tpa_send(client, &value, 1, 1), EINVAL);
    FAILS(tpa_recv(client, &value, 1, 1), EINVAL);
    FAILS(tpa_getpeername(client, NULL, &len), EFAULT);
    FAILS(tpa_getpeername(client, (struct sockaddr *)&at, NULL), EFAULT);
    FAILS(tpa_info(client, NULL), EFAULT);
    FAILS(tpa_info(client, &(struct tpa_info){.size = 15}), EINVAL);
    FAILS(tpa_poll(NULL, 1, 0), EFAULT);
    CHECK(tpa_poll(NULL, 0, 0) == 0);
    CHECK(tpa_send(client, NULL, 0, 0) == 0 && tpa_recv(client, NULL, 0, 0) == 0);
    CHECK(tpa_close(s) == 0);
}

static void states(void)
{
    int listener = with_psk(7), fresh = with_psk(7), value = 0;
    struct sockaddr_in at, other = loopback(0);
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(9)};
    socklen_t len = sizeof other;
    FAILS(tpa_send(fresh, &value, 1, 0), ENOTCONN);
    FAILS(tpa_recv(fresh, &value, 1, 0), ENOTCONN);
    FAILS(tpa_shutdown(fresh, TPA_SHUT_WR), ENOTCONN);
    FAILS(tpa_accept(fresh, NULL, NULL), EINVAL);
    FAILS(tpa_info(fresh, &(struct tpa_info){.size = sizeof(struct tpa_info)}), ENOTCONN);
    FAILS(tpa_getsockname(fresh, (struct sockaddr *)&other, &len), EINVAL);
    FAILS(tpa_getpeername(fresh, (struct sockaddr *)&other, &len), ENOTCONN);
    listening(listener, &at);
    FAILS(tpa_listen(listener, 1), EINVAL);
    FAILS(tpa_bind(listener, (struct sockaddr *)&at, sizeof at), EINVAL);
    FAILS(tpa_bind(fresh, (struct sockaddr *)&at, sizeof at), EADDRINUSE);
    FAILS(connecting(listener, &at), EINVAL);
    FAILS(tpa_send(listener, &value, 1, 0), ENOTCONN);
    CHECK(connecting(fresh, &at) == 0);
    FAILS(connecting(fresh, &at), EISCONN);
    FAILS(tpa_listen(fresh, 1), EINVAL);
    FAILS(tpa_shutdown(fresh, 9), EINVAL);
    CHECK(set_int(fresh, TPA_RECV_TIMEOUT, 20) == 0);
    FAILS(tpa_recv(fresh, &value, 1, 0), EAGAIN);
    CHECK(tpa_shutdown(fresh, TPA_SHUT_WR) == 0);
    FAILS(tpa_send(fresh, &value, 1, 0), EPIPE); /* No SIGPIPE. */
    CHECK(tpa_abort(fresh) == 0);
    CHECK(tpa_close(listener) == 0);
    int bound = with_psk(7);
    other = loopback(0);
    CHECK(tpa_bind(bound, (struct sockaddr *)&other, sizeof other) == 0);
    FAILS(tpa_connect(bound, (struct sockaddr *)&v6, sizeof v6), EAFNOSUPPORT);
    CHECK(tpa_close(bound) == 0);
}

/* A program must not close a handle by close. If it does, nothing crashes, and other sockets are not affected. */
static void closed_behind_our_back(void)
{
    int lost = tpa_socket();
    CHECK(close(lost) == 0);
    int found = tpa_socket();
    CHECK(found == lost);
    CHECK(set_int(found, TPA_NONBLOCK, 1) == 0 && get_int(found, TPA_NONBLOCK) == 1);
    CHECK(tpa_close(found) == 0);
}

int main(void)
{
    int client, server;
    char byte = 'x';
    alarm(60);
    CHECK(*tpa_last_error() == 0);
    CHECK(strcmp(tpa_version(), VERSION) == 0);
    pair(&client, &server);
    handles();
    pointers_and_lengths(client);
    states();
    closed_behind_our_back();
    CHECK(tpa_send(client, &byte, 1, 0) == 1);
    byte = 0;
    CHECK(tpa_recv(server, &byte, 1, 0) == 1 && byte == 'x');
    CHECK(tpa_abort(server) == 0 && tpa_abort(client) == 0);
    return 0;
}
