# SPDX-License-Identifier: Apache-2.0
"""redlock.h and redlock_status.h for ctypes. Written by hand, in their order; a test compares each
struct, enum and function with the headers (tests/redlock/python/test_declarations.py)."""

from ctypes import (CDLL, CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint,
                    c_uint64, c_void_p)
from enum import IntEnum

NODES_MAX = 9
KEYS_MAX = 512
TEXT_SIZE = 256
LABEL_LEN_MAX = 64
LATENCY_BUCKETS = 20
FINGERPRINT_SIZE = 17

# Result: how a call ended; State: whether a lock may still be relied on; Vote: a node's answer;
# EventKind: what happened to a node.
Result = IntEnum("Result", "OK HELD SPLIT NO_QUORUM LOST CANCELLED INVALID SYSTEM", start=0, module="redlock")
State = IntEnum("State", "HELD SUSPECT LOST", start=0, module="redlock")
Mode = IntEnum("Mode", "PLAIN SHARED EXCLUSIVE", start=0, module="redlock")
Vote = IntEnum("Vote", "NONE OK REFUSED ERROR DOWN QUARANTINED FORBIDDEN", start=0, module="redlock")
EventKind = IntEnum("EventKind", "UP DOWN REFUSED QUARANTINED VOTING WARNED", start=0, module="redlock")


class Report(Structure):
    _fields_ = [("size", c_size_t), ("result", c_int), ("tries", c_int), ("waited_ms", c_int64), ("left_ms", c_int64),
                ("holder_ms", c_int64), ("deleted", c_uint), ("missing", c_uint), ("stolen", c_uint),
                ("unknown", c_uint), ("node_count", c_size_t), ("votes", c_int * NODES_MAX),
                ("holder", c_char * (LABEL_LEN_MAX + 1)), ("message", c_char * TEXT_SIZE)]


class Event(Structure):
    _fields_ = [("size", c_size_t), ("node", c_size_t), ("kind", c_int), ("text", c_char_p)]


OnEvent = CFUNCTYPE(None, c_void_p, POINTER(Event))
OnChange = CFUNCTYPE(None, c_void_p, c_void_p, c_int)
Done = CFUNCTYPE(None, c_void_p, c_size_t, POINTER(c_void_p), POINTER(POINTER(Report)))


class Options(Structure):
    _fields_ = [("size", c_size_t), ("nodes", c_char_p), ("user", c_char_p), ("password", c_char_p),
                ("ca_file", c_char_p), ("cert_file", c_char_p), ("key_file", c_char_p), ("server_name", c_char_p),
                ("label", c_char_p), ("ttl_ms", c_int64), ("ttl_max_ms", c_int64), ("node_timeout_ms", c_int64), ("open_ms", c_int64),
                ("drift_ppm", c_int), ("majority_opens", c_bool), ("trust_fresh", c_bool), ("allow_unsafe", c_bool),
                ("no_line", c_bool), ("prefix", c_char_p), ("on_event", OnEvent), ("ctx", c_void_p)]


class Key(Structure):
    _fields_ = [("bytes", c_char_p), ("len", c_size_t)]


class Request(Structure):
    _fields_ = [("size", c_size_t), ("key", c_char_p), ("keys", POINTER(Key)), ("count", c_size_t), ("each", c_bool),
                ("fence", c_bool), ("manual", c_bool), ("wait_ms", c_int64), ("ttl_ms", c_int64),
                ("max_hold_ms", c_int64), ("slots", c_int), ("mode", c_int), ("owner", c_void_p),
                ("on_change", OnChange), ("ctx", c_void_p)]


class Stats(Structure):
    _fields_ = [("size", c_size_t), ("results", c_uint64 * 16), ("node_errors", c_uint64),
                ("extended", c_uint64), ("lost", c_uint64), ("stolen", c_uint64), ("healed", c_uint64),
                ("release_deleted", c_uint64), ("release_missing", c_uint64), ("release_unknown", c_uint64),
                ("wakeups", c_uint64), ("held", c_uint64), ("waiting", c_uint64),
                ("latency", c_uint64 * LATENCY_BUCKETS)]


class NodeInfo(Structure):
    _fields_ = [("name", c_char * 272), ("server", c_char * 16), ("version", c_char * 24), ("run_id", c_char * 41),
                ("evict_policy", c_char * 24), ("is_up", c_bool), ("may_vote", c_bool), ("is_master", c_bool),
                ("has_native", c_bool), ("uptime_ms", c_int64), ("quarantine_ms", c_int64),
                ("clock_offset_us", c_int64), ("why", c_char * TEXT_SIZE)]


class Holding(Structure):
    _fields_ = [("vote", c_int), ("holder", c_char * 9), ("ttl_ms", c_int64), ("label", c_char * (LABEL_LEN_MAX + 1)),
                ("waiting", c_size_t)]


STRUCTS = {"report": Report, "event": Event, "options": Options, "key": Key, "request": Request, "stats": Stats,
           "node_info": NodeInfo, "holding": Holding}
ENUMS = {"result": Result, "state": State, "mode": Mode, "vote": Vote, "event_kind": EventKind}
# Result type, then argument types. Handles are void *.
FUNCTIONS = {
    "text": (c_char_p, c_int),
    "open": (c_int, POINTER(Options), POINTER(c_void_p), POINTER(Report)),
    "close": (None, c_void_p),
    "start": (c_int, c_void_p, POINTER(Request), Done, c_void_p, POINTER(Report)),
    "state": (c_int, c_void_p),
    "left_ms": (c_int64, c_void_p),
    "fd": (c_int, c_void_p),
    "fence": (c_uint64, c_void_p),
    "extend": (c_int, c_void_p),
    "unlock": (c_int, c_void_p, POINTER(Report)),
    "abandon": (None, c_void_p),
    "owner_new": (c_int, c_void_p, POINTER(c_void_p)),
    "cancel": (None, c_void_p),
    "owner_free": (None, c_void_p),
    "version": (c_char_p,),
    "get_stats": (None, c_void_p, POINTER(Stats)),
    "nodes": (c_size_t, c_void_p, POINTER(NodeInfo), c_size_t),
    "fingerprint": (c_int, c_char_p, c_char_p, POINTER(Report)),
    "lock_key": (c_void_p, c_void_p, POINTER(c_size_t)),
    "break": (c_int, c_void_p, c_char_p, POINTER(Report)),
    "inspect": (c_int, c_void_p, c_char_p, POINTER(Holding), POINTER(Report)),
}

try:
    lib = CDLL("libredlock.so.0")
except OSError as error:
    raise ImportError(f"the package libredlock0 is not installed: {error}") from error
for _name, (_result, *_arguments) in FUNCTIONS.items():
    _function = getattr(lib, "redlock_" + _name)
    _function.restype, _function.argtypes = _result, _arguments
