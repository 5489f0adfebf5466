/* SPDX-License-Identifier: Apache-2.0
 *
 * The changes of the clean run that test_check.c plants, and the checker that must report each. In
 * the lines, ' stands for ". */
#ifndef CLAIMD_TESTS_CHAOS_CHECK_PLANTED_H
#define CLAIMD_TESTS_CHAOS_CHECK_PLANTED_H

#include "clean_run.h"

#include <stddef.h>

/* One change of the clean run: `old` is replaced by `new` (NULL: `new` is appended). */
struct planted {
    const char *what;
    const char *expected; /* CHECKER/INVARIANT; NULL = no violation */
    enum file file;
    const char *old;
    const char *new;
};

#define ROW(seq, at, job, old, new, old_fence, fence)                              \
    "{'seq':" seq ",'at':'2026-01-01T00:00:" at                                    \
    "+00:00','ready_at':'2026-01-01T00:00:01.0+00:00',"                            \
    "'job':" job ",'old_state':" old ",'new_state':" new ",'old_fence':" old_fence \
                                                         ",'fence':" fence ",'generation':0}\n"

/* Jobs 20 and 21, which depend on each other. An end consists of two changes: the row moves. */
#define TIED(seq, job, old, new, fence, tie)                     \
    "{'seq':" seq ",'n':1" job ",'job':" job ",'old_state':" old \
    ",'new_state':" new ",'fence':" fence ",'generation':0" tie "}\n"
#define MADE(seq, job, tie) TIED(seq "0", job, "null", "'available'", "0", tie)
#define RUNS(seq, job, tie) TIED(seq "0", job, "'available'", "'running'", job, tie)
#define ENDS(seq, job, tie)                           \
    TIED(seq "0", job, "'running'", "null", job, tie) \
    TIED(seq "1", job, "null", "'completed'", job, tie)
#define TIED_FINAL(job) "{'job':" job ",'kind':'x','state':'completed','fence':" job "}\n"
#define KEY ",'exclusive_key':'k'"
#define QUEUE ",'queue':'q2'"
#define UNIQUE ",'unique_key':'u'"
#define ONE_AFTER_THE_OTHER(tie) \
    MADE("20", "20", tie)        \
    RUNS("22", "20", tie)        \
    ENDS("23", "20", tie) MADE("24", "21", tie) RUNS("25", "21", tie) ENDS("26", "21", tie)
#define BOTH_AT_ONCE(tie) \
    MADE("20", "20", tie) \
    MADE("21", "21", tie) \
    RUNS("22", "20", tie) RUNS("23", "21", tie) ENDS("24", "20", tie) ENDS("25", "21", tie)

/* Job 5 waits, and starts at 117 s. From 105 s until then, w.5 has an idle slot for queues q, q2
 * and slow and for kind x. Times are milliseconds of our clock; 110000 is 00:01:50 for
 * PostgreSQL. */
#define IDLE_ROW(seq, ms, at, ready, job, old, new, fence, queue)                                \
    "{'seq':" seq ",'boot_ms':" ms ",'at':'2026-01-01T00:01:" at                                 \
    "+00:00','ready_at':'2026-01-01T00:01:" ready "+00:00','job':" job ",'n':" job "000,'kind':" \
    "'x','old_state':" old ",'new_state':" new ",'old_fence':0,'fence':" fence                   \
                                               ",'generation':0,'queue':" queue "}\n"
#define IDLE_ENDS(seq, ms, job, fence, queue)                                 \
    IDLE_ROW(seq "0", ms, "58", "00", job, "'running'", "null", fence, queue) \
    IDLE_ROW(seq "1", ms, "58", "00", job, "null", "'completed'", fence, queue)
#define WAITS_FROM(ms, ready, queue, claimed)                                           \
    IDLE_ROW("500", ms, "50", ready, "5", "null", "'available'", "0", queue)            \
    IDLE_ROW("530", claimed, "57", ready, "5", "'available'", "'running'", "51", queue) \
    IDLE_ENDS("54", "118000", "5", "51", queue)
#define WAITS(ms, queue) WAITS_FROM(ms, "00", queue, "116900")
#define HANDED_BACK                                                                     \
    IDLE_ROW("510", "115100", "55", "00", "5", "'available'", "'running'", "50", "'q'") \
    IDLE_ROW("520", "116100", "56", "00", "5", "'running'", "'available'", "50", "'q'")
