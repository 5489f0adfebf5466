/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/core/human.h"

#include "base/clock.h"
#include "ctl/options/job_time.h"

#include <stdio.h>
#include <time.h>

#define MINUTE 60
#define HOUR 3600
#define DAY 86400

void human_duration(double seconds, char ret_text[HUMAN_MAX])
{
    seconds = seconds > 0 && seconds < 1e15 ? seconds : 0;
    long long s = (long long)(seconds + 0.5);
    if (seconds < 0.0005) {
        (void)snprintf(ret_text, HUMAN_MAX, "0s");
    } else if (seconds < 0.9995) {
        (void)snprintf(ret_text, HUMAN_MAX, "%lldms", (long long)(seconds * 1000 + 0.5));
    } else if (seconds < 9.95) {
        (void)snprintf(ret_text, HUMAN_MAX, "%.1fs", seconds);
    } else if (s < MINUTE) {
        (void)snprintf(ret_text, HUMAN_MAX, "%llds", s);
    } else if (s < HOUR) {
        (void)snprintf(ret_text, HUMAN_MAX, "%lldm%02llds", s / MINUTE, s % MINUTE);
    } else if (s < DAY) {
        (void)snprintf(ret_text, HUMAN_MAX, "%lldh%02lldm", s / HOUR, s % HOUR / MINUTE);
    } else {
        (void)snprintf(ret_text, HUMAN_MAX, "%lldd%02lldh", s / DAY, s % DAY / HOUR);
    }
}

/* Parses a time as our statements write it: 2026-01-31T08:00:00Z. */
static enum status parse_iso(const char *text, int64_t *ret_us)
{
    if (job_time_check(text, NULL) != STATUS_OK || text[10] != 'T' ||
        text[strlen(text) - 1] != 'Z') {
        return STATUS_INVALID;
    }
    *ret_us = job_time_us(text);
    return STATUS_OK;
}

enum status human_time(const char *text, int64_t now_us, char ret_text[HUMAN_MAX])
{
    int64_t us = 0;
    char age[HUMAN_MAX];
    enum status st = parse_iso(text, &us);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t past_us = now_us - us;
    human_duration((double)(past_us < 0 ? -past_us : past_us) / US_PER_S, age);
    (void)snprintf(ret_text, HUMAN_MAX, past_us < 0 ? "in %.20s" : "%.20s ago", age);
    return STATUS_OK;
}

void human_iso(int64_t us, char ret_text[HUMAN_TIME_MAX])
{
    struct tm tm = {0};
    char day[24] = "";
    time_t seconds = us / US_PER_S;
    (void)gmtime_r(&seconds, &tm);
    (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(ret_text, HUMAN_TIME_MAX, "%s.%06lldZ", day, (long long)(us % US_PER_S));
}
