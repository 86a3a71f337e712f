/* config.c: the daemon's options: the table, the configuration file (inih), and what must hold between options. */
#include "server/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ini.h>
#include <math.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "wire/frame.h"

#define KIB 1024.0
#define MIB (1024.0 * KIB)
#define GIB (1024.0 * MIB)
#define ADDRESS_TEXT 64
#define DAY_MS 86400000.0

static int fail(char *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(char *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(err, CONFIG_ERROR_MAX, fmt, args);
    va_end(args);
    return -1;
}

/* ------------------------------------------------------------------------------------------------------------- kinds of values */

struct option;
/* Writes the value to its field. 0, or -1 with a text in err that completes "NAME = VALUE: ". */
typedef int parse_fn(const struct option *option, const char *text, void *field, char *err);

struct option {
    const char *section, *name;
    parse_fn *parse;
    size_t offset, size; /* of the field, in struct config, or in struct config_space for the section "space" */
    const char *fallback;
    double min, max;
    const char *help;
};

static int range(const struct option *option, double value, char *err)
{
    if (value >= option->min && value <= option->max) return 0;
    return fail(err, "must be between %.17g and %.17g", option->min, option->max);
}

static const struct {
    const char *name;
    unsigned shift;
} units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
enum { UNITS = sizeof units / sizeof *units };

/* As it would be written in the file: "64MiB". */
static const char *size_text(double bytes, char out[32])
{
    uint64_t value = (uint64_t)bytes;
    size_t unit = UNITS - 1;
    while (unit > 0 && (value == 0 || value % ((uint64_t)1 << units[unit].shift) != 0)) unit--;
    snprintf(out, 32, "%llu%s", (unsigned long long)(value >> units[unit].shift), units[unit].name);
    return out;
}

static int size_range(const struct option *option, double value, char *err)
{
    char least[32], most[32];
    if (value >= option->min && value <= option->max) return 0;
    return fail(err, "must be between %s and %s", size_text(option->min, least), size_text(option->max, most));
}

/* What a number of the option is of, by its name. */
static const char *unit_of(const struct option *option)
{
    const char *end = strrchr(option->name, '_');
    return end != NULL && strcmp(end, "_ms") == 0 ? " of milliseconds" : end != NULL && strcmp(end, "_s") == 0 ? " of seconds" : "";
}

/* Digits, and for sizes KiB, MiB or GiB behind them. */
static int number(const struct option *option, const char *text, bool size, uint64_t *out, char *err)
{
    int (*const within)(const struct option *, double, char *) = size ? size_range : range;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text == '-' || errno == ERANGE) return within(option, *text == '-' ? -1 : (double)UINT64_MAX, err);
    bool digits = end != text && *text >= '0' && *text <= '9';
    end += strspn(end, " ");
    for (size_t i = 0; i < UNITS && digits; i++) {
        if ((i > 0 && !size) || strcmp(end, units[i].name) != 0) continue;
        if (value > UINT64_MAX >> units[i].shift) return within(option, (double)UINT64_MAX, err);
        *out = (uint64_t)value << units[i].shift;
        return within(option, (double)*out, err);
    }
    if (size) return fail(err, "is not a whole number of bytes, or of KiB, MiB or GiB, which stand behind it: 64MiB");
    return fail(err, "is not a whole number%s, in digits alone", unit_of(option));
}

static int parse_count(const struct option *option, const char *text, void *field, char *err)
{
    uint64_t value;
    if (number(option, text, false, &value, err) != 0) return -1;
    *(uint32_t *)field = (uint32_t)value; /* the table's ranges end at 2^32 - 1 */
    return 0;
}

static int parse_bytes(const struct option *option, const char *text, void *field, char *err)
{
    return number(option, text, true, field, err);
}

static int parse_bytes32(const struct option *option, const char *text, void *field, char *err)
{
    uint64_t value;
    if (number(option, text, true, &value, err) != 0) return -1;
    *(uint32_t *)field = (uint32_t)value;
    return 0;
}

/* Digits alone, up to the end: strtoull() takes blanks and a sign in front of them, too, and makes 2^64 - 5 of -5. */
static bool take_digits(const char *text, uint64_t most, uint64_t *out)
{
    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0') return false;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno != ERANGE && *out <= most;
}

static int parse_id(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    uint64_t value;
    if (!take_digits(text, UINT64_MAX, &value) || value == 0) return fail(err, "is not an id, a whole number from 1 to 2^64 - 1");
    *(uint64_t *)field = value;
    return 0;
}

static int real(const char *text, char **end, double *out, char *err)
{
    *out = strtod(text, end);
    if (*end == text || !isfinite(*out)) return fail(err, "is not a number");
    return 0;
}

static int parse_double(const struct option *option, const char *text, void *field, char *err)
{
    char *end;
    double value;
    if (real(text, &end, &value, err) != 0) return -1;
    if (*end != '\0') return fail(err, "is not a number");
    if (range(option, value, err) != 0) return -1;
    *(double *)field = value;
    return 0;
}

