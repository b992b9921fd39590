package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version returns the version that the go command recorded in the program: a release, the commit
// of a clone, or (devel) if it recorded none.
func version() string {
	recorded := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		recorded = info.Main.Version
	}
	return fmt.Sprintf("tb %s, %s, %s/%s", recorded, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
