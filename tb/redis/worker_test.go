package redis

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
)

// taskVariable is the environment variable that makes a process of this test binary a worker.
const taskVariable = "TB_REDIS_TASK"

// task is what a worker does. The worker writes an event without units when it is ready, and reads
// a number. Each of its goroutines makes so many calls, or fewer if one is refused, and the worker
// is ready again. If the number is 0, the goroutines make calls until the input ends, and no
// refusal stops them.
type task struct {
	Addr       string
	Limit      tb.Limit
	Alone      bool          // WithoutBatching
	Lease      time.Duration // 0 for none
	Goroutines int
	Costs      []float64     // each call has one of them
	Worker     int           // the number of the process
	Timeout    time.Duration // 0 for patient
	Bug        string        // of processBugs, or empty
}

// sharedKey is the key of all workers.
const sharedKey = "shared"

// event is a call that was decided. All times are in µs since 1970.
type event struct {
	Before, After int64 // by the clock of the machine, around the call, rounded outwards
	Now           int64 // by the clock of the server, if the server decided
	Units         int64
	Granted       bool
}

// write writes the event at once, because the process may be killed. A grant is written after its
// call, because before the call it could be a refusal. If the process is killed in between, the
// grant has let nothing through.
func (e event) write() error {
	b, err := binary.Append(nil, binary.BigEndian, e)
	if err == nil {
		_, err = os.Stdout.Write(b)
	}
	return err
}

// worker makes the calls of a process.
type worker struct {
	task
	l      *Limiter
	decide func(ctx context.Context, key string, units uint64) (result, error)
	ended  atomic.Bool // the input has ended
}

// work does the task of this process.
func work(text string) error {
	w := new(worker)
	if err := json.Unmarshal([]byte(text), &w.task); err != nil {
		return err
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{w.Addr}, DisableCache: true,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	if w.l, err = New(client, w.Limit, w.options()...); err != nil {
		return err
	}
	defer w.l.Close()
	w.decide = w.l.decideUnits
	if w.Bug != "" {
		processBugs[w.Bug].plant(w)
	}
	if _, err := w.l.Allow(context.Background(), "another key"); err != nil {
		return err
	}
	numbers := make(chan int)
	go func() {
		var n int
		for _, err := fmt.Scanln(&n); err == nil; _, err = fmt.Scanln(&n) {
			numbers <- n
		}
		w.ended.Store(true)
		close(numbers)
	}()
	for {
		if err := (event{}).write(); err != nil {
			return err
		}
		n, ok := <-numbers
		if !ok {
			return nil
		}
		if err := w.calls(n); err != nil {
			return err
		}
	}
}

func (w *worker) options() []Option {
	opts := []Option{WithTimeout(cmp.Or(w.Timeout, patient))}
	if w.Alone {
		opts = append(opts, WithoutBatching())
	}
	if w.Lease > 0 {
		opts = append(opts, WithLease(w.Lease))
	}
	return opts
}

// calls makes the calls of all goroutines: see task.
func (w *worker) calls(n int) error {
	errs := make(chan error, w.Goroutines)
	var wg sync.WaitGroup
	for i := range w.Goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w.Worker), uint64(i)))
			next := int64(0) // a refusal from then on is written: there may be millions
			for i := 0; (n == 0 || i < n) && !w.ended.Load(); i++ {
				e, err := w.call(w.Costs[rng.IntN(len(w.Costs))])
				if err == nil && (e.Granted || e.Before >= next) {
					err = e.write()
				}
				if !e.Granted && e.Before >= next {
					next = e.After + 5000
				}
				if err != nil {
					errs <- err
					return
				}
				if n > 0 && !e.Granted {
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func (w *worker) call(cost float64) (event, error) {
	units := w.l.layout.Load().unitsOfCost(cost)
	before := time.Now().UnixMicro()
	r, err := w.decide(context.Background(), sharedKey, units)
	e := event{before, time.Now().UnixMicro() + 1, 0, int64(units), r.Allowed}
	switch {
	case err != nil:
		return e, err
	case r.By == ByPolicy && w.Timeout == 0:
		return e, r.Failure
	case r.By == ByServer:
		e.Now = int64(r.before.now)
	}
	return e, nil
}
