/* Sends a file over TPA-wide: send HOST PORT KEY FILE. KEY is a file with 64 hexadecimal digits that both ends share, as
 * `openssl rand -hex 32` prints them. Only its owner may have access to it. */
#define _POSIX_C_SOURCE 200809L
#include <hopline.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the message of the last failed call. */
static int complain(void)
{
    fprintf(stderr, "send: %s\n", tpa_last_error());
    return -1;
}

/* Connects a new socket to the first address of `host` that answers. Returns its handle, or -1. */
static int connect_to(const char *host, const char *port, const char *key)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
    int patience_ms = 10000;
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed) {
        fprintf(stderr, "send: %s: %s\n", host, gai_strerror(failed));
        return -1;
    }
    int s = -1;
    for (struct addrinfo *at = found; at && s < 0; at = at->ai_next) {
        s = tpa_socket();
        if (s < 0)
            break;
        if (tpa_setsockopt(s, TPA_PSK_FILE, key, (socklen_t)strlen(key)) < 0 ||
            tpa_setsockopt(s, TPA_CONNECT_TIMEOUT, &patience_ms, sizeof patience_ms) < 0 ||
            tpa_connect(s, at->ai_addr, at->ai_addrlen) < 0) {
            complain();
            tpa_abort(s);
            s = -1;
        }
    }
    freeaddrinfo(found);
    return s;
}

/* Sends all of `file`. */
static int send_all(int s, FILE *file, const char *name)
{
    static char buffer[65536];
    size_t len;
    while ((len = fread(buffer, 1, sizeof buffer, file)) > 0) {
        /* A socket that waits accepts everything, unless the connection fails. */
        if (tpa_send(s, buffer, len, 0) != (ssize_t)len)
            return complain();
    }
    if (ferror(file)) {
        perror(name);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: send HOST PORT KEY FILE\n");
        return 2;
    }
    FILE *file = fopen(argv[4], "rb");
    if (!file) {
        perror(argv[4]);
        return 2;
    }
    int s = connect_to(argv[1], argv[2], argv[3]);
    if (s < 0) {
        fclose(file);
        return 1;
    }
    int failed = send_all(s, file, argv[4]);
    fclose(file);
    if (failed) {
        /* Part of a file must not look like a whole one: the receiver gets a reset, and not the end of the stream. */
        tpa_abort(s);
        return 1;
    }
    struct tpa_info info = {.size = sizeof info};
    tpa_info(s, &info);
    /* Waits until the receiver has everything. */
    if (tpa_close(s) < 0) {
        complain();
        return 1;
    }
    printf("sent, %.3f ms round trip, %llu packets of %llu sent again\n", (double)info.srtt_us / 1000,
           (unsigned long long)info.retransmissions, (unsigned long long)info.packets_sent);
    return 0;
}
