/* Shared code of the test programs. */
#ifndef CHECK_H
#define CHECK_H

/* With -std=c11 the headers declare only standard C. */
#define _DEFAULT_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <hopline.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Checks a condition. The alarm ends a program that hangs. */
#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            fprintf(stderr, "%s:%d: %s: errno %d (%s), \"%s\"\n", __FILE__, __LINE__, #holds, errno, strerror(errno),  \
                    tpa_last_error());                                                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Checks that a call fails with this errno, and sets an error message. */
#define FAILS(call, code)                                                                                              \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        long long result = (long long)(call);                                                                          \
        if (result != -1 || errno != (code) || !*tpa_last_error()) {                                                   \
            fprintf(stderr, "%s:%d: %s: %lld, errno %d (%s) and not %s, \"%s\"\n", __FILE__, __LINE__, #call, result,  \
                    errno, strerror(errno), #code, tpa_last_error());                                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define SAYS(part) CHECK(strstr(tpa_last_error(), part))

static inline int set_int(int s, int option, int value)
{
    return tpa_setsockopt(s, option, &value, sizeof value);
}

static inline int get_int(int s, int option)
{
    int value = -1;
    socklen_t len = sizeof value;
    CHECK(tpa_getsockopt(s, option, &value, &len) == 0 && len == sizeof value);
    return value;
}

static inline int set_text(int s, int option, const char *text)
{
    return tpa_setsockopt(s, option, text, (socklen_t)strlen(text));
}

/* Returns a new socket with a shared key of 32 such bytes. */
static inline int with_psk(int byte)
{
    unsigned char key[32];
    memset(key, byte, sizeof key);
    int s = tpa_socket();
    CHECK(s >= 0);
    CHECK(tpa_setsockopt(s, TPA_PSK, key, sizeof key) == 0);
    return s;
}

static inline struct sockaddr_in loopback(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

/* Makes `s` listen on a free port of the loopback interface, and stores its address in `at`. */
static inline void listening(int s, struct sockaddr_in *at)
{
    socklen_t len = sizeof *at;
    *at = loopback(0);
    CHECK(tpa_bind(s, (struct sockaddr *)at, len) == 0);
    CHECK(tpa_listen(s, 8) == 0);
    CHECK(tpa_getsockname(s, (struct sockaddr *)at, &len) == 0 && len == sizeof *at);
    CHECK(at->sin_port != 0);
}

static inline int connecting(int s, const struct sockaddr_in *at)
{
    return tpa_connect(s, (const struct sockaddr *)at, sizeof *at);
}

/* Creates both ends of a connection. */
static inline void pair(int *client, int *server)
{
    struct sockaddr_in at;
    int listener = with_psk(7);
    listening(listener, &at);
    *client = with_psk(7);
    CHECK(connecting(*client, &at) == 0);
    *server = tpa_accept(listener, NULL, NULL);
    CHECK(*server >= 0);
    CHECK(tpa_close(listener) == 0);
}

#endif
