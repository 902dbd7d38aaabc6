// Package switchboard holds no code: its test keeps the documentation true
// where that is cheap. Links resolve, commands exist, examples are the files
// they claim to be and are accepted by the program, and reference tables leave
// nothing out.
package switchboard

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/manifests"
)

// page is one Markdown file.
type page struct {
	file   string
	source []byte
	root   ast.Node
}

// pages are the files that are written for people.
func pages(t *testing.T) (all []page) {
	t.Helper()
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" || d.Name() == "prompts"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(all, page{file: path, source: source, root: markdown.Parser().Parse(text.NewReader(source))})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found %d pages only", len(all))
	}
	return all
}

func (p page) walk(visit func(ast.Node)) {
	_ = ast.Walk(p.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// fences are the contents of the fenced blocks in a language.
func (p page) fences(language string) (blocks []string) {
	p.walk(func(n ast.Node) {
		if f, ok := n.(*ast.FencedCodeBlock); ok && string(f.Language(p.source)) == language {
			blocks = append(blocks, string(f.Lines().Value(p.source)))
		}
	})
	return blocks
}

// spans are the code spans and the lines of shell blocks and transcripts.
func (p page) spans() (spans []string) {
	p.walk(func(n ast.Node) {
		if _, ok := n.(*ast.CodeSpan); !ok {
			return
		}
		var b strings.Builder
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if piece, ok := c.(*ast.Text); ok {
				b.Write(piece.Segment.Value(p.source))
			}
		}
		spans = append(spans, b.String())
	})
	for _, language := range []string{"sh", "text"} {
		for _, block := range p.fences(language) {
			for line := range strings.Lines(block) {
				line, _, _ = strings.Cut(line, " #")
				spans = append(spans, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
			}
		}
	}
	return spans
}

// headings are the anchors of a page.
func (p page) headings() map[string]bool {
	anchors := map[string]bool{}
	p.walk(func(n ast.Node) {
		if _, ok := n.(*ast.Heading); !ok {
			return
		}
		if id, ok := n.AttributeString("id"); ok {
			anchors[string(id.([]byte))] = true
		}
	})
	return anchors
}

func find(t *testing.T, all []page, file string) page {
	t.Helper()
	for _, p := range all {
		if p.file == file {
			return p
		}
	}
	t.Fatalf("there is no page %s", file)
	return page{}
}

func TestRelativeLinksResolve(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, p := range all {
		p.walk(func(n ast.Node) {
			link, ok := n.(*ast.Link)
			if !ok {
				return
			}
			u, err := url.Parse(string(link.Destination))
			if err != nil {
				t.Errorf("%s: link %q: %v", p.file, link.Destination, err)
				return
			}
			if u.Scheme != "" {
				return
			}
			target := p.file
			if u.Path != "" {
				target = filepath.Join(filepath.Dir(p.file), u.Path)
			}
			if _, err := os.Stat(target); err != nil || !filepath.IsLocal(target) {
				t.Errorf("%s: link %q leads nowhere", p.file, link.Destination)
				return
			}
			if u.Fragment != "" && !find(t, all, target).headings()[u.Fragment] {
				t.Errorf("%s: link %q: %s has no such heading", p.file, link.Destination, target)
			}
		})
	}
}

func TestReadmeShowsTheExampleChannel(t *testing.T) {
	t.Parallel()
	readme := find(t, pages(t), "README.md")
	for language, file := range map[string]string{"go": "sdk/examples/filechannel/main.go", "yaml": "sdk/examples/filechannel/manifest.yaml"} {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks := readme.fences(language)
		if len(blocks) != 1 || strings.TrimSpace(blocks[0]) != strings.TrimSpace(string(want)) {
			t.Errorf(
				"the one block of %s in README.md has to be %s, whole; it is:\n%s",
				language,
				file,
				strings.Join(blocks, "\n---\n"),
			)
		}
		if lines := strings.Count(string(want), "\n"); language == "go" && lines > 25 {
			t.Errorf("%s has %d lines: the README promises 25", file, lines)
		}
	}
}

func TestConfigurationPageIsAcceptedAndComplete(t *testing.T) {
	t.Parallel()
	p := find(t, pages(t), filepath.Join("docs", "configuration.md"))
	blocks := p.fences("yaml")
	if len(blocks) == 0 {
		t.Fatal("there is no example")
	}
	for _, block := range blocks {
		if _, err := config.Parse("config.yaml", []byte(block)); err != nil {
			t.Errorf("an example is refused:\n%v", err)
		}
	}
	for _, f := range fields(reflect.TypeFor[config.Config](), "") {
		if !regexp.MustCompile(`\b` + f.name + `:`).MatchString(blocks[0]) {
			t.Errorf("%s is missing in the example", f.path)
		}
	}
}

func TestManifestReferenceIsAcceptedAndComplete(t *testing.T) {
	t.Parallel()
	p := find(t, pages(t), filepath.Join("docs", "extensions.md"))
	id := regexp.MustCompile(`(?m)^id: (\w+)`)
	parsed := 0
	for _, block := range p.fences("yaml") {
		m := id.FindStringSubmatch(block)
		if m == nil && strings.Contains(block, "\nextensions:\n") {
			if _, err := install.ParseIndex("index.yaml", []byte(block)); err != nil {
				t.Errorf("an example is refused:\n%v", err)
			}
			continue
		}
		if m == nil {
			t.Errorf("this example is no manifest:\n%s", block)
			continue
		}
		if _, err := manifests.Parse(m[1]+"/manifest.yaml", []byte(block)); err != nil {
			t.Errorf("an example is refused:\n%v", err)
		}
		parsed++
	}
	if parsed < 2 {
		t.Errorf("%d manifests are shown; there should be more", parsed)
	}
	for _, f := range fields(reflect.TypeFor[manifests.Manifest](), "") {
		row := rowOf(string(p.source), f)
		switch {
		case row == "":
			t.Errorf("%s is missing in the reference", f.path)
		case f.fallback != "" && !strings.Contains(row, f.fallback):
			t.Errorf("%s: its default is %s, and the reference says:\n%s", f.path, f.fallback, row)
		}
	}
}

// field is one key of a file, as the program reads it.
type field struct{ path, name, fallback string }

// fields lists the keys of a struct that is read from YAML.
func fields(t reflect.Type, prefix string) (all []field) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			inner = inner.Elem()
		}
		if name != "" {
			all = append(all, field{path: prefix + name, name: name, fallback: f.Tag.Get("default")})
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() && f.IsExported() &&
			f.Tag.Get("yaml") != "" {
			next := prefix + name + "."
			if name == "" {
				next = prefix // the keys of the rest
			}
			all = append(all, fields(inner, next)...)
		}
	}
	return all
}

