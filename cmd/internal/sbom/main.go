// Command sbom prints the bill of materials of a Go program: its modules, as CycloneDX in JSON. Go
// has recorded them in the program, so the same program has the same bill. scripts/build runs it.
//
// usage: sbom FILE
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom FILE")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		err = write(os.Stdout, info)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

// write writes the bill of a program.
func write(w io.Writer, info *debug.BuildInfo) error {
	program := component(cdx.ComponentTypeApplication, &info.Main)
	version := strings.TrimPrefix(info.GoVersion, "go")
	modules := []cdx.Component{
		component(cdx.ComponentTypeLibrary, &debug.Module{Path: "std", Version: version}),
	}
	linked := cdx.Dependency{Ref: program.BOMRef, Dependencies: &[]string{modules[0].BOMRef}}
	for _, m := range info.Deps {
		if m.Replace != nil || m.Version == unreleased { // a module of this repository
			m = &debug.Module{Path: m.Path, Version: info.Main.Version}
		}
		c := component(cdx.ComponentTypeLibrary, m)
		modules = append(modules, c)
		*linked.Dependencies = append(*linked.Dependencies, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &program}
	bom.Components, bom.Dependencies = &modules, &[]cdx.Dependency{linked}
	e := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true)
	return e.EncodeVersion(bom, cdx.SpecVersion1_6)
}

// unreleased is what Go records in place of a version that it does not know.
const unreleased = "(devel)"

// component returns a module with its package URL.
func component(kind cdx.ComponentType, m *debug.Module) cdx.Component {
	purl := "pkg:golang/" + strings.ToLower(m.Path)
	if m.Version != unreleased {
		purl += "@" + url.PathEscape(m.Version)
		purl = strings.ReplaceAll(purl, "+", "%2B")
	}
	return cdx.Component{
		BOMRef: purl, Type: kind, Name: m.Path, Version: m.Version, PackageURL: purl,
	}
}
