// SPDX-License-Identifier: Apache-2.0

// A second opinion on K1 of claimd-chaos-check, which shares nothing with it: Porcupine searches for an order of all
// requests of a job, each between its beginning and its answer, that a fenced row allows. Without such an order the history
// is impossible. Partition: the job. Reads RUN/history/*.jsonl and RUN/acked.jsonl (docs/reliability.md).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const jobsMax = 100000
const perJob = 20 * time.Second

// One line of a history or of acked.jsonl.
type event struct {
	T      int64  `json:"t"`
	P      string `json:"p"`
	Op     string `json:"op"`
	Ph     string `json:"ph"`
	Job    int64  `json:"job"`
	F      int64  `json:"f"`
	Final  int    `json:"final"`
	Again  int    `json:"again"`
	Out    int    `json:"out"`
	Worker string `json:"worker"`
}

// A row: available (Q), running (R), or gone for good (D). The fence is the newest one; it is unknown where a claim got no
// answer and may have happened.
type row struct {
	state   byte
	fence   int64
	unknown bool
}

type request struct {
	op    string
	fence int64
	final bool
}

type answer struct{ ph string }

func (x row) isUnder(f int64) bool {
	if x.state != 'R' {
		return false
	}
	if x.unknown {
		return f > x.fence || f == 0
	}
	return f == x.fence || f == 0
}

// What the row may be after a request that was done.
func done(x row, in request) []row {
	end := row{state: 'Q', fence: max(x.fence, in.fence)}
	switch in.op {
	case "claim":
		if x.state == 'Q' && (in.fence > x.fence || in.fence == 0) {
			return []row{{state: 'R', fence: max(x.fence, in.fence), unknown: in.fence == 0}}
		}
	case "complete", "fail", "hand-back", "reap":
		if in.op == "complete" || in.final {
			end.state = 'D'
		}
		if x.isUnder(in.fence) {
			return []row{end}
		}
	case "cancel", "delete":
		if x.state == 'Q' {
			return []row{{state: 'D', fence: x.fence}}
		}
	case "retry":
		if x.state == 'D' {
			return []row{{state: 'Q', fence: x.fence, unknown: x.unknown}}
		}
	}
	return nil
}

func step(state, input, output interface{}) []interface{} {
	x, in, out := state.(row), input.(request), output.(answer)
	var after []row
	switch out.ph {
	case "ok":
		after = done(x, in)
		if in.op == "cancel" && x.state == 'D' {
			after = append(after, x) // a second time is no error
		}
	case "again":
		if x.state != 'R' && x.fence == in.fence {
			after = []row{x}
		}
		after = append(after, done(x, in)...)
	case "stale":
		if !x.isUnder(in.fence) || x.unknown {
			after = []row{x}
		}
		if in.op == "hand-back" { // its answer was lost, and it was done
			after = append(after, done(x, in)...)
		}
	case "fail":
		after = []row{x}
	default: // nobody knows
		after = append(done(x, in), x)
		if in.op == "complete" || in.op == "reap" { // a rescue may have ended the job as well
			other := in
			other.final = !in.final
			after = append(after, done(x, other)...)
		}
	}
	next := make([]interface{}, len(after))
	for i, a := range after {
		next[i] = a
	}
	return next
}

var model = (&porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{row{state: 'Q'}} },
	Step: step,
	DescribeOperation: func(input, output interface{}) string {
		return fmt.Sprintf("%+v → %+v", input, output)
	},
}).ToModel()

func readLines(path string, each func(event)) error {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 1<<20), 1<<24)
	for scanner.Scan() {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) == nil { // the last line may be cut
			each(e)
		}
	}
	return scanner.Err()
}

var isAsked = map[string]bool{"claim": true, "complete": true, "fail": true, "hand-back": true, "reap": true}
var isEnd = map[string]bool{"complete": true, "fail": true, "hand-back": true}

// Pairs what was asked for with what was answered.
type history struct {
	jobs    map[int64][]porcupine.Operation
	workers map[string][]string // of a process
	claims  []event
	whole   []event // reaps of all that a worker had
}

func (h *history) open(e event) *porcupine.Operation {
	list := h.jobs[e.Job]
	for i := len(list) - 1; i >= 0; i-- {
		op := &list[i]
		in := op.Input.(request)
		sameOp := in.op == e.Op || (isEnd[in.op] && isEnd[e.Op])
		sameFence := in.fence == e.F || in.fence == 0 || e.F == 0
		if op.Return == math.MaxInt64 && op.Metadata == e.P && sameOp && sameFence {
			return op
		}
	}
	return nil
}

