//go:build !unix && !windows

package textfile

// nonblock is 0, because the system has no named pipes.
const nonblock = 0
