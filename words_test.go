package switchboard

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/leonelquinteros/gotext"

	"github.com/switchboard-run/switchboard/contract"
	slash "github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/extensions/links"
	"github.com/switchboard-run/switchboard/extensions/memory"
	"github.com/switchboard-run/switchboard/extensions/scheduler"
	"github.com/switchboard-run/switchboard/extensions/tasks"
	"github.com/switchboard-run/switchboard/extensions/usage"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/sdk"
)

// said has the texts that the program says to people, with their plural form (or
// nothing) and one of the places that say them.
type said map[string]struct{ plural, place string }

// TestEveryLanguageHasEveryText reads the calls of package words in the kernel and the
// extensions and compares them with the files of the languages.
func TestEveryLanguageHasEveryText(t *testing.T) {
	t.Parallel()
	all := said{}
	for _, dir := range []string{"contract", "home", "kernel", "manifests", "extensions", "sdk", "cmd"} {
		if err := filepath.WalkDir(dir, all.read); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d texts were found", len(all))
	}
	all.readDynamic(t)
	files, err := filepath.Glob("contract/words/*.po")
	if err != nil || len(files) == 0 {
		t.Fatalf("no languages: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			po := gotext.NewPo()
			po.Parse(text)
			translations := po.GetDomain().GetTranslations()
			for _, english := range slices.Sorted(maps.Keys(all)) {
				what := all[english]
				tr := translations[english]
				switch {
				case tr == nil || len(tr.Trs) == 0 || tr.Trs[0] == "":
					missing := fmt.Sprintf("msgid %q\nmsgstr \"\"", english)
					if what.plural != "" {
						missing = fmt.Sprintf("msgid %q\nmsgid_plural %q\nmsgstr[0] \"\"", english, what.plural)
					}
					t.Errorf("%s says a text that %s lacks:\n%s", what.place, file, missing)
				case tr.PluralID != what.plural:
					t.Errorf("the plural of %q is %q, not %q", english, tr.PluralID, what.plural)
				default:
					for _, text := range tr.Trs {
						if got, want := verbs(text), verbs(english); !slices.Equal(got, want) {
							t.Errorf("%q has the verbs %q, and %q has %q", english, want, text, got)
						}
					}
				}
			}
			for english := range translations {
				if _, ok := all[english]; !ok && english != "" {
					t.Errorf("no code says %q", english)
				}
			}
		})
	}
}

var verb = regexp.MustCompile(`%(\[\d+\])?[a-z]`)

// verbs are the arguments that a format has, sorted. One that names its argument may
// stand anywhere.
func verbs(format string) []string {
	var all []string
	for i, v := range verb.FindAllString(strings.ReplaceAll(format, "%%", ""), -1) {
		if !strings.HasPrefix(v, "%[") {
			v = "%[" + strconv.Itoa(i+1) + "]" + v[1:]
		}
		all = append(all, v)
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// sayers are the functions of package words, and those in front of them, and which of
// their arguments is the text.
var sayers = map[string]int{"Say": 1, "Errorf": 0, "Sprintf": 0, "say": 0, "failf": 1}

var letters = regexp.MustCompile(`[A-Za-z]`)

// templateText is a text in a template; the second one is of Count.
var templateText = regexp.MustCompile(`\.(?:Say|Count) ("(?:[^"\\]|\\.)*")(?: ("(?:[^"\\]|\\.)*"))?`)

// readTemplate collects the texts of a template.
func (s said) readTemplate(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, m := range templateText.FindAllStringSubmatch(string(b), -1) {
		text, err := strconv.Unquote(m[1])
		if err != nil {
			return fmt.Errorf("%s: %s: %w", path, m[1], err)
		}
		plural := ""
		if strings.HasPrefix(m[0], ".Count") {
			if plural, err = strconv.Unquote(m[2]); err != nil {
				return fmt.Errorf("%s: %s: %w", path, m[0], err)
			}
		}
		s.add(path, text, plural)
	}
	return nil
}

// read collects the texts of a file.
func (s said) read(path string, d fs.DirEntry, err error) error {
	if err == nil && strings.HasSuffix(path, ".html") && strings.HasPrefix(filepath.ToSlash(path), "extensions/") {
		return s.readTemplate(path)
	}
	if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		return err
	}
	consts := map[string]ast.Expr{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for i := range v.Names {
				if i < len(v.Values) {
					consts[v.Names[i].Name] = v.Values[i]
				}
			}
		}
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 {
			if name, ok := a.Lhs[0].(*ast.Ident); ok && a.Tok == token.DEFINE {
				consts[name.Name] = a.Rhs[0]
			}
		}
		return true
	})
	ast.Inspect(file, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok && filepath.ToSlash(filepath.Dir(path)) == "contract/coretool" {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Description" {
				s.add(path, summary(literal(kv.Value, consts)), "")
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		place := fmt.Sprint(path, ":", files.Position(call.Pos()).Line)
		of, name := "", ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			if x, ok := f.X.(*ast.Ident); ok {
				of = x.Name
			}
			name = f.Sel.Name
		}
		if name == "Count" && of == "words" {
			s.add(place, literal(call.Args[1], consts), literal(call.Args[2], consts))
		} else if i, says := sayers[name]; says && len(call.Args) > i && (unicode.IsLower(rune(name[0])) || of == "words" ||
			of == "" && filepath.Base(filepath.Dir(path)) == "words") {
			s.add(place, literal(call.Args[i], consts), "")
		} else if name == "Hint" && of == "directory" {
			s.add(place, literal(call.Args[0], consts), "")
		}
		return true
	})
	return nil
}

