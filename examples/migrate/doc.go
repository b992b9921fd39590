// Package migrate has the code of docs/migrate.md: other limiters and what takes their place. Its
// tests compile all of it, and run what is the same in both.
package migrate
