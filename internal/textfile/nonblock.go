//go:build unix || windows

package textfile

import "syscall"

// nonblock opens a named pipe that has no writer yet, which would block otherwise.
const nonblock = syscall.O_NONBLOCK
