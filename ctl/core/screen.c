/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/core/screen.h"

#include "base/clock.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l" /* alternate screen, no cursor, no wrapping */
#define LEAVE "\x1b[?7h\x1b[?25h\x1b[?1049l"
#define HOME "\x1b[H"
#define END_LINE "\x1b[K"
#define END_SCREEN "\x1b[J"
#define BOLD "\x1b[1m"
#define PLAIN "\x1b[0m"
#define ROWS_STANDARD 24

struct screen {
    int signals; /* a signalfd */
    sigset_t mask_before;
    struct termios keys_before;
    bool has_keys; /* standard input is a terminal as well */
    bool has_colour;
    screen_draw *draw;
    void *ctx;
};

bool screen_is_there(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && term != NULL && term[0] != '\0' &&
           strcmp(term, "dumb") != 0;
}

/* ---- the terminal ---- */

static void enter(struct screen *s)
{
    s->has_keys = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &s->keys_before) == 0;
    if (s->has_keys) {
        struct termios keys = s->keys_before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 0;
        keys.c_cc[VTIME] = 0;
        s->has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
    }
    (void)fputs(ENTER, stdout);
    (void)fflush(stdout);
}

static void leave(struct screen *s)
{
    (void)fputs(LEAVE, stdout);
    (void)fflush(stdout);
    if (s->has_keys) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &s->keys_before);
    }
}

static struct screen_size measure(void)
{
    struct winsize size = {0};
    struct screen_size ret = {.style = table_style_of(stdout), .rows = ROWS_STANDARD};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0) {
        ret.rows = size.ws_row;
    }
    return ret;
}

/* ---- the picture ---- */

static void show_lines(const struct screen *s, const char *text, size_t rows)
{
    (void)fputs(HOME, stdout);
    for (size_t row = 0; row < rows && *text != '\0'; row++) {
        bool is_heading = *text == SCREEN_HEADING;
        text += is_heading;
        size_t len = strcspn(text, "\n");
        (void)printf("%s%s%.*s%s" END_LINE, row > 0 ? "\r\n" : "",
                     is_heading && s->has_colour ? BOLD : "", (int)len, text,
                     is_heading && s->has_colour ? PLAIN : "");
        text += len + (text[len] != '\0');
    }
    (void)fputs(END_SCREEN, stdout);
    (void)fflush(stdout);
}

static enum status draw(const struct screen *s, struct err *err)
{
    struct err why = {0};
    struct screen_size size = measure();
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = s->draw(s->ctx, &size, out, &why);
    bool is_away = st == STATUS_UNAVAILABLE || st == STATUS_TIMEOUT;
    if (is_away) {
        (void)fprintf(out, "claimctl: %s; trying again, q quits\n", why.msg);
    }
    bool ok = fclose(out) == 0;
    if (ok && (st == STATUS_OK || is_away)) {
        show_lines(s, text, size.rows);
        st = STATUS_OK;
    } else if (st != STATUS_OK) {
        st = err_fail(err, st, "%s", why.msg);
    }
    free(text);
    return st;
}

/* ---- waiting ---- */

/* Stops the program on Ctrl-Z; the shell has the normal terminal until the program is continued. */
static void suspend(struct screen *s)
{
    leave(s);
    (void)raise(SIGSTOP);
    enter(s);
}

/* Returns true if the view is to end. */
static bool take_signal(struct screen *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return false;
    }
    if (info.ssi_signo == SIGTSTP) {
        suspend(s);
        return false;
    }
    return info.ssi_signo != SIGWINCH;
}

static bool take_key(void)
{
    char key = 0;
    ssize_t n = read(STDIN_FILENO, &key, 1);
    return n == 0 || key == 'q' || key == 'Q'; /* 0: the terminal is gone */
}

/* Waits until it is time to draw again. Returns true if the view is to end. */
static bool wait_for(struct screen *s, int64_t every_us)
{
    struct pollfd polled[2] = {{.fd = s->signals, .events = POLLIN},
                               {.fd = s->has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
    int n = poll(polled, 2, (int)(every_us / US_PER_MS));
    if (n <= 0) {
        return false;
    }
    return (polled[0].revents != 0 && take_signal(s)) || (polled[1].revents != 0 && take_key());
}

enum status screen_run(int64_t every_us, screen_draw *draw_one, void *ctx, struct err *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
    const char *no_colour = getenv("NO_COLOR");
    struct screen s = {
        .draw = draw_one, .ctx = ctx, .has_colour = no_colour == NULL || no_colour[0] == '\0'};
    sigset_t mask;
    (void)sigemptyset(&mask);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        (void)sigaddset(&mask, numbers[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &mask, &s.mask_before);
    s.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    enum status st =
        s.signals < 0 ? err_fail_sys(err, STATUS_INTERNAL, errno, "signalfd") : STATUS_OK;
    if (st == STATUS_OK) {
        enter(&s);
        do {
            st = draw(&s, err);
        } while (st == STATUS_OK && !wait_for(&s, every_us));
        leave(&s);
        (void)close(s.signals);
    }
    (void)sigprocmask(SIG_SETMASK, &s.mask_before, NULL);
    return st;
}
