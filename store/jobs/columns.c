/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/columns.h"

static void put_texts(struct params *p, const struct finish_list *list, struct columns *columns,
                      const char *(*text_of)(const struct job_finish *, size_t *ret_len))
{
    for (size_t i = 0; i < list->count; i++) {
        columns->lens[i] = 0;
        columns->texts[i] = text_of(&list->items[i]->f, &columns->lens[i]);
    }
    params_text_array(p, columns->texts, columns->lens, list->count);
}

static const char *result_of(const struct job_finish *f, size_t *ret_len)
{
    *ret_len = f->result_len;
    return f->result;
}

static const char *outcome_of(const struct job_finish *f, size_t *ret_len)
{
    const char *outcome = finish_outcome(f);
    *ret_len = strlen(outcome);
    return outcome;
}

static const char *error_of(const struct job_finish *f, size_t *ret_len)
{
    *ret_len = f->error_len;
    return f->error;
}

static const char *log_tail_of(const struct job_finish *f, size_t *ret_len)
{
    *ret_len = f->log_tail_len;
    return f->log_tail;
}

void columns_results(struct params *p, const struct finish_list *list, struct columns *columns)
{
    put_texts(p, list, columns, result_of);
}

void columns_outcomes(struct params *p, const struct finish_list *list, struct columns *columns)
{
    put_texts(p, list, columns, outcome_of);
}

void columns_errors(struct params *p, const struct finish_list *list, struct columns *columns)
{
    put_texts(p, list, columns, error_of);
}

void columns_logs(struct params *p, const struct finish_list *list, struct columns *columns)
{
    put_texts(p, list, columns, log_tail_of);
}

void columns_delays(struct params *p, const struct finish_list *list, struct columns *columns)
{
    for (size_t i = 0; i < list->count; i++) {
        columns->numbers[i] = list->items[i]->f.delay_us;
    }
    params_i64_array(p, columns->numbers, list->count);
}

void columns_crashed(struct params *p, const struct finish_list *list, struct columns *columns)
{
    for (size_t i = 0; i < list->count; i++) {
        columns->numbers[i] = list->items[i]->f.crashed ? 1 : 0;
    }
    params_i64_array(p, columns->numbers, list->count);
}
