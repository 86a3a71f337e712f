/* aoictl.c: the command line to a running aoid: the table of verbs, help, scripts from standard input, and what to do about refusals. */
#include "tools/aoictl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/version.h"
#include "tools/clock.h"

#define MAX_WORDS 256
#define INPUT_BYTES ((size_t)4096) /* read from standard input at a time */
#define DEFAULT_TIMEOUT_MS 5000

volatile sig_atomic_t aoictl_stop; /* set by the signal handler alone */

static const struct verb {
    const char *name, *words, *help;
    aoictl_verb *run;
} verbs[] = {
    {"ping", "[COUNT]", "ask whether it answers, and how fast", aoictl_ping},
    {"stats", "[SPACE]", "counters of the daemon or of one space", aoictl_stats},
    {"spaces", "", "list the spaces with their settings", aoictl_spaces},
    {"create", "SPACE [SETTING=VALUE]...", "make a space; it stays, an admin's to end (persistent=no: until aoictl ends)", aoictl_create},
    {"destroy", "SPACE", "end a space", aoictl_destroy},
    {"add", "SPACE ID X,Y[,Z] [FIELD=VALUE]...", "add an entity: see the fields below", aoictl_add},
    {"move", "SPACE ID X,Y[,Z] [extra=N]", "move an entity", aoictl_move},
    {"set", "SPACE ID FIELD=VALUE...", "change radius, layers, payload, appeal, priority", aoictl_set},
    {"remove", "SPACE ID...", "remove entities", aoictl_remove},
    {"flush", "SPACE [TAG]", "tell every player now what has changed", aoictl_flush},
    {"set-space", "SPACE SETTING=VALUE...", "change what can be changed of a space: see the settings below", aoictl_set_space},
    {"player", "SPACE PLAYER [SETTING=VALUE]...", "open a player or change it: unit=ID self=ID box=BOX, and settings", aoictl_player},
    {"override", "SPACE PLAYER ENTITY hide|show|none", "what a player sees in spite of the rules", aoictl_override},
    {"publish", "SPACE from ID TEXT", "tell a message to the players that see an entity", aoictl_publish},
    {"", "SPACE at X,Y[,Z] TEXT | box BOX TEXT", "... to the players that look there", NULL},
    {"release", "SPACE entity|player ID... [to=SESSION]", "another connection may take it over", aoictl_release},
    {"adopt", "SPACE ID...", "take over entities that were released", aoictl_adopt},
    {"why", "SPACE PLAYER ENTITY", "why a player sees an entity, or not", aoictl_why},
    {"query", "SPACE box BOX [layers=BITS]", "entities in X0,Y0,X1,Y1 (3D: X0,Y0,Z0,X1,Y1,Z1)", aoictl_query},
    {"", "SPACE radius X,Y[,Z] R [layers=BITS]", "entities at most R away", NULL},
    {"", "SPACE count BOX [layers=BITS]", "how many entities, and how many players look there", NULL},
    {"", "SPACE nearest X,Y[,Z] K [max=D] [layers=]", "the K nearest entities, nearest first", NULL},
    {"", "SPACE density BOX COLUMNSxROWS [layers=]", "how many where: a raster", NULL},
    {"", "SPACE observers ID", "the players that were told of an entity", NULL},
    {"", "SPACE entity ID", "everything about one entity", NULL},
    {"", "SPACE view PLAYER", "what a player was told it sees", NULL},
    {"watch", "SPACE --unit ID | --box BOX", "print deltas as they come: --include-self --player ID --for SECONDS --count LINES", aoictl_watch},
    {"replay", "FILE [--space ID]",
     "drive a trace (csv or csv.xz: t,id,x,y): --speed S | --steps-per-second N, --radius R, --loop; or a recording of aoid: --speed S",
     aoictl_replay},
    {"sleep", "SECONDS", "stay connected so long, in a script", aoictl_sleep},
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: aoictl [--address HOST:PORT] [--tls] [--timeout MS] [--hold] VERB ...\n"
                 "       aoictl [...] -          verbs from standard input, one a line; one that fails ends nothing\n"
                 "Exit status: 0 all was done, 1 something failed, 2 something was not understood.\n\n");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) fprintf(out, "  %-9s %-41s %s\n", verbs[i].name, verbs[i].words, verbs[i].help);
    fprintf(
        out,
        "\n"
        "  --address HOST:PORT   the daemon; 127.0.0.1:2643 if not given, and so is either half: HOST alone means port 2643, :PORT alone 127.0.0.1.\n"
        "                        IPv6: [::1]:2643. Its Unix socket: a path with a slash in it, or unix:PATH\n"
        "  --tls                 speak TLS; --ca FILE: trust these authorities, not the system's; --cert FILE --key FILE: show a certificate\n"
        "  AOI_TOKEN             in the environment: the secret, where the daemon has a tokens_file\n"
        "  --timeout MS          how long to wait for an answer; %d if not given\n"
        "  --hold                when all is done, stay connected until Ctrl-C\n"
        "  -v, --version         print the version, and exit\n\n"
        "Settings of create: dimensions=2|3 index=grid|crosslist shape=box|sphere|cells cell_size=N cell_range=N bounds=BOX extra=yes flush_ms=N\n"
        "persistent=no if_absent=yes, and, also of set-space: leave_margin=N min_stay_ms=N max_view=N max_enter_per_flush=N update_tiers=\"30:1 60:2 "
        "*:4\".\n"
        "Settings of a player, also of watch: mask=BITS max_view=N leave_margin=N max_enter_per_flush=N presence_only=yes take_over=yes\n"
        "(which makes these its settings: keep_settings=yes leaves those it has).\n"
        "Fields of add: radius=N layers=BITS extra=N payload=TEXT appeal=N priority=N report_observed=yes upsert=yes.\n\n"
        "An entity belongs to the connection that added it: only that connection may move or remove it, and it goes when the connection ends. So "
        "add\n"
        "with --hold, or give everything to one aoictl through standard input.\n\n"
        "Examples:\n"
        "  aoictl create 1 shape=sphere\n"
        "  aoictl --hold add 1 42 3,4 radius=50 &     an entity that stays until this aoictl is stopped\n"
        "  aoictl query 1 box 0,0,10,10\n"
        "  aoictl watch 1 --unit 42                   what entity 42 sees, as it changes\n"
        "  aoictl why 1 1000 7                        why player 1000 sees entity 7, or not\n"
        "  printf '%%s\\n' 'add 1 7 0,0' 'sleep 1' 'move 1 7 5,5' 'sleep 1' | aoictl -\n"
        "  aoictl replay town.csv.xz --space 1 --speed 20 --radius 150\n",
        DEFAULT_TIMEOUT_MS);
}

