package accesslog

import (
	"cmp"
	"context"
	"io"
)

// readAhead reads a log in the background, one block ahead. This costs little: a switch of
// goroutines for each block.
type readAhead struct {
	ctx    context.Context // ends a Read
	blocks chan []byte     // the next bytes
	free   chan []byte     // the block to fill
	err    error           // of the log, when blocks is closed

	block, rest []byte // of which rest was not read yet
}

func newReadAhead(ctx context.Context, log io.Reader) *readAhead {
	r := &readAhead{ctx: ctx, blocks: make(chan []byte), free: make(chan []byte, 1)}
	r.free <- make([]byte, bufferSize)
	go r.fill(log)
	return r
}

// fill reads the log to its end, or until ctx is done.
func (r *readAhead) fill(log io.Reader) {
	defer close(r.blocks)
	for r.err == nil {
		var block []byte
		select {
		case block = <-r.free:
		case <-r.ctx.Done():
			return
		}
		var n int
		n, r.err = log.Read(block[:bufferSize])
		select {
		case r.blocks <- block[:n]:
		case <-r.ctx.Done():
			return
		}
	}
}

// Read reads what is there, and waits if that is nothing.
func (r *readAhead) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.block != nil {
			r.free <- r.block
			r.block = nil
		}
		select {
		case block, more := <-r.blocks:
			if !more {
				return 0, cmp.Or(context.Cause(r.ctx), r.err)
			}
			r.block, r.rest = block, block
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
