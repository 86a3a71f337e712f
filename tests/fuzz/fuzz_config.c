/* fuzz_config.c: a configuration is taken or refused with a line that says where and why, and what was taken can be told again. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "server/config.h"

/* A fault is one printable line that fits, and not empty. */
static void check_fault(const char *err)
{
    CHECK(memchr(err, '\0', CONFIG_ERROR_MAX) != NULL && err[0] != '\0' && strchr(err, '\n') == NULL);
}

static void check_tiers(const struct aoi_tiers *tiers)
{
    char text[AOI_TIERS_TEXT], again[AOI_TIERS_TEXT];
    struct aoi_tiers read;
    const char *why;
    aoi_tiers_print(tiers, text);
    CHECK(aoi_tiers_parse(text, &read, &why) == AOI_OK && read.n == tiers->n);
    aoi_tiers_print(&read, again);
    CHECK(strcmp(text, again) == 0);
}

static void check_taken(struct config *config)
{
    CHECK(config->query_page > 0 && config->out_soft_bytes < config->out_hard_bytes && config->spaces.n <= config->max_spaces);
    for (uint32_t i = 0; i < config->spaces.n; i++) {
        struct aoi_settings set = config->spaces.at[i].settings;
        const char *why;
        CHECK(config->spaces.at[i].id != 0 && aoi_settings_check(&set, &why) == AOI_OK);
        check_tiers(&set.tiers);
    }
}

/* Everything has been read. */
static void check_whole(struct config *config)
{
    char err[CONFIG_ERROR_MAX] = "";
    if (config_check(config, err) == 0) {
        check_taken(config);
    } else {
        check_fault(err);
    }
}

static int read_file(struct config *config, const uint8_t *data, size_t size, char *err)
{
    if (size == 0) return 0; /* fmemopen() takes no empty file */
    char *copy = mem_alloc(size);
    memcpy(copy, data, size);
    FILE *file = fmemopen(copy, size, "r");
    CHECK(file != NULL);
    int status = config_read(config, file, "f", err);
    fclose(file);
    free(copy);
    if (status != 0) {
        check_fault(err);
        CHECK(strncmp(err, "f:", 2) == 0 && strtol(err + 2, NULL, 10) > 0);
    }
    return status;
}

/* The same bytes as a file, and line by line as assignments of the command line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char err[CONFIG_ERROR_MAX] = "";
    struct config config;
    config_init(&config);
    if (read_file(&config, data, size, err) == 0) check_whole(&config);
    config_clear(&config);

    char *lines = mem_zalloc(size + 1), *rest = lines, *line;
    if (size > 0) memcpy(lines, data, size);
    config_init(&config);
    while ((line = strtok_r(rest, "\n", &rest)) != NULL) {
        if (config_set(&config, line, err) == 0) continue;
        check_fault(err);
        config_clear(&config); /* it is good for nothing else now */
        config_init(&config);
    }
    check_whole(&config);
    config_clear(&config);
    free(lines);
    return 0;
}
