// SPDX-License-Identifier: Apache-2.0

// Peer river: jobs in PostgreSQL, drained by one client. ../README.md has the contract.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	batch       = 1000
	warmUp      = 20
	samplesTime = 180 * time.Second
)

// The seventh argument.
type workLoad struct {
	GapMs   int  `json:"gap_ms"`
	SleepMs int  `json:"sleep_ms"`
	CPUMs   int  `json:"cpu_ms"`
	IsMixed bool `json:"is_mixed"`
	Slots   int  `json:"slots"`
}

// What the handler of a job does: half of a mixed load sleep 1 ms, one in a hundred 500.
func (l *workLoad) sleepMs(number int) int {
	if !l.IsMixed {
		return l.SleepMs
	}
	switch at := number % 100; {
	case at < 50:
		return 1
	case at < 80:
		return 5
	case at < 95:
		return 20
	case at < 99:
		return 100
	}
	return 500
}

type noopArgs struct {
	Customer int    `json:"customer"`
	Text     string `json:"text"`
	SleepMs  int    `json:"sleep_ms,omitempty"`
	CPUMs    int    `json:"cpu_ms,omitempty"`
}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	load    workLoad
	runs    atomic.Int64
	started chan start // the first run; each run when single jobs are timed
	isTimed bool
}

type start struct {
	number int // of the job
	at     time.Time
}

func threadCPU() time.Duration {
	const rusageThread = 1
	var u syscall.Rusage
	check(syscall.Getrusage(rusageThread, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func useCPU(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := threadCPU() + d; threadCPU() < end; {
	}
}

func (w *noopWorker) Work(_ context.Context, job *river.Job[noopArgs]) error {
	if w.runs.Add(1) == 1 || w.isTimed {
		w.started <- start{job.Args.Customer, time.Now()}
	}
	if job.Args.SleepMs > 0 {
		time.Sleep(time.Duration(job.Args.SleepMs) * time.Millisecond)
	}
	if job.Args.CPUMs > 0 {
		useCPU(time.Duration(job.Args.CPUMs) * time.Millisecond)
	}
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

// What is not set has River's default. Its documentation gives a queue 100 workers.
func config(worker *noopWorker, isBest bool) *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	c := &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: workers,
	}
	if isBest {
		c.FetchCooldown = time.Millisecond // NOTIFY tells of single jobs: the poll only matters for a drain
	}
	if worker.load.Slots > 0 { // without the poll it uses half as much of the slots
		c.Queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: worker.load.Slots}
		c.FetchPollInterval = time.Millisecond
		debug.SetGCPercent(400)
	} else if isBest && !worker.isTimed {
		c.Queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: 2000}
		c.FetchPollInterval = time.Millisecond
		debug.SetGCPercent(400)
	}
	return c
}

func args(load *workLoad, number int) noopArgs {
	return noopArgs{number, "a row of about fifty bytes", load.sleepMs(number), load.CPUMs}
}

// By COPY, River's fastest way.
func insert(ctx context.Context, client *river.Client[pgx.Tx], load *workLoad, count int) {
	for first := 0; first < count; first += batch {
		list := make([]river.InsertManyParams, min(batch, count-first))
		for i := range list {
			list[i] = river.InsertManyParams{Args: args(load, first+i)}
		}
		_, err := client.InsertManyFast(ctx, list)
		check(err)
	}
}

