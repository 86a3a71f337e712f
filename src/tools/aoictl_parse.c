/* aoictl_parse.c: words of the command line into numbers, points, boxes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/aoictl.h"

#define FAR 16777216.0f /* 2^24: the edge of every space */

bool aoictl_parse_u64(const struct aoictl *ctl, const char *what, const char *word, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word, &end, strncmp(word, "0x", 2) == 0 ? 16 : 10);
    bool good = *word >= '0' && *word <= '9' && *end == '\0' && !errno;
    if (good)
        *out = value;
    else
        aoictl_bad_usage(ctl, "%s \"%s\" is no whole number", what, word);
    return good;
}

bool aoictl_parse_u32(const struct aoictl *ctl, const char *what, const char *word, uint32_t *out)
{
    uint64_t value;
    if (!aoictl_parse_u64(ctl, what, word, &value)) return false;
    if (value > UINT32_MAX) {
        aoictl_bad_usage(ctl, "%s \"%s\" is over 2^32 - 1", what, word);
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

bool aoictl_parse_id(const struct aoictl *ctl, const char *what, const char *word, uint64_t *out)
{
    if (!aoictl_parse_u64(ctl, what, word, out)) return false;
    if (*out == 0) aoictl_bad_usage(ctl, "%s 0 is no id: ids are whole numbers from 1", what);
    return *out != 0;
}

bool aoictl_parse_double(const struct aoictl *ctl, const char *what, const char *word, double *out)
{
    char *end;
    *out = strtod(word, &end);
    if (end != word && *end == '\0' && isfinite(*out)) return true; /* a wait of nan would never end */
    aoictl_bad_usage(ctl, "%s \"%s\" is no number", what, word);
    return false;
}

bool aoictl_parse_flag(const struct aoictl *ctl, const char *what, const char *word, bool *out)
{
    *out = strcmp(word, "yes") == 0;
    if (*out || strcmp(word, "no") == 0) return true;
    aoictl_bad_usage(ctl, "%s is yes or no, not \"%s\"", what, word);
    return false;
}

/* Numbers between commas: how many, at most 6; -1 for anything else. */
static int parse_list(const char *word, float out[6])
{
    for (int n = 0; n < 6; n++) {
        char *end;
        out[n] = strtof(word, &end);
        if (end == word) return -1;
        if (*end == '\0') return n + 1;
        if (*end != ',') return -1;
        word = end + 1;
    }
    return -1;
}

bool aoictl_parse_point(const struct aoictl *ctl, const char *word, float out[3])
{
    float v[6] = {0};
    int n = parse_list(word, v);
    if (n == 2 || n == 3) {
        memcpy(out, v, 3 * sizeof *out);
        if (n == 2) out[2] = 0;
        return true;
    }
    aoictl_bad_usage(ctl, "\"%s\" is no position; write X,Y or X,Y,Z without blanks, for example 3.5,-4", word);
    return false;
}

bool aoictl_parse_box(const struct aoictl *ctl, const char *word, float min[3], float max[3])
{
    float v[6];
    int n = parse_list(word, v);
    if (n != 4 && n != 6) {
        aoictl_bad_usage(ctl, "\"%s\" is no box; write X0,Y0,X1,Y1 or X0,Y0,Z0,X1,Y1,Z1 without blanks, for example 0,0,100,50", word);
        return false;
    }
    int dims = n / 2;
    for (int a = 0; a < 3; a++) {
        min[a] = a < dims ? v[a] : -FAR;
        max[a] = a < dims ? v[dims + a] : FAR;
    }
    return true;
}

const char *aoictl_option(const char *word, const char *name)
{
    size_t len = strlen(name);
    if (strncmp(word, "--", 2) == 0) word += 2;
    return strncmp(word, name, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}
