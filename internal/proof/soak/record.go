package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// recordsFile has a record on each line.
const recordsFile = "records.jsonl"

// record is one of these.
type record struct {
	Head   *head    `json:",omitempty"`
	Sample *sample  `json:",omitempty"`
	Event  *event   `json:",omitempty"`
	Fault  *fault   `json:",omitempty"`
	Audit  *audited `json:",omitempty"`
	End    *end     `json:",omitempty"`
}

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

// recorder writes records. It is safe for concurrent use.
type recorder struct {
	mu   sync.Mutex
	file *os.File
}

func newRecorder(c settings) (*recorder, error) {
	program := filepath.Join(c.programs, "tb")
	version, err := exec.Command(program, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", program, err)
	}
	file, err := os.Create(filepath.Join(c.dir, recordsFile))
	if err != nil {
		return nil, err
	}
	r := &recorder{file: file}
	return r, r.write(record{Head: &head{
		Date: time.Now().UTC().Format(time.DateTime), Version: strings.TrimSpace(string(version)),
		Go: runtime.Version(), Cores: runtime.NumCPU(), Rate: c.rate, Seconds: c.duration.Seconds(),
	}})
}

func (r *recorder) write(line record) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.file.Write(append(text, '\n'))
	return err
}

func (r *recorder) close() error { return r.file.Close() }

// writeEnd records the end of a run whose processes have ended.
func (s *soak) writeEnd() error {
	e := end{Seconds: s.now().Seconds()}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return err
		}
		e.Processor += time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	return s.records.write(record{End: &e})
}

// records are what a run has written.
type records struct {
	head
	samples []sample
	events  []event
	faults  []fault
	audits  []audited
	end     end // zero if the run was interrupted
}

// readRecords reads the file of a run.
func readRecords(dir string) (*records, error) {
	name := filepath.Join(dir, recordsFile)
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	r := new(records)
	scan := bufio.NewScanner(file)
	for n := 1; scan.Scan(); n++ {
		var line record
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		switch {
		case line.Head != nil:
			r.head = *line.Head
		case line.Sample != nil:
			r.samples = append(r.samples, *line.Sample)
		case line.Event != nil:
			r.events = append(r.events, *line.Event)
		case line.Fault != nil:
			r.faults = append(r.faults, *line.Fault)
		case line.Audit != nil:
			r.audits = append(r.audits, *line.Audit)
		case line.End != nil:
			r.end = *line.End
		}
	}
	return r, scan.Err()
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
