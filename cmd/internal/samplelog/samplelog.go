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
	"strings"
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
		if hour := s.hour(); rng.Float64() < 0.01 { // of all visits
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
		fmt.Fprintf(&log, "%s - - [%s] \"GET %s HTTP/1.1\" 200 %d \"-\" \"%s\"\n", r.client,
			start.Format("02/Jan/2006:15:04:05 -0700"), r.path, 1000*len(r.path), r.agent)
	}
	return &log
}

type site struct {
	rng      *rand.Rand
	visitors *rand.Zipf
	requests []request
}

// request is a request of a client. Its times are in seconds of the day.
type request struct {
	start, end          float64
	client, agent, path string
}

// add adds a request. Most requests take 20 ms, one in eight takes a tenth of a second more, and a
// few take seconds, which makes lines step back in time.
func (s *site) add(start float64, client, agent, path string) {
	took := 0.02 + math.Pow(s.rng.Float64(), 16)*s.rng.ExpFloat64()
	s.requests = append(s.requests, request{start, start + took, client, agent, path})
}

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

func (s *site) crawl(hour float64) {
	n, interval := s.rng.IntN(3), 0.1+s.rng.Float64()
	for i := range 20 + s.rng.IntN(150) {
		s.add(3600*hour+float64(i)*interval, fmt.Sprint("198.51.100.", 10+n), "ExampleBot/2.1",
			pages[s.rng.IntN(len(pages))])
	}
}

func (s *site) attack(hour float64, requests int, rate float64, client func() string) {
	for i := range requests {
		s.add(3600*hour+float64(i)/rate, client(), "curl/8.12.1", "/login")
	}
}

var (
	agents = []string{"Chrome/133.0", "Firefox/135.0", "Safari/604.1"}
	pages  = strings.Fields("/ /about /news /news?page=2 /products /products/42" +
		" /search?q=token+bucket /login /old-page /blog")
	// assets are what a browser fetches with a page.
	assets = strings.Fields("/static/site.css /static/site.js /static/logo.svg /static/site.css" +
		" /static/font.woff2 /images/header.jpg /images/photo.jpg /favicon.ico")
)
