package unit

// Label names the parts of a sum.
func (s *Sum) Label() {
	s.whole.Label("whole tokens")
	s.millionths.Label("parts of tokens")
	s.whole.Counts()
	s.millionths.Counts()
}
