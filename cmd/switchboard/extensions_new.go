package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/manifests"
)

// scaffold holds the files of a new extension, by its kind.
//
//go:embed scaffold
var scaffold embed.FS

const (
	module    = "github.com/switchboard-run/switchboard"
	goVersion = "1.26.0" // required by the module
)

func newExtensionsNew() *cobra.Command {
	c := &cobra.Command{
		Use: "new NAME", Short: "Create a small extension in Go", Args: cobra.ExactArgs(1),
		Long: "Creates a directory with a manifest, a working main.go, a go.mod and a README with the steps to build\n" +
			"and install it: a channel (the default), or with --tool a tool. The name is its id: lower-case letters,\n" +
			"digits and underscores.",
		Example: "  switchboard extensions new my_channel\n  switchboard extensions new dice --tool",
	}
	channel := c.Flags().Bool("channel", false, "a channel to talk to people (the default)")
	tool := c.Flags().Bool("tool", false, "a tool for agents")
	replace := c.Flags().String("replace", "",
		"build against a checkout of Switchboard in this directory, instead of a release")
	c.RunE = func(c *cobra.Command, args []string) error {
		kind := "channel"
		if *tool && *channel {
			return fmt.Errorf("create the extension %s: give one of --channel and --tool", args[0])
		}
		if *tool {
			kind = "tool"
		}
		files, err := writeScaffold(kind, args[0], *replace)
		if err != nil {
			return fmt.Errorf("create the extension %s: %w", args[0], err)
		}
		p := printerOf(c)
		for _, f := range files {
			p.line("%s %s", p.paint(green, "✓"), f)
		}
		p.faint(fmt.Sprintf("Next: cd %s && go mod tidy && go build . && switchboard extensions verify .", args[0]))
		if *replace == "" {
			p.faint("With a checkout of Switchboard instead of a released version: --replace DIR")
		}
		return nil
	}
	return c
}

// scaffolded has the values for the templates.
type scaffolded struct {
	ID      string
	Name    string // for people
	Module  string
	Version string // of Switchboard
	Go      string
	Replace string
}

func writeScaffold(kind, id, replace string) (files []string, err error) {
	if f := manifests.Checks["id"](id); f != nil {
		return nil, errors.New(f.Message)
	}
	x := scaffolded{ID: id, Name: title(id), Module: module, Version: "v" + version, Go: goVersion}
	if replace != "" {
		if x.Replace, err = filepath.Abs(replace); err != nil {
			return nil, err
		}
		if data, err := os.ReadFile(filepath.Join(x.Replace, "go.mod")); err != nil ||
			!bytes.HasPrefix(data, []byte("module "+module)) {
			return nil, fmt.Errorf("--replace %s: not a checkout of %s", replace, module)
		}
	}
	if err := os.Mkdir(id, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s exists: choose another name, or remove it", id)
		}
		return nil, err
	}
	dir := "scaffold/" + kind
	entries, err := scaffold.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		source, err := scaffold.ReadFile(dir + "/" + e.Name())
		if err != nil {
			return nil, err
		}
		t, err := template.New(e.Name()).Parse(string(source))
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, x); err != nil {
			return nil, err
		}
		file := filepath.Join(id, strings.TrimSuffix(e.Name(), ".tmpl"))
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil { //nolint:gosec // source code is for everyone
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// title turns an id into a name for people.
func title(id string) string {
	words := strings.Split(id, "_")
	words[0] = strings.ToUpper(words[0][:1]) + words[0][1:]
	return strings.Join(words, " ")
}
