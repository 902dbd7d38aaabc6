package markdown

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/internal/seed"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("x", 50)
	tests := []struct {
		name  string
		text  string
		limit int
		want  []string
	}{
		{"no limit", strings.Repeat("long ", 5000), 0, []string{strings.Repeat("long ", 5000)}},
		{"it fits", "short", 5, []string{"short"}},
		{
			"between paragraphs",
			"one one one.\n\ntwo two two.\n\nthree three",
			30,
			[]string{"one one one.\n\ntwo two two.", "three three"},
		},
		{"between lines", "- one one one\n- two two two\n- three", 28, []string{"- one one one\n- two two two", "- three"}},
		{
			"the indentation of a list stays",
			"- one one one one\n  - two two two",
			20,
			[]string{"- one one one one", "  - two two two"},
		},
		{"between sentences", "This is one. This is two. And three", 28, []string{"This is one. This is two.", "And three"}},
		{"between words", "alpha beta gamma delta", 12, []string{"alpha beta", "gamma delta"}},
		{"a huge word", word, 20, []string{word[:20], word[:20], word[:10]}},
		{"not within a surrogate pair", "😀😀😀", 3, []string{"😀", "😀", "😀"}},
		{"not within a family", "👨‍👩‍👧👨‍👩‍👧", 9, []string{"👨‍👩‍👧", "👨‍👩‍👧"}},
		{"not before an accent", "abce\u0301f", 4, []string{"abc", "e\u0301f"}},
		{"a character that is too long by itself", "👨‍👩‍👧", 3, []string{"👨\u200d", "👩\u200d", "👧"}},
		{"a limit below one character", "😀a", 1, []string{"😀", "a"}},
		{
			"a fence is closed and opened again", "```go\nline one here\nline two here\nline three\n```", 40,
			[]string{"```go\nline one here\nline two here\n```", "```go\nline three\n```"},
		},
		{
			"blank lines of code stay", "```\nline one is this\n\n\n    line two\nline three is this\n```", 40,
			[]string{"```\nline one is this\n\n\n    line two\n```", "```\nline three is this\n```"},
		},
		{
			"a fence that ends at the cut is not opened again",
			"```\naaaaaaaaaaaaaaaa\nbbbbbbbbbbbbbbb\n```\nand text behind it",
			40,
			[]string{"```\naaaaaaaaaaaaaaaa\nbbbbbbbbbbbbbbb\n```", "and text behind it"},
		},
		{
			"a fence within a longer one", "````\n```\nfirst inner line\n```\nsecond line, outer\n````", 40,
			[]string{"````\n```\nfirst inner line\n```\n````", "````\nsecond line, outer\n````"},
		},
		{
			"code within a line opens nothing",
			"```code``` and text\nmore text behind it",
			24,
			[]string{"```code``` and text", "more text behind it"},
		},
		{"no room for fences", "```\nabc def\n```", 10, []string{"```", "abc def", "```"}},
		{"nothing but space", strings.Repeat(" ", 20), 5, []string{" "}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := Split(test.text, test.limit); !slices.Equal(got, test.want) {
				t.Errorf("Split(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
			}
		})
	}
}

// visible is the characters of a text that are not space.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// missing is what does not stand in got, in order.
func missing(want, got string) string {
	for _, r := range got {
		if first, size := utf8.DecodeRuneInString(want); size > 0 && first == r {
			want = want[size:]
		}
	}
	return want
}

// checkSplit says what holds for every text and limit.
func checkSplit(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, limit int) {
	t.Helper()
	parts := Split(text, limit)
	for i, part := range parts {
		if Len(part) > limit && utf8.RuneCountInString(part) > 1 {
			t.Fatalf("part %d of %d of %q has %d units, the limit is %d: %q", i, len(parts), text, Len(part), limit, part)
		}
		if open := openFence(part); open != "" && limit >= 64 && len(parts) > 1 {
			t.Fatalf("part %d of %d of %q ends in the fence %q: %q", i, len(parts), text, open, part)
		}
		if strings.TrimSpace(part) == "" && strings.TrimSpace(text) != "" && len(parts) > 1 {
			t.Fatalf("part %d of %q is blank", i, text)
		}
	}
	if lost := missing(visible(text), visible(strings.Join(parts, ""))); lost != "" {
		t.Fatalf("the parts of %q at %d lose %q: %q", text, limit, lost, parts)
	}
	if extra := len(visible(strings.Join(parts, ""))) - len(visible(text)); extra > len(parts)*limit/2 {
		t.Fatalf("the parts of %q at %d say %d bytes more: %q", text, limit, extra, parts)
	}
}

var pieces = []string{
	"word ",
	"word",
	"\n",
	"\n\n",
	". ",
	"```\n",
	"```go\n",
	"````\n",
	"~~~\n",
	"\n```\n",
	"\n~~~\n",
	"    code\n",
	"- item\n",
	"`code`",
	"```x``` ",
	"😀",
	"👨‍👩‍👧",
	"e\u0301",
	"ж",
	"漢字",
	"\r\n",
	"\t",
	" ",
	"averyveryverylongwordthatisnotbrokenanywhereatall",
}

func TestSplitAnyText(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 200).Draw(t, "text"), "")
		checkSplit(t, text, rapid.IntRange(1, 200).Draw(t, "limit"))
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("```go\nfunc main() {}\n```\n\nand text 😀 behind it, with a longword"+strings.Repeat("g", 90), 64)
	f.Add("~~~\n```\n~~~\n"+strings.Repeat("a b\n", 60), 70)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if !utf8.ValidString(text) || limit < 1 {
			t.Skip()
		}
		checkSplit(t, text, limit)
	})
}
