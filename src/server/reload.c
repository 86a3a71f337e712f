/* reload.c: a configuration that was read anew while the daemon runs. */
#include "server/reload.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/args.h"

static bool same_bounds(const struct aoi_settings *a, const struct aoi_settings *b)
{
    bool same = a->bounded == b->bounded;
    for (uint32_t axis = 0; same && a->bounded && axis < a->dimensions; axis++) same = a->min[axis] == b->min[axis] && a->max[axis] == b->max[axis];
    return same;
}

/* Lists the options that differ of those that cannot be changed once a space is there. */
static void list_place(const struct aoi_settings *a, const struct aoi_settings *b, char list[CONFIG_ERROR_MAX])
{
    list[0] = '\0';
    if (a->dimensions != b->dimensions) config_list(list, "dimensions");
    if (a->index != b->index) config_list(list, "index");
    if (a->shape != b->shape) config_list(list, "shape");
    if (a->cell_size != b->cell_size) config_list(list, "cell_size");
    if (a->cell_range != b->cell_range) config_list(list, "cell_range");
    if (!same_bounds(a, b)) config_list(list, "bounds");
    if (a->extra != b->extra) config_list(list, "extra");
}

__attribute__((format(printf, 2, 3))) static void list_rule(char list[CONFIG_ERROR_MAX], const char *format, ...)
{
    char rule[CONFIG_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(rule, sizeof rule, format, args);
    va_end(args);
    config_list(list, rule);
}

void reload_list_rules(const struct aoi_settings *a, const struct aoi_settings *b, char list[CONFIG_ERROR_MAX])
{
    char left[AOI_TIERS_TEXT], right[AOI_TIERS_TEXT];
    aoi_tiers_print(&a->tiers, left);
    aoi_tiers_print(&b->tiers, right);
    list[0] = '\0';
    if (a->flush_ms != b->flush_ms) list_rule(list, "flush_ms:%u->%u", a->flush_ms, b->flush_ms);
    if (a->leave_margin != b->leave_margin) list_rule(list, "leave_margin:%.9g->%.9g", (double)a->leave_margin, (double)b->leave_margin);
    if (a->min_stay_ms != b->min_stay_ms) list_rule(list, "min_stay_ms:%u->%u", a->min_stay_ms, b->min_stay_ms);
    if (a->max_view != b->max_view) list_rule(list, "max_view:%u->%u", a->max_view, b->max_view);
    if (a->max_enter_per_flush != b->max_enter_per_flush)
        list_rule(list, "max_enter_per_flush:%u->%u", a->max_enter_per_flush, b->max_enter_per_flush);
    if (strcmp(left, right) != 0) list_rule(list, "update_tiers:%s->%s", left[0] != '\0' ? left : "-", right[0] != '\0' ? right : "-");
}

bool reload_same_settings(const struct aoi_settings *a, const struct aoi_settings *b)
{
    char list[CONFIG_ERROR_MAX];
    list_place(a, b, list);
    if (list[0] == '\0') reload_list_rules(a, b, list);
    return list[0] == '\0';
}

/* The new spaces fit beside those that are there. */
static int check_spaces(const struct server *server, const struct config *fresh, char *err)
{
    uint64_t there = 0, more = 0, id = 0;
    for (struct aoi_space *space; (space = aoi_space_next(server->world, id)) != NULL; id = aoi_space_id(space)) there++;
    for (uint32_t i = 0; i < fresh->spaces.n; i++) more += aoi_space_find(server->world, fresh->spaces.at[i].id) == NULL;
    if (there + more <= server->config->max_spaces) return 0;
    snprintf(err, CONFIG_ERROR_MAX, "%llu new spaces beside the %llu that are there are more than max_spaces = %u", (unsigned long long)more,
             (unsigned long long)there, server->config->max_spaces);
    return -1;
}

/* Without tokens only this machine may reach the daemon, also by a socket that was passed on, of which the configuration says nothing. */
static int check_reach(const struct server *server, const struct config *whole, char *err)
{
    if (whole->tokens_file[0] != '\0' || !listener_reached(&server->listeners[0])) return 0;
    snprintf(err, CONFIG_ERROR_MAX, "%s",
             "tokens_file is not set, and the socket that was passed on to the daemon can be reached from other machines: without tokens anybody "
             "could command it from there. Set tokens_file, or ListenStream=127.0.0.1:2643 and restart both units");
    return -1;
}

static void set_rules(struct server *server, struct aoi_space *space, const struct aoi_settings *set)
{
    const struct aoi_space_change change = {.has_flush_ms = true,
                                            .has_leave_margin = true,
                                            .has_min_stay_ms = true,
                                            .has_max_view = true,
                                            .has_max_enter_per_flush = true,
                                            .has_tiers = true,
                                            .flush_ms = set->flush_ms,
                                            .leave_margin = set->leave_margin,
                                            .min_stay_ms = set->min_stay_ms,
                                            .max_view = set->max_view,
                                            .max_enter_per_flush = set->max_enter_per_flush,
                                            .tiers = set->tiers};
    CHECK(aoi_space_set(space, 0, true, &change) == AOI_OK); /* config_check() has seen them */
    record_change(server->record, aoi_space_id(space), &change);
    flusher_rearm(&server->flusher, space);
}

/* Makes or changes one space of the file. Whether it did. */
static bool take_space(struct server *server, const struct config_space *fresh)
{
    struct aoi_space *space = aoi_space_find(server->world, fresh->id);
    unsigned long long id = fresh->id;
    char list[CONFIG_ERROR_MAX], quoted[CONFIG_ERROR_MAX * 2];
    if (space == NULL) {
        CHECK(aoi_space_create(server->world, 0, fresh->id, &fresh->settings, false) == AOI_OK);
        record_space(server->record, fresh->id, &fresh->settings);
        log_info("reload", "space=%llu changed=made", id);
        return true;
    }
    if (aoi_space_owner(space) != 0) {
        log_warn("reload", "space=%llu why=\"a session has made it: it is that one's, and stays as it is. SIGHUP again when it has ended\"", id);
        return false;
    }
    list_place(aoi_space_settings(space), &fresh->settings, list);
    if (list[0] != '\0') log_warn("reload", "space=%llu needs_restart=%s why=\"a space that is there keeps its old values until then\"", id, list);
    reload_list_rules(aoi_space_settings(space), &fresh->settings, list); /* from what is in force: SetSpace may have changed it since */
    if (list[0] == '\0') return false;
    set_rules(server, space, &fresh->settings);
    log_info("reload", "space=%llu changed=%s", id, log_quote(list, quoted, sizeof quoted));
    return true;
}

/* Returns how many were made or changed. */
static uint32_t take_spaces(struct server *server, struct config *fresh)
{
    struct config *running = server->config;
    uint32_t changed = 0;
    for (uint32_t i = 0; i < fresh->spaces.n; i++) changed += take_space(server, &fresh->spaces.at[i]);
    for (uint32_t i = 0; i < running->spaces.n; i++) {
        if (config_space_of(fresh, running->spaces.at[i].id) != NULL) continue;
        log_warn("reload",
                 "space=%llu why=\"it is not in the configuration any more, and stays until a restart; one that a snapshot brings back then, until "
                 "an admin destroys it\"",
                 (unsigned long long)running->spaces.at[i].id);
    }
    config_take_spaces(running, fresh);
    return changed;
}

/* Files that have the same path as before, but not the same in them. */
static void list_files(const struct server *server, const struct config *whole, const struct doors *fresh, char changed[CONFIG_ERROR_MAX])
{
    const struct config *was = server->config;
    const struct doors *doors = &server->doors;
    const struct {
        const char *name, *was, *is;
        bool same;
    } files[] = {
        {"tokens_file", was->tokens_file, whole->tokens_file, tokens_same(&doors->tokens, &fresh->tokens)},
        {"tls_cert", was->tls_cert, whole->tls_cert, tls_same(doors->tls, fresh->tls, TLS_CERT)},
        {"tls_key", was->tls_key, whole->tls_key, tls_same(doors->tls, fresh->tls, TLS_KEY)},
        {"tls_client_ca", was->tls_client_ca, whole->tls_client_ca, tls_same(doors->tls, fresh->tls, TLS_CLIENT_CA)},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!files[i].same && strcmp(files[i].was, files[i].is) == 0) config_list(changed, files[i].name);
}

/* -1: refused, and nothing has changed. */
static int apply(struct server *server, struct config *fresh, char *err)
{
    char changed[CONFIG_ERROR_MAX], restart[CONFIG_ERROR_MAX];
    struct config whole = *server->config; /* as it would be: some options keep their old values */
    struct doors doors;
    server_fit_open_files(fresh);
    config_take(&whole, fresh, changed, restart);
    if (config_check(&whole, err) != 0 || check_reach(server, &whole, err) != 0 || check_spaces(server, fresh, err) != 0 ||
        doors_load(&doors, fresh, err) != 0)
        return -1;
    list_files(server, &whole, &doors, changed);
    bool opened = server->config->tokens_file[0] != '\0' && whole.tokens_file[0] == '\0';
    *server->config = whole;
    uint32_t spaces = take_spaces(server, fresh);
    server_set_doors(server, &doors);
    server_set_limits(server);
    log_set_level((enum log_level)server->config->log_level);
    if (opened) log_warn("reload", "tokens_file=- why=\"there are no tokens any more: whoever connects is an admin\"");
    if (restart[0] != '\0') log_warn("reload", "needs_restart=%s why=\"these keep their old values until then\"", restart);
    log_info("reload", "result=done changed=%s spaces_changed=%u", changed[0] != '\0' ? changed : "-", spaces);
    return 0;
}

void reload(struct server *server, int argc, char **argv)
{
    struct config fresh;
    struct args args;
    char err[CONFIG_ERROR_MAX], quoted[CONFIG_ERROR_MAX * 2];
    config_init(&fresh);
    fresh.files_only = true;
    snprintf(err, sizeof err, "the daemon is about to exit");
    bool done = !server->draining && args_parse(argc, argv, &args, &fresh, err) == 0 && apply(server, &fresh, err) == 0;
    config_clear(&fresh);
    if (done) {
        server->metrics.reloads++;
        return;
    }
    server->metrics.reloads_refused++;
    log_error("reload", "result=refused error=%s why=\"the configuration that was in force stays so, whole\"", log_quote(err, quoted, sizeof quoted));
}
