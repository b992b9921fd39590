package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/printable"
)

// Program is a program: what it has on its command line.
type Program struct {
	Name, Description string
	// Commands returns the flags and commands, for kong.
	Commands func() any
	Options  []kong.Option
}

// Main runs the program with the arguments and the streams of the process, and exits.
func (p *Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	std := IO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	os.Exit(p.Run(ctx, os.Args[1:], std))
}

// Exit statuses. They differ for mistakes in the flags and for errors of the input, so that
// a script can react to them.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// Run parses the arguments, runs their command and returns the exit status. Besides its
// parameters it uses nothing of the process. The end of ctx is an interrupt.
func (p *Program) Run(ctx context.Context, args []string, std IO) int {
	std.Stdout = printable.NewWriter(std.Stdout) // names and keys may have any characters
	printed, status := false, exitOK
	parser := kong.Must(p.Commands(), append([]kong.Option{
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.Vars{"version": p.version()},
		kong.Writers(std.Stdout, std.Stderr),
		kong.Exit(func(int) { printed = true }), // after printing the help or the version
	}, p.Options...)...)
	if len(args) == 0 && !parser.Model.Leaf() { // a command is missing
		args, parser.Stdout, status = []string{"--help"}, std.Stderr, exitUsage
	}
	command, err := parser.Parse(args)
	switch {
	case printed:
		return status
	case err != nil:
		fmt.Fprintf(std.Stderr, "%s: %s\n", p.Name, printable.Escape(err.Error()))
		fmt.Fprintf(std.Stderr, "Run \"%s --help\" for all flags.\n", p.commandOf(err))
		return exitUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(std); err != nil {
		lines := strings.ReplaceAll(err.Error(), "\n", "\n"+p.Name+": ") // joined errors
		fmt.Fprintf(std.Stderr, "%s: %s\n", p.Name, printable.Escape(lines))
		return exitError
	}
	return exitOK
}

// commandOf returns the command in whose arguments there is a mistake, such as tb-proxy.
func (p *Program) commandOf(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		return parse.Context.Selected().FullPath()
	}
	return p.Name
}

// version returns the version that the go command recorded in the program: a release, the commit
// of a clone, or (devel) if it recorded none.
func (p *Program) version() string {
	recorded := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		recorded = info.Main.Version
	}
	return fmt.Sprintf("%s %s, %s, %s/%s", p.Name, recorded, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}
