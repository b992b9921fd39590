package samplelog

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"
)

// Read writes as many lines as it takes to fill p.
func (l *Log) Read(p []byte) (int, error) {
	for len(l.buf) < len(p) && l.lines > 0 {
		l.buf = appendLine(l.buf, l.next())
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
	at := begin.Add(time.Duration(r.start * float64(time.Second)))
	b = at.AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	size := "-" // what has no body has no size
	if r.page.size > 0 {
		size = strconv.Itoa(r.page.size)
	}
	return fmt.Appendf(b, "] \"%s HTTP/1.1\" %d %s \"-\" \"%s\"\n",
		r.page.request, r.page.status, size, r.client.agent)
}

// client is who sends a request.
type client struct {
	addr  netip.Addr
	agent string
}

// The addresses are of the blocks that are reserved for documentation and for private
// use: they are nobody's.
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

// visitor returns the n-th visitor, 0 being the most frequent one. Every third has IPv6.
// The multiplier, 2³² divided by the golden ratio, scatters the addresses.
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

// rotating returns one of the addresses of a network.
func rotating(n uint64) client {
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8, 0xba, 0xd0}
	binary.BigEndian.PutUint64(a[8:], n)
	return client{netip.AddrFrom16(a), "curl/8.12.1"}
}

// page is something to ask for, and what comes back.
type page struct {
	request string
	status  int
	size    int
}

// login is what the attackers ask for, in vain.
var login = page{"POST /login", 401, 512}

// pages are what visitors and crawlers ask for.
var pages = []page{
	{"GET /", 200, 14_210}, {"GET /about", 200, 8_430}, {"GET /news", 200, 23_876},
	{"GET /news?page=2", 200, 22_954}, {"GET /products", 200, 41_332},
	{"GET /products/42", 200, 18_077}, {"GET /search?q=token+bucket", 200, 9_911},
	{"GET /login", 200, 3_120}, {"GET /old-page", 404, 1_240}, {"GET /blog", 301, 0},
}

// assets are what a browser fetches along with a page.
var assets = []page{
	{"GET /static/site.css", 200, 31_004}, {"GET /static/site.js", 200, 88_412},
	{"GET /static/logo.svg", 200, 4_410}, {"GET /static/site.css", 304, 0},
	{"GET /static/font.woff2", 200, 48_256}, {"GET /images/header.jpg", 200, 203_771},
	{"GET /images/photo.jpg", 200, 171_717}, {"GET /favicon.ico", 200, 5_430},
}
