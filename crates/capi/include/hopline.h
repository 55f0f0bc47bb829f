/* hopline: TPA-wide over UDP, encrypted streams of bytes; and TPA as published. Generated from crates/capi/src by its test
 * `header`; do not edit.
 *
 * Functions that fail return -1 and set errno; tpa_last_error() returns a message. Errors of all functions:
 * - EBADF: the handle is not open;
 * - EFAULT: a pointer is NULL that must not be;
 * - EINVAL: a length or value is out of range, or the call is not valid in this state;
 * - ENOTCONN: there is no connection;
 * - EAGAIN: the call would have to wait, or has reached its time limit;
 * - EIO: an error in the library itself.
 */

#ifndef HOPLINE_H
#define HOPLINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/**
 * Data, the end of the stream, an error, or a connection to accept can be received.
 */
#define TPA_POLLIN 1

/**
 * The send buffer has room, or the connection that was begun is open.
 */
#define TPA_POLLOUT 4

/**
 * The connection could not be opened: TPA_ERROR has the error. Reported whether or not it was requested.
 */
#define TPA_POLLERR 8

/**
 * The connection has ended, or never existed. Reported whether or not it was requested.
 */
#define TPA_POLLHUP 16

/**
 * The handle is not open. Reported whether or not it was requested.
 */
#define TPA_POLLNVAL 32

/**
 * Ends receiving: data that arrive later are discarded.
 */
#define TPA_SHUT_RD 0

/**
 * Ends sending: the peer receives all data sent before.
 */
#define TPA_SHUT_WR 1

/**
 * Ends both directions.
 */
#define TPA_SHUT_RDWR 2

/**
 * Length of a fingerprint as text, with the final NUL, bytes.
 */
#define TPA_FINGERPRINT_LEN 40

/**
 * Options of tpa_setsockopt. Numbers and durations are int. Durations are in milliseconds; 0 means no limit. The length of
 * a text or path is the `len` of the call; it may include a final NUL.
 */
enum tpa_option {
    /**
     * Secret key that only the two ends share: 32 bytes from a random number generator. It replaces an own private key, and
     * an own private key replaces it. Cannot be read.
     */
    TPA_PSK = 1,
    /**
     * Secret key that the two ends share, from a file of 64 hexadecimal digits. Only the owner may have access to the file.
     * Cannot be read.
     */
    TPA_PSK_FILE = 2,
    /**
     * Own private key, as made by `hopline key new FILE`. If no key is set, the user's key is used, from
     * $XDG_CONFIG_HOME/hopline/key or ~/.config/hopline/key. Cannot be read.
     */
    TPA_KEY_FILE = 3,
    /**
     * File of known peers, with a name and a public key in each line. A listener accepts only these peers; without such a
     * file it accepts any peer. tpa_connect takes the expected key of the peer from it. If it is not set, tpa_connect reads
     * the file known_peers beside the user's key.
     */
    TPA_KNOWN_PEERS = 4,
    /**
     * Name of the peer of tpa_connect in the file of known peers. Default: ADDRESS:PORT.
     */
    TPA_PEER_NAME = 5,
    /**
     * Fingerprint that the key of the peer must have; for tpa_connect.
     */
    TPA_TRUST = 6,
    /**
     * Not 0: tpa_connect accepts an unknown peer and adds it to the file of known peers. Default 0.
     */
    TPA_TRUST_ON_FIRST_USE = 7,
    /**
     * Not 0: calls do not wait. They fail with EAGAIN instead, tpa_connect with EINPROGRESS. Default 0.
     */
    TPA_NONBLOCK = 8,
    /**
     * Longest wait of tpa_connect, ms. Default 0.
     */
    TPA_CONNECT_TIMEOUT = 9,
    /**
     * Longest wait of tpa_recv and tpa_accept, ms. Afterwards they fail with EAGAIN. Default 0.
     */
    TPA_RECV_TIMEOUT = 10,
    /**
     * Longest wait of tpa_send for room, ms. Afterwards it fails with EAGAIN, or returns the number of bytes accepted.
     * Default 0.
     */
    TPA_SEND_TIMEOUT = 11,
    /**
     * Longest wait of tpa_close until the peer has received everything, ms. Default 0.
     */
    TPA_CLOSE_TIMEOUT = 12,
    /**
     * Silence of the peer after which the connection is aborted, ms. Set before tpa_connect or tpa_listen. Over TCP a zero
     * window does not count as silence, and 0 turns keep-alive off. Default 120000.
     */
    TPA_SILENCE = 13,
    /**
     * Only for tpa_getsockopt, an int: EINPROGRESS while the connection is being opened. The errno of a tpa_connect that
     * failed after EINPROGRESS; reading clears it. 0 otherwise.
     */
    TPA_ERROR = 14,
    /**
     * Only for tpa_getsockopt: fingerprint of the own key, a text of TPA_FINGERPRINT_LEN bytes with the final NUL.
     */
    TPA_FINGERPRINT = 15,
    /**
     * Protocol, an enum tpa_protocol. Set before any call but options. Default TPA_PROTOCOL_WIDE. Reads as the protocol of
     * the connection once there is one.
     */
    TPA_PROTOCOL = 16,
    /**
     * Largest window of TPA as published, segments: 1 to 12. The paper uses 2 or 3. Default 3.
     */
    TPA_CWND_MAX = 17,
    /**
     * Not 0: TPA as published and TCP send the data of tpa_send at once. Default 0: TPA waits for a full block, for 100 ms
     * at most; TCP waits until the peer has acknowledged earlier data (Nagle's algorithm, RFC 896). No effect over
     * TPA-wide, which does not wait.
     */
    TPA_NODELAY = 18,
};

