/* While one thread waits in a call, other threads continue, and can end the call. */
#include "check.h"
#include <pthread.h>
#include <signal.h>

enum { MUCH = 3000000 };

static int client, server, listener;

static void *receive(void *result)
{
    char byte;
    *(ssize_t *)result = tpa_recv(client, &byte, 1, 0);
    return NULL;
}

static void *accept_one(void *result)
{
    *(int *)result = tpa_accept(listener, NULL, NULL) < 0 ? errno : 0;
    return NULL;
}

static void *send_much(void *socket)
{
    static char bytes[MUCH];
    for (int i = 0; i < MUCH; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    CHECK(tpa_send(*(int *)socket, bytes, MUCH, 0) == MUCH);
    CHECK(tpa_shutdown(*(int *)socket, TPA_SHUT_WR) == 0);
    return NULL;
}

static void receive_much(int s)
{
    static char bytes[7777];
    int got = 0;
    ssize_t len;
    while ((len = tpa_recv(s, bytes, sizeof bytes, 0)) > 0)
        for (ssize_t i = 0; i < len; i++, got++)
            CHECK(bytes[i] == (char)(got * 31 + got / 251));
    CHECK(len == 0 && got == MUCH);
}

static void on_signal(int number)
{
    (void)number;
}

int main(void)
{
    pthread_t thread, others[2];
    ssize_t received = -2;
    int accepted = -1, signals = 0;
    sigset_t pending;
    alarm(60);

    /* While one thread waits to receive, another sends on the same handle, and closes other handles. */
    pair(&client, &server);
    CHECK(pthread_create(&thread, NULL, receive, &received) == 0);
    CHECK(pthread_create(&others[0], NULL, send_much, &client) == 0);
    receive_much(server);
    CHECK(pthread_join(others[0], NULL) == 0);
    int a, b;
    pair(&a, &b);
    CHECK(tpa_close(a) == 0 && tpa_close(b) == 0);
    CHECK(tpa_shutdown(client, TPA_SHUT_RD) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && received == 0);
    CHECK(tpa_close(server) == 0 && tpa_close(client) == 0);

    /* Both directions at once, each end with two threads. */
    pair(&client, &server);
    CHECK(pthread_create(&others[0], NULL, send_much, &client) == 0);
    CHECK(pthread_create(&others[1], NULL, send_much, &server) == 0);
    receive_much(server);
    receive_much(client);
    CHECK(pthread_join(others[0], NULL) == 0 && pthread_join(others[1], NULL) == 0);
    CHECK(tpa_close(client) == 0 && tpa_close(server) == 0);

    /* Another thread ends a connection, and a listener. */
    pair(&client, &server);
    CHECK(pthread_create(&thread, NULL, receive, &received) == 0);
    usleep(50000);
    CHECK(tpa_abort(client) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && received == -1);
    CHECK(tpa_abort(server) == 0);
    struct sockaddr_in at;
    listener = with_psk(7);
    listening(listener, &at);
    CHECK(pthread_create(&thread, NULL, accept_one, &accepted) == 0);
    usleep(50000);
    CHECK(tpa_close(listener) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && accepted == EBADF);

    /* Threads of the library receive no signals: a signal that this thread blocks stays pending. */
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pair(&client, &server);
    CHECK(pthread_sigmask(SIG_BLOCK, &usr1, NULL) == 0);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    usleep(50000);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
    CHECK(sigwait(&usr1, &signals) == 0 && signals == SIGUSR1);
    CHECK(tpa_abort(client) == 0 && tpa_abort(server) == 0);
    return 0;
}
