/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a small run without violations, for test_check.c. In the lines, ' stands for ". */
#ifndef CHECK_CLEAN_RUN_H
#define CHECK_CLEAN_RUN_H

enum file {
    HISTORY,
    LATER,
    LEDGER,
    ACKED,
    NEMESIS,
    EVENTS,
    FINAL,
    CHECKS,
    SAMPLES,
    LOG,
    RUN,
    FILE_COUNT
};

static const char *const file_names[FILE_COUNT] = {
    "history/w.1.jsonl", "history/w.1.99.jsonl", "ledger/l.jsonl", "acked.jsonl",
    "nemesis.jsonl",     "events.jsonl",         "final.jsonl",    "check.jsonl",
    "samples.jsonl",     "logs/w1.log",          "run.json"};

/* Job 1 is claimed by w.1, which is killed; the job is rescued and runs again on w.2. Job 2 runs
 * normally. Job 3 is cancelled. */
static const char *const clean[FILE_COUNT] = {
    [RUN] = ("{'time_scale':1,'constants':{'T':10000000000},'ledger_kinds':['k'],"
             "'limits':{'queues':{'q2':1}},'rates':{'queues':{'slow':0.5}},'canaries':['hush-hush']"
             ",'lapped':'wide'}\n"),
    [HISTORY] =
        "{'t':1000000000,'p':'w.1','op':'start','ph':'inv','pid':1}\n"
        "{'t':1000000001,'p':'w.1','op':'start','ph':'ok','worker':'u1','state_dir':'/x/"
        "state-w1-1'}\n"
        "{'t':1000000002,'p':'w.2','op':'start','ph':'ok','worker':'u2','state_dir':'/x/"
        "state-w2-1'}\n"
        "{'t':2000000000,'p':'w.1','op':'lock','ph':'inv','key':'claimd:job:1','val':'aa1','ttl':"
        "10000000000}\n"
        "{'t':2001000000,'p':'w.1','op':'lock','ph':'ok','key':'claimd:job:1','val':'aa1','votes':["
        "1,1,1,2,0],'until':11898000000}\n"
        "{'t':2002000000,'p':'w.1','op':'claim','ph':'inv','job':1}\n"
        "{'t':2003000000,'p':'w.1','op':'claim','ph':'ok','job':1,'f':10,'att':1,'max':25}\n"
        "{'t':2004000000,'p':'w.1','op':'run','ph':'inv','job':1,'f':10,'att':1,'once':0}\n"
        "{'t':13000000000,'p':'s.3','op':'lock','ph':'inv','key':'claimd:job:1','val':'bb1','ttl':"
        "10000000000}\n"
        "{'t':13001000000,'p':'s.3','op':'lock','ph':'ok','key':'claimd:job:1','val':'bb1','votes':"
        "[1,1,1,1,1],'until':22898000000}\n"
        "{'t':13002000000,'p':'s.3','op':'reap','ph':'inv','job':1,'f':10}\n"
        "{'t':13003000000,'p':'s.3','op':'reap','ph':'ok','job':1,'out':0}\n"
        "{'t':13004000000,'p':'s.3','op':'unlock','ph':'inv','key':'claimd:job:1','val':'bb1'}\n"
        "{'t':14000000000,'p':'w.2','op':'lock','ph':'inv','key':'claimd:job:1','val':'cc1','ttl':"
        "10000000000}\n"
        "{'t':14001000000,'p':'w.2','op':'lock','ph':'ok','key':'claimd:job:1','val':'cc1','votes':"
        "[1,1,1,1,1],'until':23898000000}\n"
        "{'t':14002000000,'p':'w.2','op':'claim','ph':'inv','job':1}\n"
        "{'t':14003000000,'p':'w.2','op':'claim','ph':'ok','job':1,'f':11,'att':2,'max':25}\n"
        "{'t':14004000000,'p':'w.2','op':'run','ph':'inv','job':1,'f':11,'att':2,'once':0}\n"
        "{'t':17000000000,'p':'w.2','op':'extend','ph':'inv','key':'claimd:job:1','val':'cc1','ttl'"
        ":10000000000}\n"
        "{'t':17001000000,'p':'w.2','op':'extend','ph':'ok','key':'claimd:job:1','val':'cc1','"
        "votes':[1,1,1,2,2],'held':1,'until':26898000000}\n"
        "{'t':18000000000,'p':'w.2','op':'complete','ph':'inv','job':1,'f':11}\n"
        "{'t':18001000000,'p':'w.2','op':'complete','ph':'ok','job':1,'f':11,'final':0}\n"
        "{'t':18002000000,'p':'w.2','op':'unlock','ph':'inv','key':'claimd:job:1','val':'cc1'}\n"
        "{'t':14002000000,'p':'w.2','op':'claim','ph':'inv','job':2}\n"
        "{'t':14003000000,'p':'w.2','op':'claim','ph':'ok','job':2,'f':12,'att':1,'max':25}\n"
        "{'t':14004000000,'p':'w.2','op':'run','ph':'inv','job':2,'f':12,'att':1,'once':1}\n"
        "{'t':14005000000,'p':'w.2','op':'complete','ph':'inv','job':2,'f':12}\n"
        "{'t':14006000000,'p':'w.2','op':'complete','ph':'ok','job':2,'f':12,'final':0}\n"
        "{'t':19000000000,'p':'w.2','op':'beat','ph':'ok','worker':'u2','dead':0}\n"
        "{'t':20000000000,'p':'w.2','op':'stop','ph':'ok','code':0}\n",
    [LEDGER] = "{'t':2005000000,'job':1,'fence':10,'attempt':1,'op':'start','as':'done','sha':'s1',"
               "'pid':91}\n"
               "{'t':14005000000,'job':1,'fence':11,'attempt':2,'op':'start','as':'done','sha':'s1'"
               ",'pid':92}\n"
               "{'t':17900000000,'job':1,'fence':11,'attempt':2,'op':'effect','as':'done','sha':'"
               "s1','pid':92}\n"
               "{'t':14004100000,'job':2,'fence':12,'attempt':1,'op':'start','as':'done','sha':'s2'"
               ",'pid':92}\n"
               "{'t':14004200000,'job':2,'fence':12,'attempt':1,'op':'effect','as':'done','sha':'"
               "s2','pid':92}\n",
    [ACKED] = "{'t':1500000000,'op':'enqueue','ph':'ok','job':1,'n':1,'expect':'completed'}\n"
              "{'t':1500000001,'op':'enqueue','ph':'ok','job':2,'n':2,'expect':'completed'}\n"
              "{'t':1500000002,'op':'enqueue','ph':'ok','job':3,'n':3,'expect':'any'}\n"
              "{'t':1600000000,'op':'cancel','ph':'ok','job':3}\n",
    [NEMESIS] = "{'t':3000000000,'ph':'inv','x':'kill9','target':'w1'}\n"
                "{'t':3000000001,'ph':'ok','x':'kill9','target':'w1'}\n"
                "{'t':3000000002,'ph':'info','x':'ended','target':'w1','pid':1,'code':137}\n",
    [EVENTS] =
        "{'seq':1,'at':'2026-01-01T00:00:01.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":1,'old_state':null,'new_state':'available','fence':0,'generation':0,'sha':'s1'}\n"
        "{'seq':2,'at':'2026-01-01T00:00:01.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":2,'old_state':null,'new_state':'available','fence':0,'generation':0,'sha':'s2'}\n"
        "{'seq':3,'at':'2026-01-01T00:00:01.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":3,'old_state':null,'new_state':'available','fence':0,'generation':0,'sha':'s3'}\n"
        "{'seq':4,'at':'2026-01-01T00:00:01.1+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":3,'old_state':'available','new_state':null,'old_fence':0,'fence':0,'generation':0}\n"
        "{'seq':5,'at':'2026-01-01T00:00:01.1+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":3,'old_state':null,'new_state':'cancelled','fence':0,'generation':0}\n"
        "{'seq':6,'at':'2026-01-01T00:00:02.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":1,'old_state':'available','new_state':'running','old_fence':0,'fence':10,'worker':'u1','"
        "attempt':1,'generation':0}\n"
        "{'seq':7,'at':'2026-01-01T00:00:13.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":1,'old_state':'running','new_state':'available','old_fence':10,'fence':10,'worker':'u1','"
        "attempt':1,'generation':0}\n"
        "{'seq':8,'at':'2026-01-01T00:00:14.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":1,'old_state':'available','new_state':'running','old_fence':10,'fence':11,'worker':'u2','"
        "attempt':2,'generation':0}\n"
        "{'seq':9,'at':'2026-01-01T00:00:14.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','job'"
        ":2,'old_state':'available','new_state':'running','old_fence':0,'fence':12,'worker':'u2','"
        "attempt':1,'generation':0}\n"
        "{'seq':10,'at':'2026-01-01T00:00:14.1+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','"
        "job':2,'old_state':'running','new_state':null,'old_fence':12,'fence':12,'worker':'u2','"
        "attempt':1,'generation':0}\n"
        "{'seq':11,'at':'2026-01-01T00:00:14.1+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','"
        "job':2,'old_state':null,'new_state':'completed','fence':12,'worker':'u2','attempt':1,'"
        "generation':0}\n"
        "{'seq':12,'at':'2026-01-01T00:00:18.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','"
        "job':1,'old_state':'running','new_state':null,'old_fence':11,'fence':11,'worker':'u2','"
        "attempt':2,'generation':0}\n"
        "{'seq':13,'at':'2026-01-01T00:00:18.0+00:00','ready_at':'2026-01-01T00:00:01.0+00:00','"
        "job':1,'old_state':null,'new_state':'completed','fence':11,'worker':'u2','attempt':2,'"
        "generation':0}\n",
    [FINAL] = "{'job':1,'kind':'k','state':'completed','fence':11,'attempt':2}\n"
              "{'job':2,'kind':'k','state':'completed','fence':12,'attempt':1}\n"
              "{'job':3,'kind':'k','state':'cancelled','fence':0,'attempt':0}\n",
    [CHECKS] = "{'name':'running_under_a_dead_worker','rows':0}\n",
    [LATER] = "", /* the number of w.1, reused */
    [SAMPLES] = "",
    [LOG] = "ts=… event=ready\n"};

#endif
