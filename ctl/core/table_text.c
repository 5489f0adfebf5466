/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables as aligned text. In a pipe nothing is cut, and all values are as in JSON. On a terminal,
 * times are shown as ages, headings are shortened if that helps, and columns that do not fit are
 * left out, cut or broken, as their flags say. */
#include "ctl/core/table_text.h"

#include "base/clock.h"
#include "ctl/core/human.h"
#include "ctl/core/wrap.h"

#include <ctype.h>
#include <libsmartcols.h>
#include <sys/ioctl.h>

#define OUTPUT_MAX ((size_t)256 << 20)
#define HEADING_MAX 40
#define LONG_MIN_WIDTH 12  /* minimum of a column that may be cut */
#define LONG_FAIR_WIDTH 30 /* rather than cut it below this, leaves out other columns */
#define TEXT_MIN_WIDTH 8   /* minimum of any other text */
#define PROSE_MIN_WIDTH 24 /* minimum of a column that is broken into lines */
#define WIDTH_STANDARD 80
#define WIDTH_LEAST 20

struct layout {
    const struct table *t;
    const struct table_style *style;
    size_t shown[TABLE_COLUMNS_MAX]; /* columns, in their order */
    size_t widths[TABLE_COLUMNS_MAX];
    size_t count;
    bool is_short;                  /* short headings are used */
    bool is_out[TABLE_COLUMNS_MAX]; /* by column: it was left out */
    bool is_cut[TABLE_COLUMNS_MAX]; /* by column: some of its cells were cut */
};

/* Used on a terminal that has no room for the long headings. */
static const struct {
    const char *name; /* name of the column, without its unit */
    const char *heading;
} short_headings[] = {{"available", "AVAIL"}, {"scheduled", "SCHED"},   {"retryable", "RETRY"},
                      {"running", "RUN"},     {"oldest_due", "OLDEST"}, {"per_s", "/S"},
                      {"beat_age", "BEAT"},   {"priority", "PRIO"},     {"attempt", "TRY"},
                      {"finalized", "ENDED"}, {"attempted", "STARTED"}};

/* ---- cells ---- */

static int type_of(const struct table *t, size_t column)
{
    return t->columns[column].type & CELL_TYPE_MASK;
}

static bool has_flag(const struct table *t, size_t column, int flag)
{
    return (t->columns[column].type & flag) != 0;
}

/* Returns the text of a cell, borrowed from the table or from `scratch`. */
static const char *shown(const struct table *t, const struct table_style *style, size_t row,
                         size_t column, char scratch[HUMAN_MAX])
{
    const char *value = table_cell(t, row, column);
    int type = type_of(t, column);
    if (value == NULL) {
        return "-";
    }
    if (type == CELL_BOOL) {
        return value[0] == 't' ? "yes" : "no";
    }
    if (!style->is_terminal) {
        return value;
    }
    if (type == CELL_SECONDS) {
        human_duration(strtod(value, NULL), scratch);
        return scratch;
    }
    bool is_time = type == CELL_TIME && t->now_us > 0;
    return is_time && human_time(value, t->now_us, scratch) == STATUS_OK ? scratch : value;
}

/* Returns the length of the column's name without its unit, which the cells have on a terminal. */
static size_t name_length(const struct table *t, const struct table_style *style, size_t column)
{
    const char *name = t->columns[column].name;
    int type = type_of(t, column);
    const char *unit = type == CELL_SECONDS ? "_s" : type == CELL_TIME ? "_at" : NULL;
    size_t len = strlen(name);
    bool is_cut = style->is_terminal && unit != NULL && len > strlen(unit) &&
                  strcmp(name + len - strlen(unit), unit) == 0;
    return is_cut ? len - strlen(unit) : len;
}

static const char *short_heading(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_COUNT(short_headings); i++) {
        const char *known = short_headings[i].name;
        if (strlen(known) == len && strncmp(known, name, len) == 0) {
            return short_headings[i].heading;
        }
    }
    return NULL;
}

static void heading(const struct layout *l, size_t column, char ret_text[HEADING_MAX])
{
    const char *name = l->t->columns[column].name;
    size_t len = name_length(l->t, l->style, column);
    const char *shorter = l->is_short ? short_heading(name, len) : NULL;
    if (shorter != NULL) {
        (void)snprintf(ret_text, HEADING_MAX, "%s", shorter);
        return;
    }
    size_t i = 0;
    for (; i < len && i < HEADING_MAX - 1; i++) {
        ret_text[i] = (char)(name[i] == '_' ? ' ' : toupper((unsigned char)name[i]));
    }
    ret_text[i] = '\0';
}

/* ---- widths ---- */

