/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables as aligned text. To a pipe nothing is cut and all is as in JSON; on a terminal times are
 * ages, and what has no room gives way as its column says. */
#include "base/clock.h"
#include "ctl/human.h"
#include "ctl/table.h"

#include <ctype.h>
#include <libsmartcols.h>
#include <sys/ioctl.h>
#include <wchar.h>
#include <wctype.h>

#define HEADING_MAX 40
#define LONG_MIN_WIDTH 12  /* a column that is cut keeps this */
#define LONG_FAIR_WIDTH 30 /* before it has less, other columns are left out */
#define PROSE_MIN_WIDTH 24 /* one that is broken keeps this */
#define WIDTH_STANDARD 80
#define WIDTH_LEAST 20

struct layout {
    const struct table *t;
    const struct table_style *style;
    size_t shown[TABLE_COLUMNS_MAX]; /* columns, in their order */
    size_t widths[TABLE_COLUMNS_MAX];
    size_t count;
};

/* ---- cells ---- */

static int type_of(const struct table *t, size_t column)
{
    return t->columns[column].type & CELL_TYPE_MASK;
}

static bool has_flag(const struct table *t, size_t column, int flag)
{
    return (t->columns[column].type & flag) != 0;
}

/* The text of a cell; borrowed from the table or from `scratch`. */
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

/* The column's name without the unit that its cells have on a terminal. */
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

static void heading(const struct table *t, const struct table_style *style, size_t column,
                    char ret_text[HEADING_MAX])
{
    const char *name = t->columns[column].name;
    size_t len = name_length(t, style, column);
    size_t i = 0;
    for (; i < len && i < HEADING_MAX - 1; i++) {
        ret_text[i] = (char)(name[i] == '_' ? ' ' : toupper((unsigned char)name[i]));
    }
    ret_text[i] = '\0';
}

/* ---- widths ---- */

/* Columns of the character at `at`; its bytes in *ret_len. What can't be printed is shown as \xNN.
 */
static size_t char_width(const char *at, size_t *ret_len)
{
    mbstate_t state = {0};
    wchar_t wide = 0;
    size_t len = mbrtowc(&wide, at, MB_CUR_MAX, &state);
    *ret_len = len == 0 || len > MB_CUR_MAX ? 1 : len;
    int width = len == 0 || len > MB_CUR_MAX || !iswprint((wint_t)wide) ? -1 : wcwidth(wide);
    return width < 0 ? 4 * *ret_len : (size_t)width;
}

static size_t text_width(const char *text)
{
    size_t width = 0;
    size_t len = 0;
    for (const char *p = text; *p != '\0'; p += len) {
        width += char_width(p, &len);
    }
    return width;
}

/* Bytes of `text` that make one line of at most `width` columns; *ret_skip = those of the break
 * behind it. Longer words are cut. */
static size_t line_length(const char *text, size_t width, size_t *ret_skip)
{
    size_t used = 0;
    size_t len = 0;
    size_t space = 0; /* the last one at which the line may end */
    *ret_skip = 0;
    for (size_t at = 0; text[at] != '\0'; at += len) {
        if (text[at] == '\n') {
            *ret_skip = 1;
            return at;
        }
        used += char_width(text + at, &len);
        space = text[at] == ' ' && at > 0 ? at : space;
        if (used > width && at > 0) {
            *ret_skip = space > 0;
            return space > 0 ? space : at;
        }
    }
    return strlen(text);
}

static size_t column_width(const struct layout *l, size_t column)
{
    char scratch[HUMAN_MAX];
    char title[HEADING_MAX];
    heading(l->t, l->style, column, title);
    size_t widest = strlen(title);
    for (size_t row = 0; row < l->t->row_count; row++) {
        size_t width = text_width(shown(l->t, l->style, row, column, scratch));
        widest = width > widest ? width : widest;
    }
    return widest;
}

static size_t total_width(const struct layout *l, size_t long_width)
{
    size_t total = l->count > 0 ? l->count - 1 : 0; /* the gaps */
    for (size_t i = 0; i < l->count; i++) {
        size_t most = has_flag(l->t, l->shown[i], CELL_PROSE)  ? PROSE_MIN_WIDTH
                      : has_flag(l->t, l->shown[i], CELL_LONG) ? long_width
                                                               : SIZE_MAX;
        total += l->widths[i] < most ? l->widths[i] : most;
    }
    return total;
}

/* Leaves out the last column that may be; false = none may. */
static bool leave_out(struct layout *l)
{
    for (size_t i = l->count; i > 0; i--) {
        if (has_flag(l->t, l->shown[i - 1], CELL_WIDE)) {
            size_t behind = l->count - i;
            memmove(&l->shown[i - 1], &l->shown[i], behind * sizeof l->shown[0]);
            memmove(&l->widths[i - 1], &l->widths[i], behind * sizeof l->widths[0]);
            l->count--;
            return true;
        }
    }
    return false;
}