/**
 * Protocol of a socket.
 */
enum tpa_protocol {
    /**
     * TPA-wide: encrypted and authenticated with keys.
     */
    TPA_PROTOCOL_WIDE = 0,
    /**
     * TPA as published, over UDP: no keys, not encrypted.
     */
    TPA_PROTOCOL_TPA = 1,
    /**
     * TPA as published if the peer answers it, else TCP. Neither is encrypted. A listener has both, at ports of the same
     * number.
     */
    TPA_PROTOCOL_TPA_OR_TCP = 2,
    /**
     * TCP. Cannot be set: protocol of an open connection.
     */
    TPA_PROTOCOL_TCP = 3,
};

/**
 * State of a connection.
 */
enum tpa_state {
    /**
     * The connection is being opened.
     */
    TPA_STATE_OPENING = 0,
    /**
     * The connection is open. The peer may have ended its direction.
     */
    TPA_STATE_OPEN = 1,
    /**
     * This end has ended its direction.
     */
    TPA_STATE_CLOSING = 2,
    /**
     * The connection has ended.
     */
    TPA_STATE_CLOSED = 3,
};

/**
 * State and counters of a connection. Later versions add fields at the end.
 */
struct tpa_info {
    /**
     * Before the call: sizeof(struct tpa_info), at least 16. After it: number of bytes written.
     */
    size_t size;
    /**
     * State of the connection: an enum tpa_state.
     */
    unsigned int state;
    /**
     * Data of a full packet, bytes.
     */
    unsigned int mss;
    /**
     * Smoothed round-trip time, microseconds; 0 before the first sample.
     */
    uint64_t srtt_us;
    /**
     * Pacing rate, bits per second with headers; 0 before the first estimate.
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
     * Bytes sent that the peer has not acknowledged, including those that have not left yet.
     */
    uint64_t unacknowledged;
    /**
     * Bytes of data transmitted, retransmissions included.
     */
    uint64_t bytes_sent;
    /**
     * Bytes of data that the peer acknowledged.
     */
    uint64_t bytes_acked;
    /**
     * Distinct bytes received in order, read by the program or not.
     */
    uint64_t bytes_received;
    /**
     * Packets with data transmitted, retransmissions included.
     */
    uint64_t packets_sent;
    /**
     * Retransmitted packets with data.
     */
    uint64_t retransmissions;
    /**
     * Packets received.
     */
    uint64_t packets_received;
    /**
     * Packets declared lost.
     */
    uint64_t lost;
    /**
     * Packets declared lost that arrived after all (spurious losses).
     */
    uint64_t late;
    /**
     * Number of retransmission timeouts.
     */
    uint64_t timeouts;
    /**
     * Number of rate reductions.
     */
    uint64_t reductions;
    /**
     * Time for which the path was silent or known to be lost, microseconds.
     */
    uint64_t frozen_us;
    /**
     * Datagrams that failed authentication: forged, damaged or replayed.
     */
    uint64_t rejected;
    /**
     * Fingerprint of the authenticated key of the peer. Empty with a shared key, and for protocols without keys.
     */
    char peer_fingerprint[TPA_FINGERPRINT_LEN];
    /**
     * Protocol of the connection: an enum tpa_protocol. TCP fills in only state, mss, srtt_us, window and retransmissions.
     * TPA as published fills in those that it has.
     */
    unsigned int protocol;
    /**
     * Reserved; 0.
     */
    unsigned int reserved;
};

