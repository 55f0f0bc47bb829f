/* Ended connections leave no descriptors and no threads. */
#include "check.h"
#include <dirent.h>

/* Returns the number of entries of a folder. */
static int count(const char *folder)
{
    int entries = 0;
    DIR *opened = opendir(folder);
    CHECK(opened);
    while (readdir(opened))
        entries++;
    CHECK(closedir(opened) == 0);
    return entries;
}

static void come_and_go(int times)
{
    for (int i = 0; i < times; i++) {
        int client, server;
        char bytes[1000] = {0};
        struct tpa_pollfd both[2];
        pair(&client, &server);
        CHECK(tpa_send(client, bytes, sizeof bytes, 0) == sizeof bytes);
        both[0] = (struct tpa_pollfd){.handle = client, .events = TPA_POLLIN};
        both[1] = (struct tpa_pollfd){.handle = server, .events = TPA_POLLIN};
        CHECK(tpa_poll(both, 2, 10000) == 1 && both[1].revents == TPA_POLLIN);
        CHECK(tpa_recv(server, bytes, sizeof bytes, 0) > 0);
        if (i % 2 == 0) {
            CHECK(tpa_abort(client) == 0 && tpa_abort(server) == 0);
        } else {
            CHECK(set_int(server, TPA_NONBLOCK, 1) == 0);
            CHECK(tpa_close(server) == 0 && tpa_close(client) == 0);
        }
        int fresh = tpa_socket(), called = with_psk(7);
        struct sockaddr_in nobody = loopback(9);
        CHECK(set_int(called, TPA_NONBLOCK, 1) == 0);
        FAILS(connecting(called, &nobody), EINPROGRESS);
        CHECK(tpa_close(fresh) == 0 && tpa_close(called) == 0);
    }
}

int main(void)
{
    alarm(100);
    /* Creates the descriptors of each polling thread, and those that are created once. */
    come_and_go(1);
    int threads, descriptors, tries = 0;
    do {
        usleep(50000);
        threads = count("/proc/self/task");
    } while (threads > 3 && ++tries < 1000);
    CHECK(threads == 3); /* This thread, `.` and `..`. */
    descriptors = count("/proc/self/fd");
    come_and_go(60);
    do {
        usleep(50000);
        threads = count("/proc/self/task");
    } while (threads > 3 && ++tries < 1000);
    CHECK(threads == 3);
    CHECK(count("/proc/self/fd") == descriptors);
    printf("%d ms\n", tries * 50);
    return 0;
}
