/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that speak to the worker in their runner's name, or leave by another way than they
 * came. */
#include "claimd/plugin.h"
#include "protocol/result_ring.h"
#include "protocol/run_said.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static json_int_t number_arg(const struct claimd_context *job, const char *name)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    json_int_t value = json_integer_value(json_object_get(args, name));
    json_decref(args);
    return value;
}

/* What the runner itself keeps: nothing is hidden from a handler. */
static struct runner_page *map_page(void)
{
    void *at = mmap(NULL, RUNNER_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, RUNNER_FD_PAGE, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* The place of the job that runs. */
static _Atomic int64_t *own_place(struct runner_page *page)
{
    int64_t nonce = atomic_load(&page->started_nonce);
    for (size_t i = 0; i < RUNNER_DEPTH; i++) {
        if (atomic_load(&page->places[i]) == -nonce) {
            return &page->places[i];
        }
    }
    return &page->places[0];
}

static void put_frame(struct runner_page *page, int64_t id, int64_t fence, int64_t nonce,
                      size_t more)
{
    static const char junk[] = "and more than that";
    const struct result_frame frame = {.id = id,
                                       .fence = fence,
                                       .nonce = nonce,
                                       .outcome = CLAIMD_DONE,
                                       .retry_after_us = -1,
                                       .result = "\"forged\"",
                                       .result_len = 8};
    struct buf out = BUF_INIT(FRAME_MAX);
    if (result_frame_put(&out, &frame, NULL) == STATUS_OK &&
        buf_append(&out, junk, more, NULL) == STATUS_OK) {
        (void)result_ring_put(page, buf_at(&out), out.len);
    }
    buf_release(&out);
    struct buf nudge = BUF_INIT(FRAME_MAX);
    if (nudge_frame_put(&nudge, false, NULL) == STATUS_OK) {
        (void)!write(RUNNER_FD_FRAMES, buf_at(&nudge), nudge.len);
    }
    buf_release(&nudge);
}

/* {"what": N, "ms": M, "hide": 1}: results are forged, M ms before the handler returns; and it
 * makes its runner believe that nothing has happened. */
static enum claimd_outcome forge(const struct claimd_context *job)
{
    struct runner_page *page = map_page();
    if (page == NULL) {
        return CLAIMD_FAIL;
    }
    int64_t nonce = atomic_load(&page->started_nonce);
    _Atomic int64_t *place = own_place(page);
    int ms = (int)number_arg(job, "ms");
    switch (number_arg(job, "what")) {
    case 0: /* its own, early */
        put_frame(page, job->id, job->fence, nonce, 0);
        break;
    case 1: /* its own, and junk behind it */
        put_frame(page, job->id, job->fence, nonce, 10);
        break;
    case 2: /* its own, and junk when the worker has taken it */
        put_frame(page, job->id, job->fence, nonce, 0);
        (void)poll(NULL, 0, ms);
        (void)!write(RUNNER_FD_FRAMES, "junk that is longer than a head", 31);
        break;
    case 3: /* those of jobs to come */
        for (int64_t i = 1; i <= 100; i++) {
            put_frame(page, job->id + i, job->fence + i, nonce + i, 0);
        }
        break;
    case 4: /* its own, and then those */
        put_frame(page, job->id, job->fence, nonce, 0);
        (void)poll(NULL, 0, ms);
        for (int64_t i = 1; i <= 100; i++) {
            put_frame(page, job->id + i, job->fence + i, nonce, 0);
        }
        break;
    case 5: /* its own, and that of the next job with a nonce that it guesses */
        put_frame(page, job->id, job->fence, nonce, 0);
        (void)poll(NULL, 0, ms);
        put_frame(page, job->id + 1, job->fence + 1, nonce ^ 1, 0);
        break;
    default:
        return CLAIMD_FAIL;
    }
    (void)poll(NULL, 0, ms);
    if (number_arg(job, "hide") != 0) {
        atomic_store(place, -nonce);
    }
    (void)munmap(page, RUNNER_PAGE_SIZE);
    return claimd_done(job, "\"true\"");
}

/* {"ms": N} */
static enum claimd_outcome nap(const struct claimd_context *job)
{
    (void)poll(NULL, 0, (int)number_arg(job, "ms"));
    return claimd_done(job, "\"slept\"");
}

/* ---- leaving a handler ---- */

#define STACK_BYTES 2048

static jmp_buf from_init;
static jmp_buf from_stay;
static char stack[STACK_BYTES];
static char *stack_at;

static int init(const struct claimd_host *host)
{
    (void)host;
    return setjmp(from_init) == 0 ? 0 : 1;
}

__attribute__((__noinline__, __no_sanitize_address__)) static void copy(volatile char *to,
                                                                        const volatile char *from)
{
    for (size_t i = 0; i < STACK_BYTES; i++) {
        to[i] = from[i];
    }
}

/* As coroutines do that keep their stacks: what called `stay` is there again, and called `leave`
 * no more. */
__attribute__((__noinline__, __no_sanitize_address__)) static void go_back(void)
{
    volatile char room[2 * STACK_BYTES]; /* copy() must not overwrite itself */
    room[0] = room[sizeof room - 1] = 0;
    copy(stack_at, stack);
    longjmp(from_stay, 1 + room[0]);
}

/* {"how": N}: neither returns nor ends the process. */
static enum claimd_outcome leave(const struct claimd_context *job)
{
    switch (number_arg(job, "how")) {
    case 0:
        pthread_exit(NULL);
    case 1:
        (void)syscall(SYS_exit, 0); /* of this thread */
        return CLAIMD_FAIL;
    case 2:
        longjmp(from_init, 1);
    default:
        go_back();
        return CLAIMD_FAIL;
    }
}

/* Leaves a way back into itself. */
static enum claimd_outcome stay(const struct claimd_context *job)
{
    (void)job;
    stack_at = __builtin_frame_address(0);
    stack_at -= STACK_BYTES / 4;
    if (setjmp(from_stay) == 0) {
        copy(stack, stack_at);
    }
    return CLAIMD_DONE;
}

/* Keeps a checkpoint that is none, past the host that would refuse it, and then waits. */
static enum claimd_outcome scribble(const struct claimd_context *job)
{
    struct runner_page *page = map_page();
    if (page == NULL) {
        return CLAIMD_FAIL;
    }
    run_said_checkpoint(page, "{no", 3);
    while (!claimd_should_stop(job)) {
        (void)poll(NULL, 0, 5);
    }
    return claimd_retry(job, 0, "never mind");
}

/* ---- writing over the page ---- */

/* One line for each start; {"path": …} may be missing. */
static void count_start(const struct claimd_context *job)
{
    json_t *args = json_loadb(job->args, job->args_len, 0, NULL);
    const char *path = json_string_value(json_object_get(args, "path"));
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) {
        (void)!write(fd, " start\n", 7);
        (void)close(fd);
    }
    json_decref(args);
}

/* All but its own, whose value is `mine`. */
static void wipe_others(struct runner_page *page, int64_t mine)
{
    for (size_t i = 0; i < RUNNER_DEPTH; i++) {
        if (atomic_load(&page->places[i]) != mine) {
            atomic_store(&page->places[i], 0);
        }
    }
}

static void wait_for_ever(void)
{
    for (;;) {
        (void)poll(NULL, 0, -1);
    }
}

static enum claimd_outcome nudge_for_ever(void)
{
    struct buf nudges = BUF_INIT(FRAME_MAX);
    for (int i = 0; i < 1000; i++) {
        if (nudge_frame_put(&nudges, false, NULL) != STATUS_OK) {
            break;
        }
    }
    while (write(RUNNER_FD_FRAMES, buf_at(&nudges), nudges.len) > 0) {
    }
    buf_release(&nudges);
    return CLAIMD_FAIL;
}

/* {"what": N}: writes where only claimd does, and then crashes, stays or returns. */
static enum claimd_outcome wipe(const struct claimd_context *job)
{
    struct runner_page *page = map_page();
    count_start(job);
    if (page == NULL) {
        return CLAIMD_FAIL;
    }
    int64_t mine = -atomic_load(&page->started_nonce);
    switch (number_arg(job, "what")) {
    case 0:
        memset(page, 0, offsetof(struct runner_page, ring));
        (void)raise(SIGSEGV);
        break;
    case 1:
        memset(page, 0xff, offsetof(struct runner_page, ring));
        (void)raise(SIGSEGV);
        break;
    case 2: /* as if it had not begun */
        atomic_store(own_place(page), -mine);
        (void)raise(SIGSEGV);
        break;
    case 3:
        atomic_store(own_place(page), 0);
        break;
    case 4:
        atomic_store(own_place(page), 0);
        wait_for_ever();
        break;
    case 5:
        wipe_others(page, mine);
        wait_for_ever();
        break;
    case 6: /* keeps the worker busy with nothing */
        return nudge_for_ever();
    default: /* what the worker has mapped would be gone */
        return ftruncate(RUNNER_FD_PAGE, 0) == 0 ? CLAIMD_FAIL : claimd_done(job, "\"sealed\"");
    }
    return CLAIMD_DONE;
}

CLAIMD_PLUGIN(.name = "meddle", .version = "1.0", .init = init,
              .kinds = {{.name = "forge", .handle = forge, .max_crashes = 2},
                        {.name = "leave", .handle = leave, .max_crashes = 2},
                        {.name = "stay", .handle = stay},
                        {.name = "nap", .handle = nap},
                        {.name = "scribble", .handle = scribble},
                        {.name = "wipe", .handle = wipe, .max_crashes = 2},
                        {.name = "wipe_once", .handle = wipe, .at_most_once = 1}})