static int parse_float(const struct option *option, const char *text, void *field, char *err)
{
    double value;
    if (parse_double(option, text, &value, err) != 0) return -1;
    *(float *)field = (float)value;
    return 0;
}

static int parse_flag(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    if (strcmp(text, "yes") == 0 || strcmp(text, "true") == 0 || strcmp(text, "on") == 0 || strcmp(text, "1") == 0) {
        *(bool *)field = true;
    } else if (strcmp(text, "no") == 0 || strcmp(text, "false") == 0 || strcmp(text, "off") == 0 || strcmp(text, "0") == 0) {
        *(bool *)field = false;
    } else {
        return fail(err, "is neither yes nor no");
    }
    return 0;
}

static int parse_level(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    int level = log_parse_level(text);
    if (level < 0) return fail(err, "must be error, warn, info or debug");
    *(uint32_t *)field = (uint32_t)level;
    return 0;
}

static int parse_path(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    if (strlen(text) >= CONFIG_PATH_MAX) return fail(err, "is longer than %d bytes", CONFIG_PATH_MAX - 1);
    snprintf(field, CONFIG_PATH_MAX, "%s", text);
    return 0;
}

static int parse_mode(const struct option *option, const char *text, void *field, char *err)
{
    unsigned long value = strtoul(text, NULL, 8);
    if (text[0] == '\0' || text[strspn(text, "01234567")] != '\0') return fail(err, "is not an octal number such as 0660");
    if (range(option, (double)value, err) != 0) return fail(err, "must be between 0000 and 0777");
    *(uint32_t *)field = (uint32_t)value;
    return 0;
}

static int parse_ids(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    struct config_ids ids = {0};
    while (*text != '\0') {
        char *end;
        errno = 0;
        unsigned long value = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || errno == ERANGE || value >= UINT32_MAX) return fail(err, "must be numbers with blanks between them");
        if (ids.n == CONFIG_IDS_MAX) return fail(err, "has more than %d numbers", CONFIG_IDS_MAX);
        ids.id[ids.n++] = (uint32_t)value;
        text = end + strspn(end, " \t,");
    }
    *(struct config_ids *)field = ids;
    return 0;
}

static const char *const indexes[] = {[AOI_INDEX_GRID] = "grid", [AOI_INDEX_CROSSLIST] = "crosslist"};
static const char *const shapes[] = {[AOI_SHAPE_BOX] = "box", [AOI_SHAPE_SPHERE] = "sphere", [AOI_SHAPE_CELLS] = "cells"};

/* Which of the n names it is, of which the first, at 0, is none; 0: none of them. */
static uint32_t which(const char *name, const char *const *names, size_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return 0;
}

const char *config_index_name(uint32_t index)
{
    return indexes[index];
}

const char *config_shape_name(uint32_t shape)
{
    return shapes[shape];
}

uint32_t config_index_of(const char *name)
{
    return which(name, indexes, sizeof indexes / sizeof *indexes);
}

static int parse_index(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    *(uint32_t *)field = config_index_of(text);
    return *(uint32_t *)field != 0 ? 0 : fail(err, "must be grid or crosslist");
}

static int parse_shape(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    *(uint32_t *)field = which(text, shapes, sizeof shapes / sizeof *shapes);
    return *(uint32_t *)field != 0 ? 0 : fail(err, "must be box, sphere or cells");
}

/* "none", or the lower corner and then the upper corner: four numbers, or six with z. */
static int parse_bounds(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    struct aoi_settings *set = field;
    double v[6];
    size_t n = 0;
    set->bounded = strcmp(text, "none") != 0;
    if (!set->bounded) return 0;
    while (*text != '\0') {
        char *end;
        if (n == 6) return fail(err, "must be none, or min_x min_y max_x max_y, or min_x min_y min_z max_x max_y max_z");
        if (real(text, &end, &v[n++], err) != 0) return -1;
        text = end + strspn(end, " \t,");
    }
    if (n != 4 && n != 6) return fail(err, "must be none, or min_x min_y max_x max_y, or min_x min_y min_z max_x max_y max_z");
    size_t axes = n / 2;
    for (size_t a = 0; a < axes; a++)
        if ((float)v[a] > (float)v[axes + a]) return fail(err, "min_%c is above max_%c", "xyz"[a], "xyz"[a]);
    for (size_t a = 0; a < 3; a++) {
        set->min[a] = a < axes ? (float)v[a] : -AOI_COORD_MAX;
        set->max[a] = a < axes ? (float)v[axes + a] : AOI_COORD_MAX;
    }
    return 0;
}

static int parse_tiers(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    struct aoi_tiers tiers;
    const char *why;
    if (aoi_tiers_parse(text, &tiers, &why) != AOI_OK) return fail(err, "%s", why);
    *(struct aoi_tiers *)field = tiers;
    return 0;
}

