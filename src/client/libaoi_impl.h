/* libaoi_impl.h: the inside of a connection, shared by the client's files. */
#ifndef AOI_CLIENT_LIBAOI_IMPL_H
#define AOI_CLIENT_LIBAOI_IMPL_H

#include "base/arena.h"
#include "base/array.h"
#include "base/buf.h"
#include "client/libaoi.h"
#include "client/libaoi_batch.h"
#include "client/libaoi_mirror.h"
#include "client/libaoi_tls.h"
#include "wire/codec.h"

struct libaoi {
    int fd;
    int failed;        /* LIBAOI_ECLOSED or LIBAOI_EPROTOCOL once the connection is of no more use, else 0 */
    int refused_code;  /* of the last failure, if that was an Error */
    int closing_code;  /* of the last Error that answered no frame of ours: the daemon says it before it closes; 0: none */
    char closing[280]; /* its text */
    bool write_broken; /* the peer takes no more; what it still has to say is read */
    bool handling;     /* inside a handler */
    bool bye;          /* said; the close that follows is no failure */
    char error[320];

    char address[300], client_name[100];
    char host[256], port[8]; /* of the address, where that is of no Unix socket */
    char *token;             /* or NULL */
    struct libaoi_tls *tls;  /* NULL: none */
    uint8_t resume_token[32];
    size_t resume_token_len;
    bool resumed; /* the last Welcome says so */
    bool behind;  /* likewise, and that the session is as it was before something that was answered */
    struct libaoi_handlers handlers;
    struct libaoi_welcome welcome;
    struct libaoi_counters counters;

    bool quiet;      /* no pings of its own accord */
    int64_t sent_ms; /* when the last frame was queued */
    struct buf in, out;
    struct buf kept; /* with the option `resume`: the frames that have not been answered, answered + 1 .. seq */
    bool keeps;      /* that option */
    bool joining;    /* Hello has not been answered */
    bool joined;     /* it was answered by a Welcome */
    uint32_t lease_ms, receive_buffer;
    uint64_t seq;      /* of the last frame sent */
    uint64_t answered; /* of the last frame answered: replies come in order */
    uint64_t
        acked; /* of the last frame answered with an Ack: these a daemon that goes on with the session knows, queries and what DRAINING refused it does not */
    uint64_t refused; /* of the last frame answered with an Error, 0: none */

    struct arena arena; /* of the frame below, until the next one is decoded */
    struct codec_server_frame frame;

    struct libaoi_batch batch;
    bool mirrored;
    struct libaoi_mirror mirror;
    ARRAY(struct libaoi_refusal) refusals;  /* scratch of an ack */
    ARRAY(struct libaoi_space_info) spaces; /* the last page of libaoi_query_spaces() */
    ARRAY(char) tiers;                      /* their tiers as text, AOI_TIERS_TEXT each */
};

/* Encodes a frame with the next seq, queues it and writes what the socket takes. Returns its seq, 0 if the connection has failed. */
uint64_t libaoi__send_frame(struct libaoi *c, struct codec_client_frame *frame);
/* Handles what comes until the reply to frame `seq` has been handled; c->frame then still holds that reply. As libaoi_wait(). */
int libaoi__await(struct libaoi *c, uint64_t seq, int timeout_ms);
/* Milliseconds left until a deadline, for poll(); a deadline below 0 is none, and then so is the answer. */
int libaoi__left_ms(int64_t deadline);
/* Records why, and returns status; a status that ends the connection sticks. */
int libaoi__fail(struct libaoi *c, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