/**
 * Handle that tpa_poll waits for.
 */
struct tpa_pollfd {
    /**
     * Handle of a socket; negative handles are skipped.
     */
    int handle;
    /**
     * Requested events: TPA_POLLIN, TPA_POLLOUT, both, or 0.
     */
    short events;
    /**
     * Events that occurred.
     */
    short revents;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Creates a socket for one connection, or for listening. Its protocol is TPA-wide unless TPA_PROTOCOL is set. Returns its
 * handle, or -1.
 *
 * The handle is a file descriptor that poll, select or epoll can wait for, for reading only. No other use is allowed; only
 * tpa_close and tpa_abort close it. It is readable
 * - while there is something to receive: data, the end of the stream, an error, or a connection to accept;
 * - once a connection that tpa_connect has begun is open or has failed, until a call has reported it;
 * - once there is room after a tpa_send that accepted less than it was given, until tpa_send is tried again.
 *
 * Handles are for all threads: one may receive while another sends. They are not valid in the child after a fork.
 */
int tpa_socket(void);

/**
 * Sets an option, an enum tpa_option, to the `len` bytes at `value`. Files are read at once. Returns 0, or -1: EINVAL for
 * an invalid value, ENOPROTOOPT for an unknown option, or the error of reading a file.
 */
int tpa_setsockopt(int handle, int option_number, const void *value, socklen_t len);

/**
 * Reads an option into `value`, which has room for `*len` bytes, and sets `*len` to the number of bytes written. Texts have
 * a final NUL. Returns 0, or -1: ENOENT for a text that is not set, EINVAL if there is not enough room.
 */
int tpa_getsockopt(int handle, int option_number, void *value, socklen_t *len);

/**
 * Binds to an IPv4 or IPv6 address; with port 0 the system selects a free port. Returns 0, or -1.
 */
int tpa_bind(int handle, const struct sockaddr *local, socklen_t len);

/**
 * Accepts connections. At most `backlog` of them, at least 1, wait for tpa_accept; further peers get no answer and try
 * again. Returns 0, or -1: EACCES or ENOENT for keys that cannot be used.
 */
int tpa_listen(int handle, int backlog);

/**
 * Waits for the next connection, over TPA or TCP with TPA_PROTOCOL_TPA_OR_TCP. Returns its handle, with default options, or
 * -1. Writes the address of the peer to `peer`, which has room for `*len` bytes, and its length to `*len`. Both may be
 * NULL. tpa_info has the fingerprint of the peer's key.
 */
int tpa_accept(int handle, struct sockaddr *peer, socklen_t *len);

/**
 * Connects to a peer, and waits until the peer is authenticated. Returns 0, or -1:
 * - EINPROGRESS: TPA_NONBLOCK is set. The handle becomes readable once the connection is open or has failed; TPA_ERROR has
 *   the result;
 * - ECONNREFUSED: no socket has that port; or one end has a shared key and the other a private key; or the peer does not
 *   know our key, which may be reported only by the first tpa_recv or tpa_send afterwards;
 * - ETIMEDOUT: no answer. No program listens, or, over TPA-wide, the shared keys differ;
 * - EACCES: the peer is unknown, or its key is not the expected one; tpa_last_error() has its fingerprint;
 * - EISCONN, EALREADY, EINVAL: the socket is connected, is being connected, or listens;
 * - EAFNOSUPPORT: the address is of neither family, or not of the family that the socket is bound to.
 *
 * With TPA_PROTOCOL_TPA_OR_TCP it tries TPA and TCP at the same time. It selects TPA if the peer answers TPA within one
 * round trip after TCP, else TCP; tpa_info has the selected protocol. The program of the peer never sees the other attempt.
 * If both fail, the error of TCP is reported.
 *
 * It can be tried again after an error.
 */
int tpa_connect(int handle, const struct sockaddr *peer, socklen_t len);

/**
 * Sends data. Returns how many of the `len` bytes were accepted, or -1. All are, unless TPA_NONBLOCK is set, the time limit
 * is reached, or the connection fails after some. EPIPE after TPA_SHUT_WR; there is no SIGPIPE. Signals do not interrupt
 * it.
 */
ssize_t tpa_send(int handle, const void *data, size_t len, int flags);

/**
 * Receives data; waits until there is at least one byte. Returns the number of bytes written to `buffer`, at most `len`; 0
 * at the end of the stream; or -1. Signals do not interrupt it.
 */
ssize_t tpa_recv(int handle, void *buffer, size_t len, int flags);

/**
 * Ends sending (TPA_SHUT_WR), receiving (TPA_SHUT_RD), or both (TPA_SHUT_RDWR). Does not wait. After TPA_SHUT_RD a thread
 * that waits in tpa_recv receives the end of the stream. Returns 0, or -1.
 */
int tpa_shutdown(int handle, int how);

/**
 * Ends sending, waits until the peer has received everything, and closes. The handle is invalid in any case. Returns 0, or
 * -1 if the peer may lack data: ETIMEDOUT after TPA_CLOSE_TIMEOUT, or the error of the connection.
 *
 * It does not wait with TPA_NONBLOCK, nor if the peer has received everything and has ended its direction. Data sent before
 * still arrive if the program keeps running; a program that ends at once should wait.
 */
int tpa_close(int handle);

/**
 * Closes at once: sends a reset to the peer; data that it has not received are lost. Returns 0, or -1 with EBADF.
 */
int tpa_abort(int handle);

/**
 * Writes the address that the socket is bound to to `local`, which has room for `*len` bytes, and its length to `*len`.
 * Returns 0, or -1: EINVAL before it is bound.
 */
int tpa_getsockname(int handle, struct sockaddr *local, socklen_t *len);

/**
 * Writes the validated address of the peer to `peer`, as tpa_getsockname. It can change if a NAT lies between. Returns 0,
 * or -1: ENOTCONN.
 */
int tpa_getpeername(int handle, struct sockaddr *peer, socklen_t *len);

/**
 * Fills in the state and counters of the connection, and the fingerprint of the peer. `info->size` is the room before the
 * call. Returns 0, or -1: ENOTCONN, EINVAL.
 */
int tpa_info(int handle, struct tpa_info *info);

/**
 * Waits until one of `count` handles is ready, for at most `timeout_ms`; -1: without limit, 0: does not wait. Returns the
 * number of ready handles, 0 at the time limit, or -1: EINTR by a signal. A connection that has ended and has nothing left
 * to receive has TPA_POLLHUP.
 */
int tpa_poll(struct tpa_pollfd *handles, size_t count, int timeout_ms);

/**
 * Returns the message of the last failed call of this thread, with what would be right: "tpa_connect: …". Empty if none
 * failed. The text is valid until the next call of this thread that fails.
 */
const char *tpa_last_error(void);

/**
 * Returns the version of the library, such as "0.1.0".
 */
const char *tpa_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOPLINE_H */