func (h *history) take(e event) {
	if e.Op == "start" && e.Ph == "ok" {
		h.workers[e.P] = append(h.workers[e.P], e.Worker)
	}
	if e.Op == "reap" && e.Job == 0 && e.Ph == "inv" {
		h.whole = append(h.whole, e)
	}
	if !isAsked[e.Op] || e.Job == 0 {
		return
	}
	if e.Op == "claim" && e.Ph == "ok" {
		h.claims = append(h.claims, e)
	}
	if e.Ph == "inv" {
		h.add(e, math.MaxInt64, "info")
		return
	}
	op := h.open(e)
	if op == nil {
		h.add(e, e.T, e.Ph)
		return
	}
	in := op.Input.(request)
	in.op = e.Op
	in.fence = max(in.fence, e.F)
	in.final = e.Final == 1 || (e.Op == "reap" && e.Out > 0)
	op.Input, op.Output, op.Return = in, answer{e.Ph}, e.T
	if e.Ph == "info" {
		op.Return = math.MaxInt64 - 1
	} else if e.Again == 1 { // found done: at some time, by an earlier try or by a rescue that did the same
		op.Output = answer{"again"}
	}
}

func (h *history) add(e event, end int64, ph string) {
	h.jobs[e.Job] = append(h.jobs[e.Job], porcupine.Operation{
		Input: request{op: e.Op, fence: e.F, final: e.Final == 1}, Call: e.T, Output: answer{ph}, Return: end, Metadata: e.P})
}

// A successor in the same state directory hands back what its predecessor had, without naming the jobs.
func (h *history) spreadWhole() {
	for _, reap := range h.whole {
		for _, claim := range h.claims {
			for _, worker := range h.workers[claim.P] {
				if worker == reap.Worker && claim.T <= reap.T {
					h.add(event{T: reap.T, P: reap.P, Op: "reap", Job: claim.Job, F: claim.F}, math.MaxInt64-1, "info")
				}
			}
		}
	}
}

func read(run string) (*history, error) {
	h := &history{jobs: map[int64][]porcupine.Operation{}, workers: map[string][]string{}}
	files, _ := filepath.Glob(filepath.Join(run, "history", "*.jsonl"))
	for _, file := range files {
		if err := readLines(file, h.take); err != nil {
			return nil, err
		}
	}
	h.spreadWhole()
	return h, readLines(filepath.Join(run, "acked.jsonl"), func(e event) {
		// The answer's time alone is known: it was asked for at most a minute before.
		if (e.Op == "cancel" || e.Op == "delete" || e.Op == "retry") && e.Job != 0 && e.Ph != "fail" {
			h.jobs[e.Job] = append(h.jobs[e.Job], porcupine.Operation{Input: request{op: e.Op},
				Call: e.T - int64(time.Minute), Output: answer{e.Ph}, Return: e.T, Metadata: "acked"})
		}
	})
}

func judge(h *history) int {
	ids := make([]int64, 0, len(h.jobs))
	operations := 0
	for id, list := range h.jobs {
		ids = append(ids, id)
		operations += len(list)
	}
	sort.Slice(ids, func(a, b int) bool { return ids[a] < ids[b] })
	bad, unsure := 0, 0
	for _, id := range ids {
		list := h.jobs[id]
		for i := range list {
			list[i].ClientId = i
		}
		switch porcupine.CheckOperationsTimeout(model, list, perJob) {
		case porcupine.Illegal:
			bad++
			fmt.Printf("VIOLATION porcupine S3 job %d: no order of these is possible\n", id)
			sort.Slice(list, func(a, b int) bool { return list[a].Call < list[b].Call })
			for _, op := range list {
				fmt.Printf("  %d %d %v %s\n", op.Call, op.Return, op.Metadata, model.DescribeOperation(op.Input, op.Output))
			}
		case porcupine.Unknown:
			unsure++
		}
	}
	if bad > 0 {
		fmt.Printf("porcupine: FAILED: %d of %d jobs\n", bad, len(ids))
		return 1
	}
	fmt.Printf("porcupine: OK: %d jobs, %d operations, %d too hard to tell\n", len(ids), operations, unsure)
	return 0
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "Usage: claimd-chaos-porcupine FOLDER")
		os.Exit(2)
	}
	h, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if len(h.jobs) > jobsMax {
		fmt.Printf("porcupine: SKIPPED: %d jobs, at most %d\n", len(h.jobs), jobsMax)
		return
	}
	os.Exit(judge(h))
}
