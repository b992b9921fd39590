// Package migrate has the code of docs/migrate.md: other limiters and what takes their place. Its
// tests run both, and show what is the same and what is not.
package migrate
