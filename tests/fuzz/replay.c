/* replay.c: runs every file of some folders through a fuzz target, where there is no libFuzzer: NAME FOLDER... */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "fuzz.h"

/* On a block of exactly its length, so that AddressSanitizer sees a read past the end. */
static void replay_file(const char *path)
{
    struct buf bytes = {0};
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    size_t n;
    do {
        uint8_t *room = buf_reserve(&bytes, 65536);
        n = fread(room, 1, 65536, file);
        bytes.end += n;
    } while (n > 0);
    fclose(file);
    uint8_t *exact = mem_alloc(buf_len(&bytes) + 1);
    memcpy(exact + 1, buf_data(&bytes), buf_len(&bytes));
    LLVMFuzzerTestOneInput(exact + 1, buf_len(&bytes));
    free(exact);
    buf_clear(&bytes);
}

int main(int argc, char **argv)
{
    unsigned passed = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **entry;
        int n = scandir(argv[i], &entry, NULL, alphasort);
        if (n < 0) {
            perror(argv[i]);
            return 1;
        }
        for (int k = 0; k < n; k++) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry[k]->d_name);
            if (entry[k]->d_name[0] != '.') {
                printf("%s\n", path); /* before it, for an input that fails ends the program */
                fflush(stdout);
                replay_file(path);
                passed++;
            }
            free(entry[k]);
        }
        free(entry);
    }
    printf("%u passed, 0 failed\n", passed);
    return passed > 0 ? 0 : 1;
}