static size_t column_width(const struct layout *l, size_t column)
{
    char scratch[HUMAN_MAX];
    char title[HEADING_MAX];
    heading(l, column, title);
    size_t widest = strlen(title);
    for (size_t row = 0; row < l->t->row_count; row++) {
        size_t width = wrap_text_width(shown(l->t, l->style, row, column, scratch));
        widest = width > widest ? width : widest;
    }
    return widest;
}

static bool gives_way(const struct layout *l, size_t i)
{
    return has_flag(l->t, l->shown[i], CELL_LONG | CELL_LIST);
}

static size_t total_width(const struct layout *l, size_t long_width)
{
    size_t total = l->count > 0 ? l->count - 1 : 0; /* the gaps */
    for (size_t i = 0; i < l->count; i++) {
        size_t most = has_flag(l->t, l->shown[i], CELL_PROSE) ? PROSE_MIN_WIDTH
                      : gives_way(l, i)                       ? long_width
                                                              : SIZE_MAX;
        total += l->widths[i] < most ? l->widths[i] : most;
    }
    return total;
}

static bool is_too_wide(const struct layout *l, size_t long_width)
{
    return total_width(l, long_width) > l->style->width;
}

/* Leaves out the last column that may be left out; if `is_any`, the last one but never the first.
 * Returns false if there is none. */
static bool leave_out(struct layout *l, bool is_any)
{
    for (size_t i = l->count; i > 1; i--) {
        if (is_any || has_flag(l->t, l->shown[i - 1], CELL_WIDE)) {
            size_t behind = l->count - i;
            l->is_out[l->shown[i - 1]] = true;
            memmove(&l->shown[i - 1], &l->shown[i], behind * sizeof l->shown[0]);
            memmove(&l->widths[i - 1], &l->widths[i], behind * sizeof l->widths[0]);
            l->count--;
            return true;
        }
    }
    return false;
}

/* Returns the widest column that may be narrowed and is wider than `least`; l->count = none.
 * `is_any`: all texts may be narrowed. */
static size_t widest_to_narrow(const struct layout *l, size_t least, bool is_any)
{
    size_t found = l->count;
    for (size_t i = 0; i < l->count; i++) {
        bool is_text = is_any && type_of(l->t, l->shown[i]) == CELL_TEXT &&
                       !has_flag(l->t, l->shown[i], CELL_PROSE);
        bool may_give = (gives_way(l, i) || is_text) && l->widths[i] > least;
        if (may_give && (found == l->count || l->widths[i] > l->widths[found])) {
            found = i;
        }
    }
    return found;
}

/* Takes columns off the widest column, one at a time, until all fit or none can be narrowed
 * further. */
static void narrow(struct layout *l, size_t least, bool is_any)
{
    size_t i = 0;
    while (is_too_wide(l, SIZE_MAX) && (i = widest_to_narrow(l, least, is_any)) < l->count) {
        l->widths[i]--;
    }
}

static void measure(struct layout *l)
{
    for (size_t i = 0; i < l->count; i++) {
        l->widths[i] = column_width(l, l->shown[i]);
    }
}

static void fit(struct layout *l)
{
    l->is_short = is_too_wide(l, LONG_FAIR_WIDTH);
    do {
        measure(l);
        while (is_too_wide(l, LONG_FAIR_WIDTH) && leave_out(l, false)) {
        }
        narrow(l, LONG_MIN_WIDTH, false);
        narrow(l, TEXT_MIN_WIDTH, true);
    } while (is_too_wide(l, SIZE_MAX) && leave_out(l, true));
}

/* Gives prose the width that the other columns leave. */
static void widen_prose(struct layout *l)
{
    size_t last = l->count - 1;
    if (l->count == 0 || !has_flag(l->t, l->shown[last], CELL_PROSE)) {
        return;
    }
    size_t others = total_width(l, SIZE_MAX);
    others -= l->widths[last] < PROSE_MIN_WIDTH ? l->widths[last] : PROSE_MIN_WIDTH;
    l->widths[last] = !l->style->is_terminal                       ? SIZE_MAX
                      : l->style->width > others + PROSE_MIN_WIDTH ? l->style->width - others
                                                                   : PROSE_MIN_WIDTH;
}

static void lay_out(struct layout *l)
{
    for (size_t i = 0; i < l->t->column_count; i++) {
        l->is_out[i] = has_flag(l->t, i, CELL_OUT);
        if (!l->is_out[i] && !has_flag(l->t, i, CELL_HIDDEN)) {
            l->shown[l->count++] = i;
        }
    }
    measure(l);
    if (l->style->is_terminal) {
        fit(l);
    }
    widen_prose(l);
}

/* ---- printing ---- */

