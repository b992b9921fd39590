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
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// logStart is when the log starts.
var logStart = time.Date(2025, time.March, 10, 0, 0, 0, 0, time.UTC)

// New returns a log of that many lines, which takes about 200 bytes of memory for each. With 1,000
// lines or more it covers about a day.
func New(lines int) io.Reader {
	rng := rand.New(rand.NewPCG(2025, 3))
	s := site{rng: rng, visitors: rand.NewZipf(rng, 1.2, 8, uint64(49+lines/40))}
	s.generate(lines)
	slices.SortFunc(s.requests, func(a, b request) int { return cmp.Compare(a.end, b.end) })
	var log bytes.Buffer
	for _, r := range s.requests[:lines] {
		start := logStart.Add(time.Duration(r.start * float64(time.Second)))
		fmt.Fprintf(&log, "%s - - [%s] %s \"-\" \"%s\"\n", r.client.addr,
			start.Format("02/Jan/2006:15:04:05 -0700"), r.page, r.client.agent)
	}
	return &log
}

// site generates requests in the order of their visits.
type site struct {
	rng      *rand.Rand
	visitors *rand.Zipf
	now      float64 // in seconds since logStart
	requests []request
}

// request is a request of a client. Its times are in seconds since logStart.
type request struct {
	start, end float64
	client     client
	page       string // the request line, and the status and the size of the response
}

// generate adds requests until that many have ended.
func (s *site) generate(lines int) {
	// A visit is about six requests, and visits are four fifths of the log.
	const perVisit = 7.5
	pace := float64(lines) / perVisit / (24 * time.Hour).Seconds() // visits a second in a day
	// An attack has a start and a rate a second, and perhaps a new address of a network each time.
	attacks := []struct {
		start, rate float64
		rotates     bool
	}{{10.3 * 3600, 40, false}, {16.8 * 3600, 25, true}}
	for len(s.requests) < lines || s.ended() < lines {
		s.now += s.rng.ExpFloat64() / (pace * rhythm(s.now))
		if len(attacks) > 0 && s.now > attacks[0].start {
			s.attack(lines/20, attacks[0].rate, attacks[0].rotates)
			attacks = attacks[1:]
		}
		const crawls = 0.01 // of all visits
		if s.rng.Float64() < crawls {
			s.crawl()
		} else {
			s.visit()
		}
	}
}

// ended returns how many requests have ended.
func (s *site) ended() (n int) {
	for _, r := range s.requests {
		if r.end <= s.now {
			n++
		}
	}
	return n
}

// rhythm returns how busy the site is at a time, 1 on average. It is quietest before dawn.
func rhythm(second float64) float64 {
	const quietest = 4 * 3600
	return 1 - 0.8*math.Cos((second-quietest)/(24*3600)*2*math.Pi)
}

// visit loads a page and, within a second or two, the files that it needs.
func (s *site) visit() {
	c := visitor(s.visitors.Uint64())
	s.request(s.now, c, pages[s.rng.IntN(len(pages))])
	start := s.now + 0.1
	for range 2 + s.rng.IntN(7) {
		start += s.rng.ExpFloat64() * 0.15
		s.request(start, c, assets[s.rng.IntN(len(assets))])
	}
}

// crawl fetches pages at a steady pace.
func (s *site) crawl() {
	c := crawlers[s.rng.IntN(len(crawlers))]
	interval := 0.1 + s.rng.Float64()
	for i := range 20 + s.rng.IntN(150) {
		s.request(s.now+float64(i)*interval, c, pages[s.rng.IntN(len(pages))])
	}
}

// attack is a series of failed attempts to log in.
func (s *site) attack(requests int, rate float64, rotates bool) {
	for i := range requests {
		c := attacker
		if rotates {
			c = client{ipv6(0xbad0_0000, s.rng.Uint64()), "curl/8.12.1"}
		}
		s.request(s.now+float64(i)/rate, c, `"POST /login HTTP/1.1" 401 512`)
	}
}

// request adds a request. Most requests take 20 ms, one in eight takes a tenth of a second
// more, and a few take seconds, which makes lines step back in time.
func (s *site) request(start float64, c client, page string) {
	took := 0.02 + math.Pow(s.rng.Float64(), 16)*s.rng.ExpFloat64()
	s.requests = append(s.requests, request{start, start + took, c, page})
}

// client is the sender of a request.
type client struct {
	addr  netip.Addr
	agent string
}

// The addresses are reserved for documentation and private use.
var (
	attacker = client{netip.MustParseAddr("203.0.113.66"), "python-requests/2.31.0"}
	crawlers = []client{
		{netip.MustParseAddr("198.51.100.10"), "Mozilla/5.0 (compatible; ExampleBot/2.1)"},
		{netip.MustParseAddr("198.51.100.11"), "Mozilla/5.0 (compatible; ExampleBot/2.1)"},
		{netip.MustParseAddr("2001:db8:b07::1"), "Mozilla/5.0 (compatible; SampleCrawler/1.0)"},
	}
)

// agents are the browsers of the visitors.
var agents = []string{
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)" +
		" Chrome/133.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:135.0) Gecko/20100101 Firefox/135.0",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15" +
		" (KHTML, like Gecko) Version/18.3 Mobile/15E148 Safari/604.1",
}

// visitor returns visitor n. Visitor 0 is the most frequent one, and every third has IPv6. The
// multiplier, 2³² divided by the golden ratio, scatters the addresses.
func visitor(n uint64) client {
	scattered, agent := uint32(n*2654435761), agents[n%uint64(len(agents))]
	if n%3 == 0 {
		return client{ipv6(scattered, 1), agent}
	}
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 10<<24|scattered>>8)
	return client{netip.AddrFrom4(a), agent}
}

// ipv6 returns an address in a network.
func ipv6(network uint32, host uint64) netip.Addr {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(a[4:], network)
	binary.BigEndian.PutUint64(a[8:], host)
	return netip.AddrFrom16(a)
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