static void print_message(const struct aoictl *ctl, const char *format, va_list args)
{
    fflush(stdout);
    fputs("aoictl: ", stderr);
    if (ctl->script && ctl->line) fprintf(stderr, "line %zu: ", ctl->line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int aoictl_bad_usage(const struct aoictl *ctl, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(ctl, format, args);
    va_end(args);
    return AOICTL_USAGE;
}

int aoictl_failed(const struct aoictl *ctl, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(ctl, format, args);
    va_end(args);
    return AOICTL_FAILED;
}

void aoictl_refused(const struct aoictl *ctl, const struct libaoi_refusal *r, const char *advice)
{
    char id[32] = "";
    if (r->id != 0) snprintf(id, sizeof id, " (%" PRIu64 ")", r->id); /* 0: it is about none, but about the command as a whole */
    aoictl_failed(ctl, "%s%s: %s%s", libaoi_code_name(r->code), id, r->text, advice);
}

const char *aoictl_advice(int code, const char *text)
{
    if (code == LIBAOI_NOT_OWNER && strstr(text, "connection is gone")) return strstr(text, "ADOPT") ? "; see `aoictl adopt`" : "";
    if (code == LIBAOI_NOT_OWNER && strstr(text, "cannot be destroyed")) return "; take it out of the file and start the daemon anew";
    if (code == LIBAOI_NOT_OWNER && strstr(text, "needs a token")) return "; put the secret of such a one into the environment variable AOI_TOKEN";
    /* the daemon says "NAME = VALUE" where an option decided; some limits are fixed numbers, and no option helps */
    if (code == LIBAOI_LIMIT_EXCEEDED || strstr(text, "over max_radius"))
        return strstr(text, " = ") ? "; see the [limits] of the daemon's configuration" : "";
    switch (code) {
    case LIBAOI_UNKNOWN_SPACE: return "; see `aoictl spaces`, or make it: aoictl create SPACE";
    case LIBAOI_UNKNOWN_ENTITY: return "; an entity goes with the connection that added it: see aoictl --help about --hold";
    case LIBAOI_NOT_OWNER: return "; only the connection that made it may change it: see aoictl --help about --hold and standard input";
    case LIBAOI_DUPLICATE_ENTITY: return "; with upsert=yes one's own entity is written over";
    case LIBAOI_UNAUTHENTICATED: return "; a token goes into the environment variable AOI_TOKEN";
    case LIBAOI_DRAINING: return "; the daemon is about to exit, try again when it runs again";
    default: return "";
    }
}

int aoictl_call_failed(const struct aoictl *ctl)
{
    int code = libaoi_refused_code(ctl->c);
    /* who asks about an entity has seldom added it */
    const char *advice = code == LIBAOI_UNKNOWN_ENTITY ? "; it has not been added to this space, or has left it since"
                                                       : aoictl_advice(code, libaoi_error(ctl->c));
    return aoictl_failed(ctl, "%s%s", libaoi_error(ctl->c), advice);
}

static void on_ack(void *ctx, const struct libaoi_ack *ack)
{
    struct aoictl *ctl = ctx;
    if (ctl->tally) {
        aoictl_tally(ctl->tally, ctl, ack);
        return;
    }
    for (size_t i = 0; i < ack->n; i++) {
        const struct libaoi_refusal *r = &ack->refusals[i];
        aoictl_refused(ctl, r, ctl->plain ? "" : aoictl_advice(r->code, r->text));
    }
    ctl->refused += ack->refused;
}

int aoictl_settle(struct aoictl *ctl)
{
    if (libaoi_sync(ctl->c, ctl->timeout_ms)) return aoictl_call_failed(ctl);
    bool refused = ctl->refused > 0;
    ctl->refused = 0;
    return refused ? AOICTL_FAILED : AOICTL_OK;
}

int aoictl_linger(struct aoictl *ctl, double seconds)
{
    double end = clock_seconds() + seconds;
    while (!aoictl_stop) {
        double left = seconds < 0 ? 1 : end - clock_seconds();
        if (libaoi_poll(ctl->c, left <= 0 ? 0 : left > 0.1 ? 100 : (int)(left * 1000) + 1) < 0) return aoictl_call_failed(ctl);
        if (left <= 0) break;
    }
    return AOICTL_OK;
}

static int run_verb(struct aoictl *ctl, int n, char **words)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (verbs[i].run && strcmp(verbs[i].name, words[0]) == 0) return verbs[i].run(ctl, n - 1, words + 1);
    return aoictl_bad_usage(ctl, "there is no verb \"%s\"; aoictl --help lists them", words[0]);
}

/* Cuts a line at blanks; a word may be in double quotes, also behind its "name=". -1: too many, or a quote without end. */
static int split_words(char *line, char **words)
{
    int n = 0;
    for (char *from = line;;) {
        from += strspn(from, " \t\r\n");
        if (!*from || *from == '#') return n;
        if (n == MAX_WORDS) return -1;
        char *to = words[n++] = from;
        bool quoted = false;
        for (; *from && (quoted || !strchr(" \t\r\n", *from)); from++) {
            if (*from == '"')
                quoted = !quoted;
            else
                *to++ = *from;
        }
        if (quoted) return -1;
        if (*from) from++;
        *to = '\0';
    }
}

/* The next line of standard input, ended by a 0 instead of its newline; deltas are handled and the connection is kept alive meanwhile. NULL: no more, or the
 * connection has failed, and so does the script. */
static char *next_line(struct aoictl *ctl, struct buf *in, int *worst)
{
    uint32_t idle_ms = libaoi_welcome(ctl->c)->idle_timeout_ms;
    for (bool ended = false; !aoictl_stop;) {
        char *at = (char *)in->at + in->start, *newline = buf_len(in) ? memchr(at, '\n', buf_len(in)) : NULL;
        if (newline || (ended && buf_len(in))) {
            size_t len = newline ? (size_t)(newline - at) : buf_len(in);
            at[len] = '\0'; /* there is room: see below */
            in->start += newline ? len + 1 : len;
            return at;
        }
        if (ended) return NULL;
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = libaoi_fd(ctl->c), .events = POLLIN}};
        int ready = poll(fds, 2, idle_ms ? (int)(idle_ms / 3) + 1 : -1);
        if (libaoi_poll(ctl->c, 0) < 0) { /* this pings */
            *worst = aoictl_call_failed(ctl);
            return NULL;
        }
        if (ready <= 0 || !fds[0].revents) continue;
        uint8_t *room = buf_reserve(in, INPUT_BYTES + 1);
        ssize_t n = read(STDIN_FILENO, room, INPUT_BYTES);
        ended = n <= 0;
        if (n > 0) in->end += (size_t)n;
    }
    return NULL;
}

