// SPDX-License-Identifier: Apache-2.0

// A contender of the lock's contest (tests/e2e/contest.h) that locks with redsync:
// redsync-contender DIRECTORY NAME SECONDS TTL_MS SOCKET…
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const clockBoottime = 7

func bootUs() int64 {
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Sec*1000000 + ts.Nsec/1000
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) int64 {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	check(err)
	number, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return number
}

// What only one may do at a time.
func section(dir string, log *os.File, deadlineUs int64) {
	value := read(dir+"/counter") + 1
	fmt.Fprintf(log, "enter %d %d %d %d\n", os.Getpid(), bootUs(), deadlineUs, value)
	inside, err := os.OpenFile(dir+"/inside", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0666)
	if errors.Is(err, fs.ErrExist) {
		if bootUs() < read(dir+"/inside") {
			fmt.Fprintf(log, "violation %d %d 0 0\n", os.Getpid(), bootUs())
		}
		inside, err = os.Create(dir + "/inside")
	}
	check(err)
	fmt.Fprintf(inside, "%d", deadlineUs)
	inside.Close()
	counter, err := os.OpenFile(dir+"/counter", os.O_CREATE|os.O_WRONLY, 0666)
	check(err)
	counter.WriteString(strconv.FormatInt(value, 10)) // never shorter: it is whole at any time
	counter.Close()
	os.Remove(dir + "/inside")
	fmt.Fprintf(log, "leave %d %d %d %d\n", os.Getpid(), bootUs(), deadlineUs, value)
}

func main() {
	dir := os.Args[1]
	seconds, _ := strconv.Atoi(os.Args[3])
	ttlMs, _ := strconv.ParseInt(os.Args[4], 10, 64)
	log, err := os.OpenFile(dir+"/"+os.Args[2]+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0666)
	check(err)
	var pools []redsyncredis.Pool
	for _, path := range os.Args[5:] {
		pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Network: "unix", Addr: path})))
	}
	locks := redsync.New(pools...)
	for end := bootUs() + int64(seconds)*1000000; bootUs() < end; {
		mutex := locks.NewMutex("contest", redsync.WithExpiry(time.Duration(ttlMs)*time.Millisecond),
			redsync.WithTries(1), redsync.WithTimeoutFactor(0.1))
		t0 := bootUs()
		if mutex.Lock() == nil {
			section(dir, log, t0+ttlMs*990-2000)
			mutex.Unlock()
		}
		time.Sleep(time.Duration(rand.Intn(5000)) * time.Microsecond)
	}
}
