package doctest

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	inlineCode  = regexp.MustCompile("`[^`\n]*`")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	designLink  = regexp.MustCompile(`DESIGN\.md §(\d+)`)
)

// TestLinksResolve requires that each link within the repository leads to a file, and its
// anchor to a heading of that file.
func TestLinksResolve(t *testing.T) {
	links := 0
	for _, name := range files(t, ".md") {
		text := inlineCode.ReplaceAllString(fenced.ReplaceAllString(read(t, name), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, anchored := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if !fs.ValidPath(target) {
				t.Errorf("%s: %s leaves the repository", name, m[1])
			} else if _, err := fs.Stat(repository, target); err != nil {
				t.Errorf("%s: %s does not exist", name, m[1])
			} else if anchored && !anchors(read(t, target))[anchor] {
				t.Errorf("%s: %s has no such heading", name, m[1])
			}
		}
	}
	atLeast(t, 50, links, "links")
}

// TestSectionsOfTheDesignExist requires that each section of DESIGN.md that a comment names
// has a heading.
func TestSectionsOfTheDesignExist(t *testing.T) {
	design := read(t, "DESIGN.md")
	for _, name := range files(t, ".go") {
		for _, m := range designLink.FindAllStringSubmatch(read(t, name), -1) {
			if !strings.Contains(design, "\n## "+m[1]+". ") {
				t.Errorf("%s: DESIGN.md has no section %s", name, m[1])
			}
		}
	}
}

// TestDependabotKnowsAllModules requires that the dependencies of each module are kept current.
func TestDependabotKnowsAllModules(t *testing.T) {
	config := read(t, ".github/dependabot.yml")
	for _, name := range files(t, "go.mod") {
		line := "\n      - /" + strings.TrimPrefix(path.Dir(name), ".") + "\n"
		if !strings.Contains(config, line) {
			t.Errorf(".github/dependabot.yml lacks the module of %s", name)
		}
	}
}

// anchors returns the anchors that GitHub makes of the headings of a document.
func anchors(document string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(document, ""), -1) {
		text := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(text, " ", "-")] = true
	}
	return found
}
