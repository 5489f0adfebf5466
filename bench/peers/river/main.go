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
	"runtime/debug"
	"strconv"
	"sync/atomic"
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
	samplesTime = 30 * time.Second
)

type noopArgs struct {
	Customer int    `json:"customer"`
	Text     string `json:"text"`
}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	runs    atomic.Int64
	started chan time.Time // of the first run; of each run when single jobs are timed
	isTimed bool
}

func (w *noopWorker) Work(context.Context, *river.Job[noopArgs]) error {
	if w.runs.Add(1) == 1 || w.isTimed {
		w.started <- time.Now()
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
	if isBest && !worker.isTimed {
		c.Queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: 2000}
		c.FetchPollInterval = time.Millisecond
		debug.SetGCPercent(400)
	}
	return c
}

func jobs(count int) []river.InsertManyParams {
	list := make([]river.InsertManyParams, count)
	for i := range list {
		list[i] = river.InsertManyParams{Args: noopArgs{i, "a row of about fifty bytes"}}
	}
	return list
}

// By COPY, River's fastest way.
func insert(ctx context.Context, client *river.Client[pgx.Tx], count int) {
	for left := count; left > 0; left -= batch {
		_, err := client.InsertManyFast(ctx, jobs(min(batch, left)))
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
	began := <-w.started
	for w.runs.Load() < int64(n) || count(ctx, pool, "state <> 'completed'") > 0 {
		time.Sleep(2 * time.Millisecond)
	}
	seconds := time.Since(began).Seconds()
	check(client.Stop(ctx))
	return map[string]any{
		"seconds": seconds, "runs": w.runs.Load(), "done": count(ctx, pool, "state = 'completed' AND attempt = 1"),
	}
}

func start(ctx context.Context, client *river.Client[pgx.Tx], w *noopWorker, n int) map[string]any {
	check(client.Start(ctx))
	var ms []float64
	end := time.Now().Add(samplesTime)
	for i := 0; i < warmUp+n && time.Now().Before(end); i++ {
		_, err := client.Insert(ctx, noopArgs{i, "a row of about fifty bytes"}, nil)
		check(err)
		inserted := time.Now()
		took := (<-w.started).Sub(inserted)
		if i >= warmUp {
			ms = append(ms, took.Seconds()*1000)
		}
		time.Sleep(20*time.Millisecond + time.Duration(rand.Int63n(int64(60*time.Millisecond))))
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
	worker := &noopWorker{started: make(chan time.Time, 1), isTimed: work == "start"}
	client, err := river.NewClient(riverpgxv5.New(pool), config(worker, isBest))
	check(err)
	if work == "drain" {
		insert(ctx, client, n)
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
		result = start(ctx, client, worker, n)
	default:
		began := time.Now()
		insert(ctx, client, n)
		result = map[string]any{"seconds": time.Since(began).Seconds(), "done": count(ctx, pool, "true")}
	}
	check(json.NewEncoder(out).Encode(result))
	_, _ = in.ReadString('\n')
}
