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
	"container/heap"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"
)

// MinLines and MaxLines are the shortest and the longest log. A shorter one has too few visits
// to cover a day. In a longer one an attack would take too long and too much memory: with
// MaxLines lines it takes about 5 hours and 100 MB.
const (
	MinLines = 1_000
	MaxLines = 10_000_000
)

// logStart is when the log starts. The log covers about a day.
var logStart = time.Date(2025, time.March, 10, 0, 0, 0, 0, time.UTC)

// request is a request in progress. Times are in seconds since logStart.
type request struct {
	start, end float64
	client     client
	page       page
}

// Log generates a log as it is read. It implements io.Reader. Requests are generated in the order
// of their start and written in the order of their end.
type Log struct {
	rng       *rand.Rand
	visitors  *rand.Zipf
	lines     int     // not yet written
	perAttack int     // lines
	pace      float64 // visits a second, on average over the day
	now       float64
	attacks   []attack // not yet begun
	pending   pending  // at most the requests of a few visits, crawls and attacks
	buf       []byte   // lines not yet read
}

// attack is a series of attempts to log in: a rate a second from a start, by a client that has a
// new address of its network each time, or not.
type attack struct {
	start, rate float64
	network     bool
}

// New returns a log of that many lines. From MinLines to MaxLines it covers about a day.
func New(lines int) *Log {
	// A visit is about six requests, and visits are four fifths of the log.
	const perVisit = 7.5
	rng := rand.New(rand.NewPCG(2025, 3))
	clients := uint64(50 + lines/40)
	return &Log{
		rng:       rng,
		visitors:  rand.NewZipf(rng, 1.2, 8, clients-1),
		lines:     lines,
		perAttack: lines / 20,
		pace:      float64(lines) / perVisit / (24 * time.Hour).Seconds(),
		attacks:   []attack{{10.3 * 3600, 40, false}, {16.8 * 3600, 25, true}},
	}
}

// step adds the requests of the next visit or crawl, and of an attack that begins before it.
func (l *Log) step() {
	l.now += l.rng.ExpFloat64() / (l.pace * rhythm(l.now))
	if len(l.attacks) > 0 && l.now > l.attacks[0].start {
		l.attack(l.attacks[0])
		l.attacks = l.attacks[1:]
	}
	const crawls = 0.01 // of all visits
	if l.rng.Float64() < crawls {
		l.crawl()
	} else {
		l.visit()
	}
}

// rhythm returns how busy the site is at a time, 1 on average. It is quietest before dawn.
func rhythm(second float64) float64 {
	const quietest = 4 * 3600
	return 1 - 0.8*math.Cos((second-quietest)/(24*3600)*2*math.Pi)
}

// visit loads a page and, within a second or two, the files that it needs.
func (l *Log) visit() {
	c := visitor(l.visitors.Uint64())
	l.request(l.now, c, pages[l.rng.IntN(len(pages))])
	start := l.now + 0.1
	for range 2 + l.rng.IntN(7) {
		start += l.rng.ExpFloat64() * 0.15
		l.request(start, c, assets[l.rng.IntN(len(assets))])
	}
}

// crawl fetches pages at a steady pace.
func (l *Log) crawl() {
	c := crawlers[l.rng.IntN(len(crawlers))]
	interval := 0.1 + l.rng.Float64()
	for i := range 20 + l.rng.IntN(150) {
		l.request(l.now+float64(i)*interval, c, pages[l.rng.IntN(len(pages))])
	}
}

func (l *Log) attack(a attack) {
	for i := range l.perAttack {
		c := attacker
		if a.network {
			c = rotating(l.rng.Uint64())
		}
		l.request(l.now+float64(i)/a.rate, c, login)
	}
}

// request adds a request. Most requests take 20 ms, one in eight takes a tenth of a second
// more, and a few take seconds, which makes lines step back in time.
func (l *Log) request(start float64, c client, p page) {
	took := 0.02 + math.Pow(l.rng.Float64(), 16)*l.rng.ExpFloat64()
	heap.Push(&l.pending, request{start: start, end: start + took, client: c, page: p})
}

// nextEnded returns the request that ends next.
func (l *Log) nextEnded() request {
	for len(l.pending) == 0 || l.pending[0].end > l.now {
		l.step()
	}
	return heap.Pop(&l.pending).(request)
}

// pending is a heap of requests by their end, a heap.Interface.
type pending []request

func (p pending) Len() int           { return len(p) }
func (p pending) Less(i, j int) bool { return p[i].end < p[j].end }
func (p pending) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pending) Push(r any)        { *p = append(*p, r.(request)) }
func (p *pending) Pop() any {
	last := len(*p) - 1
	r := (*p)[last]
	*p = (*p)[:last]
	return r
}

// Read generates as many lines as it takes to fill p.
func (l *Log) Read(p []byte) (int, error) {
	for len(l.buf) < len(p) && l.lines > 0 {
		l.buf = appendLine(l.buf, l.nextEnded())
		l.lines--
	}
	if len(l.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.buf)
	l.buf = l.buf[:copy(l.buf, l.buf[n:])]
	return n, nil
}

// appendLine appends a request in Combined Log Format.
func appendLine(b []byte, r request) []byte {
	b = r.client.addr.AppendTo(b)
	b = append(b, " - - ["...)
	start := logStart.Add(time.Duration(r.start * float64(time.Second)))
	b = start.AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	size := "-" // a response without a body
	if r.page.size > 0 {
		size = strconv.Itoa(r.page.size)
	}
	return fmt.Appendf(b, "] \"%s HTTP/1.1\" %d %s \"-\" \"%s\"\n",
		r.page.request, r.page.status, size, r.client.agent)
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
	agent := agents[n%uint64(len(agents))]
	if n%3 != 0 {
		a := [4]byte{10}
		binary.BigEndian.PutUint32(a[:], 10<<24|uint32(n*2654435761)>>8)
		return client{netip.AddrFrom4(a), agent}
	}
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint32(a[4:], uint32(n*2654435761))
	a[15] = 1
	return client{netip.AddrFrom16(a), agent}
}

// rotating returns a client at address n of a network.
func rotating(n uint64) client {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8, 0xba, 0xd0}
	binary.BigEndian.PutUint64(a[8:], n)
	return client{netip.AddrFrom16(a), "curl/8.12.1"}
}

// page is a request line and the response to it.
type page struct {
	request string
	status  int
	size    int
}

// login is the failed request of the attackers.
var login = page{"POST /login", 401, 512}

// pages are the pages that visitors and crawlers request.
var pages = []page{
	{"GET /", 200, 14_210}, {"GET /about", 200, 8_430}, {"GET /news", 200, 23_876},
	{"GET /news?page=2", 200, 22_954}, {"GET /products", 200, 41_332},
	{"GET /products/42", 200, 18_077}, {"GET /search?q=token+bucket", 200, 9_911},
	{"GET /login", 200, 3_120}, {"GET /old-page", 404, 1_240}, {"GET /blog", 301, 0},
}

// assets are the files that a browser fetches with a page.
var assets = []page{
	{"GET /static/site.css", 200, 31_004}, {"GET /static/site.js", 200, 88_412},
	{"GET /static/logo.svg", 200, 4_410}, {"GET /static/site.css", 304, 0},
	{"GET /static/font.woff2", 200, 48_256}, {"GET /images/header.jpg", 200, 203_771},
	{"GET /images/photo.jpg", 200, 171_717}, {"GET /favicon.ico", 200, 5_430},
}