func count(ctx context.Context, pool *pgxpool.Pool, where string) int {
	n := 0
	check(pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE "+where).Scan(&n))
	return n
}

// From the first run until all are completed in the table, which is not asked before the last run.
func drain(ctx context.Context, client *river.Client[pgx.Tx], pool *pgxpool.Pool, w *noopWorker, n int) map[string]any {
	check(client.Start(ctx))
	began := (<-w.started).at
	for w.runs.Load() < int64(n) || count(ctx, pool, "state <> 'completed'") > 0 {
		time.Sleep(2 * time.Millisecond)
	}
	seconds := time.Since(began).Seconds()
	check(client.Stop(ctx))
	return map[string]any{
		"seconds": seconds, "runs": w.runs.Load(), "done": count(ctx, pool, "state = 'completed' AND attempt = 1"),
	}
}

// One after the other, each while the system is idle.
func startIdle(ctx context.Context, client *river.Client[pgx.Tx], w *noopWorker, n int) []float64 {
	var ms []float64
	end := time.Now().Add(samplesTime)
	for i := 0; i < warmUp+n && time.Now().Before(end); i++ {
		_, err := client.Insert(ctx, args(&w.load, i), nil)
		check(err)
		inserted := time.Now()
		took := (<-w.started).at.Sub(inserted)
		if i >= warmUp {
			ms = append(ms, took.Seconds()*1000)
		}
		time.Sleep(20*time.Millisecond + time.Duration(rand.Int63n(int64(60*time.Millisecond))))
	}
	return ms
}

// At a constant rate, whether the one before has started or not.
func startAtRate(ctx context.Context, client *river.Client[pgx.Tx], w *noopWorker, n int) []float64 {
	inserted := make([]time.Time, n)
	began := make(chan []time.Time)
	go func() {
		at := make([]time.Time, n)
		for range n {
			s := <-w.started
			at[s.number] = s.at
		}
		began <- at
	}()
	first := time.Now()
	for i := range n {
		time.Sleep(time.Until(first.Add(time.Duration(i*w.load.GapMs) * time.Millisecond)))
		_, err := client.Insert(ctx, args(&w.load, i), nil)
		check(err)
		inserted[i] = time.Now()
	}
	ms := make([]float64, n)
	for i, at := range <-began {
		ms[i] = at.Sub(inserted[i]).Seconds() * 1000
	}
	return ms
}

func startJobs(ctx context.Context, client *river.Client[pgx.Tx], w *noopWorker, n int) map[string]any {
	check(client.Start(ctx))
	ms := []float64{}
	if w.load.GapMs == 0 {
		ms = startIdle(ctx, client, w, n)
	} else {
		_ = startIdle(ctx, client, w, 0)
		ms = startAtRate(ctx, client, w, n)
	}
	check(client.Stop(ctx))
	return map[string]any{"ms": ms}
}

func main() {
	ctx := context.Background()
	out := os.Stdout
	os.Stdout = os.Stderr // where River logs by default
	work, isBest, conninfo := os.Args[1], os.Args[2] != "default", os.Args[5]
	n, err := strconv.Atoi(os.Args[3])
	check(err)
	pool, err := pgxpool.New(ctx, conninfo)
	check(err)
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	check(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	check(err)
	worker := &noopWorker{started: make(chan start, 1), isTimed: work == "start"}
	check(json.Unmarshal([]byte(os.Args[7]), &worker.load))
	client, err := river.NewClient(riverpgxv5.New(pool), config(worker, isBest))
	check(err)
	if work == "drain" {
		insert(ctx, client, &worker.load, n)
	}
	for _, sql := range []string{"VACUUM ANALYZE river_job", "CHECKPOINT"} {
		_, err = pool.Exec(ctx, sql)
		check(err)
	}

	in := bufio.NewReader(os.Stdin)
	fmt.Fprintln(out, "ready")
	_, err = in.ReadString('\n')
	check(err)
	var result map[string]any
	switch work {
	case "drain":
		result = drain(ctx, client, pool, worker, n)
	case "start":
		result = startJobs(ctx, client, worker, n)
	default:
		began := time.Now()
		insert(ctx, client, &worker.load, n)
		result = map[string]any{"seconds": time.Since(began).Seconds(), "done": count(ctx, pool, "true")}
	}
	check(json.NewEncoder(out).Encode(result))
	_, _ = in.ReadString('\n')
}
