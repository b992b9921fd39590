// Package planted has bugs that were planted by hand where no operator of a mutation test reaches:
// two steps in the other order, a check that is left out, a stale pointer, a lost carry. Its tests
// require that the tests of the code find each of them. docs/mutants.md has the result.
package planted
