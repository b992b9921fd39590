// Package migrate has the code of docs/migrate.md in its tests, which compile it: other limiters
// and what takes their place.
package migrate