/* The widest column that may be cut and has more than `least`; count = none. `is_any`: of texts all
 * may. */
static size_t widest_to_cut(const struct layout *l, size_t least, bool is_any)
{
    size_t found = l->count;
    for (size_t i = 0; i < l->count; i++) {
        bool is_text = is_any && type_of(l->t, l->shown[i]) == CELL_TEXT;
        bool may_cut = (has_flag(l->t, l->shown[i], CELL_LONG) || is_text) && l->widths[i] > least;
        if (may_cut && (found == l->count || l->widths[i] > l->widths[found])) {
            found = i;
        }
    }
    return found;
}

/* Takes column by column from the widest until all fit, or nothing is left to take. */
static void cut_columns(struct layout *l, size_t least, bool is_any)
{
    size_t i = 0;
    while (total_width(l, SIZE_MAX) > l->style->width &&
           (i = widest_to_cut(l, least, is_any)) < l->count) {
        l->widths[i]--;
    }
}

static void lay_out(struct layout *l)
{
    for (size_t i = 0; i < l->t->column_count; i++) {
        if (!has_flag(l->t, i, CELL_HIDDEN)) {
            l->shown[l->count] = i;
            l->widths[l->count] = column_width(l, i);
            l->count++;
        }
    }
    if (l->style->is_terminal) {
        while (total_width(l, LONG_FAIR_WIDTH) > l->style->width && leave_out(l)) {
        }
        cut_columns(l, LONG_MIN_WIDTH, false);
        cut_columns(l, LONG_MIN_WIDTH, true);
    }
}

/* ---- printing ---- */

static bool add_columns(struct libscols_table *s, const struct layout *l)
{
    bool ok = true;
    for (size_t i = 0; ok && i < l->count; i++) {
        char title[HEADING_MAX];
        size_t column = l->shown[i];
        int type = type_of(l->t, column);
        heading(l->t, l->style, column, title);
        bool is_right = type == CELL_NUMBER || type == CELL_COUNT || type == CELL_SECONDS;
        ok = scols_table_new_column(s, title, 0, is_right ? SCOLS_FL_RIGHT : 0) != NULL;
    }
    return ok;
}

/* A line for each piece of the text in its last column. */
static bool add_prose(struct libscols_table *s, struct libscols_line *line, size_t column,
                      const char *text, size_t width)
{
    bool ok = true;
    do {
        size_t skip = 0;
        size_t len = line_length(text, width, &skip);
        autofree char *piece = strndup(text, len);
        line = line == NULL ? scols_table_new_line(s, NULL) : line;
        ok = piece != NULL && line != NULL && scols_line_set_data(line, column, piece) == 0;
        line = NULL;
        text += len + skip;
    } while (ok && *text != '\0');
    return ok;
}

static size_t prose_width(const struct layout *l)
{
    size_t others = total_width(l, SIZE_MAX);
    size_t own = l->widths[l->count - 1];
    others -= own < PROSE_MIN_WIDTH ? own : PROSE_MIN_WIDTH;
    return !l->style->is_terminal                       ? SIZE_MAX
           : l->style->width > others + PROSE_MIN_WIDTH ? l->style->width - others
                                                        : PROSE_MIN_WIDTH;
}

/* Sets a cell; what is wider than its column ends in "…". */
static bool set_cell(struct libscols_line *line, size_t column, const char *text, size_t width)
{
    size_t used = 0;
    size_t end = 0; /* of what fits beside the … */
    size_t len = 0;
    size_t at = 0;
    for (; text[at] != '\0' && used <= width; at += len) {
        used += char_width(text + at, &len);
        end = used < width ? at + len : end;
    }
    if (used <= width) {
        return scols_line_set_data(line, column, text) == 0;
    }
    autofree char *cut = malloc(end + sizeof "…");
    if (cut == NULL) {
        return false;
    }
    memcpy(cut, text, end);
    memcpy(cut + end, "…", sizeof "…");
    return scols_line_set_data(line, column, cut) == 0;
}

static bool add_lines(struct libscols_table *s, const struct layout *l)
{
    bool ok = true;
    for (size_t row = 0; ok && row < l->t->row_count; row++) {
        struct libscols_line *line = scols_table_new_line(s, NULL);
        ok = line != NULL;
        for (size_t i = 0; ok && i < l->count; i++) {
            char scratch[HUMAN_MAX];
            const char *text = shown(l->t, l->style, row, l->shown[i], scratch);
            ok = has_flag(l->t, l->shown[i], CELL_PROSE)
                     ? add_prose(s, line, i, text, prose_width(l))
                     : set_cell(line, i, text, l->widths[i]);
        }
    }
    return ok;
}

/* One row, downwards: names at the left. */
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
    ok = ok && (t->is_record ? add_record(s, t, style) : add_columns(s, &l) && add_lines(s, &l));
    ok = ok && (t->row_count == 0 || scols_print_table(s) == 0);
    scols_unref_table(s);
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
