/* args.c: the command line. */
#include "server/args.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/version.h"

enum { CONFIG = 'c', HELP = 'h', VERSION = 'v', CHECK_CONFIG = 256, LISTEN, PORT_FILE, SET, PRINT_OPTIONS, REPLAY, INDEX };

#define SHORT_FLAGS ":c:vh" /* the first colon: a missing value is told from an option that there is not */

static const struct option flags[] = {
    {"config", required_argument, NULL, CONFIG},
    {"check-config", no_argument, NULL, CHECK_CONFIG},
    {"listen", required_argument, NULL, LISTEN},
    {"port-file", required_argument, NULL, PORT_FILE},
    {"set", required_argument, NULL, SET},
    {"replay", required_argument, NULL, REPLAY},
    {"index", required_argument, NULL, INDEX},
    {"version", no_argument, NULL, VERSION},
    {"help", no_argument, NULL, HELP},
    {"print-options", no_argument, NULL, PRINT_OPTIONS}, /* for scripts, and thus not in the help */
    {NULL, 0, NULL, 0},
};

static void print_help(void)
{
    puts("usage: aoid [--config FILE] [--set NAME=VALUE]...\n"
         "\n"
         "  -c, --config FILE    read options and spaces from FILE\n"
         "  --set NAME=VALUE     an option, over what the file says: --set max_payload=8KiB, --set space.1.flush_ms=20\n"
         "                       (a space that has no section in the file is made so)\n"
         "  --listen HOST:PORT   short for --set listen=HOST:PORT; port 0: the kernel chooses\n"
         "  --port-file FILE     write the port that is listened on into FILE, once it is\n"
         "  --check-config       look for faults in the configuration, and exit\n"
         "  --replay FILE        replay a recording (see the option record), print a digest of what players are told, and exit\n"
         "  --index grid|crosslist   with --replay: by this index, whatever the spaces say; the digest is the same\n"
         "  -v, --version        print the version, and exit\n"
         "  -h, --help           print this, and exit\n"
         "\n"
         "Options, their defaults, and the sections of the file where they stand:");
    config_print_help(stdout);
}

static int override(int flag, const char *value, struct args *args, struct config *config, char *err)
{
    char assignment[512], why[CONFIG_ERROR_MAX];
    switch (flag) {
    case SET:
        if (config_set(config, value, why) == 0) return 0;
        snprintf(err, CONFIG_ERROR_MAX, "--set: %.400s", why);
        return -1;
    case LISTEN:
        snprintf(assignment, sizeof assignment, "listen=%s", value);
        if (config_set(config, assignment, why) == 0) return 0;
        snprintf(err, CONFIG_ERROR_MAX, "--listen: %.400s", why);
        return -1;
    case REPLAY: args->replay = value; return 0;
    case INDEX:
        args->replay_index = config_index_of(value);
        if (args->replay_index != 0) return 0;
        snprintf(err, CONFIG_ERROR_MAX, "--index %.100s: must be grid or crosslist", value);
        return -1;
    case PORT_FILE: args->port_file = value; return 0;
    case CHECK_CONFIG: args->check_only = true; return 0;
    case CONFIG: return 0; /* was read first */
    case HELP: print_help(); break;
    case VERSION: puts("aoid " AOID_VERSION); break;
    case PRINT_OPTIONS: config_print_options(stdout); break;
    default: break;
    }
    args->done = true;
    return 0;
}

/* What getopt_long() did not take: word, or the letter in optopt. */
static int misused(int flag, const char *word, char *err)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    if (flag == ':')
        snprintf(err, CONFIG_ERROR_MAX, "%.100s needs a value behind it; try `aoid --help`", word);
    else if (optopt != 0 && strchr(word, '=') != NULL)
        snprintf(err, CONFIG_ERROR_MAX, "%.100s: %.*s takes no value", word, (int)strcspn(word, "="), word);
    else
        snprintf(err, CONFIG_ERROR_MAX, "there is no option %.100s; try `aoid --help`", optopt != 0 ? letter : word);
    return -1;
}

int args_parse(int argc, char **argv, struct args *args, struct config *config, char *err)
{
    const char *path = NULL;
    int flag;
    *args = (struct args){0};
    opterr = 0; /* it is said here, in one line and with one name of the program */
    for (optind = 1; (flag = getopt_long(argc, argv, SHORT_FLAGS, flags, NULL)) != -1;)
        if (flag == CONFIG) path = optarg;
    if (path != NULL && config_load(config, path, err) != 0) return -1;

    optind = 0; /* glibc: start anew */
    while ((flag = getopt_long(argc, argv, SHORT_FLAGS, flags, NULL)) != -1) {
        if (flag == ':' || flag == '?') return misused(flag, argv[optind - 1], err);
        if (override(flag, optarg, args, config, err) != 0) return -1;
        if (args->done) return 0;
    }
    if (optind < argc) {
        snprintf(err, CONFIG_ERROR_MAX, "%.100s: not an option; a file is read with --config FILE; try `aoid --help`", argv[optind]);
        return -1;
    }
    return config_check(config, err);
}
