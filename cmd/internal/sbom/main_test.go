package main

import (
	"bytes"
	"runtime/debug"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func TestABillHasTheModulesOfTheProgram(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.1",
		Main:      debug.Module{Path: "example.com/a/cmd/tb", Version: "v0.1.0"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v0.0.0", Replace: &debug.Module{Path: "../.."}},
			{Path: "example.com/a/b", Version: "(devel)"},
			{Path: "github.com/B/c", Version: "v2.3.4+incompatible"},
		},
	}
	var text bytes.Buffer
	var bom cdx.BOM
	err := write(&text, info)
	if err == nil {
		err = cdx.NewBOMDecoder(&text, cdx.BOMFileFormatJSON).Decode(&bom)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := bom.Metadata.Component
	if bom.SpecVersion != cdx.SpecVersion1_6 || bom.SerialNumber != "" ||
		program.PackageURL != "pkg:golang/example.com/a/cmd/tb@v0.1.0" ||
		program.Type != cdx.ComponentTypeApplication {
		t.Errorf("the program is %+v", program)
	}
	want := []string{
		"pkg:golang/std@1.26.1", "pkg:golang/example.com/a@v0.1.0", "pkg:golang/example.com/a/b@v0.1.0",
		"pkg:golang/github.com/b/c@v2.3.4%2Bincompatible",
	}
	dependencies := *(*bom.Dependencies)[0].Dependencies
	if len(*bom.Components) != len(want) || len(dependencies) != len(want) {
		t.Fatalf("%d modules and %d dependencies", len(*bom.Components), len(dependencies))
	}
	for i, c := range *bom.Components {
		if c.PackageURL != want[i] || dependencies[i] != want[i] || c.Type != cdx.ComponentTypeLibrary {
			t.Errorf("module %d is %s, needed as %s, want %s", i, c.PackageURL, dependencies[i], want[i])
		}
	}
}