static int run_script(struct aoictl *ctl)
{
    char *words[MAX_WORDS], *line;
    struct buf in = {0};
    int worst = AOICTL_OK;
    while (!aoictl_stop && (line = next_line(ctl, &in, &worst)) != NULL) {
        ctl->line++;
        int n = split_words(line, words), status = AOICTL_OK;
        if (n < 0)
            status = aoictl_bad_usage(ctl, "a quote without end, or more than %d words", MAX_WORDS);
        else if (n > 0)
            status = run_verb(ctl, n, words);
        if (status > worst) worst = status;
        fflush(stdout);
    }
    buf_clear(&in);
    ctl->line = 0;
    return worst;
}

static void on_signal(int signal)
{
    (void)signal;
    aoictl_stop = 1;
}

struct libaoi *aoictl_connect(const struct aoictl *ctl, const struct libaoi_handlers *handlers, char *error, size_t error_size)
{
    const struct libaoi_options options = {.address = ctl->address,
                                           .client_name = "aoictl",
                                           .timeout_ms = (uint32_t)ctl->timeout_ms,
                                           .token = getenv("AOI_TOKEN"),
                                           .tls = ctl->tls,
                                           .tls_ca = ctl->ca,
                                           .tls_cert = ctl->cert,
                                           .tls_key = ctl->key,
                                           .handlers = *handlers};
    return libaoi_connect(&options, error, error_size);
}

