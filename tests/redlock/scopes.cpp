/* SPDX-License-Identifier: Apache-2.0
 *
 * scopes NODES: what redlock.hpp promises, against real masters; test_redlock_install.sh runs it. */
#include <redlock.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <unistd.h>

using namespace std::chrono_literals;

#define CHECK(what) check((what) ? true : false, #what, __LINE__)

static void check(bool holds, const char *what, int line)
{
    if (!holds) {
        std::fprintf(stderr, "scopes.cpp:%d: not true: %s\n", line, what);
        std::exit(1);
    }
}

template <typename Call> static enum redlock_result thrown_by(Call call)
{
    try {
        call();
    } catch (const redlock::error &e) {
        CHECK(e.what()[0] != '\0' && e.report().result == e.result());
        return e.result();
    }
    return REDLOCK_OK;
}

static redlock_options options()
{
    redlock_options ret{};
    ret.node_timeout_ms = 200;
    ret.trust_fresh = true;
    return ret;
}

static void a_scope_unlocks(redlock::client &a, redlock::client &b)
{
    redlock_report report{};
    {
        auto lock = a.try_lock("scope");
        CHECK(lock && lock.result() == REDLOCK_OK && lock.state() == REDLOCK_STATE_HELD);
        CHECK(lock.left() > 1s && lock.left() <= 30s && lock.fence() == 0);
        CHECK(lock.extend() == REDLOCK_OK);
        auto refused = b.try_lock("scope", &report);
        CHECK(!refused && refused.result() == REDLOCK_HELD && refused.left() == 0ms);
        CHECK(report.result == REDLOCK_HELD && report.holder_ms > 0);
        CHECK(b.try_lock_for("scope", 10ms).result() == REDLOCK_HELD);
        CHECK(b.try_lock_for("scope", -1ms).result() == REDLOCK_HELD); /* not for ever */
        CHECK(thrown_by([&] { (void)b.lock_for("scope", 10ms); }) == REDLOCK_HELD);
    }
    CHECK(b.lock("scope")); /* on two nodes, if the third hears of a's release last */
    CHECK(b.lock("scope of b").unlock(report) == REDLOCK_OK && report.deleted == 3);
}

static void a_lock_moves(redlock::client &a)
{
    static_assert(!std::is_copy_constructible_v<redlock::lock>);
    static_assert(std::is_nothrow_move_constructible_v<redlock::lock>);
    static_assert(std::is_nothrow_move_assignable_v<redlock::lock>);
    auto first = a.lock_for("moves", 5s);
    redlock::lock second = std::move(first);
    CHECK(second && !first && first.get() == nullptr);
    second = a.lock_for("moves too", 5s); /* and unlocks the other one */
    CHECK(a.lock_for("moves", 5s));
    second.unlock();
    CHECK(!second && second.state() == REDLOCK_STATE_LOST && second.extend() == REDLOCK_LOST);
    redlock::lock third(a.lock_for("moves", 5s).release());
    CHECK(third);
}

static void an_abandoned_lock_stays(redlock::client &a)
{
    const std::string key = "abandoned by " + std::to_string(getpid());
    a.lock(key).abandon();
    CHECK(a.try_lock(key).result() == REDLOCK_HELD);
}

static void keys_are_bytes(redlock::client &a, redlock::client &b)
{
    const std::string text("key:17 and more\0", 16);
    auto lock = a.lock_for(std::string_view(text).substr(0, 6), 5s);
    CHECK(b.try_lock("key:17").result() == REDLOCK_HELD);
    CHECK(b.try_lock(text) && b.try_lock(text.c_str()));
    CHECK(b.try_lock({}).result() == REDLOCK_INVALID);
    CHECK(thrown_by([&] { (void)b.lock(std::string(2000, 'k')); }) == REDLOCK_INVALID);
}

static void owners_enter_and_cancel(redlock::client &a, redlock::client &b)
{
    redlock::owner owner(a);
    redlock_request request{};
    request.key = "owned";
    request.fence = true;
    request.owner = owner.get();
    {
        auto outer = a.acquire(request);
        auto inner = a.acquire(request);
        CHECK(outer.get() == inner.get() && outer.fence() > 0);
        inner.unlock();
        CHECK(b.try_lock("owned").result() == REDLOCK_HELD);
    }
    CHECK(b.lock_for("owned", 5s));
    owner.cancel();
    CHECK(a.try_acquire(request).result() == REDLOCK_CANCELLED);
    CHECK(thrown_by([&] { (void)a.acquire(request); }) == REDLOCK_CANCELLED);
}

int main(int, char **argv)
{
    redlock::client a(argv[1], options());
    redlock::client b(argv[1], options());
    a_scope_unlocks(a, b);
    a_lock_moves(a);
    an_abandoned_lock_stays(a);
    keys_are_bytes(a, b);
    owners_enter_and_cancel(a, b);
    CHECK(thrown_by([] { redlock::client("a,,b"); }) == REDLOCK_INVALID);
    redlock::lock outlives;
    {
        redlock::client c(argv[1], options());
        outlives = c.lock("outlives");
        redlock::client moved = std::move(c);
        CHECK(outlives && moved.try_lock("moved"));
    }
    CHECK(!outlives && outlives.result() == REDLOCK_OK);
    std::puts("ok");
    return 0;
}
