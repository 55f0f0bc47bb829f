/* hopline: TPA-wide over UDP, encrypted streams of bytes; and TPA as published. Made of crates/capi/src by its test `header`; not to be edited.
 *
 * Functions that fail return -1 and set errno; tpa_last_error() says it in words. EBADF: no open handle; EFAULT: a pointer that must not
 * be NULL; EINVAL: a length or a value out of its range, or a call that makes no sense now; ENOTCONN: there is no connection; EAGAIN:
 * it would have to wait, or has waited for as long as it was to; EIO: a mistake in the library.
 */

#ifndef HOPLINE_H
#define HOPLINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/**
 * There is something to receive: data, the end of the stream, an error, or a connection to accept.
 */
#define TPA_POLLIN 1

/**
 * There is room for data to send, or the connection that was begun is open.
 */
#define TPA_POLLOUT 4

/**
 * The connection could not be opened: TPA_ERROR says why. Reported whether or not it was asked for.
 */
#define TPA_POLLERR 8

/**
 * The connection is over, or never was. Reported whether or not it was asked for.
 */
#define TPA_POLLHUP 16

/**
 * No open handle. Reported whether or not it was asked for.
 */
#define TPA_POLLNVAL 32

/**
 * Receive no more: what comes is thrown away.
 */
#define TPA_SHUT_RD 0

/**
 * Send no more: the peer receives to the end of what was sent.
 */
#define TPA_SHUT_WR 1

/**
 * Both.
 */
#define TPA_SHUT_RDWR 2

/**
 * Length of a fingerprint as text, with the final NUL.
 */
#define TPA_FINGERPRINT_LEN 40

/**
 * What tpa_setsockopt sets. Numbers and durations are int; durations are in milliseconds, and 0 is as long as it takes. Texts and paths are
 * as long as is said; a NUL at the end may be counted or not.
 */
enum tpa_option {
    /**
     * A key that both ends share and nobody else has: 32 bytes from a generator of random numbers. It takes the place of a key of our
     * own, and the other way round. Cannot be read.
     */
    TPA_PSK = 1,
    /**
     * The same, from a file with 64 hexadecimal digits, which nobody else may read. Cannot be read.
     */
    TPA_PSK_FILE = 2,
    /**
     * Our own private key, as `hopline key new FILE` makes it. Without any key it is that of the user,
     * $XDG_CONFIG_HOME/hopline/key or ~/.config/hopline/key. Cannot be read.
     */
    TPA_KEY_FILE = 3,
    /**
     * A file of known peers: in each line a name and a public key. Who listens lets in only these, and anyone if there is no such file;
     * who connects knows the peer by it. Without it who connects looks into the file known_peers beside the user's key.
     */
    TPA_KNOWN_PEERS = 4,
    /**
     * What the peer of tpa_connect is called in the file of known peers. Without it ADDRESS:PORT.
     */
    TPA_PEER_NAME = 5,
    /**
     * Connect if the peer's key has this fingerprint.
     */
    TPA_TRUST = 6,
    /**
     * Not 0: a peer that is not known is believed, and added to the file of known peers. Default 0.
     */
    TPA_TRUST_ON_FIRST_USE = 7,
    /**
     * Not 0: nothing waits, and what would have to fails with EAGAIN, tpa_connect with EINPROGRESS. Default 0.
     */
    TPA_NONBLOCK = 8,
    /**
     * Longest wait of tpa_connect, ms. Default 0.
     */
    TPA_CONNECT_TIMEOUT = 9,
    /**
     * Longest wait of tpa_recv and tpa_accept, which then fail with EAGAIN, ms. Default 0.
     */
    TPA_RECV_TIMEOUT = 10,
    /**
     * Longest wait of tpa_send for room, ms. Then it fails with EAGAIN, or returns the number of bytes taken. Default 0.
     */
    TPA_SEND_TIMEOUT = 11,
    /**
     * Longest wait of tpa_close until the peer has everything, ms. Default 0.
     */
    TPA_CLOSE_TIMEOUT = 12,
    /**
     * Silence of the peer after which the connection is given up, ms; set before tpa_connect or tpa_listen. Over TCP a window that
     * stays closed is no silence, and 0 turns keep-alive off. Default 120000.
     */
    TPA_SILENCE = 13,
    /**
     * Only for tpa_getsockopt: the errno of a tpa_connect that failed after EINPROGRESS, which is then forgotten; EINPROGRESS while it
     * goes on; 0 otherwise. An int.
     */
    TPA_ERROR = 14,
    /**
     * Only for tpa_getsockopt: the fingerprint of our key, a text of TPA_FINGERPRINT_LEN bytes with the final NUL.
     */
    TPA_FINGERPRINT = 15,
    /**
     * The protocol, an enum tpa_protocol; set before anything else but options. Default TPA_PROTOCOL_WIDE. Reads as the protocol of the
     * connection once there is one.
     */
    TPA_PROTOCOL = 16,
    /**
     * Largest window of TPA as published, segments: 1 to 12; the paper has 2 or 3. Default 3.
     */
    TPA_CWND_MAX = 17,
    /**
     * Not 0: over TPA as published and TCP what tpa_send takes leaves at once. Default 0: TPA waits until a block is full, for 100 ms at
     * most, and TCP until the peer has what was sent before. No effect over TPA-wide, which does not wait.
     */
    TPA_NODELAY = 18,
};

