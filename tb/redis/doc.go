// Package redis shares token buckets between processes, in a Redis or Valkey server. It decides
// what package tb/mutex decides, bit for bit, on the clock of the server, in one round trip.
package redis
