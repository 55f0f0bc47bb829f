/* Echo server for any number of peers, in an own epoll loop with sockets that never wait: echo PORT KEY [PEERS].
 * It ends once PEERS peers have connected and closed. */
#include <errno.h>
#include <hopline.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* A peer, and the data received from it that are still to be sent back. */
struct peer {
    int s;
    int ended;
    size_t len, sent;
    struct peer *next;
    char data[16384];
};

static int fail(void)
{
    fprintf(stderr, "echo: %s\n", tpa_last_error());
    return 1;
}

static int watch(int loop, int s, struct peer *peer)
{
    /* Edge-triggered: the handle of a peer that sends without reading would otherwise be readable all the time. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = peer};
    return epoll_ctl(loop, EPOLL_CTL_ADD, s, &event);
}

/* Serves a peer without waiting. The handle becomes readable when there is something to receive, and when there is room again
 * after a tpa_send that accepted less than all. So both are tried until they would wait. Returns whether the peer may
 * send more. */
static int serve(struct peer *peer)
{
    for (;;) {
        while (peer->sent < peer->len) {
            ssize_t sent = tpa_send(peer->s, peer->data + peer->sent, peer->len - peer->sent, 0);
            if (sent < 0)
                return errno == EAGAIN;
            peer->sent += (size_t)sent;
        }
        if (peer->ended)
            return 0;
        ssize_t len = tpa_recv(peer->s, peer->data, sizeof peer->data, 0);
        if (len < 0)
            return errno == EAGAIN;
        peer->ended = len == 0;
        peer->len = (size_t)len;
        peer->sent = 0;
    }
}

/* Accepts all waiting connections. */
static int welcome(int loop, int listener)
{
    int s, yes = 1;
    while ((s = tpa_accept(listener, NULL, NULL)) >= 0) {
        struct peer *peer = calloc(1, sizeof *peer);
        if (!peer || tpa_setsockopt(s, TPA_NONBLOCK, &yes, sizeof yes) < 0 || watch(loop, s, peer) < 0) {
            free(peer);
            tpa_abort(s);
            continue;
        }
        peer->s = s;
    }
    return errno == EAGAIN ? 0 : fail();
}

/* Ends the direction to a peer. A server that keeps running closes without waiting; one that will end keeps the handle. */
static void finish(int loop, struct peer *peer, struct peer **kept)
{
    epoll_ctl(loop, EPOLL_CTL_DEL, peer->s, NULL);
    if (kept) {
        tpa_shutdown(peer->s, TPA_SHUT_WR);
        peer->next = *kept;
        *kept = peer;
    } else {
        tpa_close(peer->s);
        free(peer);
    }
}

/* Waits until all peers have received everything: data that are not delivered are lost when the process ends. */
static void deliver(struct peer *kept)
{
    int no = 0, patience_ms = 10000;
    while (kept) {
        struct peer *next = kept->next;
        tpa_setsockopt(kept->s, TPA_NONBLOCK, &no, sizeof no);
        tpa_setsockopt(kept->s, TPA_CLOSE_TIMEOUT, &patience_ms, sizeof patience_ms);
        if (tpa_close(kept->s) < 0)
            fail();
        free(kept);
        kept = next;
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: echo PORT KEY [PEERS]\n");
        return 2;
    }
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    socklen_t len = sizeof at;
    struct peer *kept = NULL;
    long left = argc > 3 ? atol(argv[3]) : -1;
    int yes = 1, listener = tpa_socket(), loop = epoll_create1(EPOLL_CLOEXEC);
    if (loop < 0 || listener < 0 || tpa_setsockopt(listener, TPA_NONBLOCK, &yes, sizeof yes) < 0 ||
        tpa_setsockopt(listener, TPA_PSK_FILE, argv[2], (socklen_t)strlen(argv[2])) < 0 ||
        tpa_bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || tpa_listen(listener, 16) < 0 ||
        tpa_getsockname(listener, (struct sockaddr *)&at, &len) < 0 || watch(loop, listener, NULL) < 0)
        return fail();
    printf("listening on port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    while (left != 0) {
        struct epoll_event events[16];
        int ready = epoll_wait(loop, events, 16, -1);
        for (int i = 0; i < ready; i++) {
            struct peer *peer = events[i].data.ptr;
            if (!peer && welcome(loop, listener))
                return 1;
            if (!peer || serve(peer))
                continue;
            finish(loop, peer, left > 0 ? &kept : NULL);
            left -= left > 0;
        }
    }
    tpa_close(listener);
    deliver(kept);
    return 0;
}
