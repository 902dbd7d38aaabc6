package markdown

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares every testdata/*.md with its reviewed output,
// wide, narrow, colored and plain. Escape sequences are written as ␛.
func TestGolden(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("testdata/*.md")
	if err != nil || len(sources) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, path := range sources {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, width := range []int{60, 24} {
				for _, color := range []bool{false, true} {
					fmt.Fprintf(&got, "== width %d, color %v\n", width, color)
					for _, l := range Render(string(source), width, color) {
						got.WriteString(strings.ReplaceAll(l, "\x1b", "␛") + "\n")
					}
				}
			}
			golden := strings.TrimSuffix(path, ".md") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		source string
		width  int
		want   []string
	}{
		"empty":                     {"", 20, nil},
		"one word":                  {"hi", 20, []string{"hi"}},
		"words":                     {"one two three four", 9, []string{"one two", "three", "four"}},
		"cyrillic":                  {"выключить чайник сейчас", 16, []string{"выключить чайник", "сейчас"}},
		"wide":                      {"你好世界你好", 8, []string{"你好世界", "你好"}},
		"a word wider than a line":  {"abcdefghijklmno", 8, []string{"abcdefgh", "ijklmno"}},
		"emoji of several runes":    {"👨‍👩‍👧‍👦 ok", 20, []string{"👨‍👩‍👧‍👦 ok"}},
		"line breaks are kept":      {"one\ntwo", 20, []string{"one", "two"}},
		"paragraphs":                {"one\n\n\n\ntwo", 20, []string{"one", "", "two"}},
		"numbers start where told":  {"9. a\n10. b", 20, []string{" 9. a", "10. b"}},
		"nested list":               {"- a\n  - b\n\n    c", 20, []string{"• a", "  ◦ b", "", "    c"}},
		"quoted list":               {"> - a\n> - b", 20, []string{"│ • a", "│ • b"}},
		"empty item":                {"-\n- b", 20, []string{"•", "• b"}},
		"list in a list item":       {"1. - a\n   - b", 20, []string{"1. ◦ a", "   ◦ b"}},
		"code span":                 {"run `ls`", 20, []string{"run `ls`"}},
		"fence":                     {"```\na  b\n\nc\n```", 20, []string{"  a  b", "", "  c"}},
		"unfinished fence":          {"x\n```go\nfunc", 20, []string{"x", "", "  func"}},
		"unfinished emphasis":       {"this is **imp", 20, []string{"this is **imp"}},
		"link":                      {"[a](http://b)", 20, []string{"a (http://b)"}},
		"link that is its own name": {"<http://b>", 20, []string{"http://b"}},
		"strike":                    {"~~a~~ b ~c~", 20, []string{"a b ~c~"}},
		"entities and escapes":      {`&amp; \* &#x41;`, 20, []string{"& * A"}},
		"html is text":              {"a <b>c</b>", 20, []string{"a <b>c</b>"}},
		"table":                     {"|a|b|\n|-|-|\n|1|2|", 20, []string{"a  b", "────", "1  2"}},
		"no table":                  {"a | b\nc | d", 20, []string{"a | b", "c | d"}},
		"table without room":        {"|a|b|c|\n|-|-|-|\n|1|2|3|", 10, []string{"a: 1", "b: 2", "c: 3"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(c.want, Render(c.source, c.width, false)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNoControlCharactersReachTheTerminal(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"\x1b[2J\x1b]0;title\x07 text", "&#27;[2J text", "&#x9b;2J text", "`\x1b[2J` text", "[x](http://\x1b[2Jtext)",
		"\u009b2J text", "a\rtext", "\b\b\btext", "\u202etext", "```\n\x1bc\n```\ntext", "|a\x1b|b|\n|-|-|\n|text|\x1b[1m|",
		"<text\x1b[2J>",
	} {
		joined := strings.Join(Render(source, 40, false), "\n")
		if i := strings.IndexFunc(joined,
			func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0x202e }); i >= 0 {
			t.Errorf("%q became %q", source, joined)
		}
		if !strings.Contains(joined, "text") {
			t.Errorf("%q lost its text: %q", source, joined)
		}
	}
}

var ansi = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// check checks the promises of the package for an output.
func check(t *testing.T, source string, width int) {
	t.Helper()
	plain, colored := Render(source, width, false), Render(source, width, true)
	for _, l := range plain {
		if strings.ContainsRune(l, '\x1b') {
			t.Fatalf("escape without color: %q", l)
		}
	}
	for _, l := range colored {
		if w := Width(ansi.ReplaceAllString(l, "")); w > max(width, MinWidth) {
			t.Fatalf("%d cells at width %d: %q", w, width, l)
		}
		bare := ansi.ReplaceAllString(l, "")
		if strings.ContainsFunc(bare, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Fatalf("control character in %q", l)
		}
		if strings.Count(l, "\x1b[0m")*2 != strings.Count(l, "\x1b[") {
			t.Fatalf("a style reaches out of %q", l)
		}
	}
}

func TestDeepNestingIsCheap(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"> ", ">", "- ", "1. ", "**a ", "[", "~~", "`a "} {
		check(t, strings.Repeat(unit, 500)+"x", 80)
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{"# a\n- b\n> c", "```\nx", "|a|b|\n|-|-|\n|1|2|", "~~a~~ ~~", "[a][b]\n\n[b]: c",
		"&#27;[", "你好**世界**", "1. - > x", "<div>\nx"} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, source string, width int) {
		if len(source) > 4096 {
			t.Skip()
		}
		check(t, source, width%200)
	})
}
