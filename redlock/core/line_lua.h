/* SPDX-License-Identifier: Apache-2.0
 *
 * Lua code that the scripts for lines share; only their files include it. */
#ifndef CLAIMD_REDLOCK_CORE_LINE_LUA_H
#define CLAIMD_REDLOCK_CORE_LINE_LUA_H

/* A client that does not use the line leaves no trace while the key is never free. So after this
 * time of turns one release makes a gap; sooner if such a client was seen (lock.L8). */
#define LINE_LUA_TURNS_MS "10000"
#define LINE_LUA_GAP_MS "250"

/* The shared functions. head() returns the first in line whose client is alive; it removes dead
 * ones before it. */
#define LINE_LUA                                                                  \
    "local function now_ms()\n"                                                   \
    "  local t = redis.call('TIME')\n"                                            \
    "  return t[1] * 1000 + math.floor(t[2] / 1000)\n"                            \
    "end\n"                                                                       \
    "local function client(token) return string.sub(token, 1, 12) end\n"          \
    "local function is_alive(P, token)\n"                                         \
    "  return redis.call('EXISTS', P .. 'alive:' .. client(token)) == 1\n"        \
    "end\n"                                                                       \
    "local function tell(P, token, ms)\n"                                         \
    "  redis.pcall('PUBLISH', P .. 'to:' .. client(token), ms .. ':' .. token)\n" \
    "end\n"                                                                       \
    "local function keep_session(P, of, ms)\n"                                    \
    "  redis.call('SET', P .. 'alive:' .. of, '1', 'PX', ms)\n"                   \
    "  redis.call('SET', P .. 'any', '1', 'PX', ms)\n"                            \
    "end\n"                                                                       \
    "local function join(L, score, token)\n"                                      \
    "  redis.call('ZADD', L, 'NX', score, token)\n"                               \
    "  redis.call('PEXPIRE', L, 60000)\n"                                         \
    "end\n"                                                                       \
    "local function head(P, L)\n"                                                 \
    "  for i = 1, 64 do\n"                                                        \
    "    local first = redis.call('ZRANGE', L, 0, 0)[1]\n"                        \
    "    if not first then return nil end\n"                                      \
    "    if is_alive(P, first) then return first end\n"                           \
    "    redis.call('ZREM', L, first)\n"                                          \
    "  end\n"                                                                     \
    "end\n"                                                                       \
    "local function offer(P, L, K, first, ms)\n"                                  \
    "  redis.call('SET', K, first, 'PX', ms)\n"                                   \
    "  redis.call('ZREM', L, first)\n"                                            \
    "  tell(P, first, 0)\n"                                                       \
    "end\n"

#endif
