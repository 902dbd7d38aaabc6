package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/manifests"
)

// check reads the manifest of a fetched extension, and checks what a kernel would find
// wrong before it starts the extension.
func (i *Installer) check(tree string) (*manifests.Manifest, error) {
	if err := checkLinks(tree); err != nil {
		return nil, err
	}
	file := filepath.Join(tree, manifests.FileName)
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return nil, words.Errorf("%s is not a regular file", manifests.FileName)
	}
	data, err := filewatch.Read(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", manifests.FileName, err)
	}
	if _, err := manifests.Parse(manifests.FileName, data); err != nil { // under any name of the directory
		return nil, err
	}
	var named struct {
		ID string `yaml:"id"`
	}
	if err := yaml.Unmarshal(data, &named); err != nil {
		return nil, err
	}
	m, err := manifests.Parse(filepath.Join(i.options.Home.Extensions(), named.ID, manifests.FileName), data)
	if err != nil {
		return nil, err
	}
	if err := checkProgram(tree, m); err != nil {
		return nil, err
	}
	return m, i.options.Check(m)
}

// checkProgram checks that the executable is there, if it belongs to the extension.
func checkProgram(tree string, m *manifests.Manifest) error {
	command := m.Run.Command
	if command == "" || filepath.IsAbs(command) || !strings.ContainsRune(command, filepath.Separator) {
		return nil
	}
	if !filepath.IsLocal(command) {
		return words.Errorf("run.command of %s leads out of the extension's directory: %s", manifests.FileName, command)
	}
	info, err := os.Stat(filepath.Join(tree, command))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return words.Errorf("the executable %s is missing: build the extension first, "+
			"and install the directory or an archive of it", command)
	case err != nil:
		return fmt.Errorf("read the executable: %w", err)
	case !info.Mode().IsRegular():
		return words.Errorf("the executable %s is not a regular file", command)
	case info.Mode()&0o100 == 0:
		return words.Errorf("the executable %s may not be executed: run chmod +x on it, and pack it again", command)
	}
	return nil
}

// writable returns the paths in an extension's own directory that its manifest lets it
// write. They are not part of its hash, and an update keeps them.
func writable(m *manifests.Manifest) (paths []string) {
	for _, f := range m.Permissions.Files {
		if f.Write && filepath.IsLocal(f.Path) && filepath.Clean(f.Path) != "." {
			paths = append(paths, filepath.Clean(f.Path))
		}
	}
	return paths
}

// within reports whether a path is one of those, or below it.
func within(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
	})
}
