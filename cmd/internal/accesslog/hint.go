package accesslog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostGuesses is how many objects are looked at for a hint.
const mostGuesses = 20

// guesses are the names under which objects seem to have the fields that no usual name has.
type guesses struct {
	looked int
	paths  [numFields]string
	scores [numFields]int
}

// Words of the names that a field may have, the best ones first.
var hintWords = [numFields][]string{
	fieldTime: {"time", "date", "stamp", "when", "at", "ts"},
	fieldPeer: {"remote", "client", "peer", "source", "src", "ip", "addr"},
	fieldURI:  {"uri", "url", "path", "request", "target"},
}

// otherAddresses are words of the names of other addresses than the client's.
var otherAddresses = []string{"server", "upstream", "local", "dest", "dst", "backend", "origin"}

// look looks at an object, which lacks some fields.
func (g *guesses) look(object []byte, lacks func(field int) bool) {
	if g.looked++; g.looked > mostGuesses || len(object) > bufferSize {
		return
	}
	texts := make(map[string]string)
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(object))
	dec.UseNumber()
	if dec.Decode(&tree) != nil {
		return
	}
	flatten(texts, "", tree)
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		for field := range hintWords {
			score := hintScore(field, strings.ToLower(path), texts[path])
			if score > g.scores[field] && lacks(field) {
				g.scores[field], g.paths[field] = score, path
			}
		}
	}
}

// flatten adds the texts and numbers in a value, by their paths.
func flatten(texts map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, v := range v {
			flatten(texts, strings.TrimPrefix(path+"."+name, "."), v)
		}
	case string:
		texts[path] = v
	case json.Number:
		texts[path] = v.String()
	}
}

// hintScore returns how likely a path leads to a field: 0 if its value cannot be the field.
func hintScore(field int, path, value string) int {
	var fits bool
	var times timeParser
	switch {
	case value == "":
	case field == fieldPeer:
		fits = isAddr([]byte(value))
	case field == fieldTime:
		_, ok := times.any([]byte(value))
		fits = ok && len(value) >= len("1431857103")
	case field == fieldURI:
		fits = value[0] == '/' || strings.HasPrefix(value, "http")
	}
	if !fits {
		return 0
	}
	score := 1
	for i, word := range hintWords[field] {
		if strings.Contains(path, word) {
			score += len(hintWords[field]) - i
		}
	}
	if field == fieldTime && score == 1 {
		return 0 // a number
	}
	for _, word := range otherAddresses {
		if field == fieldPeer && strings.Contains(path, word) {
			return 0
		}
	}
	return score
}

// hint says how to name the fields, if any was found.
func (g *guesses) hint() string {
	var names, flags []string
	for field, path := range g.paths {
		if path != "" {
			names, flags = append(names, path), append(flags, fieldNames[field]+"="+path)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the log has %s: try --field %s", strings.Join(names, ", "),
		strings.Join(flags, ","))
}