/* HOST:PORT, a numeric address or localhost; [HOST]:PORT for IPv6; none, or nothing. */
static int address_of(const char *text, struct sockaddr_storage *out, char *err)
{
    const char *colon = strrchr(text, ':');
    char host[ADDRESS_TEXT];
    *out = (struct sockaddr_storage){0};
    if (strcmp(text, "none") == 0 || text[0] == '\0') return 0;
    if (colon == NULL || strlen(text) >= sizeof host) return fail(err, "must be HOST:PORT, such as 127.0.0.1:2643, or none");
    uint64_t port;
    if (!take_digits(colon + 1, 65535, &port)) return fail(err, "has no port between 0 and 65535 behind its last colon");

    size_t len = (size_t)(colon - text);
    bool brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(brackets ? len - 2 : len), brackets ? text + 1 : text);
    if (strcmp(host, "localhost") == 0) snprintf(host, sizeof host, "127.0.0.1");
    struct sockaddr_storage address = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
    if (!brackets && inet_pton(AF_INET, host, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)port);
    } else if (brackets && inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons((uint16_t)port);
    } else {
        return fail(err, "has no numeric address before its last colon (all of this machine: 0.0.0.0:2643; IPv6 in brackets: [::1]:2643)");
    }
    *out = address;
    return 0;
}

