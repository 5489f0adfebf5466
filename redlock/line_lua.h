/* SPDX-License-Identifier: Apache-2.0
 *
 * Lua that the scripts about lines share; no other file than theirs includes it. */
#ifndef CLAIMD_REDLOCK_LINE_LUA_H
#define CLAIMD_REDLOCK_LINE_LUA_H

/* A client that knows no line leaves no trace while the key is never free. So after these turns one
 * release makes a gap; sooner where such a client was seen (lock.L8). */
#define LINE_LUA_TURNS_MS "10000"
#define LINE_LUA_GAP_MS "250"

/* The first in line whose client lives; the dead ones before it leave. */
#define LINE_LUA_HEAD                                                                    \
    "local function now_ms()\n"                                                          \
    "  local t = redis.call('TIME')\n"                                                   \
    "  return t[1] * 1000 + math.floor(t[2] / 1000)\n"                                   \
    "end\n"                                                                              \
    "local function head(P, L)\n"                                                        \
    "  for i = 1, 64 do\n"                                                               \
    "    local first = redis.call('ZRANGE', L, 0, 0)[1]\n"                               \
    "    if not first then return nil end\n"                                             \
    "    if redis.call('EXISTS', P .. 'alive:' .. string.sub(first, 1, 12)) == 1 then\n" \
    "      return first\n"                                                               \
    "    end\n"                                                                          \
    "    redis.call('ZREM', L, first)\n"                                                 \
    "  end\n"                                                                            \
    "end\n"

#define LINE_LUA_OFFER                                                                  \
    "local function offer(P, L, K, first, ms)\n"                                        \
    "  redis.call('SET', K, first, 'PX', ms)\n"                                         \
    "  redis.call('ZREM', L, first)\n"                                                  \
    "  redis.pcall('PUBLISH', P .. 'to:' .. string.sub(first, 1, 12), '0:' .. first)\n" \
    "end\n"

#endif
