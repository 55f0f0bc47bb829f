/* Failures of the network and the peer are reported with the right errors. */
#include "check.h"
#include <sys/wait.h>

static void another_psk(void)
{
    struct sockaddr_in at;
    int listener = with_psk(7), s = with_psk(8);
    listening(listener, &at);
    CHECK(set_int(s, TPA_CONNECT_TIMEOUT, 300) == 0);
    FAILS(connecting(s, &at), ETIMEDOUT);
    SAYS("shared key");
    /* With the right key the same socket connects. */
    unsigned char key[32];
    memset(key, 7, sizeof key);
    CHECK(tpa_setsockopt(s, TPA_PSK, key, sizeof key) == 0);
    CHECK(set_int(s, TPA_CONNECT_TIMEOUT, 0) == 0);
    CHECK(connecting(s, &at) == 0);
    CHECK(tpa_abort(s) == 0 && tpa_close(listener) == 0);
}

static void nobody(void)
{
    struct sockaddr_in at;
    int listener = with_psk(7), s = with_psk(7), t = with_psk(7);
    listening(listener, &at);
    CHECK(tpa_close(listener) == 0);
    /* Its thread releases the port when it ends. Until then the port is open, and does not answer. */
    CHECK(set_int(s, TPA_CONNECT_TIMEOUT, 200) == 0);
    for (int tries = 0; tries < 50; tries++) {
        CHECK(connecting(s, &at) == -1);
        if (errno == ECONNREFUSED)
            break;
    }
    CHECK(errno == ECONNREFUSED);
    CHECK(set_int(t, TPA_NONBLOCK, 1) == 0);
    FAILS(connecting(t, &at), EINPROGRESS);
    struct tpa_pollfd one = {.handle = t, .events = TPA_POLLOUT};
    CHECK(tpa_poll(&one, 1, 10000) == 1 && one.revents & TPA_POLLERR);
    CHECK(get_int(t, TPA_ERROR) == ECONNREFUSED);
    CHECK(get_int(t, TPA_ERROR) == 0);
    CHECK(tpa_close(s) == 0 && tpa_close(t) == 0);
}

static void a_peer_that_resets(void)
{
    int client, server;
    char bytes[4096] = {0};
    pair(&client, &server);
    CHECK(tpa_abort(server) == 0);
    FAILS(tpa_recv(client, bytes, sizeof bytes, 0), ECONNRESET);
    FAILS(tpa_send(client, bytes, sizeof bytes, 0), ECONNRESET);
    struct tpa_pollfd one = {.handle = client, .events = TPA_POLLIN};
    CHECK(tpa_poll(&one, 1, 0) == 1 && one.revents == (TPA_POLLIN | TPA_POLLHUP));
    FAILS(tpa_close(client), ECONNRESET);
    FAILS(tpa_close(client), EBADF);
}

static ssize_t send_for_ever(int s)
{
    static char bytes[100000];
    ssize_t sent;
    while ((sent = tpa_send(s, bytes, sizeof bytes, 0)) > 0)
        ;
    return sent;
}

/* Starts a process that listens, accepts, reads a byte and dies. Stores its address in `at`. */
static pid_t mortal(struct sockaddr_in *at)
{
    int said[2];
    CHECK(pipe(said) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char byte;
        int listener = with_psk(7);
        listening(listener, at);
        CHECK(write(said[1], at, sizeof *at) == sizeof *at);
        int s = tpa_accept(listener, NULL, NULL);
        CHECK(tpa_recv(s, &byte, 1, 0) == 1);
        _exit(0);
    }
    CHECK(read(said[0], at, sizeof *at) == sizeof *at);
    close(said[0]);
    close(said[1]);
    return child;
}

static void a_peer_that_dies(void)
{
    /* Both are forked before this process has threads of the library. */
    struct sockaddr_in at[2];
    pid_t children[] = {mortal(&at[0]), mortal(&at[1])};
    int status, s = with_psk(7);
    CHECK(connecting(s, &at[0]) == 0);
    CHECK(set_int(s, TPA_SEND_TIMEOUT, 300) == 0 && set_int(s, TPA_CLOSE_TIMEOUT, 300) == 0);
    FAILS(send_for_ever(s), EAGAIN);
    CHECK(waitpid(children[0], &status, 0) == children[0] && status == 0);
    FAILS(tpa_close(s), ETIMEDOUT);
    FAILS(tpa_close(s), EBADF);

    s = with_psk(7);
    CHECK(set_int(s, TPA_SILENCE, 1000) == 0);
    CHECK(connecting(s, &at[1]) == 0);
    FAILS(send_for_ever(s), ETIMEDOUT);
    CHECK(waitpid(children[1], &status, 0) == children[1] && status == 0);
    FAILS(tpa_close(s), ETIMEDOUT);
}

int main(void)
{
    alarm(100);
    a_peer_that_dies();
    another_psk();
    nobody();
    a_peer_that_resets();
    return 0;
}
