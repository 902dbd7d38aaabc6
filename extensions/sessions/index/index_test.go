package index

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func opened(t testing.TB, dir string) *Index {
	t.Helper()
	x, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func add(t testing.TB, x *Index, s Session, texts ...string) {
	t.Helper()
	all := make([]Text, len(texts))
	for i, text := range texts {
		s.Rows++
		all[i] = Text{Seq: s.Rows, At: s.Created + s.Rows, Text: text}
	}
	if err := x.Add(Batch{s, all}); err != nil {
		t.Fatal(err)
	}
}

func found(t testing.TB, x *Index, q Query) (ids []string) {
	t.Helper()
	if err := x.Find(t.Context(), q, func(h Hit) (bool, error) {
		ids = append(ids, fmt.Sprintf("%s/%d", h.Session, h.Seq))
		return true, nil
	}); err != nil {
		t.Errorf("%+v: %v", q, err)
	}
	return ids
}

func TestFind(t *testing.T) {
	t.Parallel()
	x := opened(t, t.TempDir())
	add(t, x, Session{ID: "s1", Agent: "main", Channel: "telegram", Created: 1000}, "The plumber comes on Tuesday at 9",
		"I'll remind you of the plumber", "Купи чайник и ёлку", "write an e-mail to o'Brien", "the and of")
	add(t, x, Session{ID: "s2", Agent: "helper", Created: 500}, "Plumbers are expensive", "Чайники, чайнику!")
	for query, want := range map[string][]string{
		"plumber":             {"s1/2", "s1/1", "s2/1"}, // the newest first
		"plumbers tuesday":    {"s1/1"},
		"the plumber of":      {"s1/2", "s1/1", "s2/1"}, // common words don't count
		"the of":              {"s1/5", "s1/2"},
		`"of the plumber"`:    {"s1/2"},
		`"the plumber of"`:    nil,
		"plum*":               {"s1/2", "s1/1", "s2/1"},
		"reminder*":           {"s1/2"},
		"чайником":            {"s1/3", "s2/2"},
		"елка":                {"s1/3"},
		"чай*":                {"s1/3", "s2/2"},
		"e-mail":              {"s1/4"},
		"O’Brien":             {"s1/4"},
		"":                    nil,
		`"`:                   nil,
		"* AND OR NOT (":      nil,
		`NEAR("a" ^b) -c:d +`: nil,
		"plumber)":            {"s1/2", "s1/1", "s2/1"},
		`"plumber`:            {"s1/2", "s1/1", "s2/1"},
		"stems:plumber":       nil,
		"elephant":            nil,
		"«чайник и ёлку»":     {"s1/3"},
	} {
		if got := found(t, x, Query{Words: query}); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	for _, c := range []struct {
		q    Query
		want []string
	}{
		{Query{Words: "plumber", Agent: "helper"}, []string{"s2/1"}},
		{Query{Words: "plumber", Channel: "telegram"}, []string{"s1/2", "s1/1"}},
		{Query{Words: "plumber", Session: "s2"}, []string{"s2/1"}},
		{Query{Words: "plumber", Before: 1002 * perMicrosecond}, []string{"s1/1", "s2/1"}},
	} {
		if got := found(t, x, c.q); !slices.Equal(got, c.want) {
			t.Errorf("%+v finds %q, want %q", c.q, got, c.want)
		}
	}
}

func TestTextsOfOneMicrosecond(t *testing.T) {
	t.Parallel()
	x := opened(t, t.TempDir())
	for i := range 3 {
		if err := x.Add(Batch{Session{ID: fmt.Sprint("s", i), Rows: 2}, []Text{{1, 77, "tea"}, {2, 77, "tea"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := found(t, x, Query{Words: "tea"}); len(got) != 6 {
		t.Errorf("found %q", got)
	}
}

// A removed session leaves no word in the file.
func TestRemovedFromTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := opened(t, dir)
	add(t, x, Session{ID: "s1"}, "the password is xylophone", "and more about xylophones")
	add(t, x, Session{ID: "s2"}, "something else")
	if err := x.RemoveSession("s1"); err != nil {
		t.Fatal(err)
	}
	if got := found(t, x, Query{Words: "xylophone"}); got != nil {
		t.Errorf("found %q", got)
	}
	if got := found(t, x, Query{Words: "something"}); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fileName, fileName + "-wal"} {
		if data, _ := os.ReadFile(filepath.Join(dir, name)); strings.Contains(string(data), "xyloph") {
			t.Errorf("%s still has the word", name)
		}
	}
}

func TestADamagedFileIsReplaced(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"garbage": strings.Repeat("x", 10_000), "empty": ""} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		x := opened(t, dir)
		add(t, x, Session{ID: "s1"}, "tea")
		if got := found(t, x, Query{Words: "tea"}); len(got) != 1 {
			t.Errorf("%s: found %q", name, got)
		}
	}
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	x := opened(t, t.TempDir())
	long := strings.Repeat("слово и дело ", 40)
	for _, c := range []struct{ text, words, want string }{
		{"The plumber\n\ncomes", "plumbers", "The [plumber] comes"},
		{"Reminders: reminder", "remind*", "[Reminders]: [reminder]"},
		{"", "tea", ""},
		{"no match", "tea", "no match"},
		{"bad \xff tea", "tea", "bad � [tea]"},
	} {
		if got := marked(x.Snippet(c.text, c.words)); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.words, c.text, got, c.want)
		}
	}
	got := marked(x.Snippet(long+"Чайник кипит. "+long, "чайнику"))
	if !strings.HasPrefix(got, "… ") || !strings.HasSuffix(got, " …") || !strings.Contains(got, "[Чайник] кипит") ||
		len([]rune(got)) > snippetRunes+10 {
		t.Errorf("%q", got)
	}
	if got := marked(x.Snippet(long+"чайник", "чайник")); !strings.HasSuffix(got, "дело [чайник]") {
		t.Errorf("%q", got)
	}
}

func marked(s Snippet) string {
	out := s.Text
	for _, m := range slices.Backward(s.Matches) {
		out = out[:m[0]] + "[" + out[m[0]:m[1]] + "]" + out[m[1]:]
	}
	return out
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", `"a b" c* -d`, "a\x00b", "'", "NEAR(", "йод*", "\xff*", "a_b*", "े*", "²*"} {
		f.Add(s, s)
	}
	x, err := Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = x.Close() })
	f.Fuzz(func(t *testing.T, text, words string) {
		if err := x.Add(Batch{Session{ID: "s1", Rows: 1}, []Text{{1, 1, text}}}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := x.RemoveSession("s1"); err != nil {
				t.Fatal(err)
			}
		}()
		found(t, x, Query{Words: words})
		s := x.Snippet(text, words)
		for _, m := range s.Matches {
			if m[0] < 0 || m[0] >= m[1] || m[1] > len(s.Text) {
				t.Errorf("%q: %v", s.Text, m)
			}
		}
	})
}