static int parse_address(const struct option *option, const char *text, void *field, char *err)
{
    (void)option;
    struct config_address *address = field;
    if (address_of(text, &address->socket, err) != 0) return -1;
    snprintf(address->text, sizeof address->text, "%s", text);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- the table */

#define AT(field) offsetof(struct config, field), sizeof(((struct config *)NULL)->field)
#define SPACE_AT(field) offsetof(struct config_space, field), sizeof(((struct config_space *)NULL)->field)

static const struct option options[] = {
    {"server", "listen", parse_address, AT(listen), "127.0.0.1:2643", 0, 0,
     "Address and port; port 0: the kernel chooses one. Without tokens_file only a loopback address is taken. none: no TCP."},
    {"server", "unix_socket", parse_path, AT(unix_socket), "", 0, 0, "Path of a Unix socket to listen on as well. None: no such socket."},
    {"server", "unix_mode", parse_mode, AT(unix_mode), "0660", 0, 0777, "Who may open the socket: its mode, in octal."},
    {"server", "unix_allow_uids", parse_ids, AT(unix_allow_uids), "", 0, 0,
     "Numbers of the users whose processes may use the socket. None: see unix_allow_gids."},
    {"server", "unix_allow_gids", parse_ids, AT(unix_allow_gids), "", 0, 0, "Numbers of groups likewise. None of either: whoever can open it."},
    {"server", "tokens_file", parse_path, AT(tokens_file), "", 0, 0, "Who may come in: lines of NAME ROLE SECRET. None: everybody, as admin."},
    {"server", "tls_cert", parse_path, AT(tls_cert), "", 0, 0, "The daemon's certificate and its chain, in PEM: TCP connections speak TLS then."},
    {"server", "tls_key", parse_path, AT(tls_key), "", 0, 0, "Its private key, in PEM, without a passphrase."},
    {"server", "tls_client_ca", parse_path, AT(tls_client_ca), "", 0, 0, "Clients must have a certificate of one of these authorities, in PEM."},
    {"server", "http_listen", parse_address, AT(http_listen), "127.0.0.1:2644", 0, 0,
     "Address and port of the pages for monitoring: /metrics, /healthz, /readyz, /spaces, /sessions. none: no HTTP."},
    {"server", "oracle_players", parse_count, AT(oracle_players), "1", 0, 1000,
     "Views compared with brute force after each flush, as far as 1 % of the time allows; 0: none."},
    {"server", "record", parse_path, AT(record), "", 0, 0, "A file in which all input is kept, for aoid --replay. None: nothing is recorded."},
    {"server", "snapshot", parse_path, AT(snapshot), "", 0, 0,
     "A file in which everything outlives the daemon: written at its end, read at its start. None: nothing does."},
    {"server", "snapshot_s", parse_count, AT(snapshot_s), "0", 0, DAY_MS / 1000,
     "It is also written every so many seconds, for crashes; 0: only at the end."},
    {"server", "log_level", parse_level, AT(log_level), "info", 0, 0, "error, warn, info or debug; one line an event, to stderr."},
    {"server", "hello_timeout_ms", parse_count, AT(hello_timeout_ms), "2000", 1, DAY_MS, "A connection must have sent its Hello by then."},
    {"server", "frame_timeout_ms", parse_count, AT(frame_timeout_ms), "10000", 1, DAY_MS, "From the first byte of a frame to its last."},
    {"server", "idle_timeout_ms", parse_count, AT(idle_timeout_ms), "60000", 0, DAY_MS,
     "A connection that sends nothing for so long is closed; 0: never."},
    {"server", "drain_timeout_ms", parse_count, AT(drain_timeout_ms), "5000", 0, DAY_MS, "How long SIGTERM waits for slow readers at most."},

    {"limits", "max_connections", parse_count, AT(max_connections), "1024", 1, 1e6, "Lowered, with a warning, to fit the limit of open files."},
    {"limits", "max_sessions", parse_count, AT(max_sessions), "4096", 1, 1e6,
     "Sessions, those included that have lost their connection and whose lease runs."},
    {"limits", "max_lease_ms", parse_count, AT(max_lease_ms), "300000", 0, DAY_MS,
     "The longest lease, for which a session outlives its connection; 0: it ends with it."},
    {"limits", "max_memory_bytes", parse_bytes, AT(max_memory_bytes), "0", 0, 1024 * 1024 * MIB,
     "Over so much memory in all, what would add to it is refused and enters wait; 0: no limit."},
    {"limits", "max_frame_bytes", parse_bytes, AT(max_frame_bytes), "1MiB", 8 * KIB, 64 * MIB, "The largest frame in either direction."},
    {"limits", "max_spaces", parse_count, AT(max_spaces), "65536", 1, 1e7,
     "Spaces of the daemon; an empty one takes 3 KB, with an entity in it 16 KB or more."},
    {"limits", "max_entities", parse_count, AT(max_entities), "1000000", 1, 1e8, "Entities of a space."},
    {"limits", "max_players", parse_count, AT(max_players), "1000000", 1, AOI_PLAYERS_MAX, "Players of a space."},
    {"limits", "max_units", parse_count, AT(max_units), "1024", 1, 1e6, "Subscriptions of a player."},
    {"limits", "max_overrides", parse_count, AT(max_overrides), "1024", 0, 1e6, "Overrides of a player."},
    {"limits", "max_payload", parse_bytes32, AT(max_payload), "4KiB", 0, 32 * MIB,
     "The opaque bytes of an entity; max_frame_bytes must be 1 KiB more at least."},
    {"limits", "max_message", parse_bytes32, AT(max_message), "4KiB", 0, 32 * MIB,
     "The bytes of a published message; max_frame_bytes must be 1 KiB more at least."},
    {"limits", "max_messages_per_flush", parse_count, AT(max_messages_per_flush), "10000", 0, 1e7,
     "Messages published in a space between two flushes."},
    {"limits", "max_radius", parse_float, AT(max_radius), "0", 0, AOI_COORD_MAX, "The largest radius of an entity; 0: any."},
    {"limits", "query_page", parse_count, AT(query_page), "10000", 1, 1e6, "Items in one result; lowered so that a result fits in max_frame_bytes."},
    {"limits", "out_soft_bytes", parse_bytes, AT(out_soft_bytes), "4MiB", 8 * KIB, GIB,
     "Unsent bytes of a connection from which on it is not read, and gets fewer and larger deltas: it is full when less than max_payload and "
     "228 bytes are left to it, for then no delta is sure to fit."},
    {"limits", "out_hard_bytes", parse_bytes, AT(out_hard_bytes), "64MiB", 16 * KIB, 16 * GIB,
     "Unsent bytes of a connection over which it is closed."},
    {"limits", "out_soft_ms", parse_count, AT(out_soft_ms), "10000", 1, DAY_MS,
     "How long a connection may stay as full as out_soft_bytes says before it is closed."},

    {"space", "id", parse_id, SPACE_AT(id), "", 0, 0, "The space's id; not needed in a section [space NUMBER]."},
    {"space", "dimensions", parse_count, SPACE_AT(settings.dimensions), "2", 2, 3, "2 or 3."},
    {"space", "index", parse_index, SPACE_AT(settings.index), "grid", 0, 0, "grid or crosslist."},
    {"space", "shape", parse_shape, SPACE_AT(settings.shape), "box", 0, 0, "box, sphere or cells: what a unit of a radius sees."},
    {"space", "cell_size", parse_double, SPACE_AT(settings.cell_size), "100", AOI_CELL_SIZE_MIN, AOI_COORD_MAX,
     "Edge of a grid cell: about twice the usual radius."},
    {"space", "cell_range", parse_count, SPACE_AT(settings.cell_range), "1", 1, AOI_CELL_RANGE_MAX,
     "For shape cells: 1 is the nine-cell block, 2 is 25 cells."},
    {"space", "bounds", parse_bounds, SPACE_AT(settings), "none", 0, 0,
     "min_x min_y max_x max_y, or with z min_x min_y min_z max_x max_y max_z; none: the whole of +-16,777,216. "
     "Four numbers leave z unbounded in 3D."},
    {"space", "extra", parse_flag, SPACE_AT(settings.extra), "no", 0, 0, "Whether moves and deltas carry one opaque 32-bit word."},
    {"space", "flush_ms", parse_count, SPACE_AT(settings.flush_ms), "50", 0, AOI_FLUSH_MS_MAX,
     "Changes are told at most so much later; 0: only the Flush command flushes."},
    {"space", "leave_margin", parse_float, SPACE_AT(settings.leave_margin), "0", 0, AOI_COORD_MAX,
     "What was told stays until it is so much further away than it must be to enter. In cells: while it would be seen if it and the unit each "
     "stood nearer to the other by that."},
    {"space", "min_stay_ms", parse_count, SPACE_AT(settings.min_stay_ms), "0", 0, DAY_MS, "What was told stays so long, in whole milliseconds."},
    {"space", "max_view", parse_count, SPACE_AT(settings.max_view), "0", 0, AOI_MAX_VIEW,
     "A player sees so many entities at most, the best by rank; 0: no limit."},
    {"space", "max_enter_per_flush", parse_count, SPACE_AT(settings.max_enter_per_flush), "0", 0, 1e9,
     "A player is told of so many new entities in a flush at most; 0: of all."},
    {"space", "update_tiers", parse_tiers, SPACE_AT(settings.tiers), "", 0, 0,
     "Updates by distance: 30:1 60:2 *:4 are every flush within 30, every second within 60, else every fourth."},
};
enum { OPTIONS = sizeof options / sizeof *options };
_Static_assert(OPTIONS <= 64, "`given` has a bit for each");

static bool is_space(const struct option *option)
{
    return strcmp(option->section, "space") == 0;
}

/* The option; section NULL: whichever has the name, but none of a space. NULL: there is none. */
static const struct option *find(const char *section, const char *name)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        if (strcmp(options[i].name, name) != 0) continue;
        if (section == NULL ? !is_space(&options[i]) : strcmp(options[i].section, section) == 0) return &options[i];
    }
    return NULL;
}

