/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock: the locks of redlock.h for C++17, as objects that clean up after themselves.
 *
 *     redlock::client client("a,b,c:6380");
 *     if (auto lock = client.try_lock("nightly-backup")) {
 *         ...                      // runs only under the lock
 *     }                            // unlocks
 *
 * lock(), lock_for() and acquire() return a lock that is held, or throw redlock::error. try_lock(),
 * try_lock_for() and try_acquire() never throw: if the lock was not won, the returned object is
 * false, and its result() and the report say why. For each function redlock.h documents the C
 * function that it calls; ms::max() waits without a limit. get() returns the C handle. */
#ifndef REDLOCK_HPP
#define REDLOCK_HPP

#include <redlock.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace redlock
{
class error;
class lock;
class client;
class owner;
using ms = std::chrono::milliseconds;
template <auto end> struct ender { template <class T> void operator()(T *t) const { end(t); } };
} // namespace redlock

class redlock::error : public std::runtime_error
{
  public:
    explicit error(const redlock_report &r)
        : std::runtime_error(r.message[0] ? r.message : redlock_text(r.result)), report_(r) {}
    enum redlock_result result() const noexcept { return report_.result; }
    const redlock_report &report() const noexcept { return report_; }
  private:
    redlock_report report_;
};

/* A lock that was won, or the reason why it was not. It may outlive its client. */
class redlock::lock
{
  public:
    lock() noexcept = default;
    explicit lock(struct redlock_lock *handle, enum redlock_result result = REDLOCK_OK) noexcept
        : handle_(handle), result_(result) {}

    /* True if the lock was won, was not unlocked, and its lease has not ended. */
    explicit operator bool() const noexcept { return state() != REDLOCK_STATE_LOST; }
    enum redlock_result result() const noexcept { return result_; } /* why it was (not) won */
    enum redlock_state state() const noexcept
    {
        return handle_ ? redlock_state(get()) : REDLOCK_STATE_LOST;
    }
    ms left() const noexcept { return ms(handle_ ? redlock_left_ms(get()) : 0); }
    uint64_t fence() const noexcept { return handle_ ? redlock_fence(get()) : 0; }
    enum redlock_result extend() noexcept { return handle_ ? redlock_extend(get()) : REDLOCK_LOST; }
    void unlock() noexcept { handle_.reset(); }
    /* As above, and waits for the nodes' answers. */
    enum redlock_result unlock(redlock_report &r) noexcept { return redlock_unlock(release(), &r); }
    void abandon() noexcept { redlock_abandon(release()); }
    struct redlock_lock *get() const noexcept { return handle_.get(); }
    struct redlock_lock *release() noexcept { return handle_.release(); } /* unlock it yourself */
  private:
    static void end(struct redlock_lock *handle) noexcept { redlock_unlock(handle, nullptr); }
    std::unique_ptr<struct redlock_lock, ender<end>> handle_;
    enum redlock_result result_ = REDLOCK_INVALID;
};

class redlock::client
{
  public:
    explicit client(const redlock_options &options = {}) /* without nodes: $REDLOCK_NODES */
    {
        redlock_client *opened = nullptr;
        redlock_report report{};
        if (redlock_open(&options, &opened, &report) != REDLOCK_OK) {
            throw error(report);
        }
        handle_.reset(opened);
    }
    explicit client(const char *nodes, redlock_options options = {})
        : client((options.nodes = nodes, options)) {}

    redlock::lock lock(std::string_view key) { return lock_for(key, ms::max()); }
    redlock::lock lock_for(std::string_view key, ms t) { return acquire(one(key, t).request); }
    redlock::lock acquire(const redlock_request &request)
    {
        redlock_report report{};
        redlock::lock taken = try_acquire(request, &report);
        return taken.result() == REDLOCK_OK ? std::move(taken) : throw error(report);
    }

    redlock::lock try_lock(std::string_view key, redlock_report *r = nullptr) noexcept
    {
        return try_lock_for(key, ms(0), r);
    }
    redlock::lock try_lock_for(std::string_view key, ms t, redlock_report *r = nullptr) noexcept
    {
        return try_acquire(one(key, t).request, r);
    }
    redlock::lock try_acquire(redlock_request request, redlock_report *r = nullptr) noexcept
    {
        struct redlock_lock *taken = nullptr;
        request.each = false; /* one lock, of one or several keys */
        auto result = redlock_acquire(get(), &request, &taken, r);
        return redlock::lock(taken, result);
    }
    redlock_client *get() const noexcept { return handle_.get(); }
  private:
    struct one { /* key, whose bytes need not end with a NUL */
        one(std::string_view k, ms t) noexcept : key{k.empty() ? "" : k.data(), k.size()}
        {
            request.keys = &key;
            request.count = 1;
            request.wait_ms = t == ms::max() ? -1 : t > ms(0) ? t.count() : 0;
        }
        struct redlock_key key;
        redlock_request request{};
    };
    std::unique_ptr<redlock_client, ender<redlock_close>> handle_;
};

/* An owner for requests: request.owner = owner.get(). */
class redlock::owner
{
  public:
    explicit owner(const client &of)
    {
        struct redlock_owner *made = nullptr;
        redlock_report report{};
        if ((report.result = redlock_owner_new(of.get(), &made)) != REDLOCK_OK) {
            throw error(report);
        }
        handle_.reset(made);
    }
    void cancel() noexcept { redlock_cancel(get()); }
    struct redlock_owner *get() const noexcept { return handle_.get(); }
  private:
    std::unique_ptr<struct redlock_owner, ender<redlock_owner_free>> handle_;
};

#endif
