// Package scaffold writes the first files of a new extension.
//
// The templates of a language are in the folder of its name: those in all are for each
// kind of extension, those in a folder named after a kind (channel, tool, agent) are for
// that kind only, and the text next says what to do with the result. Each file NAME.tmpl
// becomes NAME; a file beside a template that is not one is copied as it is. ID in a
// file's name stands for the extension's id.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/sdk/node"
	"github.com/switchboard-run/switchboard/sdk/python"
)

//go:embed all:go all:node all:python
var templates embed.FS

// Module is the module of the SDK.
const Module = "github.com/switchboard-run/switchboard"

// Languages are those that there are templates for.
var Languages = []string{"go", "node", "python"}

// packages are the SDKs that are copied into the directory vendor of the new extension,
// so that it works before a release of them; by language.
var packages = map[string]fs.FS{"node": node.Files, "python": python.SDK}

// Extension describes the extension to write. Templates see its fields.
type Extension struct {
	ID       string // also the name of the directory
	Language string // one of Languages
	Kind     string // channel, tool or agent
	Version  string // of Switchboard, without v
	Go       string // the version of Go that Module needs
	Checkout string // directory of a checkout of Module to build against; empty: a release
}

// Name is the id in words.
func (x Extension) Name() string {
	words := strings.Split(x.ID, "_")
	words[0] = strings.ToUpper(words[0][:1]) + words[0][1:]
	return strings.Join(words, " ")
}

// Module is the module of the SDK.
func (Extension) Module() string { return Module }

// Write creates the directory x.ID below dir, which must not exist, with the files, and
// returns their paths and what to do next, as commands for a shell. After an error the
// directory may hold a part of the files.
func Write(dir string, x Extension) (files []string, next string, err error) {
	if f := manifests.Checks["id"](x.ID); f != nil {
		return nil, "", errors.New(f.Message)
	}
	if !slices.Contains(Languages, x.Language) {
		return nil, "", fmt.Errorf("there are no templates in %s: choose one of %s",
			x.Language, strings.Join(Languages, ", "))
	}
	if _, err := fs.Stat(templates, path.Join(x.Language, x.Kind)); err != nil {
		return nil, "", fmt.Errorf("there are no templates of an extension of the kind %s in %s", x.Kind, x.Language)
	}
	root := filepath.Join(dir, x.ID)
	if err := os.Mkdir(root, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, "", fmt.Errorf("%s exists: choose another name, or remove it", root)
		}
		return nil, "", err
	}
	add := func(source fs.FS, folder, target string) error {
		return fs.WalkDir(source, folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := fs.ReadFile(source, name)
			if err != nil {
				return err
			}
			relative := strings.TrimPrefix(strings.TrimPrefix(name, folder), "/")
			if strings.HasSuffix(name, ".tmpl") {
				if content, err = x.fill(name, content); err != nil {
					return err
				}
				relative = strings.ReplaceAll(strings.TrimSuffix(relative, ".tmpl"), "ID", x.ID)
			}
			file := filepath.Join(root, target, filepath.FromSlash(relative))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // source code is for everyone
				return err
			}
			files = append(files, file)
			return os.WriteFile(file, content, mode(content))
		})
	}
	for _, folder := range []string{"all", x.Kind} {
		if err := add(templates, path.Join(x.Language, folder), ""); err != nil {
			return files, "", err
		}
	}
	if source := packages[x.Language]; source != nil {
		if err := add(source, ".", "vendor"); err != nil {
			return files, "", err
		}
	}
	steps, err := templates.ReadFile(path.Join(x.Language, "next"))
	if err != nil {
		return files, "", err
	}
	steps, err = x.fill("next", steps)
	return files, strings.TrimSpace(string(steps)), err
}

// mode makes scripts executable.
func mode(content []byte) fs.FileMode {
	if bytes.HasPrefix(content, []byte("#!")) {
		return 0o755
	}
	return 0o644
}

func (x Extension) fill(name string, text []byte) ([]byte, error) {
	t, err := template.New(name).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, x)
	return out.Bytes(), err
}