static int assign(const struct option *option, const char *text, void *base, char *err)
{
    char why[CONFIG_ERROR_MAX];
    if (!is_space(option)) memset((char *)base + option->offset, 0, option->size); /* so that equal values are equal bytes */
    if (option->parse(option, text, (char *)base + option->offset, why) == 0) return 0;
    const char *hint = strpbrk(text, "#;") != NULL    ? "; a comment behind a value begins with ` ;`"
                       : strpbrk(text, "\"'") != NULL ? "; values stand without quotes"
                                                      : "";
    return fail(err, "%s = %.80s: %.200s%s", option->name, text[0] != '\0' ? text : "(nothing)", why, hint);
}

/* There is no such option in this section; perhaps in another one. */
static int unknown(const char *section, const char *name, char *err)
{
    const struct option *other = find(NULL, name) != NULL ? find(NULL, name) : find("space", name);
    if (name[0] == '\0') return fail(err, "no option stands in front of `=`");
    if (other == NULL) return fail(err, "unknown option %.80s; `aoid --help` lists them", name);
    return fail(err, "unknown option %.80s in [%.80s]; it belongs in [%s]", name, section, is_space(other) ? "space NAME-or-ID" : other->section);
}

static void assign_defaults(bool of_space, void *base)
{
    char err[CONFIG_ERROR_MAX];
    for (size_t i = 0; i < OPTIONS; i++) {
        if (is_space(&options[i]) != of_space || options[i].fallback[0] == '\0') continue;
        CHECK(assign(&options[i], options[i].fallback, base, err) == 0);
    }
}

void config_init(struct config *config)
{
    *config = (struct config){0};
    assign_defaults(false, config);
}

void config_clear(struct config *config)
{
    array_clear(&config->spaces);
}

/* ------------------------------------------------------------------------------------------------------------- spaces */

/* The space of this label, made if need be; the label may be its id. */
static int find_space(struct config *config, const char *label, struct config_space **out, char *err)
{
    for (uint32_t i = 0; i < config->spaces.n; i++) {
        *out = &config->spaces.at[i];
        if (strcmp((*out)->label, label) == 0) return 0;
    }
    if (label[0] == '\0' || strlen(label) >= sizeof(*out)->label) return fail(err, "a space needs a name or an id of 1 to 63 bytes: [space 1]");
    struct config_space *space = array_add(&config->spaces);
    *space = (struct config_space){0};
    assign_defaults(true, space);
    snprintf(space->label, sizeof space->label, "%s", label);
    if (parse_id(NULL, label, &space->id, err) != 0) space->id = 0;
    *out = space;
    return 0;
}

/* The space that --set means: that of this id, whatever its section is called, or else that of this label, made if need be. */
static int space_to_set(struct config *config, const char *name, struct config_space **out, char *err)
{
    uint64_t id = 0;
    char no_id[CONFIG_ERROR_MAX];
    const struct config_space *there = parse_id(NULL, name, &id, no_id) == 0 ? config_space_of(config, id) : NULL;
    if (there == NULL) return find_space(config, name, out, err);
    *out = &config->spaces.at[there - config->spaces.at];
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- the file */

#define LINE_MAX_BYTES 190 /* inih cuts longer lines in two; stands in a text below */

/* inih says neither which line it is at nor that a section begins, so that the reader which it calls for each line looks for itself. */
struct reading {
    struct config *config;
    const char *path;
    FILE *file;
    int line;
    char section[LINE_MAX_BYTES];
    struct config_space *space; /* the current section is this space's */
    bool failed;
    char *err;
};

static void reading_fail(struct reading *r, const char *what)
{
    if (r->failed) return;
    r->failed = true;
    if (r->line > 0)
        snprintf(r->err, CONFIG_ERROR_MAX, "%.200s:%d: %.290s", r->path, r->line, what);
    else
        snprintf(r->err, CONFIG_ERROR_MAX, "%.200s: %.290s", r->path, what);
}

static bool section_known(const char *section)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (!is_space(&options[i]) && strcmp(options[i].section, section) == 0) return true;
    return false;
}

