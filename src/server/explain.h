/* explain.h: why a command or a query was refused: a sentence that names what is wrong with it. */
#ifndef AOI_SERVER_EXPLAIN_H
#define AOI_SERVER_EXPLAIN_H

#include "server/dispatch.h"

/* All look at the arguments only after a refusal, so that what is fine pays nothing. Texts are literals, or live in the dispatch's arena until the next frame. */

/* The core refused it with status; item: which id of a column; id: of what. */
const char *explain_command(struct dispatch *dispatch, const struct session *session, struct aoi_space *space, const struct codec_command *command,
                            size_t item, uint64_t id, int status);
/* The lengths of MoveEntities' columns differ. */
const char *explain_columns(struct dispatch *dispatch, const struct aoi_space *space, const struct codec_command *command);
/* space NULL: there is none. */
const char *explain_query(struct dispatch *dispatch, const struct aoi_space *space, const struct codec_query *query, int code);
/* A first frame that is none; the bytes behind its length. */
const char *explain_first_frame(int code, const void *bytes, size_t len);
/* A session of this token asked for what needs another role. */
const char *explain_role(struct dispatch *dispatch, const struct token *token, enum role least);
/* What a command would add is over max_memory_bytes. */
const char *explain_memory(struct dispatch *dispatch);
/* A max_view over AOI_MAX_VIEW. */
const char *explain_view(struct dispatch *dispatch, uint32_t max_view);
/* One session more would be over max_sessions. */
const char *explain_sessions(struct dispatch *dispatch);
/* A frame's length is over the limit, or no length; first: that of a first frame. */
const char *explain_length(struct dispatch *dispatch, bool first, size_t limit);
/* A frame's seq is not above the last one. */
const char *explain_seq(struct dispatch *dispatch, uint64_t seq, uint64_t last);

#endif