/* What to do where the daemon was reached, and lets nobody in like this: there is no connection that would know its code, only what was said. */
static const char *connect_advice(const char *error)
{
    if (strstr(error, "LIMIT_EXCEEDED")) return aoictl_advice(LIBAOI_LIMIT_EXCEEDED, error);
    if (strstr(error, "has no token")) return "; for aoictl put it into the environment variable AOI_TOKEN: AOI_TOKEN=SECRET aoictl ...";
    if (strstr(error, "the token in Hello")) return "; aoictl took it from the environment variable AOI_TOKEN";
    if (strstr(error, "this port speaks TLS")) return "; aoictl speaks it with --tls, or with --ca FILE where the system does not know the authority";
    return "";
}

static int run(struct aoictl *ctl, int n, char **words)
{
    char error[512];
    const struct libaoi_handlers handlers = {
        .ctx = ctl, .ack = on_ack, .delta = aoictl_on_delta, .observed = aoictl_on_observed, .lost = aoictl_on_lost};
    ctl->c = aoictl_connect(ctl, &handlers, error, sizeof error);
    if (!ctl->c) return aoictl_failed(ctl, "%s%s", error, connect_advice(error));
    int status = ctl->script ? run_script(ctl) : run_verb(ctl, n, words);
    if (ctl->hold && status == AOICTL_OK) {
        if (ctl->made) fprintf(stderr, "aoictl: staying connected; Ctrl-C ends it, and removes what was added\n");
        status = aoictl_linger(ctl, -1);
    } else if (ctl->made && !ctl->script && status == AOICTL_OK) {
        fprintf(stderr, "aoictl: done, and gone again with this connection; --hold keeps it, see aoictl --help\n");
    }
    if (status == AOICTL_OK) libaoi_bye(ctl->c, ctl->timeout_ms);
    libaoi_close(ctl->c);
    return status;
}