static bool add_columns(struct libscols_table *s, const struct layout *l)
{
    bool ok = true;
    for (size_t i = 0; ok && i < l->count; i++) {
        char title[HEADING_MAX];
        size_t column = l->shown[i];
        int type = type_of(l->t, column);
        heading(l, column, title);
        bool is_right = type == CELL_NUMBER || type == CELL_COUNT || type == CELL_SECONDS;
        ok = scols_table_new_column(s, title, 0, is_right ? SCOLS_FL_RIGHT : 0) != NULL;
    }
    return ok;
}

/* Puts as much of the text into the cell as fits; *text becomes the rest, NULL at its end. */
static bool set_piece(struct libscols_line *line, size_t column, const char **text, size_t width,
                      bool is_list)
{
    size_t skip = 0;
    size_t len = wrap_line(*text, width, is_list, &skip);
    autofree char *piece = strndup(*text, len);
    *text += len + skip;
    *text = **text == '\0' ? NULL : *text;
    return piece != NULL && scols_line_set_data(line, column, piece) == 0;
}

/* Adds a line for each piece of the text in its last column. */
static bool add_prose(struct libscols_table *s, struct libscols_line *line, size_t column,
                      const char *text, size_t width)
{
    bool ok = set_piece(line, column, &text, width, false);
    while (ok && text != NULL) {
        line = scols_table_new_line(s, NULL);
        ok = line != NULL && set_piece(line, column, &text, width, false);
    }
    return ok;
}

/* Sets a cell. A text that is wider than its column ends in "…", and *is_cut becomes true. */
static bool set_cell(struct libscols_line *line, size_t column, const char *text, size_t width,
                     bool *is_cut)
{
    size_t used = 0;
    size_t end = 0; /* end of the part that fits beside the … */
    size_t len = 0;
    size_t at = 0;
    for (; text[at] != '\0' && used <= width; at += len) {
        used += wrap_char_width(text + at, &len);
        end = used < width ? at + len : end;
    }
    if (used <= width) {
        return scols_line_set_data(line, column, text) == 0;
    }
    *is_cut = true;
    autofree char *cut = malloc(end + sizeof "…");
    if (cut == NULL) {
        return false;
    }
    memcpy(cut, text, end);
    memcpy(cut + end, "…", sizeof "…");
    return scols_line_set_data(line, column, cut) == 0;
}

static bool is_broken(const struct layout *l, size_t column)
{
    bool is_text = type_of(l->t, column) == CELL_TEXT && !has_flag(l->t, column, CELL_LONG);
    return has_flag(l->t, column, CELL_PROSE) ||
           (l->style->is_terminal && (is_text || has_flag(l->t, column, CELL_LIST)));
}

/* Puts as much of the text into this line as fits; *text becomes the rest, NULL at its end. */
static bool add_piece(struct layout *l, struct libscols_line *line, size_t i, const char **text)
{
    size_t column = l->shown[i];
    if (!is_broken(l, column)) {
        bool ok = set_cell(line, i, *text, l->widths[i], &l->is_cut[column]);
        *text = NULL;
        return ok;
    }
    return set_piece(line, i, text, l->widths[i], has_flag(l->t, column, CELL_LIST));
}

static bool add_row(struct libscols_table *s, struct layout *l, size_t row)
{
    char scratch[TABLE_COLUMNS_MAX][HUMAN_MAX];
    const char *rest[TABLE_COLUMNS_MAX] = {NULL};
    for (size_t i = 0; i < l->count; i++) {
        rest[i] = shown(l->t, l->style, row, l->shown[i], scratch[i]);
    }
    bool ok = true;
    bool is_over = false;
    while (ok && !is_over) {
        struct libscols_line *line = scols_table_new_line(s, NULL);
        ok = line != NULL;
        is_over = true;
        for (size_t i = 0; ok && i < l->count; i++) {
            ok = rest[i] == NULL || add_piece(l, line, i, &rest[i]);
            is_over = is_over && rest[i] == NULL;
        }
    }
    return ok;
}

static bool add_rows(struct libscols_table *s, struct layout *l)
{
    bool ok = true;
    for (size_t row = 0; ok && row < l->t->row_count; row++) {
        ok = add_row(s, l, row);
    }
    return ok;
}

static void put_names(FILE *out, const struct layout *l, const bool *is_named, const char *what)
{
    const char *gap = what;
    for (size_t i = 0; i < l->t->column_count; i++) {
        char title[HEADING_MAX];
        heading(l, i, title);
        if (is_named[i]) {
            (void)fprintf(out, "%s%s", gap, title);
            gap = ", ";
        }
    }
}

/* Names everything that was left out or cut. */
static void put_missing(const struct layout *l, FILE *out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *list = open_memstream(&text, &len);
    if (list == NULL) {
        return;
    }
    put_names(list, l, l->is_out, "no room for ");
    put_names(list, l, l->is_cut, ftell(list) > 0 ? "; cut: " : "cut: ");
    bool is_any = ftell(list) > 0;
    (void)fputs("; --json shows all", list);
    if (fclose(list) == 0 && is_any) {
        (void)wrap_print(out, text, l->style->width, 0);
    }
    free(text);
}

