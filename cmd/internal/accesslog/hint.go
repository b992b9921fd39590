package accesslog

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxHint is the most bytes of names in a hint.
const maxHint = 300

// memberNames returns the names of the members of an object, and of the objects in it.
func memberNames(before string, object gjson.Result) (names []string) {
	object.ForEach(func(name, value gjson.Result) bool {
		path := before + name.Str
		if value.IsObject() && len(path) < maxHint {
			names = append(names, memberNames(path+".", value)...)
		} else {
			names = append(names, path)
		}
		return true
	})
	return names
}

// hintFor returns how to name the fields of an object.
func hintFor(object gjson.Result) string {
	names := strings.Join(memberNames("", object), ", ")
	if len(names) > maxHint {
		names = names[:maxHint] + "…"
	}
	return "the object has " + names + ": --field ip=NAME, time=NAME or uri=NAME says which one to use"
}