/* The options in front of the verb. -1: go on; else an exit status. */
static int parse_options(struct aoictl *ctl, int argc, char **argv)
{
    static const struct option options[] = {
        {"address", required_argument, NULL, 'a'}, {"timeout", required_argument, NULL, 't'},
        {"tls", no_argument, NULL, 'T'},           {"ca", required_argument, NULL, 'A'},
        {"cert", required_argument, NULL, 'C'},    {"key", required_argument, NULL, 'K'},
        {"hold", no_argument, NULL, 'H'},          {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},       {NULL, 0, NULL, 0},
    };
    uint32_t timeout_ms;
    opterr = 0; /* it is said here */
    /* "+": the options behind the verb are the verb's; negative coordinates are no options */
    for (int o; (o = getopt_long(argc, argv, "+:hv", options, NULL)) != -1;) {
        const char *word = argv[optind - 1];
        ctl->tls |= strchr("TACK", o) != NULL; /* each of them asks for it */
        if (o == 'a')
            ctl->address = optarg;
        else if (o == 'A')
            ctl->ca = optarg;
        else if (o == 'C')
            ctl->cert = optarg;
        else if (o == 'K')
            ctl->key = optarg;
        else if (o == 'H')
            ctl->hold = true;
        else if (o == 't' && !aoictl_parse_u32(ctl, "timeout", optarg, &timeout_ms))
            return AOICTL_USAGE;
        else if (o == 't' && timeout_ms == 0)
            return aoictl_bad_usage(ctl, "--timeout 0 leaves no time for an answer; it is at least 1, in ms");
        else if (o == 't')
            ctl->timeout_ms = timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms;
        else if (o == 'h')
            return print_help(stdout), AOICTL_OK;
        else if (o == 'v')
            return puts("aoictl " AOID_VERSION), AOICTL_OK;
        else if (o == ':')
            return aoictl_bad_usage(ctl, "%s needs a value behind it; aoictl --help says of what kind", word);
        else if (o == '?' && optopt && strchr(word, '='))
            return aoictl_bad_usage(ctl, "%s: %.*s takes no value", word, (int)strcspn(word, "="), word);
        else if (o == '?')
            return aoictl_bad_usage(ctl, "there is no option %s in front of a verb; options of a verb stand behind it; aoictl --help lists them",
                                    word);
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct aoictl ctl = {.timeout_ms = DEFAULT_TIMEOUT_MS};
    for (int fd = 0; fd >= 0 && fd <= STDERR_FILENO;) /* what is closed must not become the daemon's socket */
        if ((fd = open("/dev/null", O_RDWR)) > STDERR_FILENO) close(fd);
    int status = parse_options(&ctl, argc, argv);
    if (status >= 0) return status;
    if (ctl.tls && ctl.address != NULL && (strncmp(ctl.address, "unix:", 5) == 0 || strchr(ctl.address, '/') != NULL))
        return fprintf(stderr, "aoictl: %s is a Unix socket, and no TLS is spoken there: leave out --tls, --ca, --cert and --key\n", ctl.address),
               AOICTL_USAGE;
    if ((ctl.cert == NULL) != (ctl.key == NULL))
        return fprintf(stderr, "aoictl: --cert and --key go together: %s is missing\n", ctl.cert == NULL ? "--cert" : "--key"), AOICTL_USAGE;
    int n = argc - optind;
    char **words = argv + optind;
    while (n > 1 && strcmp(words[n - 1], "--hold") == 0) ctl.hold = true, n--;
    if (n == 0) return print_help(stderr), AOICTL_USAGE;
    if (strcmp(words[0], "help") == 0 || (n > 1 && strcmp(words[1], "--help") == 0)) return print_help(stdout), AOICTL_OK;
    ctl.script = n == 1 && strcmp(words[0], "-") == 0;
    struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    status = run(&ctl, n, words);
    if (fflush(stdout) != 0 || ferror(stdout)) status = aoictl_failed(&ctl, "standard output cannot be written: %s", strerror(errno));
    return status;
}