static void enter_section(struct reading *r)
{
    char err[CONFIG_ERROR_MAX];
    r->space = NULL;
    if (strncmp(r->section, "space", 5) == 0 && (r->section[5] == ' ' || r->section[5] == '\0')) {
        uint32_t before = r->config->spaces.n;
        if (find_space(r->config, r->section + 5 + strspn(r->section + 5, " "), &r->space, err) != 0) {
            reading_fail(r, err);
        } else if (r->config->spaces.n == before) {
            snprintf(err, sizeof err, "this space has a section already, in line %d", r->space->line);
            reading_fail(r, err);
        } else {
            r->space->path = r->path;
            r->space->line = r->line;
        }
    } else if (!section_known(r->section)) {
        snprintf(err, sizeof err, "unknown section [%.80s]; there are [server], [limits] and [space NAME-or-ID]", r->section);
        reading_fail(r, err);
    }
}

enum config_line config_read_line(char *text, int size, FILE *file)
{
    memset(text, '\n', (size_t)size); /* so that the last zero byte is the one behind what was read */
    if (fgets(text, size, file) == NULL) return CONFIG_LINE_NONE;
    size_t len = strlen(text);
    if (memrchr(text, '\0', (size_t)size) != text + len) return CONFIG_LINE_ZERO;
    return text[len - 1] == '\n' || feof(file) ? CONFIG_LINE : CONFIG_LINE_LONG;
}

static char *read_line(char *str, int num, void *stream)
{
    struct reading *r = stream;
    enum config_line is = r->failed ? CONFIG_LINE_NONE : config_read_line(str, num, r->file);
    if (is == CONFIG_LINE_NONE) return NULL;
    r->line++;
    size_t len = strlen(str);
    const char *fault = NULL;
    if (r->line == 1 && (strncmp(str, "\xff\xfe", 2) == 0 || strncmp(str, "\xfe\xff", 2) == 0))
        fault = "the file is in UTF-16; save it as UTF-8";
    else if (is == CONFIG_LINE_ZERO)
        fault = "a zero byte: this is no text file, or it is damaged";
    else if (is == CONFIG_LINE_LONG || len > LINE_MAX_BYTES)
        fault = "the line is too long, over 190 bytes";
    if (fault != NULL) {
        reading_fail(r, fault);
        return NULL;
    }
    if (r->line == 1 && strncmp(str, "\xef\xbb\xbf", 3) == 0) memmove(str, str + 3, len - 2); /* what some editors begin UTF-8 with */
    const char *at = str + strspn(str, " \t");
    const char *end = *at == '[' ? strchr(at, ']') : NULL;
    if (end != NULL) {
        snprintf(r->section, sizeof r->section, "%.*s", (int)(end - at - 1), at + 1);
        enter_section(r);
    }
    return str;
}

static int take_option(void *user, const char *ini_section, const char *name, const char *value)
{
    struct reading *r = user;
    char err[CONFIG_ERROR_MAX];
    (void)ini_section; /* cut at 50 bytes, and without the line */
    if (name == NULL || r->failed) return !r->failed;
    const struct option *option = find(r->space != NULL ? "space" : r->section, name);
    if (r->section[0] == '\0') {
        reading_fail(r, "an option before the first section; begin with [server]");
    } else if (option == NULL) {
        unknown(r->section, name, err);
        reading_fail(r, err);
    } else {
        uint64_t bit = (uint64_t)1 << (option - options);
        uint64_t *given = r->space != NULL ? &r->space->given : &r->config->given;
        if (*given & bit) {
            snprintf(err, sizeof err, "%s is given twice", name);
            reading_fail(r, err);
        } else if (assign(option, value, r->space != NULL ? (void *)r->space : (void *)r->config, err) != 0) {
            reading_fail(r, err);
        }
        *given |= bit;
    }
    return !r->failed;
}

int config_read(struct config *config, FILE *file, const char *path, char *err)
{
    struct reading r = {.config = config, .path = path, .file = file, .err = err};
    ini_allow_multiline = false; /* else an indented line would be taken for more of the value above it */
    ini_stop_on_first_error = true;
    int status = ini_parse_stream(read_line, &r, take_option, &r);
    if (status > 0) {
        r.line = status;
        reading_fail(&r, "neither an option (name = value), nor a [section], nor a comment");
    }
    if (ferror(file)) reading_fail(&r, strerror(errno));
    return r.failed ? -1 : 0;
}

const char *config_unfit(const struct config *config, const char *path)
{
    struct stat st;
    if (!config->files_only || stat(path, &st) != 0 || S_ISREG(st.st_mode)) return NULL; /* what is not there, whoever opens it says so */
    return "is not a regular file: a pipe or a device is read at the start only, for a daemon that runs would have to wait for it";
}

