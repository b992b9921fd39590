// Command codehash prints a hash of the code that the benchmarks in the process measure, for the
// head of their results. Its test fails if the code has changed since.
//
// usage: codehash, in the root of the repository
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"log"
	"os"
	"strings"
)

// measured are the directories of the code.
var measured = []string{"tb/cas", "lru"}

func main() {
	hash, err := hashOf(os.DirFS("."), measured...)
	if err != nil {
		log.Fatal("codehash: ", err)
	}
	fmt.Println(hash)
}

// hashOf returns a hash of the code of packages: of the files without tests, their names and
// tokens. Comments do not count, except for directives, which the compiler reads.
func hashOf(tree fs.FS, packages ...string) (string, error) {
	sum := sha256.New()
	for _, pkg := range packages {
		names, err := fs.Glob(tree, pkg+"/*.go")
		if err != nil {
			return "", err
		}
		if len(names) == 0 {
			return "", fmt.Errorf("%s has no Go files", pkg)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(sum, name)
			for _, t := range tokens(text) {
				fmt.Fprintf(sum, "%q\n", t)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// tokens returns the tokens of a file, without comments that are not directives.
func tokens(text []byte) (all []string) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(text)), text, nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return all
		case kind != token.COMMENT || strings.HasPrefix(literal, "//go:"):
			all = append(all, kind.String()+" "+literal)
		}
	}
}
