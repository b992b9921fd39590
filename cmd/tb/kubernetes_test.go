package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// The manifests for Kubernetes have a configuration that tb accepts.
func TestKubernetesConfigurations(t *testing.T) {
	inside := func(name string) string {
		t.Helper()
		text, err := os.ReadFile("../../packaging/kubernetes/" + name)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?s)\n  [a-z.]+: \|\n(.*?)\n---\n`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no configuration", name)
		}
		return strings.ReplaceAll("\n"+string(m[1]), "\n    ", "\n")
	}
	file := config.File{Name: "limits.yaml", Text: inside("rls.yaml")}
	if c, err := config.Parse([]config.File{file}, false); err != nil || len(c.Rules) != 1 {
		t.Errorf("rls.yaml: %v", err)
	}
	p, err := cli.ParsePolicy([]byte(inside("proxy.yaml")))
	if err == nil {
		_, err = httplimit.New(p)
	}
	if err != nil || len(p.Warnings()) > 0 {
		t.Errorf("proxy.yaml: %v", err)
	}
}
