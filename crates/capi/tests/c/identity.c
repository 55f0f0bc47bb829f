/* Authentication of peers. Files are created in the folder given as argument, which contains XDG_CONFIG_HOME. */
#include "check.h"
#include <pthread.h>
#include <sys/stat.h>

static char folder[256];

static const char *in_folder(const char *name)
{
    static char path[4][300];
    static int next;
    char *place = path[next++ % 4];
    snprintf(place, sizeof path[0], "%s/%s", folder, name);
    return place;
}

/* Creates a file of a private key. */
static const char *key(const char *name, int digit)
{
    const char *path = in_folder(name);
    FILE *file = fopen(path, "w");
    CHECK(file);
    fputs("private:", file);
    for (int i = 0; i < 64; i++)
        fputc(digit, file);
    fputc('\n', file);
    CHECK(fclose(file) == 0 && chmod(path, 0600) == 0);
    return path;
}

static void *accept_and_drop(void *listener)
{
    int s;
    while ((s = tpa_accept(*(int *)listener, NULL, NULL)) >= 0) {
        char byte;
        tpa_recv(s, &byte, 1, 0);
        tpa_abort(s);
    }
    return NULL;
}

static int client(void)
{
    int s = tpa_socket();
    CHECK(set_text(s, TPA_KEY_FILE, in_folder("client")) == 0);
    CHECK(set_text(s, TPA_PEER_NAME, "server") == 0);
    CHECK(set_int(s, TPA_CONNECT_TIMEOUT, 20000) == 0);
    return s;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at, other_at;
    char ours[TPA_FINGERPRINT_LEN], wrong[] = "0000-1111-2222-3333-4444-5555-6666-7777";
    socklen_t len = sizeof ours;
    alarm(100);
    CHECK(argc == 2);
    snprintf(folder, sizeof folder, "%s", argv[1]);
    CHECK(setenv("XDG_CONFIG_HOME", in_folder("settings"), 1) == 0);

    int s = tpa_socket();
    FAILS(tpa_listen(s, 1), ENOENT);
    SAYS("hopline key new");
    const char *open = key("open", '5');
    CHECK(chmod(open, 0644) == 0);
    FAILS(set_text(s, TPA_KEY_FILE, open), EACCES);
    FAILS(set_text(s, TPA_PSK_FILE, key("client", '2')), EINVAL);
    FAILS(set_text(s, TPA_KNOWN_PEERS, in_folder("client")), EINVAL);
    CHECK(!strstr(tpa_last_error(), "22222222")); /* The message contains no secret. */
    CHECK(tpa_close(s) == 0);

    int server = tpa_socket(), other = tpa_socket();
    CHECK(set_text(server, TPA_KEY_FILE, key("server", '3')) == 0);
    CHECK(set_text(other, TPA_KEY_FILE, key("other", '4')) == 0);
    CHECK(tpa_getsockopt(server, TPA_FINGERPRINT, ours, &len) == 0 && len == sizeof ours);
    listening(server, &at);
    listening(other, &other_at);
    pthread_t threads[2];
    CHECK(pthread_create(&threads[0], NULL, accept_and_drop, &server) == 0);
    CHECK(pthread_create(&threads[1], NULL, accept_and_drop, &other) == 0);

    /* An unknown peer is rejected, with its fingerprint in the message. */
    FAILS(connecting(s = client(), &at), EACCES);
    SAYS(ours);
    CHECK(tpa_close(s) == 0);
    /* Accepted by its fingerprint, and by no other. */
    CHECK(set_text(s = client(), TPA_TRUST, wrong) == 0);
    FAILS(connecting(s, &at), EACCES);
    SAYS(ours);
    CHECK(set_text(s, TPA_TRUST, ours) == 0);
    CHECK(connecting(s, &at) == 0);
    struct tpa_info info = {.size = sizeof info};
    CHECK(tpa_info(s, &info) == 0 && info.size == sizeof info && info.state == TPA_STATE_OPEN);
    CHECK(strcmp(info.peer_fingerprint, ours) == 0);
    CHECK(tpa_abort(s) == 0);
    /* Trusted on first use, and known from then on; also without waiting. */
    CHECK(set_int(s = client(), TPA_TRUST_ON_FIRST_USE, 1) == 0 && set_int(s, TPA_NONBLOCK, 1) == 0);
    FAILS(connecting(s, &at), EINPROGRESS);
    struct tpa_pollfd one = {.handle = s, .events = TPA_POLLOUT};
    CHECK(tpa_poll(&one, 1, 20000) == 1 && one.revents == TPA_POLLOUT);
    CHECK(get_int(s, TPA_ERROR) == 0);
    CHECK(tpa_abort(s) == 0);
    CHECK(access(in_folder("settings/hopline/known_peers"), F_OK) == 0);
    CHECK(connecting(s = client(), &at) == 0);
    CHECK(tpa_abort(s) == 0);
    /* Another peer under that name is rejected, also with trust on first use. */
    CHECK(set_int(s = client(), TPA_TRUST_ON_FIRST_USE, 1) == 0);
    FAILS(connecting(s, &other_at), EACCES);
    SAYS("somebody else answered");
    CHECK(tpa_close(s) == 0);
    /* A listener accepts only the peers in its file. An initiator may learn of the rejection only after its last message. */
    int strict = tpa_socket();
    CHECK(set_text(strict, TPA_KEY_FILE, in_folder("server")) == 0);
    CHECK(set_text(strict, TPA_KNOWN_PEERS, in_folder("settings/hopline/known_peers")) == 0);
    listening(strict, &at);
    if (connecting(s = client(), &at) == 0) {
        char byte;
        FAILS(tpa_recv(s, &byte, 1, 0), ECONNREFUSED);
    }
    CHECK(errno == ECONNREFUSED);
    SAYS("our key is none of those that it trusts");
    CHECK(set_int(strict, TPA_NONBLOCK, 1) == 0);
    FAILS(tpa_accept(strict, NULL, NULL), EAGAIN);
    CHECK(tpa_abort(s) == 0 && tpa_close(strict) == 0);

    CHECK(tpa_close(server) == 0 && tpa_close(other) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
    return 0;
}
