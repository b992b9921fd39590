// Package samplelog generates an access log for when no real one is at hand: a day of a small site,
// in Combined Log Format, the same every time.
//
// Few clients come often and many come once (a Zipf distribution), a page load fetches several
// files at once, the night is quiet and the afternoon busy, and there are crawlers. One client
// hammers the login page, and another one does so from a new IPv6 address of one network each time.
// Lines are out of order, because a line is stamped with the start of a request and written at its
// end.
package samplelog

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// day is the day of the log.
var day = time.Date(2025, time.March, 10, 0, 0, 0, 0, time.UTC)

// New returns a log of that many lines, which takes about 200 bytes of memory for each.
func New(lines int) io.Reader {
	rng := rand.New(rand.NewPCG(2025, 3))
	s := site{rng: rng, visitors: rand.NewZipf(rng, 1.2, 8, uint64(49+lines/40))}
	s.attack(10.3, lines/20, 40, func() string { return "203.0.113.66" })
	s.attack(16.8, lines/20, 25, func() string {
		return fmt.Sprintf("2001:db8:bad::%x", rng.IntN(1<<16))
	})
	for len(s.requests) < lines {
		const crawls = 0.01 // of all visits
		if hour := s.hour(); rng.Float64() < crawls {
			s.crawl(hour)
		} else {
			s.visit(hour)
		}
	}
	requests := s.requests[:lines]
	slices.SortFunc(requests, func(a, b request) int { return cmp.Compare(a.end, b.end) })
	var log bytes.Buffer
	for _, r := range requests {
		start := day.Add(time.Duration(r.start * float64(time.Second)))
		fmt.Fprintf(&log, "%s - - [%s] %s \"-\" \"%s\"\n", r.client,
			start.Format("02/Jan/2006:15:04:05 -0700"), r.page, r.agent)
	}
	return &log
}

// site generates requests.
type site struct {
	rng      *rand.Rand
	visitors *rand.Zipf
	requests []request
}

// request is a request of a client. Its times are in seconds of the day.
type request struct {
	start, end    float64
	client, agent string
	page          string // the request line, and the status and the size of the response
}

// add adds a request. Most requests take 20 ms, one in eight takes a tenth of a second more, and a
// few take seconds, which makes lines step back in time.
func (s *site) add(start float64, client, agent, page string) {
	took := 0.02 + math.Pow(s.rng.Float64(), 16)*s.rng.ExpFloat64()
	s.requests = append(s.requests, request{start, start + took, client, agent, page})
}

// hour returns when a visit begins. Few do before dawn.
func (s *site) hour() float64 {
	for {
		hour := 23.9 * s.rng.Float64()
		if 1-0.8*math.Cos((hour-4)/24*2*math.Pi) > 1.8*s.rng.Float64() {
			return hour
		}
	}
}

// visit loads a page and, within a second or two, the files that it needs. The multiplier, 2³²
// divided by the golden ratio, scatters the addresses of visitors, and every third has IPv6.
func (s *site) visit(hour float64) {
	n, start := s.visitors.Uint64(), 3600*hour
	id, agent := uint32(n*2654435761), agents[n%3]
	client := fmt.Sprintf("10.%d.%d.%d", id>>24, id>>16&255, id>>8&255)
	if n%3 == 0 {
		client = fmt.Sprintf("2001:db8:%x:%x::1", id>>16, id&0xffff)
	}
	s.add(start, client, agent, pages[s.rng.IntN(len(pages))])
	for range 2 + s.rng.IntN(7) {
		start += 0.03 + s.rng.ExpFloat64()*0.15
		s.add(start, client, agent, assets[s.rng.IntN(len(assets))])
	}
}

// crawl fetches pages at a steady pace.
func (s *site) crawl(hour float64) {
	n, interval := s.rng.IntN(3), 0.1+s.rng.Float64()
	for i := range 20 + s.rng.IntN(150) {
		s.add(3600*hour+float64(i)*interval, fmt.Sprint("198.51.100.", 10+n),
			"Mozilla/5.0 (compatible; ExampleBot/2.1)", pages[s.rng.IntN(len(pages))])
	}
}

// attack is a series of failed attempts to log in, at a rate a second.
func (s *site) attack(hour float64, requests int, rate float64, client func() string) {
	for i := range requests {
		s.add(3600*hour+float64(i)/rate, client(), "curl/8.12.1", `"POST /login HTTP/1.1" 401 512`)
	}
}

// agents are the browsers of the visitors.
var agents = []string{
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)" +
		" Chrome/133.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:135.0) Gecko/20100101 Firefox/135.0",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15" +
		" (KHTML, like Gecko) Version/18.3 Mobile/15E148 Safari/604.1",
}

// pages are the pages that visitors and crawlers request, as they are in the log.
var pages = []string{
	`"GET / HTTP/1.1" 200 14210`, `"GET /about HTTP/1.1" 200 8430`,
	`"GET /news HTTP/1.1" 200 23876`, `"GET /news?page=2 HTTP/1.1" 200 22954`,
	`"GET /products HTTP/1.1" 200 41332`, `"GET /products/42 HTTP/1.1" 200 18077`,
	`"GET /search?q=token+bucket HTTP/1.1" 200 9911`, `"GET /login HTTP/1.1" 200 3120`,
	`"GET /old-page HTTP/1.1" 404 1240`, `"GET /blog HTTP/1.1" 301 -`,
}

// assets are the files that a browser fetches with a page.
var assets = []string{
	`"GET /static/site.css HTTP/1.1" 200 31004`, `"GET /static/site.js HTTP/1.1" 200 88412`,
	`"GET /static/logo.svg HTTP/1.1" 200 4410`, `"GET /static/site.css HTTP/1.1" 304 -`,
	`"GET /static/font.woff2 HTTP/1.1" 200 48256`, `"GET /images/header.jpg HTTP/1.1" 200 203771`,
	`"GET /images/photo.jpg HTTP/1.1" 200 171717`, `"GET /favicon.ico HTTP/1.1" 200 5430`,
}