int config_load(struct config *config, const char *path, char *err)
{
    const char *why = config_unfit(config, path);
    if (why != NULL) return fail(err, "%.300s: %s", path, why);
    FILE *file = fopen(path, "re");
    if (file == NULL) return fail(err, "%.300s: %s", path, strerror(errno));
    int status = config_read(config, file, path, err);
    fclose(file);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- the rest */

int config_set(struct config *config, const char *assignment, char *err)
{
    const char *equals = strchr(assignment, '=');
    char name[128];
    if (equals == NULL || equals - assignment >= (ptrdiff_t)sizeof name) return fail(err, "%.80s: must be name=value", assignment);
    snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);
    char *dot = strrchr(name, '.');
    const char *key = dot != NULL ? dot + 1 : name;
    if (dot != NULL) *dot = '\0';

    void *base = config;
    const struct option *option = find(dot != NULL ? name : NULL, key);
    if (dot != NULL && strncmp(name, "space.", 6) == 0) {
        struct config_space *space;
        option = find("space", key);
        if (option != NULL && space_to_set(config, name + 6, &space, err) != 0) return -1;
        if (option != NULL) base = space;
    } else if (option == NULL ? dot == NULL && find("space", key) != NULL : is_space(option)) {
        return fail(err, "%.80s: which space? space.NAME-or-ID.%s=...", assignment, key);
    }
    if (option == NULL) return unknown(dot != NULL ? name : "", key, err);
    char why[CONFIG_ERROR_MAX];
    if (assign(option, equals + 1, base, why) == 0) return 0;
    return dot != NULL ? fail(err, "%.80s.%.400s", name, why) : fail(err, "%s", why); /* of which space, where several are set */
}

bool config_is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

const struct config_space *config_space_of(const struct config *config, uint64_t id)
{
    for (uint32_t i = 0; i < config->spaces.n; i++)
        if (config->spaces.at[i].id == id) return &config->spaces.at[i];
    return NULL;
}

