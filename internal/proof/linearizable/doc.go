// Package linearizable checks that the answers of tb/cas to concurrent calls are the answers
// of tb/mutex to the same calls in some order.
package linearizable
