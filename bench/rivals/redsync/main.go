// SPDX-License-Identifier: Apache-2.0

// What `./dev bench locks` compares with: redsync, as its users have it, and over go-redis'
// AutoPipeline. One line of JSON: locks taken and given back per second. With -contest it is one
// client of a contest, see contest.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// What redsync calls goes through the auto-pipeliner, the rest to the client that it belongs to.
type piped struct {
	redis.UniversalClient
	auto *redis.AutoPipeliner
}

func (p piped) SetNX(ctx context.Context, key string, value any, ttl time.Duration) *redis.BoolCmd {
	return p.auto.SetNX(ctx, key, value, ttl)
}

func (p piped) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return p.auto.Eval(ctx, script, keys, args...)
}

func (p piped) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return p.auto.EvalSha(ctx, sha, keys, args...)
}

func connect(paths []string, isPiped bool) []redsyncredis.Pool {
	var pools []redsyncredis.Pool
	for _, path := range paths {
		client := redis.NewClient(&redis.Options{Network: "unix", Addr: path})
		if !isPiped {
			pools = append(pools, goredis.NewPool(client))
			continue
		}
		auto, err := client.AutoPipeline()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		pools = append(pools, goredis.NewPool(piped{client, auto}))
	}
	return pools
}

func main() {
	isPiped := flag.Bool("auto", false, "over AutoPipeline")
	inFlight := flag.Int("in-flight", 50, "goroutines")
	seconds := flag.Float64("seconds", 3, "how long")
	path := flag.String("contest", "", "be a client of a contest: what its clients share")
	key := flag.String("key", "", "of the contest")
	index := flag.Int("index", 0, "of this client")
	holdMs := flag.Int64("hold", 1, "how long it is inside, in ms")
	flag.Parse()
	rs := redsync.New(connect(flag.Args(), *isPiped)...)
	if *path != "" {
		contest(rs, *path, *key, *index, *holdMs)
		return
	}
	var pairs, failed atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	end := began.Add(time.Duration(*seconds * float64(time.Second)))
	for i := 0; i < *inFlight; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			mutex := rs.NewMutex(fmt.Sprintf("redsync-bench:%d", i))
			for time.Now().Before(end) {
				if err := mutex.Lock(); err != nil {
					failed.Add(1)
					continue
				}
				pairs.Add(1)
				if ok, err := mutex.Unlock(); !ok || err != nil {
					failed.Add(1)
				}
			}
		}()
	}
	group.Wait()
	fmt.Printf("{\"pairs_per_s\": %.1f, \"failed\": %d}\n",
		float64(pairs.Load())/time.Since(began).Seconds(), failed.Load())
}
