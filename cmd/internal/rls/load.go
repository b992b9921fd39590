package rls

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
)

// readFiles returns the files of a configuration as one text, of which parseFiles makes the
// configuration. name is a file, or a directory with files *.yaml or *.yml.
func readFiles(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	names := []string{name}
	if info.IsDir() {
		if names, err = namesIn(name); err != nil {
			return "", err
		}
	}
	var all []byte
	for _, n := range names {
		text, err := textfile.Read(n)
		if err != nil {
			return "", err
		}
		all = compositekey.Append(compositekey.Append(all, n), text)
	}
	return string(all), nil
}

// namesIn returns the names of the files of a directory. The names with a dot in front are links of
// Kubernetes, or not for programs.
func namesIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s: no file *.yaml", dir)
	}
	return names, err
}

// parseFiles parses a text of readFiles.
func parseFiles(text string, mergeDomains bool) (*config.Config, error) {
	var files []config.File
	parts := compositekey.Parts(text)
	for i := 0; i+1 < len(parts); i += 2 {
		files = append(files, config.File{Name: parts[i], Text: parts[i+1]})
	}
	return config.Parse(files, mergeDomains)
}
