package httplimit

import (
	"io"
	"net/http"
)

// Usage finds the costs of the rules whose Cost.Source is "response:usage", such as the tokens of a
// language model: see WithUsage. Its functions must be safe for concurrent use.
type Usage struct {
	// Estimate returns how many tokens a request takes until its response has ended, such as the
	// most tokens that its body asks for. If it reads the body, it must put one with the same bytes
	// in its place. Cost.Min and Cost.Max bound the estimate. It is Cost.Default if Estimate is nil
	// or returns no number above 0.
	Estimate func(r *http.Request) float64
	// Read returns the reader of a response with this header, or nil if the response has no usage
	// that can be read.
	Read func(r *http.Request, header http.Header) UsageReader
}

// UsageReader reads the body of one response while it is written, such as a document of JSON or
// the events of a stream. An error of Write has no effect on the response.
type UsageReader interface {
	io.Writer
	// Usage returns the tokens of the response when it has ended, or false if the body does not say
	// them, so that the estimate stands.
	Usage() (tokens float64, ok bool)
}

// WithUsage sets how the costs of the source "response:usage" are found. Middleware and the writer
// of Settlement.Writer read responses. After Limiter.Decide the estimate stands.
func WithUsage(u Usage) Option {
	return withValid(u.Read != nil, "WithUsage: want Read", func(s *settings) { s.usage = u })
}

// estimate returns the cost of a request until its response has ended.
func (p *pricing) estimate(c *call) float64 {
	if c.l.usage.Estimate != nil {
		if tokens := c.l.usage.Estimate(c.r); tokens > 0 { // not if it is NaN
			return p.bound(tokens)
		}
	}
	return p.fallback
}
