package agent

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	loop "github.com/switchboard-run/switchboard/sdk/agent"
)

//go:embed prompts/*.md
var embedded embed.FS

const (
	promptsDir = "prompts"
	systemFile = "system.md"
	nowFile    = "now.md"
	// checkInterval is how often overriding files are checked for changes.
	checkInterval = 2 * time.Second
	// maxFile bounds an overriding file, in bytes.
	maxFile = 256 << 10
)

// builtin returns the built-in texts.
var builtin = sync.OnceValue(func() *template.Template {
	t := template.New("").Funcs(template.FuncMap{
		"trim":     strings.TrimSpace,
		"duration": words.Span,
	})
	return template.Must(t.ParseFS(embedded, "prompts/*.md"))
})

// prompts renders the texts of one agent. Files in dir replace the built-in texts of
// the same name.
type prompts struct {
	dir string
	log hclog.Logger

	mu      sync.Mutex
	checked time.Time
	files   map[string]stamp
	texts   *template.Template
}

// stamp identifies a version of a file.
type stamp struct {
	size     int64
	modified time.Time
}

func openPrompts(k *sdk.Kernel) (loop.Prompts, error) {
	return newPrompts(filepath.Join(k.DataDir(), promptsDir), k.Log()), nil
}

// BuiltinPrompts returns the built-in texts, without those that an agent's files replace.
func BuiltinPrompts() loop.Prompts { return newPrompts("", hclog.NewNullLogger()) }

func newPrompts(dir string, log hclog.Logger) *prompts {
	return &prompts{dir: dir, log: log, texts: builtin()}
}

// System returns the system prompt. If an overriding file fails, it logs the error and
// uses the built-in text.
func (p *prompts) System(s loop.Scene) (string, error) { return p.render(systemFile, s) }

// Preamble returns the facts that change during a conversation.
func (p *prompts) Preamble(s loop.Scene) (string, error) { return p.render(nowFile, s) }

// Say returns the text of an ending.
func (p *prompts) Say(e loop.Ending) (string, error) { return p.render(e.Why+".md", e) }

func (p *prompts) render(name string, data any) (string, error) {
	texts := p.current()
	text, err := execute(texts, name, data)
	if err != nil && texts != builtin() {
		p.log.Warn("render a prompt: using the built-in texts", "file", name, "dir", p.dir, "error", err)
		text, err = execute(builtin(), name, data)
	}
	if err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return text, nil
}

func execute(t *template.Template, name string, data any) (string, error) {
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return "", err
	}
	return tidy(b.String()), nil
}

// tidy removes repeated empty lines, which conditions in templates leave.
func tidy(text string) string {
	for strings.Contains(text, "\n\n\n") {
		text = strings.ReplaceAll(text, "\n\n\n", "\n\n")
	}
	return strings.TrimSpace(text)
}

// current returns the texts. It checks for overriding files every checkInterval.
func (p *prompts) current() *template.Template {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.checked.IsZero() && time.Since(p.checked) < checkInterval {
		return p.texts
	}
	p.checked = time.Now()
	files := p.find()
	if same(files, p.files) {
		return p.texts
	}
	p.files = files
	p.texts = p.load(files)
	return p.texts
}

// find returns the overriding files; none if the folder does not exist.
func (p *prompts) find() map[string]stamp {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.log.Warn("read the folder of prompts", "dir", p.dir, "error", err)
		}
		return nil
	}
	files := map[string]stamp{}
	for _, e := range entries {
		if builtin().Lookup(e.Name()) == nil {
			continue
		}
		if info, err := os.Stat(filepath.Join(p.dir, e.Name())); err == nil && info.Mode().IsRegular() {
			files[e.Name()] = stamp{size: info.Size(), modified: info.ModTime()}
		}
	}
	return files
}

func same(a, b map[string]stamp) bool {
	if len(a) != len(b) {
		return false
	}
	for name, s := range a {
		if o, ok := b[name]; !ok || o.size != s.size || !o.modified.Equal(s.modified) {
			return false
		}
	}
	return true
}

// load parses the overriding files. If one cannot be parsed, it logs the error and uses
// the built-in one.
func (p *prompts) load(files map[string]stamp) *template.Template {
	if len(files) == 0 {
		return builtin()
	}
	texts := template.Must(builtin().Clone())
	for name, s := range files {
		if err := parseFile(texts, filepath.Join(p.dir, name), name, s.size); err != nil {
			p.log.Error("read a prompt: using the built-in one", "file", filepath.Join(p.dir, name), "error", err)
		}
	}
	return texts
}

// Timed returns the overriding files in an agent's data directory that make its system
// prompt depend on the time. Then no request begins like the previous one, and the
// provider's cache is useless.
func Timed(dataDir string) (timed []string) {
	dir := filepath.Join(dataDir, promptsDir)
	p := newPrompts(dir, hclog.NewNullLogger())
	for name, s := range p.find() {
		texts := p.load(map[string]stamp{name: s})
		zone := time.FixedZone("Here", 0)
		first, err := execute(texts, systemFile, loop.Scene{Now: time.Unix(0, 0).In(zone), Zone: zone.String()})
		if err != nil {
			continue
		}
		later, err := execute(texts, systemFile, loop.Scene{Now: time.Unix(1e9, 0).In(zone), Zone: zone.String()})
		if err == nil && first != later {
			timed = append(timed, filepath.Join(dir, name))
		}
	}
	slices.Sort(timed)
	return timed
}

func parseFile(texts *template.Template, path, name string, size int64) error {
	if size > maxFile {
		return fmt.Errorf("file too large: %d bytes, at most %d", size, maxFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = texts.New(name).Parse(string(b))
	return err
}
