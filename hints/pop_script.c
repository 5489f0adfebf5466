/* SPDX-License-Identifier: Apache-2.0 */
#include "hints/pop_script.h"

/* Nearly always one set alone has content, and all that is wanted is taken from it. With several, a
 * binary search over the scores finds how many each may give: `low` ends as the highest score up to
 * which fewer than wanted lie, `high` as the next one, of which only some fit. Counting is cheap
 * next to reading members with their scores: with 500 ids of two sets this takes a sixth of a
 * merge's time. The search ends in any case: a score that is no number of ours (inf) must not hold
 * up a server.
 *
 * take() reads whole slices; one ends where the priority does, so that its first score serves for
 * all of it. Only heads are taken, so removing by rank is enough. */
static const char body[] =
    "local want, out, live = tonumber(ARGV[1]), {}, {}\n"
    "local step = 10000000000000\n"
    "local function take(set, n)\n"
    "  local head = set.head\n"
    "  while n > 0 and head[1] do\n"
    "    local bound = (math.floor(tonumber(head[2]) / step) + 1) * step\n"
    "    local run = redis.call('ZRANGE', set.key, '-inf', string.format('(%.17g', bound),\n"
    "                           'BYSCORE', 'LIMIT', 0, n)\n"
    "    if #run == 0 then run = redis.call('ZRANGE', set.key, 0, n - 1) end\n"
    "    redis.call('ZREMRANGEBYRANK', set.key, 0, #run - 1)\n"
    "    out[#out + 1] = {set.at, head[2], run}\n"
    "    n = n - #run\n"
    "    if n > 0 then head = redis.call('ZRANGE', set.key, 0, 0, 'WITHSCORES') end\n"
    "  end\n"
    "end\n"
    "local function score_at(set, rank)\n"
    "  return tonumber(redis.call('ZRANGE', set.key, rank, rank, 'WITHSCORES')[2])\n"
    "end\n"
    "local function count(set, score)\n"
    "  return redis.call('ZCOUNT', set.key, '-inf', string.format('%.17g', score))\n"
    "end\n"
    "for i, key in ipairs(KEYS) do\n"
    "  local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')\n"
    "  if head[1] then live[#live + 1] = {at = i, key = key, head = head} end\n"
    "end\n"
    "if #live == 1 then take(live[1], want) end\n"
    "if #live <= 1 then return out end\n"
    "local low, high, last, total = math.huge, math.huge, -math.huge, 0\n"
    "for _, set in ipairs(live) do\n"
    "  low = math.min(low, tonumber(set.head[2]) - 1)\n"
    "  high = math.min(high, score_at(set, want - 1) or math.huge)\n"
    "  last = math.max(last, score_at(set, -1))\n"
    "  total = total + redis.call('ZCARD', set.key)\n"
    "end\n"
    "high = math.min(high, last)\n"
    "if total <= want then low = high end\n"
    "for _ = 1, 64 do\n"
    "  if high - low <= 1 then break end\n"
    "  local middle, sum = math.floor((low + high) / 2), 0\n"
    "  for _, set in ipairs(live) do sum = sum + count(set, middle) end\n"
    "  if sum < want then low = middle else high = middle end\n"
    "end\n"
    "local left = want\n"
    "for _, set in ipairs(live) do\n"
    "  set.n = count(set, low)\n"
    "  left = left - set.n\n"
    "end\n"
    "for _, set in ipairs(live) do\n"
    "  local more = left > 0 and math.min(left, count(set, high) - set.n) or 0\n"
    "  left = left - more\n"
    "  take(set, set.n + more)\n"
    "end\n"
    "table.sort(out, function(a, b) return tonumber(a[2]) < tonumber(b[2]) end)\n"
    "return out\n";

const struct redis_script hints_pop_script = {.name = "hints_pop", .body = body};