/* Adds one row vertically, with the names at the left. */
static bool add_record(struct libscols_table *s, const struct table *t,
                       const struct table_style *style)
{
    size_t widest = 0;
    bool ok = scols_table_new_column(s, "name", 0, 0) != NULL &&
              scols_table_new_column(s, "value", 0, 0) != NULL;
    for (size_t i = 0; i < t->column_count; i++) {
        size_t len = name_length(t, style, i);
        widest = len > widest ? len : widest;
    }
    size_t room = style->is_terminal && style->width > widest + PROSE_MIN_WIDTH
                      ? style->width - widest - 1
                      : SIZE_MAX;
    for (size_t i = 0; ok && t->row_count > 0 && i < t->column_count; i++) {
        char name[HEADING_MAX];
        char scratch[HUMAN_MAX];
        if (has_flag(t, i, CELL_HIDDEN)) {
            continue;
        }
        struct libscols_line *line = scols_table_new_line(s, NULL);
        (void)snprintf(name, sizeof name, "%.*s", (int)name_length(t, style, i),
                       t->columns[i].name);
        ok = line != NULL && scols_line_set_data(line, 0, name) == 0 &&
             add_prose(s, line, 1, shown(t, style, 0, i, scratch), room);
    }
    return ok;
}

static enum status print_table(const struct table *t, const struct table_style *style, FILE *out,
                               struct err *err)
{
    struct layout l = {.t = t, .style = style};
    struct libscols_table *s = scols_new_table();
    bool ok = s != NULL && scols_table_set_stream(s, out) == 0;
    ok = ok && scols_table_enable_noheadings(s, t->is_record) == 0;
    if (ok && style->is_terminal) {
        ok = scols_table_set_termforce(s, SCOLS_TERMFORCE_ALWAYS) == 0 &&
             scols_table_set_termwidth(s, style->width) == 0;
    } else if (ok) {
        ok = scols_table_set_termforce(s, SCOLS_TERMFORCE_NEVER) == 0;
    }
    lay_out(&l);
    ok = ok && (t->is_record ? add_record(s, t, style) : add_columns(s, &l) && add_rows(s, &l));
    ok = ok && (t->row_count == 0 || scols_print_table(s) == 0);
    scols_unref_table(s);
    if (ok && style->is_terminal && !t->is_record && t->row_count > 0) {
        put_missing(&l, out);
    }
    return ok ? STATUS_OK : err_fail(err, STATUS_NOMEM, "cannot print the table");
}

struct table_style table_style_of(FILE *out)
{
    struct table_style style = {.is_terminal = isatty(fileno(out)) == 1, .width = WIDTH_STANDARD};
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    long width = columns == NULL ? 0 : strtol(columns, NULL, 10);
    if (style.is_terminal && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        width = size.ws_col;
    }
    if (width > 0) {
        style.width = width < WIDTH_LEAST ? WIDTH_LEAST : (size_t)width;
    }
    return style;
}

enum status tables_print_text(const struct table *const *tables, size_t count,
                              const struct table_style *style, FILE *out, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && tables[i]->row_count > 0) {
            (void)fprintf(out, "\n");
        }
        enum status st = print_table(tables[i], style, out, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status tables_print(const struct table *const *tables, size_t count, bool is_json, FILE *out,
                         struct err *err)
{
    if (!is_json) {
        struct table_style style = table_style_of(out);
        return tables_print_text(tables, count, &style, out, err);
    }
    autotext struct text text = TEXT_INIT(OUTPUT_MAX);
    tables_put_json(tables, count, &text);
    return text_print(&text, out, err);
}

enum status table_print(const struct table *t, bool is_json, FILE *out, struct err *err)
{
    return tables_print(&t, 1, is_json, out, err);
}

enum status record_print(const char *name, const struct table_column *columns, size_t count,
                         const char *const *values, bool is_json, FILE *out, struct err *err)
{
    auto_table struct table record = {
        .name = name, .columns = columns, .column_count = count, .is_record = true};
    enum status st = table_add(&record, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    return table_print(&record, is_json, out, err);
}

enum status answer_print(const struct answer *answer, bool is_json, FILE *out, struct err *err)
{
    const struct table *tables[VERB_TABLES_MAX];
    if (!is_json && answer->says[0] != '\0') {
        (void)fprintf(out, "%s\n", answer->says);
        return STATUS_OK;
    }
    for (size_t i = 0; i < answer->count; i++) {
        tables[i] = &answer->tables[i];
    }
    return tables_print(tables, answer->count, is_json, out, err);
}
