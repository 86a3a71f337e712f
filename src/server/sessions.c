/* sessions.c: the sessions that there are: those that are connected, and those whose lease runs. */
#include "server/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "server/record.h"

static void standing_free(struct standing *standing)
{
    if (standing == NULL) return;
    notices_clear(&standing->notices);
    free(standing);
}

void sessions_clear(struct sessions *sessions)
{
    for (uint32_t i = 0; i < sessions->by_owner.n; i++) standing_free(sessions->by_owner.at[i]);
    array_clear(&sessions->by_owner);
    array_clear(&sessions->free_owners);
    array_clear(&sessions->touched);
    idmap_clear(&sessions->by_id);
    sessions->away_n = 0;
}

struct standing *sessions_of_id(const struct sessions *sessions, uint64_t id)
{
    uint32_t owner = id == 0 ? IDMAP_NONE : idmap_get(&sessions->by_id, id);
    return owner == IDMAP_NONE ? NULL : sessions_of_owner(sessions, owner);
}

uint64_t sessions_id_of_owner(const struct sessions *sessions, aoi_owner owner)
{
    const struct standing *standing = sessions_of_owner(sessions, owner);
    return standing == NULL ? 0 : standing->id;
}

aoi_owner sessions_owner_of_id(const struct sessions *sessions, uint64_t id)
{
    const struct standing *standing = sessions_of_id(sessions, id);
    return standing == NULL ? 0 : standing->owner;
}

static void attach(struct standing *standing, struct session *session)
{
    CHECK(session->state == SESSION_HELLO_WAIT && standing->session == NULL);
    standing->session = session;
    session->standing = standing;
    session->id = standing->id;
    session->owner = standing->owner;
    session->resent_until = standing->last_seq;
    memcpy(standing->client, session->client, sizeof standing->client);
    snprintf(standing->token_name, sizeof standing->token_name, "%s", session->token.name);
    session->state = SESSION_READY;
}

static void detach(struct standing *standing)
{
    standing->session->standing = NULL;
    standing->session->owner = 0;
    standing->session = NULL;
}

static void make_token(uint8_t token[RESUME_TOKEN_BYTES])
{
    ssize_t n;
    do n = getrandom(token, RESUME_TOKEN_BYTES, 0);
    while (n < 0 && errno == EINTR);
    CHECK(n == RESUME_TOKEN_BYTES);
}

struct standing *sessions_begin(struct sessions *sessions, struct session *session, uint32_t lease_ms)
{
    struct standing *standing = mem_zalloc(sizeof *standing);
    if (sessions->free_owners.n > 0) {
        standing->owner = sessions->free_owners.at[--sessions->free_owners.n];
    } else {
        *array_add(&sessions->by_owner) = NULL;
        standing->owner = sessions->by_owner.n;
    }
    sessions->by_owner.at[standing->owner - 1] = standing;
    standing->id = ++sessions->last_id;
    standing->lease_ms = lease_ms;
    make_token(standing->resume_token);
    idmap_put(&sessions->by_id, standing->id, standing->owner);
    attach(standing, session);
    record_connected(sessions->record, RECORDING_BEGIN, standing->owner, standing->id, &session->token);
    return standing;
}

/* The world hears that nobody is told anything any more. */
static void go_away(struct sessions *sessions, const struct standing *standing)
{
    record_session(sessions->record, RECORDING_LEAVE, standing->owner);
    aoi_owner_away(sessions->world, standing->owner, true);
}

void sessions_resume(struct sessions *sessions, struct standing *standing, struct session *session)
{
    if (standing->lease_end_ms == LEASE_FROZEN) go_away(sessions, standing); /* it was left out, but what the old connection was sent may be lost */
    sessions->away_n--;
    sessions->metrics->resumed++;
    attach(standing, session);
    record_connected(sessions->record, RECORDING_RESUME, standing->owner, standing->id, &session->token);
    notices_repeat(&standing->notices, sessions->world, standing->owner);
    aoi_owner_away(sessions->world, standing->owner, false);
}

struct standing *sessions_restore(struct sessions *sessions, aoi_owner owner, uint64_t id, uint32_t lease_ms,
                                  const uint8_t resume_token[RESUME_TOKEN_BYTES])
{
    CHECK(owner > sessions->by_owner.n);
    while (sessions->by_owner.n + 1 < owner) {
        *array_add(&sessions->by_owner) = NULL;
        *array_add(&sessions->free_owners) = sessions->by_owner.n;
    }
    struct standing *standing = mem_zalloc(sizeof *standing);
    *array_add(&sessions->by_owner) = standing;
    *standing = (struct standing){.id = id, .owner = owner, .lease_ms = lease_ms, .lease_end_ms = lease_ms};
    memcpy(standing->resume_token, resume_token, RESUME_TOKEN_BYTES);
    idmap_put(&sessions->by_id, id, owner);
    sessions->away_n++;
    return standing;
}

bool sessions_token_is(const struct standing *standing, const uint8_t *token, size_t len)
{
    uint8_t differs = len != RESUME_TOKEN_BYTES;
    for (size_t i = 0; i < RESUME_TOKEN_BYTES; i++) differs |= standing->resume_token[i] ^ (i < len ? token[i] : 0);
    return differs == 0;
}

bool sessions_may_resume(const struct standing *standing, const struct token *token)
{
    return standing->token_name[0] == '\0' || token->name[0] == '\0' || strcmp(standing->token_name, token->name) == 0;
}

void sessions_leave(struct sessions *sessions, struct standing *standing, uint64_t lease_end_ms)
{
    detach(standing);
    standing->lease_end_ms = lease_end_ms;
    sessions->away_n++;
    if (lease_end_ms != LEASE_FROZEN) go_away(sessions, standing);
}

aoi_owner sessions_part(struct sessions *sessions, struct standing *standing)
{
    aoi_owner owner = standing->owner;
    if (standing->session == NULL)
        sessions->away_n--;
    else
        detach(standing);
    idmap_remove(&sessions->by_id, standing->id);
    sessions->by_owner.at[owner - 1] = NULL;
    standing_free(standing);
    record_session(sessions->record, RECORDING_END, owner);
    return owner;
}

void sessions_clean(struct sessions *sessions, aoi_owner owner)
{
    aoi_owner_end(sessions->world, owner, false);
    *array_add(&sessions->free_owners) = owner;
}

void sessions_end(struct sessions *sessions, struct standing *standing)
{
    sessions_clean(sessions, sessions_part(sessions, standing));
}

/* Those that came in with a token of the same name; without tokens no two sessions count as having the same one. */
bool sessions_may_take(const struct sessions *sessions, aoi_owner taker, aoi_owner owner)
{
    const struct standing *a = sessions_of_owner(sessions, taker), *b = sessions_of_owner(sessions, owner);
    if (a == NULL || b == NULL || a->session == NULL || b->session == NULL) return false;
    return a->session->token.name[0] != '\0' && strcmp(a->session->token.name, b->session->token.name) == 0;
}
