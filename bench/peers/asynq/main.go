// SPDX-License-Identifier: Apache-2.0

// Peer asynq: jobs in Redis. ../README.md has the contract.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	inserters   = 16
	warmUp      = 20
	samplesTime = 30 * time.Second
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "asynq:", err)
		os.Exit(1)
	}
}

func task() *asynq.Task {
	return asynq.NewTask("noop", []byte(`{"customer": 1, "text": "a row of about fifty bytes"}`))
}

func enqueue(opt asynq.RedisClientOpt, n int) {
	var left atomic.Int64
	var group sync.WaitGroup
	left.Store(int64(n))
	client := asynq.NewClient(opt)
	for range inserters {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				_, err := client.Enqueue(task())
				check(err)
			}
		})
	}
	group.Wait()
	check(client.Close())
}

// The part of a worker process: a server until stdin ends. Then it says how many jobs it ran, and when the first began.
func work(opt asynq.RedisClientOpt, isBest bool) {
	var runs, first atomic.Int64
	config := asynq.Config{} // as many at a time as there are CPUs
	if isBest {
		config.Concurrency = 50
	}
	server := asynq.NewServer(opt, config)
	check(server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		if runs.Add(1) == 1 {
			first.Store(time.Now().UnixMicro())
		}
		return nil
	})))
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	server.Shutdown()
	fmt.Println(runs.Load(), first.Load())
}

type worker struct {
	command *exec.Cmd
	in      interface{ Close() error }
	out     *bufio.Reader
}

func startWorkers(count int) []worker {
	workers := make([]worker, count)
	for i := range workers {
		command := exec.Command(os.Args[0], append([]string{"work"}, os.Args[2:]...)...)
		command.Stderr = os.Stderr
		in, err := command.StdinPipe()
		check(err)
		out, err := command.StdoutPipe()
		check(err)
		check(command.Start())
		workers[i] = worker{command, in, bufio.NewReader(out)}
	}
	return workers
}

// Jobs that wait or run, and those that the store counts as done.
func look(ctx context.Context, db *redis.Client) (int64, int64) {
	const prefix = "asynq:{default}:"
	pipe := db.Pipeline()
	pending, active := pipe.LLen(ctx, prefix+"pending"), pipe.LLen(ctx, prefix+"active")
	done := pipe.Get(ctx, prefix+"processed")
	_, err := pipe.Exec(ctx)
	if err != nil && err != redis.Nil {
		check(err)
	}
	n, _ := done.Int64()
	return pending.Val() + active.Val(), n
}

func drain(path string, isBest bool) map[string]any {
	ctx := context.Background()
	db := redis.NewClient(&redis.Options{Network: "unix", Addr: path})
	count := 1
	if isBest {
		count = 2
	}
	workers := startWorkers(count)
	for left, _ := look(ctx, db); left > 0; left, _ = look(ctx, db) {
		time.Sleep(5 * time.Millisecond)
	}
	end := time.Now().UnixMicro()
	var runs, first int64
	for _, w := range workers {
		var some, at int64
		check(w.in.Close())
		_, err := fmt.Fscan(w.out, &some, &at)
		check(err)
		check(w.command.Wait())
		runs += some
		if some > 0 && (first == 0 || at < first) {
			first = at
		}
	}
	_, done := look(ctx, db)
	return map[string]any{"seconds": float64(end-first) / 1e6, "runs": runs, "done": done}
}

func start(opt asynq.RedisClientOpt, isBest bool, n int) map[string]any {
	started := make(chan time.Time, 1)
	config := asynq.Config{}
	if isBest {
		config = asynq.Config{Concurrency: 50, TaskCheckInterval: time.Millisecond}
	}
	server := asynq.NewServer(opt, config)
	check(server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		started <- time.Now()
		return nil
	})))
	client := asynq.NewClient(opt)
	var ms []float64
	end := time.Now().Add(samplesTime)
	for i := 0; i < warmUp+n && time.Now().Before(end); i++ {
		_, err := client.Enqueue(task())
		check(err)
		enqueued := time.Now()
		took := (<-started).Sub(enqueued)
		if i >= warmUp {
			ms = append(ms, took.Seconds()*1000)
		}
		time.Sleep(20*time.Millisecond + time.Duration(rand.Int63n(int64(60*time.Millisecond))))
	}
	server.Shutdown()
	return map[string]any{"ms": ms}
}

func main() {
	isBest := os.Args[2] != "default"
	opt := asynq.RedisClientOpt{Network: "unix", Addr: os.Args[6]}
	if os.Args[1] == "work" {
		work(opt, isBest)
		return
	}
	n, err := strconv.Atoi(os.Args[3])
	check(err)
	if os.Args[1] == "drain" {
		enqueue(opt, n)
	}
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	_, err = in.ReadString('\n')
	check(err)
	var result map[string]any
	if os.Args[1] == "drain" {
		result = drain(os.Args[6], isBest)
	} else {
		result = start(opt, isBest, n)
	}
	check(json.NewEncoder(os.Stdout).Encode(result))
	_, _ = in.ReadString('\n')
}
