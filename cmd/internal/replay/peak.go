package replay

// peak finds the most requests in one second of the log. Requests come in the order of their times.
type peak struct {
	most   uint32
	at     int64 // the first second with as many, since 1970
	second int64 // the latest, since 1970
	n      uint32
}

// add counts a request in a second since 1970.
func (p *peak) add(second int64) {
	if second != p.second {
		p.second, p.n = second, 0
	}
	if p.n++; p.n > p.most {
		p.most, p.at = p.n, second
	}
}
