package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// head says what ran. Seconds is how long it was to run.
type head struct {
	Date, Version, Go string
	Cores, Rate       int
	Seconds           float64
}

// sample is the state of a server, and what its clients have seen since the sample before. Seconds
// is since the beginning. A server that did not answer has no memory.
type sample struct {
	Server                  string
	Seconds                 float64
	RSS, Heap               float64 // bytes; the collector runs when the heap reaches Heap
	Descriptors, Goroutines float64
	Answers, Granted        int
	P50, P99, P999          float64 // of the answers, in ms
	Hot, Allowed            float64 // a second: grants of the hot clients, and what their limits allow
	Expected, Unexpected    int     // errors
	Load                    float64 // of the machine, in a minute
}

// event is a disturbance that was made. Recovered is how many seconds after its end the last error
// came, if it is above 0.
type event struct {
	Name                     string
	Seconds, Took, Recovered float64
	Errors                   map[string]int // by server and kind
}

// fault is an error that no event explains.
type fault struct {
	Seconds      float64
	Server, Text string
}

// audited is the audit of a server.
type audited struct {
	Server string
	audit
}

// end is how long the run took, and the processor time of all processes, in seconds.
type end struct{ Seconds, Processor float64 }

// records are what a run has recorded. It is safe for concurrent use while the run goes on.
type records struct {
	mu sync.Mutex
	head
	samples []sample
	events  []event
	faults  []fault
	audits  []audited
	end     end // zero if the run was interrupted
}

func newRecords(c settings) (*records, error) {
	program := filepath.Join(c.programs, "tb")
	version, err := exec.Command(program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", program, err)
	}
	return &records{head: head{
		Date: time.Now().UTC().Format(time.DateTime), Version: strings.TrimSpace(string(version)),
		Go: runtime.Version(), Cores: runtime.NumCPU(), Rate: c.rate, Seconds: c.duration.Seconds(),
	}}, nil
}

// add calls a function that adds to the records.
func (r *records) add(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// finish records the end of a run whose processes have ended.
func (r *records) finish(now time.Duration) error {
	e := end{Seconds: now.Seconds()}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return err
		}
		e.Processor += time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	r.end = e
	return nil
}

// of returns the samples of a server.
func (r *records) of(server string) (own []sample) {
	for _, s := range r.samples {
		if s.Server == server {
			own = append(own, s)
		}
	}
	return own
}