// rowOf is the row of a table whose first cell names the field; or, for the
// fields of a list's entries, one that names them in its text.
func rowOf(source string, f field) string {
	inText := ""
	word := regexp.MustCompile(`\b` + f.name + `\b`)
	parent := ""
	if i := strings.LastIndexByte(f.path, '.'); i >= 0 {
		parent = f.path[:i]
	}
	for line := range strings.Lines(source) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		switch first := strings.ReplaceAll(cells[1], "`", ""); {
		case strings.Contains(first, f.path), f.fallback != "" && word.MatchString(first):
			return line
		case parent != "" && strings.TrimSpace(first) == parent && word.MatchString(line),
			strings.TrimSpace(first) == "."+f.name:
			return line
		case f.fallback == "" && word.MatchString(first):
			inText = line
		}
	}
	return inText
}

func TestCommandsExist(t *testing.T) {
	t.Parallel()
	if _, err := os.ReadDir(filepath.Join("cmd", "switchboard")); err != nil { // go test's stored result depends on it
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "switchboard")
	if out, err := exec.CommandContext(
		t.Context(),
		"go",
		"build",
		"-o",
		binary,
		"./cmd/switchboard",
	).CombinedOutput(); err != nil {
		t.Fatalf("building the binary: %v\n%s", err, out)
	}
	tree := commandTree(t, binary)
	all := pages(t)
	for _, p := range all {
		for _, span := range p.spans() {
			if rest, ok := strings.CutPrefix(span, "switchboard "); ok {
				if problem := tree.check(strings.Fields(rest)); problem != "" {
					t.Errorf("%s: `%s`: %s", p.file, span, problem)
				}
			}
		}
	}
	operating := strings.Join(find(t, all, filepath.Join("docs", "operating.md")).spans(), "\n")
	for _, path := range tree.leaves("switchboard") {
		if strings.HasPrefix(path, "switchboard completion") || path == "switchboard help" {
			continue
		}
		if !strings.Contains(operating, path) {
			t.Errorf("docs/operating.md does not name `%s`", path)
		}
	}
}

// command is a node of the command line, as its help tells it.
type command struct {
	help  string
	verbs map[string]*command
}

var verbLine = regexp.MustCompile(`^  ([a-z]+) {2,}\S`)

func commandTree(t *testing.T, binary string, path ...string) *command {
	t.Helper()
	run := exec.CommandContext(t.Context(), binary, append(path, "--help")...)
	run.Env = append(os.Environ(), "SWITCHBOARD_HOME="+t.TempDir())
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("switchboard %s --help: %v\n%s", strings.Join(path, " "), err, out)
	}
	c := &command{help: string(out), verbs: map[string]*command{}}
	_, list, _ := strings.Cut(c.help, "Usage:")
	list, _, _ = strings.Cut(list, "\nFlags:")
	for line := range strings.Lines(list) {
		if m := verbLine.FindStringSubmatch(line); m != nil && m[1] != "switchboard" {
			c.verbs[m[1]] = commandTree(t, binary, append(slices.Clip(path), m[1])...)
		}
	}
	if len(path) == 0 && len(c.verbs) < 10 {
		t.Fatalf("the help names %d commands only:\n%s", len(c.verbs), out)
	}
	return c
}

// check says what is wrong with the words behind the program's name.
func (c *command) check(words []string) string {
	for len(words) > 0 && len(c.verbs) > 0 && !strings.HasPrefix(words[0], "-") {
		next := c.verbs[words[0]]
		if next == nil {
			return fmt.Sprintf("there is no command %q", words[0])
		}
		c, words = next, words[1:]
	}
	for _, w := range words {
		if w == "|" || w == "&&" {
			return ""
		}
		flag, _, _ := strings.Cut(w, "=")
		if len(flag) > 1 && flag[0] == '-' &&
			!regexp.MustCompile(`(?m)(^|[ ,])`+regexp.QuoteMeta(flag)+`\b`).MatchString(c.help) {
			return "there is no flag " + flag
		}
	}
	return ""
}

// leaves are the full names of the commands that do something.
func (c *command) leaves(name string) (all []string) {
	if len(c.verbs) == 0 {
		return []string{name}
	}
	for verb, next := range c.verbs {
		all = append(all, next.leaves(name+" "+verb)...)
	}
	return all
}
