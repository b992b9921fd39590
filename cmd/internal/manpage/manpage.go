// Package manpage is `tb man`, which prints the manual page.
package manpage

import (
	_ "embed"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
)

// Command is `tb man`.
type Command struct{}

//go:embed page.tmpl
var page string

var manual = template.Must(template.New("page").Funcs(template.FuncMap{
	"text": text, "upper": strings.ToUpper, "value": value, "phrase": phrase, "groups": groups,
	"paragraphs": func(s string) []string { return strings.Split(s, "\n\n") },
	"verbatim":   func(s string) bool { return strings.Contains(s, "\n  ") },
	"leaves":     func(n *kong.Node) []*kong.Node { return n.Leaves(true) },
}).Parse(page))

// Run prints the page in the language of man(7), from the help of all commands and flags.
func (*Command) Run(ctx *kong.Context, std cli.IO) error {
	var b strings.Builder
	if err := manual.Execute(&b, ctx.Model); err != nil {
		return err
	}
	_, err := std.Stdout.Write([]byte(b.String()))
	return err
}

// Help returns how to use the page.
func (*Command) Help() string {
	return `Prints the manual page:
  tb man >tb.1; man ./tb.1`
}

// text escapes a text. A line cannot begin with a request, and a hyphen can be copied.
func text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace("\n" + s)
	return s[1:]
}

// value returns the name of the value of a flag, or the values to choose from.
func value(f *kong.Flag) string {
	switch {
	case f.Enum != "":
		return strings.ReplaceAll(f.Enum, ",", "|")
	case f.PlaceHolder != "":
		return f.PlaceHolder
	}
	return strings.ToUpper(f.Name)
}

// phrase makes a sentence the end of another one.
func phrase(s string) string {
	return strings.ToLower(s[:1]) + strings.TrimSuffix(s[1:], ".")
}

// group is a part of the flags of a command.
type group struct {
	Title string
	Flags []*kong.Flag
}

// groups returns the flags of a command by their groups, in the order of the help.
func groups(n *kong.Node) (found []group) {
	for _, f := range n.Flags {
		if f.Hidden {
			continue
		}
		title := ""
		if f.Group != nil {
			title = strings.TrimSuffix(f.Group.Title, ":")
		}
		if last := len(found) - 1; last >= 0 && found[last].Title == title {
			found[last].Flags = append(found[last].Flags, f)
		} else {
			found = append(found, group{title, []*kong.Flag{f}})
		}
	}
	return found
}