/* Of a space without an id: a label that looks like a number was meant as one. */
static const char *label_fault(const struct config_space *space)
{
    const char *digits = space->label + (space->label[0] == '-');
    if (digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0') return "this is no id: ids are whole numbers from 1 to 2^64 - 1";
    return space->path == NULL ? "no section has this name, and a new space needs an id: --set space.NAME.id=1" : "needs an id, `id = 1` for example";
}

/* Six numbers, where four are meant, or three dimensions. */
static bool has_too_many_bounds(const struct aoi_settings *set)
{
    return set->bounded && set->dimensions == 2 && (set->min[2] > -AOI_COORD_MAX || set->max[2] < AOI_COORD_MAX);
}

static int check_space(struct config *config, uint32_t i, char *err)
{
    struct config_space *space = &config->spaces.at[i];
    const char *why = NULL;
    char same[96], no_id[CONFIG_ERROR_MAX];
    uint64_t named = space->id;
    if (space->id == 0) why = label_fault(space);
    if (parse_id(NULL, space->label, &named, no_id) == 0 && named != space->id) why = "a section named by a number is of the space of that id";
    if (why == NULL && has_too_many_bounds(&space->settings))
        why = "bounds has a z, and the space is of two dimensions: bounds = min_x min_y max_x max_y, or dimensions = 3";
    if (why == NULL && aoi_settings_check(&space->settings, &why) == AOI_OK) why = NULL;
    const struct config_space *first = config_space_of(config, space->id);
    if (why == NULL && first != space) {
        snprintf(same, sizeof same, "[space %s] has the same id", first->label);
        why = same;
    }
    if (why == NULL) return 0;
    if (space->path == NULL) return fail(err, "space %s: %s", space->label, why);
    return fail(err, "%.200s:%d: [space %s]: %s", space->path, space->line, space->label, why);
}

static int check_sizes(const struct config *config, char *err)
{
    uint64_t payload = config->max_payload, message = config->max_message, item = payload > message ? payload : message;
    const char *larger = payload > message ? "max_payload" : "max_message";
    char one[32], other[32], least[32];
    if (item + 1024 > config->max_frame_bytes)
        return fail(err, "max_frame_bytes must be at least 1 KiB more than %s; they are %s and %s", larger,
                    size_text((double)config->max_frame_bytes, one), size_text((double)item, other));
    if (config->out_soft_bytes < 2 * (item + 1024))
        return fail(err, "out_soft_bytes must be at least twice what %s = %s and 1 KiB are, which makes %s; it is %s", larger,
                    size_text((double)item, other), size_text((double)(2 * (item + 1024)), least), size_text((double)config->out_soft_bytes, one));
    if (config->out_hard_bytes <= config->out_soft_bytes)
        return fail(err, "out_hard_bytes must be more than out_soft_bytes; they are %s and %s", size_text((double)config->out_hard_bytes, one),
                    size_text((double)config->out_soft_bytes, other));
    return 0;
}

int config_check(struct config *config, char *err)
{
    if (config->listen.socket.ss_family == 0 && config->unix_socket[0] == '\0')
        return fail(err, "listen = none, and no unix_socket: nobody could connect");
    if (strlen(config->unix_socket) >= CONFIG_SOCKET_MAX)
        return fail(err, "unix_socket = %s: is longer than the %d bytes that a socket's path may have", config->unix_socket, CONFIG_SOCKET_MAX - 1);
    if (config->listen.socket.ss_family != 0 && !config_is_loopback(&config->listen.socket) && config->tokens_file[0] == '\0')
        return fail(err,
                    "listen = %s: this address can be reached from other machines, and without tokens anybody could command the daemon from there. "
                    "Set tokens_file (see the README about security), or listen on 127.0.0.1 or [::1].",
                    config->listen.text);
    if ((config->tls_cert[0] == '\0') != (config->tls_key[0] == '\0'))
        return fail(err, "tls_cert and tls_key: neither does without the other, and %s is not set",
                    config->tls_key[0] == '\0' ? "tls_key" : "tls_cert");
    if (config->tls_client_ca[0] != '\0' && config->tls_cert[0] == '\0') return fail(err, "tls_client_ca does nothing without tls_cert and tls_key");
    if (config->snapshot_s > 0 && config->snapshot[0] == '\0') return fail(err, "snapshot_s = %u: into which file? Set snapshot", config->snapshot_s);
    if (config->snapshot[0] != '\0' && config->record[0] != '\0')
        return fail(err, "snapshot and record: a recording begins with an empty world, so that one of them must go");
    if (check_sizes(config, err) != 0) return -1;
    uint64_t page_most = (config->max_frame_bytes - 128) / 32; /* a row takes 28 bytes, a Result's other fields less than 128 */
    if (config->query_page > page_most) config->query_page = (uint32_t)page_most;
    if (config->spaces.n > config->max_spaces) return fail(err, "more spaces are configured than max_spaces");
    for (uint32_t i = 0; i < config->spaces.n; i++)
        if (check_space(config, i, err) != 0) return -1;
    return 0;
}

struct aoi_limits config_limits(const struct config *config)
{
    return (struct aoi_limits){.max_spaces = config->max_spaces,
                               .max_entities = config->max_entities,
                               .max_players = config->max_players,
                               .max_units = config->max_units,
                               .max_payload = config->max_payload,
                               .max_radius = config->max_radius,
                               .max_overrides = config->max_overrides,
                               .max_message = config->max_message,
                               .max_messages = config->max_messages_per_flush};
}

/* ------------------------------------------------------------------------------------------------------------- changes at run time */

/* Those that may change while the daemon runs. */
static const char *const live[] = {"unix_allow_uids",  "unix_allow_gids",  "tokens_file",     "tls_cert",         "tls_key",
                                   "tls_client_ca",    "oracle_players",   "log_level",       "hello_timeout_ms", "frame_timeout_ms",
                                   "idle_timeout_ms",  "drain_timeout_ms", "max_connections", "max_sessions",     "max_lease_ms",
                                   "max_memory_bytes", "query_page",       "out_soft_bytes",  "out_hard_bytes",   "out_soft_ms"};

static bool is_live(const struct option *option)
{
    for (size_t i = 0; i < sizeof live / sizeof *live; i++)
        if (strcmp(live[i], option->name) == 0) return true;
    return false;
}

void config_list(char list[CONFIG_ERROR_MAX], const char *name)
{
    size_t len = strlen(list);
    snprintf(list + len, CONFIG_ERROR_MAX - len, "%s%s", len > 0 ? "," : "", name);
}

void config_take(struct config *running, const struct config *fresh, char changed[CONFIG_ERROR_MAX], char restart[CONFIG_ERROR_MAX])
{
    changed[0] = restart[0] = '\0';
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *option = &options[i];
        if (is_space(option)) continue;
        char *to = (char *)running + option->offset;
        const char *from = (const char *)fresh + option->offset;
        if (memcmp(to, from, option->size) == 0) continue; /* exact: assign() fills with zeros first */
        if (is_live(option)) memcpy(to, from, option->size);
        config_list(is_live(option) ? changed : restart, option->name);
    }
}

void config_take_spaces(struct config *running, struct config *fresh)
{
    array_clear(&running->spaces);
    running->spaces.at = fresh->spaces.at;
    running->spaces.n = fresh->spaces.n;
    running->spaces.cap = fresh->spaces.cap;
    fresh->spaces.at = NULL;
    fresh->spaces.n = fresh->spaces.cap = 0;
}

void config_print_help(FILE *out)
{
    const char *section = "";
    for (size_t i = 0; i < OPTIONS; i++) {
        if (strcmp(section, options[i].section) != 0) {
            section = options[i].section;
            fprintf(out, "\n[%s]\n", is_space(&options[i]) ? "space NAME-or-ID" : section);
        }
        fprintf(out, "  %-22s %-15s %s\n", options[i].name, options[i].fallback, options[i].help);
    }
}

void config_print_options(FILE *out)
{
    for (size_t i = 0; i < OPTIONS; i++) fprintf(out, "%s.%s %s\n", options[i].section, options[i].name, options[i].fallback);
}
