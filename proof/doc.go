// Package proof is the room of what proves the limiters beside the tests of their packages: random
// programs and histories, loads, a model checker, planted bugs and mutants. docs/testing.md has
// their commands. Nothing below it is an API: it may change with any commit.
package proof
