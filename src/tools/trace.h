/* trace.h: tables of numbers, csv or csv.xz, and traces of what moves in them. */
#ifndef AOI_TOOLS_TRACE_H
#define AOI_TOOLS_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

#define TRACE_COLUMNS 8

/* A table with named columns, row after row in `cells`. */
struct trace_table {
    uint32_t columns;
    char name[TRACE_COLUMNS][32];
    size_t rows;
    ARRAY(double) cells;
};

/* Reads a csv file with a header line; a name that ends in .xz is unpacked on the way. 0, or -1 with "FILE:LINE: what" in error. */
int trace_load_table(struct trace_table *t, const char *path, char *error, size_t error_size);
void trace_clear_table(struct trace_table *t);
/* The index of a column, or -1. */
int trace_column(const struct trace_table *t, const char *name);

struct trace_row {
    uint64_t id;
    float x, y;
};

/* Everything that is there at one time. Rows ascend by id. */
struct trace_step {
    double t;
    uint32_t first, n; /* rows */
};

struct trace {
    ARRAY(struct trace_row) rows;
    ARRAY(struct trace_step) steps; /* ascending by t */
};

/* Reads a table with the columns t, id, x, y. 0, or -1 with a sentence in error. */
int trace_load(struct trace *trace, const char *path, char *error, size_t error_size);
void trace_clear(struct trace *trace);

/* What changes from one step to the next: ids that appear, stay (with their new place) and disappear, as columns. */
struct trace_diff {
    ARRAY(struct trace_row) enters;
    ARRAY(uint64_t) move_id;
    ARRAY(float) move_x;
    ARRAY(float) move_y;
    ARRAY(uint64_t) leaves;
};
/* From step `to` - 1 (nothing for 0) to step `to`; `to` may be one past the last: everything leaves. */
void trace_diff(const struct trace *trace, uint32_t to, struct trace_diff *out);
void trace_clear_diff(struct trace_diff *diff);

#endif
