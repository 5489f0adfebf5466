/* SPDX-License-Identifier: Apache-2.0 */
#include "model/vacuum_pace.h"

#include "base/clock.h"
#include "base/minmax.h"

/* A vacuum costs some milliseconds even if few rows are dead, and walks over all indexes: it is
 * worth it for this many new ones, if they are this part of the table. */
#define FRESH_MIN 250
#define FRESH_PART 5
/* Pause between two vacuums, as a multiple of the duration of the last: a twentieth of the time in
 * all. */
#define REST_FACTOR 19
/* Only a vacuum shows whether the rows that were left can be removed by now. */
#define LEFT_AGAIN_US (30 * US_PER_S)

bool vacuum_pace_is_worth_a_look(const struct vacuum_pace *p, uint64_t fed, int64_t now_us)
{
    return fed - p->fed >= FRESH_MIN && now_us >= p->rest_until_us;
}

void vacuum_pace_looked(struct vacuum_pace *p, uint64_t fed)
{
    p->fed = fed;
}

bool vacuum_pace_is_due(struct vacuum_pace *p, const struct vacuum_rows *rows, int64_t now_us)
{
    p->left = min_i64(p->left, rows->dead); /* another session has vacuumed */
    if (now_us < p->rest_until_us) {
        return false;
    }
    int64_t fresh = rows->dead - p->left;
    if (fresh >= FRESH_MIN && fresh >= (rows->live + p->left) / FRESH_PART) {
        return true;
    }
    return rows->dead >= FRESH_MIN && rows->dead >= rows->live / FRESH_PART &&
           now_us - p->ended_us >= LEFT_AGAIN_US;
}

void vacuum_pace_ended(struct vacuum_pace *p, int64_t begun_us, int64_t now_us)
{
    p->ended_us = now_us;
    p->rest_until_us = now_us + REST_FACTOR * (now_us - begun_us);
}

void vacuum_pace_left(struct vacuum_pace *p, const struct vacuum_rows *rows)
{
    p->left = rows->dead;
}
