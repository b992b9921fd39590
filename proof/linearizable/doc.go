// Package linearizable checks that the answers of tb/cas to concurrent calls are the answers
// of tb/mutex to the same calls in some order. The calls take tokens, reserve, cancel and settle
// them, reset keys and change the limit.
package linearizable
