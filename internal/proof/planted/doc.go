// Package planted has bugs that were planted by hand where no operator of a mutation test reaches:
// two steps in the other order, a check that is left out, a stale pointer, a lost carry. Its tests
// require that the tests of the code find each of them. TestOperators is the mutation test, which
// breaks one operator after another. docs/mutants.md has the results.
package planted
