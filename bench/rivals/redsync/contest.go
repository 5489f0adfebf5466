// SPDX-License-Identifier: Apache-2.0

// A client of a contest (bench/locks_contest.h) that locks with redsync at its defaults. The file
// that all clients share is an array of 64-bit words.
package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-redsync/redsync/v4"
)

const (
	wordPhase = iota
	wordReady
	wordEntries
	wordLast
	wordChanges
	wordOverlaps
	wordFailures
	wordSeen
	wordInside
	wordClients = 16
)

const (
	clientWins = iota
	clientSince
	clientLongest
	clientWords = 8
)

const (
	phaseReady = iota
	phaseGo
	phaseStop
)

const clientsMax = 64
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

func share(path string) *[wordClients + clientsMax*clientWords]int64 {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	check(err)
	size := 8 * (wordClients + clientsMax*clientWords)
	bytes, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(err)
	return (*[wordClients + clientsMax*clientWords]int64)(unsafe.Pointer(&bytes[0]))
}

// The same sleep as the other clients': Go's own timers are coarser.
func hold(ms int64) {
	t := syscall.NsecToTimespec(ms * 1000000)
	for syscall.Nanosleep(&t, &t) != nil {
	}
}

func contest(rs *redsync.Redsync, path string, key string, index int, holdMs int64) {
	words := share(path)
	me := words[wordClients+index*clientWords:][:clientWords]
	id := int64(index + 1)
	first := rs.NewMutex(fmt.Sprintf("%s:first:%d", key, index)) // connects
	check(first.Lock())
	first.Unlock()
	mutex := rs.NewMutex(key)
	atomic.AddInt64(&words[wordReady], 1)
	for atomic.LoadInt64(&words[wordPhase]) == phaseReady {
		time.Sleep(time.Millisecond)
	}
	for atomic.LoadInt64(&words[wordPhase]) != phaseStop {
		if atomic.LoadInt64(&me[clientSince]) == 0 {
			atomic.StoreInt64(&me[clientSince], bootUs())
		}
		if mutex.Lock() != nil {
			atomic.AddInt64(&words[wordFailures], 1)
			continue
		}
		inside(words, me, id, holdMs)
		mutex.Unlock()
	}
}

// What only one may do at a time.
func inside(words *[wordClients + clientsMax*clientWords]int64, me []int64, id int64, holdMs int64) {
	if !atomic.CompareAndSwapInt64(&words[wordInside], 0, id) {
		atomic.AddInt64(&words[wordOverlaps], 1)
	}
	atomic.AddInt64(&words[wordEntries], 1)
	now, since := bootUs(), atomic.SwapInt64(&me[clientSince], 0)
	if now-since > atomic.LoadInt64(&me[clientLongest]) {
		atomic.StoreInt64(&me[clientLongest], now-since)
	}
	atomic.CompareAndSwapInt64(&words[wordSeen], 0, now)
	if atomic.SwapInt64(&words[wordLast], id) != id {
		atomic.AddInt64(&words[wordChanges], 1)
	}
	atomic.AddInt64(&me[clientWins], 1)
	hold(holdMs)
	atomic.CompareAndSwapInt64(&words[wordInside], id, 0)
}