/**
 * Protocol of a socket.
 */
enum tpa_protocol {
    /**
     * TPA-wide: encrypted, with keys.
     */
    TPA_PROTOCOL_WIDE = 0,
    /**
     * TPA as published, over UDP: without keys, not encrypted.
     */
    TPA_PROTOCOL_TPA = 1,
    /**
     * TPA as published if the peer answers it, else TCP; neither is encrypted. A listener has both, at ports of the same number.
     */
    TPA_PROTOCOL_TPA_OR_TCP = 2,
    /**
     * TCP. Cannot be set: the protocol of an open connection.
     */
    TPA_PROTOCOL_TCP = 3,
};

/**
 * How far a connection is.
 */
enum tpa_state {
    /**
     * It is being opened.
     */
    TPA_STATE_OPENING = 0,
    /**
     * It is open; the peer may have ended its direction.
     */
    TPA_STATE_OPEN = 1,
    /**
     * We have ended our direction.
     */
    TPA_STATE_CLOSING = 2,
    /**
     * It is over.
     */
    TPA_STATE_CLOSED = 3,
};

/**
 * How a connection stands. Later versions add fields at the end.
 */
struct tpa_info {
    /**
     * Before the call: sizeof(struct tpa_info), at least 16. After it: how many bytes were filled in.
     */
    size_t size;
    /**
     * How far it is: an enum tpa_state.
     */
    unsigned int state;
    /**
     * Data of a full packet, bytes.
     */
    unsigned int mss;
    /**
     * Mean round-trip time, microseconds; 0 before the first sample.
     */
    uint64_t srtt_us;
    /**
     * The rate at which packets leave, bits per second with headers; 0 before anything is known of the path.
     */
    uint64_t rate_bps;
    /**
     * Bytes that may be in flight.
     */
    uint64_t window;
    /**
     * Bytes in flight, headers included.
     */
    uint64_t in_flight;
    /**
     * Bytes sent that the peer has not acknowledged, those included that have not left yet.
     */
    uint64_t unacknowledged;
    /**
     * Bytes of data that left, retransmissions included.
     */
    uint64_t bytes_sent;
    /**
     * Bytes of data that the peer acknowledged.
     */
    uint64_t bytes_acked;
    /**
     * Distinct bytes that came, in order, received by the program or not.
     */
    uint64_t bytes_received;
    /**
     * Packets with data that left, retransmissions included.
     */
    uint64_t packets_sent;
    /**
     * Packets with data that had left before.
     */
    uint64_t retransmissions;
    /**
     * Packets that came.
     */
    uint64_t packets_received;
    /**
     * Packets taken for lost.
     */
    uint64_t lost;
    /**
     * Of these, those that arrived after all.
     */
    uint64_t late;
    /**
     * Times the path was silent for a time-out.
     */
    uint64_t timeouts;
    /**
     * Times the rate was reduced.
     */
    uint64_t reductions;
    /**
     * Time for which the path was silent, or known to be gone, microseconds.
     */
    uint64_t frozen_us;
    /**
     * Datagrams that could not be opened: forged, damaged, repeated.
     */
    uint64_t rejected;
    /**
     * The fingerprint of the peer's key, which it has proved to have; empty with a shared key, and where there are no keys.
     */
    char peer_fingerprint[TPA_FINGERPRINT_LEN];
    /**
     * The protocol: an enum tpa_protocol. Of TCP only state, mss, srtt_us, window and retransmissions are filled in; of TPA as
     * published all that it knows.
     */
    unsigned int protocol;
    /**
     * 0.
     */
    unsigned int reserved;
};

