/* trace.c: reads csv and csv.xz tables of numbers, and cuts traces into steps. */
#include "tools/trace.h"

#include <errno.h>
#include <lzma.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

#define CHUNK ((size_t)64 * 1024)
#define LINE_MAX_BYTES 4096
#define MAX_ID 9007199254740992.0 /* 2^53: what a double holds exactly */

/* Lines of a file, unpacked if it is an .xz. */
struct reader {
    FILE *file;
    bool packed, ended;
    lzma_stream lzma;
    uint8_t chunk[CHUNK];
    struct buf text;
    char line[LINE_MAX_BYTES];
    size_t line_number;
    const char *fault; /* NULL: none */
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static void reader_fill_packed(struct reader *r)
{
    uint8_t *out = buf_reserve(&r->text, CHUNK);
    r->lzma.next_out = out;
    r->lzma.avail_out = CHUNK;
    if (r->lzma.avail_in == 0 && !feof(r->file)) {
        r->lzma.next_in = r->chunk;
        r->lzma.avail_in = fread(r->chunk, 1, CHUNK, r->file);
    }
    lzma_ret ret = lzma_code(&r->lzma, feof(r->file) && r->lzma.avail_in == 0 ? LZMA_FINISH : LZMA_RUN);
    r->text.end += CHUNK - r->lzma.avail_out;
    if (ret == LZMA_STREAM_END)
        r->ended = true;
    else if (ret != LZMA_OK)
        r->fault = "is not a whole .xz file";
}

static void reader_fill(struct reader *r)
{
    if (r->packed) {
        reader_fill_packed(r);
        return;
    }
    uint8_t *out = buf_reserve(&r->text, CHUNK);
    size_t n = fread(out, 1, CHUNK, r->file);
    r->text.end += n;
    if (n == 0) r->ended = true;
}

/* The next line without its end, or NULL at the end of the file or at a fault. */
static char *reader_line(struct reader *r)
{
    for (;;) {
        const uint8_t *at = buf_data(&r->text);
        size_t have = buf_len(&r->text);
        const uint8_t *newline = have ? memchr(at, '\n', have) : NULL;
        size_t len = newline ? (size_t)(newline - at) : have;
        if (!newline && len < LINE_MAX_BYTES && !r->ended && !r->fault) {
            reader_fill(r);
            continue;
        }
        if (r->fault || (!newline && !have)) return NULL;
        r->line_number++;
        if (len >= LINE_MAX_BYTES) {
            r->fault = "a line is too long";
            return NULL;
        }
        memcpy(r->line, at, len);
        while (len && r->line[len - 1] == '\r') len--;
        r->line[len] = '\0';
        buf_consume(&r->text, newline ? (size_t)(newline - at) + 1 : have);
        return r->line;
    }
}

static const char *parse_header(struct trace_table *t, char *line)
{
    char *save = NULL;
    for (char *name = strtok_r(line, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        if (t->columns == TRACE_COLUMNS) return "has too many columns";
        snprintf(t->name[t->columns++], sizeof t->name[0], "%.31s", name);
    }
    return t->columns ? NULL : "has no header line";
}

static const char *parse_row(struct trace_table *t, const char *line)
{
    array_reserve(&t->cells, (size_t)t->cells.n + t->columns);
    for (uint32_t c = 0; c < t->columns; c++) {
        char *end;
        t->cells.at[t->cells.n + c] = strtod(line, &end);
        if (end == line || *end != (c + 1 < t->columns ? ',' : '\0') || !isfinite(t->cells.at[t->cells.n + c]))
            return "is not a row of numbers like the header";
        line = end + 1;
    }
    t->cells.n += t->columns;
    t->rows++;
    return NULL;
}

int trace_load_table(struct trace_table *t, const char *path, char *error, size_t error_size)
{
    *t = (struct trace_table){0};
    struct reader *r = mem_zalloc(sizeof *r);
    r->file = fopen(path, "rb");
    if (!r->file) {
        snprintf(error, error_size, "cannot read %s: %s", path, strerror(errno));
        free(r);
        return -1;
    }
    r->packed = ends_with(path, ".xz");
    r->lzma = (lzma_stream)LZMA_STREAM_INIT;
    if (r->packed && lzma_stream_decoder(&r->lzma, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK) r->fault = "cannot be unpacked";
    for (char *line; !r->fault && (line = reader_line(r)) != NULL;) {
        if (*line) r->fault = t->columns ? parse_row(t, line) : parse_header(t, line);
    }
    if (!r->fault && ferror(r->file)) r->fault = "cannot be read";
    if (!r->fault && !t->columns) r->fault = "is empty";
    if (r->fault) snprintf(error, error_size, "%s:%zu: %s", path, r->line_number, r->fault);
    int status = r->fault ? -1 : 0;
    lzma_end(&r->lzma);
    fclose(r->file);
    buf_clear(&r->text);
    free(r);
    if (status) trace_clear_table(t);
    return status;
}

void trace_clear_table(struct trace_table *t)
{
    array_clear(&t->cells);
    *t = (struct trace_table){0};
}

int trace_column(const struct trace_table *t, const char *name)
{
    for (uint32_t c = 0; c < t->columns; c++)
        if (strcmp(t->name[c], name) == 0) return (int)c;
    return -1;
}

struct timed_row {
    double t;
    struct trace_row row;
};

static int by_time_and_id(const void *a, const void *b)
{
    const struct timed_row *p = a, *q = b;
    if (p->t != q->t) return p->t < q->t ? -1 : 1;
    return p->row.id < q->row.id ? -1 : p->row.id > q->row.id;
}

int trace_load(struct trace *trace, const char *path, char *error, size_t error_size)
{
    struct trace_table table;
    *trace = (struct trace){0};
    if (trace_load_table(&table, path, error, error_size)) return -1;
    int t = trace_column(&table, "t"), id = trace_column(&table, "id"), x = trace_column(&table, "x"), y = trace_column(&table, "y");
    if (t < 0 || id < 0 || x < 0 || y < 0) {
        snprintf(error, error_size, "%s: a trace has the columns t, id, x and y, with these names in the first line", path);
        trace_clear_table(&table);
        return -1;
    }
    bool bad = false;
    struct timed_row *rows = mem_alloc((table.rows + 1) * sizeof *rows);
    for (size_t i = 0; i < table.rows; i++) {
        const double *cell = table.cells.at + i * table.columns;
        bad |= !(cell[id] >= 1 && cell[id] <= MAX_ID && cell[id] == floor(cell[id]));
        rows[i] = (struct timed_row){cell[t], {bad ? 0 : (uint64_t)cell[id], (float)cell[x], (float)cell[y]}};
    }
    if (bad || !table.rows) {
        snprintf(error, error_size, "%s: %s", path, bad ? "an id is no whole number from 1 to 2^53" : "has no rows");
        free(rows);
        trace_clear_table(&table);
        return -1;
    }
    qsort(rows, table.rows, sizeof *rows, by_time_and_id);
    for (size_t i = 0; i < table.rows; i++) {
        if (i && rows[i].t == rows[i - 1].t && rows[i].row.id == rows[i - 1].row.id) continue; /* a second place at the same time */
        if (!i || rows[i].t != rows[i - 1].t) *array_add(&trace->steps) = (struct trace_step){.t = rows[i].t, .first = trace->rows.n};
        *array_add(&trace->rows) = rows[i].row;
        trace->steps.at[trace->steps.n - 1].n++;
    }
    free(rows);
    trace_clear_table(&table);
    return 0;
}

void trace_clear(struct trace *trace)
{
    array_clear(&trace->rows);
    array_clear(&trace->steps);
}

void trace_diff(const struct trace *trace, uint32_t to, struct trace_diff *out)
{
    static const struct trace_step none;
    const struct trace_step *a = to ? &trace->steps.at[to - 1] : &none, *b = to < trace->steps.n ? &trace->steps.at[to] : &none;
    const struct trace_row *p = trace->rows.at + a->first, *p_end = p + a->n, *q = trace->rows.at + b->first, *q_end = q + b->n;
    out->enters.n = out->move_id.n = out->move_x.n = out->move_y.n = out->leaves.n = 0;
    while (p < p_end || q < q_end) {
        if (q == q_end || (p < p_end && p->id < q->id)) {
            *array_add(&out->leaves) = (p++)->id;
        } else if (p == p_end || q->id < p->id) {
            *array_add(&out->enters) = *q++;
        } else {
            *array_add(&out->move_id) = q->id;
            *array_add(&out->move_x) = q->x;
            *array_add(&out->move_y) = q->y;
            p++, q++;
        }
    }
}

void trace_clear_diff(struct trace_diff *diff)
{
    array_clear(&diff->enters);
    array_clear(&diff->move_id);
    array_clear(&diff->move_x);
    array_clear(&diff->move_y);
    array_clear(&diff->leaves);
}
