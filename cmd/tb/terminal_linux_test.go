package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

// In a terminal, each report on a log that is followed is over the one before. Names cannot control
// the terminal nevertheless.
func TestFollowInATerminal(t *testing.T) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer screen.Close()
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Replace(validLine, "- -", "- \u009b2J", 1)
	status := program.Run(t.Context(),
		[]string{"replay", "--follow", "--rate=1/d", "--burst=1", "--key=user", "-"}, cli.IO{
			Stdin: strings.NewReader(strings.Repeat(line, 3)), Stdout: terminal, Stderr: io.Discard,
		})
	terminal.Close()
	shown, _ := io.ReadAll(screen) // ends with an error when the terminal is closed
	text, isOver := strings.CutPrefix(string(shown), "\x1b[H\x1b[2J\x1b[3J")
	if status != 0 || !isOver || !strings.Contains(text, `\u009b2J`) ||
		strings.ContainsAny(text, "\x1b\u009b") {
		t.Errorf("status %d, %q", status, shown)
	}
}
