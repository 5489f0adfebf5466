/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/job_time.h"

#include "base/clock.h"

#include <stdbool.h>
#include <time.h>

#define YEAR_MAX 2285 /* as in job_scheduled_at_range */

/* Matches `text` against the pattern ('0' = a digit, 'T' = T or a space). Returns the end of the
 * match, or NULL. */
static const char *match(const char *text, const char *pattern)
{
    for (; *pattern != '\0'; pattern++, text++) {
        bool is_digit = *text >= '0' && *text <= '9';
        bool is_gap = *text == 'T' || *text == ' ';
        if (*pattern == '0' ? !is_digit : *pattern == 'T' ? !is_gap : *text != *pattern) {
            return NULL;
        }
    }
    return text;
}

/* Returns the number that `count` digits make. */
static int number(const char *digits, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        n = 10 * n + (digits[i] - '0');
    }
    return n;
}

static const char *skip_fraction(const char *p)
{
    size_t digits = *p == '.' ? strspn(p + 1, "0123456789") : 0;
    return *p != '.' ? p : digits == 0 ? NULL : p + 1 + digits;
}

static bool is_zone(const char *p)
{
    if (strcmp(p, "Z") == 0) {
        return true;
    }
    const char *end = *p == '+' || *p == '-' ? match(p + 1, "00:00") : NULL;
    return end != NULL && *end == '\0' && number(p + 1, 2) <= 15 && number(p + 4, 2) <= 59;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

/* True if a text of the form "2026-01-31T08:00:00" is a valid time. */
static bool is_in_calendar(const char *text)
{
    int year = number(text, 4);
    int month = number(text + 5, 2);
    int day = number(text + 8, 2);
    return year >= 1 && year <= YEAR_MAX && month >= 1 && month <= 12 && day >= 1 &&
           day <= days_of(year, month) && number(text + 11, 2) <= 23 &&
           number(text + 14, 2) <= 59 && number(text + 17, 2) <= 60;
}

enum status job_time_check(const char *text, struct err *err)
{
    const char *p = match(text, "0000-00-00T00:00:00");
    p = p != NULL ? skip_fraction(p) : NULL;
    if (p == NULL || !is_zone(p) || !is_in_calendar(text)) {
        return err_fail(err, STATUS_INVALID,
                        "at: '%.40s' is not allowed; allowed: a time before the year 2286, with "
                        "its zone, such as 2026-01-31T08:00:00Z or 2026-01-31T08:00:00+01:00",
                        text);
    }
    return STATUS_OK;
}

int64_t job_time_us(const char *text)
{
    struct tm tm = {.tm_year = number(text, 4) - 1900,
                    .tm_mon = number(text + 5, 2) - 1,
                    .tm_mday = number(text + 8, 2),
                    .tm_hour = number(text + 11, 2),
                    .tm_min = number(text + 14, 2),
                    .tm_sec = number(text + 17, 2)};
    int64_t us = (int64_t)timegm(&tm) * US_PER_S;
    const char *zone = text + strcspn(text + 11, "Z+-") + 11;
    int64_t unit = US_PER_S / 10;
    for (const char *p = text + 20; p < zone; p++) { /* the digits after the decimal point */
        us += (*p - '0') * unit;
        unit /= 10;
    }
    if (*zone == 'Z') {
        return us;
    }
    int64_t offset_us = (number(zone + 1, 2) * 60 + number(zone + 4, 2)) * 60 * US_PER_S;
    return *zone == '-' ? us + offset_us : us - offset_us;
}
