/* Several sockets that never wait, in a loop of tpa_poll, against an echo server: poll PORT KEY. */
#include "check.h"

enum { PEERS = 3, MUCH = 2000000 };

struct conversation {
    int s;
    size_t sent, got;
};

static char byte_at(size_t i)
{
    return (char)(i * 31 + i / 251);
}

static void progress(struct conversation *c, struct tpa_pollfd *at)
{
    char bytes[50000];
    CHECK(!(at->revents & (TPA_POLLERR | TPA_POLLNVAL)));
    if (at->revents & TPA_POLLOUT && c->sent < MUCH) {
        size_t len = MUCH - c->sent < sizeof bytes ? MUCH - c->sent : sizeof bytes;
        for (size_t i = 0; i < len; i++)
            bytes[i] = byte_at(c->sent + i);
        ssize_t sent = tpa_send(c->s, bytes, len, 0);
        CHECK(sent > 0);
        c->sent += (size_t)sent;
        if (c->sent == MUCH)
            CHECK(tpa_shutdown(c->s, TPA_SHUT_WR) == 0);
    }
    if (at->revents & TPA_POLLIN) {
        ssize_t len = tpa_recv(c->s, bytes, sizeof bytes, 0);
        CHECK(len >= 0);
        for (ssize_t i = 0; i < len; i++, c->got++)
            CHECK(bytes[i] == byte_at(c->got));
        if (len == 0) {
            CHECK(c->got == MUCH && tpa_close(c->s) == 0);
            at->handle = -1;
        }
    }
    at->events = c->sent < MUCH ? TPA_POLLIN | TPA_POLLOUT : TPA_POLLIN;
}

int main(int argc, char **argv)
{
    struct conversation all[PEERS] = {0};
    struct tpa_pollfd polled[PEERS];
    alarm(60);
    CHECK(argc == 3);
    struct sockaddr_in at = loopback(atoi(argv[1]));
    for (int i = 0; i < PEERS; i++) {
        int s = all[i].s = tpa_socket();
        CHECK(set_text(s, TPA_PSK_FILE, argv[2]) == 0 && set_int(s, TPA_NONBLOCK, 1) == 0);
        FAILS(connecting(s, &at), EINPROGRESS);
        char byte;
        if (tpa_recv(s, &byte, 1, 0) < 0)
            CHECK(errno == EAGAIN);
        polled[i] = (struct tpa_pollfd){.handle = s, .events = TPA_POLLOUT};
    }
    int left = PEERS, calls = 0;
    while (left > 0) {
        CHECK(tpa_poll(polled, PEERS, 30000) > 0);
        calls++;
        left = 0;
        for (int i = 0; i < PEERS; i++) {
            if (polled[i].handle >= 0)
                progress(&all[i], &polled[i]);
            left += polled[i].handle >= 0;
        }
    }
    printf("%d calls\n", calls);
    /* It returns when a socket is ready: without waiting, it would be called far more often. */
    CHECK(calls < 100000);
    return 0;
}
