/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/core/scripts.h"

#include "redlock/core/line_scripts.h"

const struct redis_script script_extend = {
    .name = "extend",
    .body = "local owners = redis.call('MGET', unpack(KEYS))\n"
            "local reply = {}\n"
            "for i = 1, #KEYS - 1 do\n"
            "  if owners[i] == ARGV[2 * i - 1] then\n"
            "    reply[i] = redis.call('PEXPIRE', KEYS[i], ARGV[2 * i])\n"
            "  elseif owners[i] then\n"
            "    reply[i] = 0\n"
            "  else\n"
            "    reply[i] = -1\n"
            "  end\n"
            "end\n"
            "reply[#KEYS] = owners[#KEYS]\n"
            "return reply\n",
};

/* Almost always every key is still ours; then KEYS is deleted as it is. */
const struct redis_script script_release = {
    .name = "release",
    .body = "local count, token = #KEYS, #ARGV == 1 and ARGV[1]\n"
            "local owners = redis.call('MGET', unpack(KEYS))\n"
            "local mine, n, reply = KEYS, 0, {0}\n"
            "for i = 1, count do\n"
            "  if owners[i] == (token or ARGV[i]) then n = n + 1 end\n"
            "end\n"
            "if n < count then\n"
            "  mine, n = {}, 0\n"
            "  for i = 1, count do\n"
            "    if owners[i] == (token or ARGV[i]) then\n"
            "      n = n + 1\n"
            "      mine[n] = KEYS[i]\n"
            "    else\n"
            "      reply[#reply + 1] = owners[i] and i or -i\n"
            "    end\n"
            "  end\n"
            "end\n"
            "if n > 0 then redis.call('DEL', unpack(mine, 1, n)) end\n"
            "reply[1] = n\n"
            "return reply\n",
};

const struct redis_script script_free_prefix = {
    .name = "free_prefix",
    .body = "local owners = redis.call('MGET', unpack(KEYS))\n"
            "local theirs, n = {}, 0\n"
            "for i = 1, #KEYS do\n"
            "  if owners[i] and string.sub(owners[i], 1, #ARGV[1]) == ARGV[1] then\n"
            "    n = n + 1\n"
            "    theirs[n] = KEYS[i]\n"
            "  end\n"
            "end\n"
            "if n > 0 then redis.call('DEL', unpack(theirs)) end\n"
            "return n\n",
};

const struct redis_script script_fence = {
    .name = "fence",
    .body = "local reply, count, number = {}, #KEYS / 2, tonumber(ARGV[2])\n"
            "for i = 1, count do\n"
            "  reply[i] = -1\n"
            "  if redis.call('GET', KEYS[i]) == ARGV[1] then\n"
            "    reply[i] = tonumber(redis.call('GET', KEYS[count + i]) or '0')\n"
            "    if reply[i] < number then\n"
            "      redis.call('SET', KEYS[count + i], ARGV[2], 'PX', ARGV[3])\n"
            "    end\n"
            "  end\n"
            "end\n"
            "return reply\n",
};

const struct redis_script script_canary = {
    .name = "canary",
    .body = "local now = redis.call('TIME')[1]\n"
            "local value = redis.call('MGET', KEYS[1])[1]\n"
            "if not value or string.sub(value, 1, #ARGV[1] + 1) ~= ARGV[1] .. ':' then\n"
            "  value = ARGV[1] .. ':' .. now .. ':' .. ARGV[2]\n"
            "  redis.call('SET', KEYS[1], value)\n"
            "end\n"
            "return {value, now}\n",
};

const struct redis_script script_ttl_max = {
    .name = "ttl_max",
    .body = "local mine = tonumber(ARGV[1])\n"
            "local known = tonumber(redis.call('MGET', KEYS[1])[1] or '0') or 0\n"
            "if known > mine and known <= 86400000 then return known end\n"
            "redis.call('SET', KEYS[1], ARGV[1], 'PX', mine + 60000)\n"
            "return mine\n",
};

const struct redis_script *const scripts_all[SCRIPTS_COUNT] = {
    &script_extend,  &script_release, &script_free_prefix, &script_fence, &script_canary,
    &script_ttl_max, &script_enter,   &script_leave,       &script_yield, &script_refresh};
