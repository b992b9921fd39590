// Package adapters has an adapter of httplimit for each of several frameworks. Each is one short
// file, to be copied into an application: no module has to depend on it.
package adapters
