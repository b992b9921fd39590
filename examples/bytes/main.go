// Bytes copies its input to its output, a number of bytes a second: a Reader and a Writer over a
// bucket whose tokens are bytes.
//
//	go run ./examples/bytes -rate 1000000 <FILE >COPY
package main

import (
	"context"
	"flag"
	"io"
	"log"
	"os"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

func main() {
	rate := flag.Int64("rate", 1_000_000, "bytes a second")
	burst := flag.Int("burst", 16_384, "bytes at once")
	flag.Parse()

	limit := ratelimit.Limit{Capacity: *burst, Tokens: *rate, Per: time.Second}
	bucket, err := ratelimit.NewBucket(limit)
	if err != nil {
		log.Fatal(err)
	}
	_, err = io.Copy(os.Stdout, &reader{context.Background(), bucket, os.Stdin})
	if err != nil {
		log.Fatal(err) // a copy that is not whole has another exit status
	}
}

// reader reads at the rate of its bucket. It pays before it reads, at most one burst, and gets back
// what the read did not bring.
type reader struct {
	ctx    context.Context
	bucket *ratelimit.Bucket
	from   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	p = p[:min(len(p), r.bucket.Limit().Capacity)]
	if len(p) == 0 {
		return r.from.Read(p)
	}
	if err := r.bucket.Wait(r.ctx, float64(len(p))); err != nil {
		return 0, err
	}
	n, err := r.from.Read(p)
	r.bucket.AddAt(time.Now(), float64(len(p)-n))
	return n, err
}

// writer writes at the rate of its bucket, in pieces of at most one burst.
type writer struct {
	ctx    context.Context
	bucket *ratelimit.Bucket
	to     io.Writer
}

func (w *writer) Write(p []byte) (written int, err error) {
	for len(p) > 0 && err == nil {
		piece := p[:min(len(p), w.bucket.Limit().Capacity)]
		if err = w.bucket.Wait(w.ctx, float64(len(piece))); err != nil {
			break
		}
		var n int
		if n, err = w.to.Write(piece); n < len(piece) && err == nil {
			err = io.ErrShortWrite
		}
		written, p = written+n, p[n:]
	}
	return written, err
}
