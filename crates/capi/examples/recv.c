/* Receives one file over TPA-wide: recv ADDRESS PORT KEY FILE. KEY is a file with 64 hexadecimal digits that both ends share.
 * FILE is overwritten, and removed if the transfer is not complete. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <hopline.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(void)
{
    fprintf(stderr, "recv: %s\n", tpa_last_error());
    return -1;
}

/* Returns a listening socket, or -1. */
static int listen_at(const char *address, const char *port, const char *key)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM}, *found;
    int failed = getaddrinfo(address, port, &hints, &found);
    if (failed) {
        fprintf(stderr, "recv: %s: %s\n", address, gai_strerror(failed));
        return -1;
    }
    int s = tpa_socket();
    if (s < 0 || tpa_setsockopt(s, TPA_PSK_FILE, key, (socklen_t)strlen(key)) < 0 ||
        tpa_bind(s, found->ai_addr, found->ai_addrlen) < 0 || tpa_listen(s, 1) < 0) {
        complain();
        tpa_abort(s);
        s = -1;
    }
    freeaddrinfo(found);
    return s;
}

/* Prints the address of the listener: with port 0 the system has selected a free port. */
static int announce(int s)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    char host[64], port[8];
    if (tpa_getsockname(s, (struct sockaddr *)&at, &len) < 0)
        return complain();
    getnameinfo((struct sockaddr *)&at, len, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    printf("listening on %s port %s\n", host, port);
    return fflush(stdout);
}

/* Writes the received data to `file`. Returns the number of bytes, or -1. */
static long long receive_all(int s, FILE *file)
{
    static char buffer[65536];
    long long all = 0;
    ssize_t len;
    while ((len = tpa_recv(s, buffer, sizeof buffer, 0)) > 0) {
        if (fwrite(buffer, 1, (size_t)len, file) != (size_t)len) {
            perror("recv: writing");
            return -1;
        }
        all += len;
    }
    return len < 0 ? complain() : all;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: recv ADDRESS PORT KEY FILE\n");
        return 2;
    }
    int listener = listen_at(argv[1], argv[2], argv[3]);
    if (listener < 0 || announce(listener) < 0)
        return 1;
    int s = tpa_accept(listener, NULL, NULL);
    if (s < 0) {
        complain();
        return 1;
    }
    tpa_close(listener);
    FILE *file = fopen(argv[4], "wb");
    long long all = -1;
    if (file) {
        all = receive_all(s, file);
        if (fclose(file) != 0)
            all = -1;
    } else {
        perror(argv[4]);
    }
    if (all < 0) {
        tpa_abort(s);
        remove(argv[4]);
        return 1;
    }
    tpa_close(s);
    printf("received %lld bytes\n", all);
    return 0;
}