/**
 * A handle that tpa_poll looks at.
 */
struct tpa_pollfd {
    /**
     * Which; a negative one is passed over.
     */
    int handle;
    /**
     * What is waited for: TPA_POLLIN, TPA_POLLOUT, both, or 0.
     */
    short events;
    /**
     * What was found.
     */
    short revents;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a socket for one connection, or for listening: of TPA-wide, unless TPA_PROTOCOL is set. Returns its handle, or -1.
 *
 * The handle is a descriptor of the system's, for poll, select or epoll, for reading only; nothing else may be done with it, and only
 * tpa_close and tpa_abort close it. It is readable
 * - for as long as there is something to receive: data, the end of the stream, an error; or a connection to accept;
 * - once a connection that tpa_connect has begun is open, or came to nothing, until any call has told so;
 * - once there is room after a tpa_send that took less than it was given, until tpa_send is tried again.
 *
 * Handles are for all threads: one may receive while another sends. They do not outlive a fork in the child.
 */
int tpa_socket(void);

/**
 * Sets an option, an enum tpa_option, to the `len` bytes at `value`. Files are read at once. Returns 0, or -1: EINVAL for a value that makes
 * no sense, ENOPROTOOPT for an option that there is not, what the system says of a file.
 */
int tpa_setsockopt(int handle, int option_number, const void *value, socklen_t len);

/**
 * Reads an option into `value`, which has room for `*len` bytes; `*len` is then how many were written. Texts have a final NUL. Returns 0,
 * or -1: ENOENT for a text that is not set, EINVAL where there is not enough room.
 */
int tpa_getsockopt(int handle, int option_number, void *value, socklen_t *len);

/**
 * Binds to an address of IPv4 or IPv6; port 0 is any free one. Returns 0, or -1.
 */
int tpa_bind(int handle, const struct sockaddr *local, socklen_t len);

/**
 * Lets peers connect; `backlog` of them, at least 1, may wait for tpa_accept, and who comes then is not answered and tries again. Returns 0,
 * or -1: EACCES or ENOENT for keys that cannot be used.
 */
int tpa_listen(int handle, int backlog);

/**
 * Waits for the next connection, over TPA or TCP with TPA_PROTOCOL_TPA_OR_TCP. Returns its handle, with nothing set, or -1. Where the peer is goes to `peer`, which has room for `*len`
 * bytes; `*len` is then how long the address is. Both may be NULL. Who the peer is says tpa_info.
 */
int tpa_accept(int handle, struct sockaddr *peer, socklen_t *len);

/**
 * Connects to a peer, and waits until it has proved who it is. Returns 0, or -1:
 * - EINPROGRESS, if nothing is to wait: the handle becomes readable when it is known what came of it, which TPA_ERROR says;
 * - ECONNREFUSED: nothing has that port, or one end has a shared key and the other a key of its own; or the peer does not know our key,
 *   which may be known only to the first tpa_recv or tpa_send after it;
 * - ETIMEDOUT: no answer: no program is there, or, over TPA-wide, the shared keys differ;
 * - EACCES: who answers is not whom it has to be, or is not known; tpa_last_error() has its fingerprint;
 * - EISCONN, EALREADY, EINVAL: the socket is connected, is being connected, listens;
 * - EAFNOSUPPORT: an address of neither family, or not of the one that the socket is bound to.
 *
 * With TPA_PROTOCOL_TPA_OR_TCP it calls by TPA and by TCP at once, and returns with TPA if the peer answers it within a round trip after
 * TCP, else with TCP: tpa_info says which. The call that is given up never shows at the peer. TCP's error is told if both fail.
 *
 * After an error it can be tried again.
 */
int tpa_connect(int handle, const struct sockaddr *peer, socklen_t len);

/**
 * Sends: returns how many of the `len` bytes were taken, or -1. All are, unless nothing is to wait, the time was over, or the connection
 * broke after some. EPIPE after TPA_SHUT_WR; there is no SIGPIPE. Signals do not interrupt it.
 */
ssize_t tpa_send(int handle, const void *data, size_t len, int flags);

/**
 * Receives: returns how many bytes were written to `buffer`, at most `len`; 0 at the end of the stream; or -1. It waits until there is at least
 * one. Signals do not interrupt it.
 */
ssize_t tpa_recv(int handle, void *buffer, size_t len, int flags);

/**
 * Ends sending (TPA_SHUT_WR), receiving (TPA_SHUT_RD), or both (TPA_SHUT_RDWR). Does not wait. A thread that waits in tpa_recv comes to the
 * end of the stream by TPA_SHUT_RD. Returns 0, or -1.
 */
int tpa_shutdown(int handle, int how);

/**
 * Ends sending, waits until the peer has everything, and closes. The handle is gone in any case. Returns 0, or -1 if the peer may lack
 * something: ETIMEDOUT after TPA_CLOSE_TIMEOUT, or what the connection failed of.
 *
 * It does not wait with TPA_NONBLOCK, nor once the peer has everything and has ended its direction. What was sent then still arrives, if the
 * program lives on; a program that ends at once should wait.
 */
int tpa_close(int handle);

/**
 * Closes at once: the peer is told by a reset, and what it has not received is lost. Returns 0, or -1 with EBADF.
 */
int tpa_abort(int handle);

/**
 * Where the socket is bound: to `local`, which has room for `*len` bytes; `*len` is then how long the address is. Returns 0, or -1: EINVAL
 * before it is bound.
 */
int tpa_getsockname(int handle, struct sockaddr *local, socklen_t *len);

/**
 * Where the peer has shown to be, which can change where an address translator lies between; as tpa_getsockname. Returns 0, or -1: ENOTCONN.
 */
int tpa_getpeername(int handle, struct sockaddr *peer, socklen_t *len);

/**
 * How the connection stands, and who is at the other end. `info->size` says before the call how much there is room for. Returns 0, or -1:
 * ENOTCONN, EINVAL.
 */
int tpa_info(int handle, struct tpa_info *info);

/**
 * Waits until something can be done with one of `count` handles, for at most `timeout_ms`; -1: as long as it takes, 0: not at all. Returns with
 * how many, 0 when the time is over, or -1: EINTR by a signal. A connection of which nothing but its end is left has TPA_POLLHUP.
 */
int tpa_poll(struct tpa_pollfd *handles, size_t count, int timeout_ms);

/**
 * What went wrong with the last call of this thread that failed, in words, with what would be right: "tpa_connect: …". Empty if none failed.
 * It stays until the next call of this thread that fails.
 */
const char *tpa_last_error(void);

/**
 * The version of the library, such as "0.1.0".
 */
const char *tpa_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOPLINE_H */