#define RUNS_FROM(ms, queue, until)                                               \
    IDLE_ROW("400", ms, "49", "00", "6", "null", "'available'", "0", queue)       \
    IDLE_ROW("410", ms, "49", "00", "6", "'available'", "'running'", "48", queue) \
    IDLE_ENDS("52", until, "6", "48", queue)
#define SCALE_1 "'time_scale':1,'constants':{'T':10000000000"
#define SCALE_QUARTER \
    "'time_scale':0.25,'constants':{'T':10000000000,'X':15000000000,'stale':8000000000"

static const struct planted planted[] = {
    {"nothing", NULL, LOG, NULL, ""},
    /* K1 */
    {"one fence for two claims", "K1/S1", HISTORY, "'job':2,'f':12,'att':1,'max'",
     "'job':2,'f':11,'att':1,'max'"},
    {"a smaller fence later", "K1/S1", HISTORY, "'ph':'ok','job':1,'f':11,'att':2",
     "'ph':'ok','job':1,'f':9,'att':2"},
    {"claimed while it ran", "K1/S3", HISTORY,
     "{'t':13002000000,'p':'s.3','op':'reap','ph':'inv','job':1,'f':10}\n"
     "{'t':13003000000,'p':'s.3','op':'reap','ph':'ok','job':1,'out':0}\n",
     ""},
    {"claimed while it ran, and the rescue had been refused", "K1/S3", HISTORY,
     "'op':'reap','ph':'ok','job':1,'out':0", "'op':'reap','ph':'fail','job':1,'out':3"},
    {"a rescue without an answer may have been", NULL, HISTORY,
     "{'t':13003000000,'p':'s.3','op':'reap','ph':'ok','job':1,'out':0}\n", ""},
    {"a late completion is accepted", "K1/S3", HISTORY, NULL,
     "{'t':15000000000,'p':'w.1','op':'complete','ph':'inv','job':1,'f':10}\n"
     "{'t':15001000000,'p':'w.1','op':'complete','ph':'ok','job':1,'f':10}\n"},
    {"an end is accepted after the rescue", "K1/S3", HISTORY, NULL,
     "{'t':13100000000,'p':'w.1','op':'fail','ph':'inv','job':1,'f':10}\n"
     "{'t':13101000000,'p':'w.1','op':'fail','ph':'ok','job':1,'f':10}\n"},
    {"a late completion is refused", NULL, HISTORY, NULL,
     "{'t':15000000000,'p':'w.1','op':'complete','ph':'inv','job':1,'f':10}\n"
     "{'t':15001000000,'p':'w.1','op':'complete','ph':'stale','job':1,'f':10}\n"},
    {"claimed after its completion", "K1/S2", HISTORY, NULL,
     "{'t':19500000000,'p':'w.2','op':'claim','ph':'ok','job':1,'f':14,'att':3}\n"},
    {"completed under an older fence than a claim that nothing explains", "K1/S3", HISTORY, NULL,
     "{'t':14003100000,'p':'w.2','op':'claim','ph':'ok','job':1,'f':14,'att':3}\n"},
    {"completed under an older fence than a claim that was lost with its primary", NULL, HISTORY,
     NULL, "{'t':14003100000,'p':'w.2','op':'claim','ph':'ok','job':1,'f':14,'att':3}\n"},
    {"completed under an older fence than a lost claim that was answered late", NULL, HISTORY, NULL,
     "{'t':14003100000,'p':'w.2','op':'claim','ph':'inv','job':1}\n"
     "{'t':14003400000,'p':'w.2','op':'claim','ph':'ok','job':1,'f':14,'att':3}\n"},
    {"a rightful completion is refused", "K1/S3", HISTORY, "'op':'complete','ph':'ok','job':2",
     "'op':'complete','ph':'stale','job':2"},
    {"more attempts than allowed", "K1/S7", HISTORY, "'f':11,'att':2,'max':25",
     "'f':11,'att':2,'max':1"},
    {"at most once, started twice", "K1/S10", HISTORY, NULL,
     "{'t':14004500000,'p':'w.1','op':'run','ph':'inv','job':2,'f':13,'att':2,'once':1}\n"},
    {"started twice under one fence", "K1/S19", HISTORY, NULL,
     "{'t':14004500000,'p':'w.1','op':'run','ph':'inv','job':1,'f':11,'att':2,'once':0}\n"},
    /* K1 by rows */
    {"a row completed twice", "K1/S2", EVENTS, NULL,
     ROW("14", "19.0", "2", "null", "'completed'", "null", "12")},
    {"out of the history without a retry", "K1/S6", EVENTS, NULL,
     ROW("14", "19.0", "3", "'cancelled'", "null", "0", "0")
         ROW("15", "19.0", "3", "null", "'available'", "null", "0")},
    {"no such edge", "K1/S5", EVENTS, NULL,
     ROW("14", "19.0", "4", "null", "'running'", "null", "20")},
    {"the rows' history is not the table", "K1/S5", FINAL, "'job':2,'kind':'k','state':'completed'",
     "'job':2,'kind':'k','state':'discarded'"},
    {"a row is gone that nobody deleted", "K1/S5", EVENTS,
     "{'seq':11,'at':'2026-01-01T00:00:14.1+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job':"
     "2,'old_state':null,'new_state':'completed','fence':12,'worker':'u2','attempt':1,'generation':"
     "0}\n",
     ""},
    {"completed under an older fence", "K1/S3", EVENTS, "'new_state':'completed','fence':11",
     "'new_state':'completed','fence':10"},
    {"the same fence again", "K1/S1", EVENTS, "'new_state':'running','old_fence':10,'fence':11",
     "'new_state':'running','old_fence':10,'fence':10"},
    {"claimed before it was due", "K1/S8", EVENTS,
     "{'seq':9,'at':'2026-01-01T00:00:14.0+00:00','ready_at':'2026-01-01T00:00:01.0",
     "{'seq':9,'at':'2026-01-01T00:00:14.0+00:00','ready_at':'2026-01-01T00:00:14.5"},
    {"a retry makes it available in the next generation", NULL, EVENTS, NULL,
     "{'seq':14,'job':3,'old_state':null,'new_state':'available','fence':0,'generation':1}\n"
     "{'seq':15,'job':3,'old_state':'available','new_state':null,'fence':0,'generation':1}\n"
     "{'seq':16,'job':3,'old_state':null,'new_state':'cancelled','fence':0,'generation':1}\n"},
    /* K2 */
    {"two hold a lock", "K2/S12", HISTORY,
     "{'t':13004000000,'p':'s.3','op':'unlock','ph':'inv','key':'claimd:job:1','val':'bb1'}\n", ""},
    {"two hold a lock after a FLUSHALL", "K2/S12", HISTORY,
     "{'t':13004000000,'p':'s.3','op':'unlock','ph':'inv','key':'claimd:job:1','val':'bb1'}\n", ""},
    {"two hold a lock after the host's clock was stepped: counted", NULL, HISTORY,
     "{'t':13004000000,'p':'s.3','op':'unlock','ph':'inv','key':'claimd:job:1','val':'bb1'}\n", ""},
    {"moved without its lock", "K2/S12", HISTORY,
     "'op':'lock','ph':'ok','key':'claimd:job:1','val':'bb1'",
     "'op':'lock','ph':'fail','key':'claimd:job:1','val':'bb1'"},
    {"valid for longer than its ttl allows", "K2/S13", HISTORY, "'until':11898000000",
     "'until':11950000000"},
    {"extended for longer than its ttl allows", "K2/S13", HISTORY, "'until':26898000000",
     "'until':27000000000"},
    {"won by a minority", "K2/S13", HISTORY, "'votes':[1,1,1,2,0]", "'votes':[1,1,0,2,0]"},
    {"extended by a minority", "K2/S13", HISTORY, "'votes':[1,1,1,2,2]", "'votes':[1,1,2,2,2]"},
    {"a copy taken away by somebody else", "K2/S14", HISTORY,
     "'ph':'ok','key':'claimd:job:1','val':'cc1','votes':[1,1,1,2,2],'held':1",
     "'ph':'fail','key':'claimd:job:1','val':'cc1','votes':[0,0,0,2,2],'held':0"},
    {"a copy that its release did not find", "K2/S14", HISTORY, NULL,
     "{'t':18003000000,'p':'w.2','op':'unlock','ph':'fail','key':'claimd:job:1','val':'cc1',"
     "'node':2,'found':'nothing'}\n"},
    {"a copy that an earlier try of its release has removed", NULL, HISTORY, NULL,
     "{'t':18003000000,'p':'w.2','op':'unlock','ph':'fail','key':'claimd:job:1','val':'cc1',"
     "'node':2,'found':'nothing','again':1}\n"},
    {"a copy that was not extended, and has ended by itself", NULL, HISTORY, NULL,
     "{'t':18003000000,'p':'w.2','op':'unlock','ph':'fail','key':'claimd:job:1','val':'cc1',"
     "'node':4,'found':'nothing'}\n"},
    /* K3 */
    {"an acknowledged job is not there", "K3/S15", ACKED, NULL,
     "{'t':1500000003,'op':'enqueue','ph':'ok','job':9,'n':9,'expect':'any'}\n"},
    {"a job that nobody knows of may not be there", NULL, ACKED, NULL,
     "{'t':1500000003,'op':'enqueue','ph':'info','n':9,'expect':'any'}\n"},
    {"it ended otherwise than it must", "K3/G2", ACKED, "'job':2,'n':2,'expect':'completed'",
     "'job':2,'n':2,'expect':'discarded'"},
    {"completed without an effect", "K3/S16", LEDGER,
     "{'t':14004200000,'job':2,'fence':12,'attempt':1,'op':'effect','as':'done','sha':'s2','pid':"
     "92}\n",
     ""},
    {"two effects under one fence", "K3/S4", LEDGER, NULL,
     "{'t':14004300000,'job':2,'fence':12,'attempt':1,'op':'effect','as':'done','sha':'s2'}\n"},
    {"two starts under one fence", "K3/S19", LEDGER, NULL,
     "{'t':14004300000,'job':1,'fence':11,'attempt':1,'op':'start','as':'done','sha':'s1'}\n"},
    {"at most once, and two handlers ran", "K3/S10", LEDGER, NULL,
     "{'t':14004300000,'job':2,'fence':13,'attempt':1,'op':'start','as':'done'}\n"},
    {"started after its cancel", "K3/S11", LEDGER, NULL,
     "{'t':1700000000,'job':3,'fence':13,'attempt':1,'op':'start','as':'done'}\n"},
    {"other args than the row's", "K3/S9", LEDGER,
     "'fence':12,'attempt':1,'op':'start','as':'done','sha':'s2'",
     "'fence':12,'attempt':1,'op':'start','as':'done','sha':'xx'"},
    {"older args than an edit before the claim", "K3/S9", ACKED, NULL,
     "{'t':13500000000,'op':'edit','ph':'ok','job':1,'what':'args','v':2}\n"},
    {"older args than an edit after the claim", NULL, ACKED, NULL,
     "{'t':14002500000,'op':'edit','ph':'ok','job':1,'what':'args','v':2}\n"},
    {"claimed after it was asked to end", "K3/S11", ACKED, NULL,
     "{'t':13500000000,'op':'cancel','ph':'asked','job':1}\n"},
    {"asked to end after its claim", NULL, ACKED, NULL,
     "{'t':14002500000,'op':'cancel','ph':'asked','job':1}\n"},
    {"two open jobs of one unique key", "K3/S21", EVENTS, NULL, BOTH_AT_ONCE(UNIQUE)},
    {"one unique key, one job after the other", NULL, EVENTS, NULL, ONE_AFTER_THE_OTHER(UNIQUE)},
    {"a follow-up before the end of its batch", "K3/S22", EVENTS, NULL, BOTH_AT_ONCE("")},
    {"a follow-up after the end of its batch", NULL, EVENTS, NULL, ONE_AFTER_THE_OTHER("")},
    {"a batch without its follow-up", "K3/S22", ACKED, NULL,
     "{'t':1,'op':'batch','ph':'ok','batch':1,'jobs':[1],'follow_n':7}\n"},
    {"a job before the end of the one before it", "K3/S23", EVENTS, NULL, BOTH_AT_ONCE("")},
    {"a job after the end of the one before it", NULL, EVENTS, NULL, ONE_AFTER_THE_OTHER("")},
    /* K5 */
    {"still there at the end", "K5/L1", FINAL, "'job':3,'kind':'k','state':'cancelled'",
     "'job':3,'kind':'k','state':'retryable'"},
    {"the end comes too late", "K5/L1", RUN, "'T':10000000000", "'T':10000000000,'terminal':1000"},
    {"a rescue takes too long", "K5/L2", RUN, "'T':10000000000", "'T':10000000000,'X':9000000000"},
    {"a rescue takes long, Redis being away", NULL, RUN, "'T':10000000000",
     "'T':10000000000,'X':9000000000"},
    {"a living worker is taken for dead", "K5/S19", HISTORY, NULL,
     "{'t':19000001000,'p':'s.3','op':'dead','ph':'ok','worker':'u2'}\n"},
    {"a silent worker is taken for dead", NULL, HISTORY, NULL,
     "{'t':12000000000,'p':'s.3','op':'dead','ph':'ok','worker':'u1'}\n"},
    {"a worker is taken for dead since PostgreSQL was away", "K5/S19", HISTORY, NULL, ""},
    {"overtaken in its lane", "K5/L3", FINAL, NULL, ""},
    {"a retry whose insert was answered after its first attempt", NULL, FINAL, NULL, ""},
    {"overtaken at first, then its queue stands still", NULL, FINAL, NULL, ""},
    {"overtaken, the table worker being locked", NULL, FINAL, NULL, ""},
    {"overtaken while a claim is in doubt", NULL, RUN, SCALE_1, SCALE_QUARTER},
    {"overtaken after a claim was in doubt", "K5/L3", RUN, SCALE_1, SCALE_QUARTER},
    {"overtaken by a quarter of all times", "K5/L3", RUN, SCALE_1, SCALE_QUARTER},
    /* K6, K7 */
    {"a handler outlives its worker", "K6/A1", LEDGER, NULL,
     "{'t':5000000000,'job':1,'fence':10,'attempt':1,'op':'effect','as':'done','sha':'s1'}\n"},
    {"a handler goes on beside the next one", "K6/A4", LEDGER, NULL,
     "{'t':15000000000,'job':1,'fence':10,'attempt':1,'op':'effect','as':'done','sha':'s1'}\n"},
    {"a worker runs more than it has slots", "K7/S18", RUN, "'T':10000000000},",
     "'T':10000000000},'slots':1,"},
    {"a process has the number of one that was killed", NULL, RUN, "'T':10000000000},",
     "'T':10000000000},'slots':2,"},
    {"two of one exclusive key", "K7/S18", EVENTS, NULL, BOTH_AT_ONCE(KEY)},
    {"two of one second key", "K7/S18", EVENTS, NULL, BOTH_AT_ONCE(",'second_key':'k'")},
    {"one exclusive key, one after the other", NULL, EVENTS, NULL, ONE_AFTER_THE_OTHER(KEY)},
    {"two of a queue with one place", "K7/S18", EVENTS, NULL, BOTH_AT_ONCE(QUEUE)},
    {"two of a queue without a limit", NULL, EVENTS, NULL, BOTH_AT_ONCE(",'queue':'q3'")},
    /* K8, K9, K10 */
    {"descriptors that leak", "K8/R1", SAMPLES, NULL, ""},
    {"descriptors that don't", NULL, SAMPLES, NULL, ""},
    {"descriptors of connections that are lost for a while", NULL, SAMPLES, NULL, ""},
    {"a password in a log", "K9/P2", LOG, NULL, "event=x err=\"hush-hush\"\n"},
    {"a password in a history", "K9/P2", HISTORY, NULL,
     "{'t':19000001000,'p':'s.3','op':'x','ph':'ok','y':'hush-hush'}\n"},
    {"what the database says of itself", "K10/check.sql", CHECKS, NULL,
     "{'name':'unreachable','rows':2,'job':2}\n"},
    /* K11 */
    {"idle beside due", "K11/L9", EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle beside due for a second", NULL, EVENTS, NULL, WAITS("116000", "'q'")},
    {"idle beside what is not due yet", NULL, EVENTS, NULL,
     WAITS_FROM("110000", "56", "'q'", "116900")},
    {"idle beside what has become due", "K11/L9", EVENTS, NULL,
     WAITS_FROM("110000", "53", "'q'", "116900")},
    {"idle beside a transaction that is open", NULL, EVENTS, NULL,
     WAITS("110000,'commit_ms':116500", "'q'")},
    {"busy beside due", NULL, EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle beside due, twice for a second", NULL, EVENTS, NULL, WAITS("115000", "'q'")},
    {"idle beside a queue that it does not serve", NULL, EVENTS, NULL, WAITS("110000", "'q3'")},
    {"idle beside a kind that it does not serve any more", NULL, EVENTS, NULL,
     WAITS("110000", "'q'")},
    {"idle beside a job that another worker has claimed", "K11/L9", EVENTS, NULL,
     WAITS_FROM("110000", "00", "'q'", "110100")},
    {"idle beside a job that was handed back unstarted", "K11/L9", EVENTS, NULL,
     WAITS("115000", "'q'") HANDED_BACK},
    {"idle beside a job that was rescued", NULL, EVENTS, NULL, WAITS("115000", "'q'") HANDED_BACK},
    {"idle beside due, soon after a fault", NULL, EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle beside due, long after a fault", "K11/L9", EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle beside due, while others commit slowly", "K11/L9", EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle beside a queue that is paused", NULL, EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle beside a kind that is paused", NULL, EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle beside a queue that was resumed", "K11/L9", EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle beside a queue without a place", NULL, EVENTS, NULL,
     WAITS("110000", "'q2'") RUNS_FROM("109000", "'q2'", "116800")},
    {"idle beside a queue that has a place again", "K11/L9", EVENTS, NULL,
     WAITS("110000", "'q2'") RUNS_FROM("109000", "'q2'", "112000")},
    {"idle beside a key that is held", NULL, EVENTS, NULL,
     WAITS("110000", "'q'" KEY) RUNS_FROM("109000", "'q'" KEY, "116800")},
    {"idle beside an empty bucket", NULL, EVENTS, NULL,
     WAITS("115500", "'slow'") RUNS_FROM("115400", "'slow'", "115600")},
    {"idle beside a bucket that was filled again", "K11/L9", EVENTS, NULL,
     WAITS("110000", "'slow'") RUNS_FROM("109000", "'slow'", "109100")},
    {"idle beside a queue that is walked in laps", NULL, EVENTS, NULL, WAITS("111500", "'wide'")},
    {"idle for longer than a lap takes", "K11/L9", EVENTS, NULL, WAITS("110000", "'wide'")},
    {"idle beside a job that has no attempt left", NULL, EVENTS, NULL,
     WAITS("110000", "'q','attempt':2")},
    {"idle beside a job that was edited by hand", NULL, EVENTS, NULL, WAITS("110000", "'q'")},
    {"idle on a host that has no time", NULL, EVENTS, NULL, WAITS("110000", "'q'")},
    /* violations that the kit itself saw */
    {"a daemon crashed", "world/process", NEMESIS, NULL,
     "{'t':5000000000,'ph':'violation','x':'process','target':'w2','text':'died of signal 11'}\n"},
};

#define BATCH "{'t':1,'op':'batch','ph':'ok','batch':1,'jobs':[20],'follow_n':121}\n"
#define AFTER "{'t':1,'op':'after','ph':'ok','job':21,'after':[20]}\n"

/* Job 5 was available at 30 s, before the other three. */
#define LANE_FINAL_OF(job, fence) \
    "{'job':" job ",'kind':'x','queue':'q','priority':4,'state':'completed','fence':" fence "}\n"
#define LANE_FINAL           \
    LANE_FINAL_OF("5", "52") \
    LANE_FINAL_OF("6", "51") LANE_FINAL_OF("7", "50") LANE_FINAL_OF("8", "49")
#define LANE_ACKED_OF(t, job) \
    "{'t':" t ",'op':'enqueue','ph':'ok','job':" job ",'n':" job ",'expect':'any'}\n"
#define LANE_ACKED                    \
    LANE_ACKED_OF("30000000000", "5") \
    LANE_ACKED_OF("31000000000", "6") \
    LANE_ACKED_OF("31000000001", "7") LANE_ACKED_OF("31000000002", "8")
#define LANE_CLAIMS(others, late)                                                         \
    "{'t':" others "000000000,'p':'w.2','op':'claim','ph':'ok','job':6,'f':51,'att':1}\n" \
    "{'t':" others "000000000,'p':'w.2','op':'claim','ph':'ok','job':7,'f':50,'att':1}\n" \
    "{'t':" others "000000000,'p':'w.2','op':'claim','ph':'ok','job':8,'f':49,'att':1}\n" \
    "{'t':" late "000000000,'p':'w.2','op':'claim','ph':'ok','job':5,'f':52,'att':2}\n"
#define LANE_CUT_OFF                                                  \
    "{'t':31000000000,'ph':'inv','x':'net_hole','target':'w1-pg0'}\n" \
    "{'t':37000000000,'ph':'ok','x':'net_hole','target':'w1-pg0'}\n"
#define PAUSED(what, name) "{'t':109000000000,'op':'pause','ph':'ok','" what "':'" name "'}\n"

/* The sums of traits, which test_check.c compares with trait.h. */
#define OF_HOST_CLOCK "'traits':2048,"
#define OF_FAILOVER "'traits':56,"
#define OF_PG_GONE "'traits':32,"
#define OF_REDIS "'traits':256,"
#define OF_SUSPEND "'traits':1536,"
#define OF_SLOW_COMMIT "'traits':6,"

#define FAILOVER                                                                        \
    "{'t':14003200000,'ph':'inv','x':'failover_async'," OF_FAILOVER "'target':'pg0'}\n" \
    "{'t':14003300000,'ph':'ok','x':'failover_async'," OF_FAILOVER "'target':'pg0'}\n"  \
    "{'t':14003100000,'ph':'inv','x':'suspend'," OF_SUSPEND "'target':'w2'}\n"          \
    "{'t':17900000000,'ph':'ok','x':'suspend'," OF_SUSPEND "'target':'w2'}\n"

/* Lines that the change of this name also adds to other files. */
static const struct {
    const char *name;
    enum file file;
    const char *text;
} more[] = {
    {"two hold a lock after a FLUSHALL", NEMESIS,
     "{'t':13003500000,'ph':'inv','x':'flushall','target':'r0'}\n"
     "{'t':13003600000,'ph':'ok','x':'flushall','target':'r0'}\n"},
    {"two hold a lock after the host's clock was stepped: counted", NEMESIS,
     "{'t':13003500000,'ph':'info','x':'host_clock'," OF_HOST_CLOCK "'step_us':94000}\n"},
    {"completed under an older fence than a claim that was lost with its primary", NEMESIS,
     FAILOVER},
    {"completed under an older fence than a lost claim that was answered late", NEMESIS, FAILOVER},
    {"a rescue takes long, Redis being away", NEMESIS,
     "{'t':4000000000,'ph':'inv','x':'redis_away'," OF_REDIS "'target':'r0'}\n"
     "{'t':9000000000,'ph':'ok','x':'redis_away'," OF_REDIS "'target':'r0'}\n"},
    {"a worker is taken for dead since PostgreSQL was away", NEMESIS,
     "{'t':20000000000,'ph':'inv','x':'pg_away'," OF_PG_GONE "'target':'pg'}\n"
     "{'t':29000000000,'ph':'ok','x':'pg_away'," OF_PG_GONE "'target':'pg'}\n"},
    {"a worker is taken for dead since PostgreSQL was away", HISTORY,
     "{'t':30000000000,'p':'s.3','op':'dead','ph':'ok','worker':'u2'}\n"
     "{'t':31000000000,'p':'w.2','op':'beat','ph':'ok','worker':'u2','dead':1}\n"},
    {"a process has the number of one that was killed", LATER,
     "{'t':20000000000,'p':'w.1','op':'run','ph':'inv','job':9,'f':90,'att':1,'once':0}\n"
     "{'t':20000000001,'p':'w.1','op':'run','ph':'inv','job':10,'f':91,'att':1,'once':0}\n"},
    {"a follow-up before the end of its batch", ACKED, BATCH},
    {"a follow-up after the end of its batch", ACKED, BATCH},
    {"a job before the end of the one before it", ACKED, AFTER},
    {"a job after the end of the one before it", ACKED, AFTER},
    {"overtaken in its lane", ACKED, LANE_ACKED},
    {"overtaken in its lane", FINAL, LANE_FINAL},
    {"overtaken in its lane", HISTORY, LANE_CLAIMS("35", "41")},
    {"overtaken at first, then its queue stands still", ACKED, LANE_ACKED},
    {"overtaken at first, then its queue stands still", FINAL, LANE_FINAL},
    {"overtaken at first, then its queue stands still", HISTORY, LANE_CLAIMS("32", "41")},
    {"overtaken, the table worker being locked", ACKED, LANE_ACKED},
    {"overtaken, the table worker being locked", FINAL, LANE_FINAL},
    {"overtaken, the table worker being locked", HISTORY, LANE_CLAIMS("41", "60")},
    {"overtaken, the table worker being locked", NEMESIS,
     "{'t':33000000000,'ph':'inv','x':'pg_lock_table','target':'worker'}\n"
     "{'t':40000000000,'ph':'ok','x':'pg_lock_table','target':'worker'}\n"},
    {"overtaken while a claim is in doubt", ACKED, LANE_ACKED},
    {"overtaken while a claim is in doubt", FINAL, LANE_FINAL},
    {"overtaken while a claim is in doubt", HISTORY, LANE_CLAIMS("33", "37")},
    {"overtaken while a claim is in doubt", NEMESIS, LANE_CUT_OFF},
    {"overtaken after a claim was in doubt", ACKED, LANE_ACKED},
    {"overtaken after a claim was in doubt", FINAL, LANE_FINAL},
    {"overtaken after a claim was in doubt", HISTORY, LANE_CLAIMS("35", "41")},
    {"overtaken after a claim was in doubt", NEMESIS, LANE_CUT_OFF},
    {"overtaken by a quarter of all times", ACKED, LANE_ACKED},
    {"overtaken by a quarter of all times", FINAL, LANE_FINAL},
    {"overtaken by a quarter of all times", HISTORY, LANE_CLAIMS("34", "38")},
    {"a retry whose insert was answered after its first attempt", FINAL, LANE_FINAL},
    {"a retry whose insert was answered after its first attempt", ACKED, LANE_ACKED},
    {"a retry whose insert was answered after its first attempt", HISTORY,
     LANE_CLAIMS("35",
                 "41") "{'t':29000000000,'p':'w.2','op':'claim','ph':'ok','job':5,'f':48,'att':1}\n"
                       "{'t':29100000000,'p':'w.2','op':'fail','ph':'inv','job':5,'f':48}\n"
                       "{'t':29200000000,'p':'w.2','op':'fail','ph':'ok','job':5,'f':48}\n"},
    {"busy beside due", HISTORY, "{'t':110500000000,'p':'w.5','op':'spare','ph':'ok','n':0}\n"},
    {"idle beside due, twice for a second", HISTORY,
     "{'t':116000000000,'p':'w.5','op':'spare','ph':'ok','n':0}\n"
     "{'t':116050000000,'p':'w.5','op':'spare','ph':'ok','n':1}\n"},
    {"idle beside a kind that it does not serve any more", HISTORY,
     "{'t':110500000000,'p':'w.5','op':'serves','ph':'inv','generation':2}\n"
     "{'t':110500000001,'p':'w.5','op':'serves','ph':'ok','queue':'q'}\n"},
    {"idle beside a job that was handed back unstarted", HISTORY,
     "{'t':116100000000,'p':'w.6','op':'hand-back','ph':'inv','job':5,'f':50}\n"
     "{'t':116110000000,'p':'w.6','op':'hand-back','ph':'ok','job':5,'f':50}\n"},
    {"idle beside due, soon after a fault", NEMESIS,
     "{'t':90000000000,'ph':'inv','x':'pg_cut','target':'pg'}\n"
     "{'t':95000000000,'ph':'ok','x':'pg_cut','target':'pg'}\n"},
    {"idle beside due, long after a fault", NEMESIS,
     "{'t':60000000000,'ph':'inv','x':'pg_cut','target':'pg'}\n"
     "{'t':62000000000,'ph':'ok','x':'pg_cut','target':'pg'}\n"},
    {"idle beside due, while others commit slowly", NEMESIS,
     "{'t':90000000000,'ph':'inv','x':'slow_commit'," OF_SLOW_COMMIT "'target':'load'}\n"},
    {"idle beside a queue that is paused", ACKED, PAUSED("queue", "q")},
    {"idle beside a kind that is paused", ACKED, PAUSED("kind", "x")},
    {"idle beside a queue that was resumed", ACKED,
     PAUSED("queue", "q") "{'t':112000000000,'op':'resume','ph':'ok','queue':'q'}\n"},
    {"idle beside a job that was edited by hand", ACKED,
     "{'t':111000000000,'op':'edit','ph':'ok','job':5,'what':'queue'}\n"},
    {"idle on a host that has no time", SAMPLES,
     "{'t':109000000000,'p':'w5','rss':1000000,'fds':9,'children':2,'cpu_wait':0}\n"
     "{'t':118000000000,'p':'w5','rss':1000000,'fds':9,'children':2,'cpu_wait':4000000000}\n"},
};

#endif
