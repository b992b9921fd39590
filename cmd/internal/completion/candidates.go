package completion

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// candidate is a word that may stand on the command line, with its help.
type candidate struct{ word, help string }

// candidates returns the words that can take the place of the last of the words behind the name
// of the program: commands, flags, or values of a flag. There are none for a value of any text.
func candidates(node *kong.Node, words []string) []candidate {
	words = joinEquals(words)
	var flag *kong.Flag // the flag whose value comes next
	for _, word := range words[:len(words)-1] {
		name, _, hasValue := strings.Cut(word, "=")
		switch {
		case flag != nil:
			flag = nil
		case strings.HasPrefix(word, "-") && !hasValue:
			if flag = find(node, name); flag != nil && flag.IsBool() {
				flag = nil
			}
		default:
			if child := command(node, word); child != nil {
				node = child
			}
		}
	}
	last := words[len(words)-1]
	var found []candidate
	switch name, _, hasValue := strings.Cut(last, "="); {
	case flag != nil:
		found = values(flag.Value, "")
	case strings.HasPrefix(last, "-") && hasValue:
		if flag = find(node, name); flag != nil {
			found = values(flag.Value, name+"=")
		}
	case strings.HasPrefix(last, "-"):
		found = flags(node)
	default:
		found = commands(node)
	}
	return slices.DeleteFunc(found, func(c candidate) bool {
		return !strings.HasPrefix(c.word, last)
	})
}

// joinEquals puts words together that Bash has split at an = sign.
func joinEquals(words []string) (joined []string) {
	for i, word := range words {
		if n := len(joined); n > 0 && (word == "=" || i > 1 && words[i-1] == "=") {
			joined[n-1] += word
		} else {
			joined = append(joined, word)
		}
	}
	return joined
}

// find returns the flag of a command or of the commands above it, or nil.
func find(node *kong.Node, name string) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func command(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// values returns the values of a flag, or of an argument, that has a fixed set of them.
func values(v *kong.Value, prefix string) (found []candidate) {
	if v.Enum == "" {
		return nil
	}
	for _, value := range v.EnumSlice() {
		found = append(found, candidate{prefix + value, ""})
	}
	return found
}

func flags(node *kong.Node) (found []candidate) {
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			found = append(found, candidate{"--" + f.Name, f.Help})
			if f.Tag.Negatable != "" {
				found = append(found, candidate{"--no-" + f.Name, ""})
			}
		}
	}
	return found
}

// commands returns the subcommands of a command, or the values of its argument.
func commands(node *kong.Node) (found []candidate) {
	for _, child := range node.Children {
		if !child.Hidden {
			found = append(found, candidate{child.Name, child.Help})
		}
	}
	for _, argument := range node.Positional {
		found = append(found, values(argument, "")...)
	}
	return found
}