func (s said) add(place, text, plural string) {
	if letters.MatchString(verb.ReplaceAllString(text, "")) {
		s[text] = struct{ plural, place string }{plural, place}
	}
}

// literal is the value of a constant text; empty: it is not constant.
func literal(e ast.Expr, consts map[string]ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0))
		}
	case *ast.BinaryExpr:
		x, y := literal(e.X, consts), literal(e.Y, consts)
		if x != "" && y != "" {
			return x + y
		}
	case *ast.Ident:
		if value := consts[e.Name]; value != nil {
			delete(consts, e.Name)
			defer func() { consts[e.Name] = value }()
			return literal(value, consts)
		}
	}
	return ""
}

// readDynamic adds the texts that are values: of commands, channels and their states.
func (s said) readDynamic(t *testing.T) {
	s.add("contract/limits.go", strings.TrimSpace(contract.RepeatMark), "")
	for _, why := range []string{
		"You asked for it: /agent chooses another one.", "/agent lists those that are.",
		"The configuration maps this channel to it (agents.routing).",
		"The configuration makes it the default (agents.default).", "The configuration enables no agent (agents.enabled).",
	} {
		s.add("kernel/router/message.go", why, "")
	}
	values := regexp.MustCompile(`\{\{.*?\}\}`)
	for _, name := range []string{"capped", "empty", "error", "timeout"} {
		file := "extensions/agent/prompts/" + name + ".md"
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s.add(file, strings.TrimSpace(values.ReplaceAllString(string(text), "%v")), "")
	}
	for _, c := range slash.Builtin() {
		s.add("contract/command/slash.go", c.Description, "")
		s.add("contract/command/slash.go", c.Arguments, "")
	}
	entries, err := manifests.LoadBuiltin(manifests.FS, manifests.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Err != nil {
			t.Fatal(e.Err)
		}
		m := e.Manifest
		for _, c := range m.Provides.Commands {
			s.add(m.ID+".yaml", c.Description, "")
		}
		s.add(m.ID+".yaml", m.Name, "")
	}
	for _, state := range []string{
		"ready", "degraded", "unconfigured", "offline", "unavailable", "inactive", "starting", "stopping", "failed",
		"backing_off",
	} {
		s.add("a state", state, "")
	}
	for _, text := range []string{
		"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "%d d", "%d h", "%d min", "%d s", "paused", "done", "cancelled",
	} {
		s.add("a part of a schedule", text, "")
	}
	for _, word := range []string{
		tasks.OK, tasks.Failed, tasks.Timeout, tasks.Cancelled, tasks.Capped, tasks.Interrupted,
		tasks.Queued, tasks.Running, tasks.Finished,
	} {
		s.add("a state of a task", word, "")
	}
	for _, e := range []sdk.Extension{memory.New(), tasks.New(), scheduler.New(), usage.New(), links.New()} {
		for _, tool := range e.Tools {
			if tool.Command != "" {
				s.readParameters(t, tool.Schema)
			}
			if !tool.ReadOnly { // a person may be asked to approve it
				s.add("a tool of "+e.ID, summary(tool.Description), "")
			}
		}
	}
	for _, kind := range []string{
		"image", "voice", "audio", "document", "video", "sticker", "animated sticker", "poll", "story", "dice", "game",
		"checklist", "paid media", "file over 20 MB, which Telegram doesn't pass on to bots",
		"file that is too large to store", "file that Telegram no longer has",
		"file that couldn't be downloaded from Telegram", "file that Discord no longer has",
		"file that couldn't be downloaded from Discord",
		"file that Slack no longer has", "file that couldn't be downloaded from Slack", "file that isn't stored at Slack",
	} {
		s.add("an attachment", kind, "")
	}
}

// readParameters adds what the usage of a command says of its parameters.
func (s said) readParameters(t *testing.T, schema []byte) {
	var object struct {
		Properties map[string]struct{ Description string }
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		t.Fatal(err)
	}
	for _, p := range object.Properties {
		s.add("a parameter of a command", p.Description, "")
	}
}

// summary is what a person reads of a tool's description: its first sentence.
func summary(description string) string {
	first, _, cut := strings.Cut(description, ". ")
	if cut {
		first += "."
	}
	return first
}
