package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func find(x *Index, query string) []string {
	var ids []string
	for _, h := range x.Find(query, cmp.Compare[string]) {
		ids = append(ids, h.ID)
	}
	return ids
}

func TestWordForms(t *testing.T) {
	t.Parallel()
	for _, forms := range [][]string{
		{"kettle", "Kettles", "KETTLE's", "kettles'"},
		{"remind", "reminded", "reminding", "reminds"},
		{"birthday", "birthdays", "birthday’s"},
		{"чайник", "чайника", "чайнику", "чайником", "чайнике", "Чайники", "чайников"},
		{"машина", "машины", "машину", "машиной"},
		{"елка", "ёлка", "ёлки", "елку"},
		{"telegram", "telegram_channel"},
		{"йод", "йод"},
	} {
		for _, f := range forms {
			x := New()
			x.Set("1", "before "+forms[0]+" after")
			if got := find(x, f); len(got) != 1 {
				t.Errorf("%q does not find %q: %q and %q", f, forms[0], Stems(f), Stems(forms[0]))
			}
		}
	}
}

func TestRank(t *testing.T) {
	t.Parallel()
	x := New()
	for id, text := range map[string]string{
		"a": "the garden has a red gate", "b": "the gate is open", "c": "the garden is large and has many trees",
		"d": "gate gate gate",
		"e": "trees", "f": "something about nothing",
	} {
		x.Set(id, text)
	}
	for query, want := range map[string][]string{
		"gate":                   {"a", "b", "d"}, // neither length nor repetition counts
		"garden gate":            {"a", "c", "b", "d"},
		"the trees of my garden": {"c", "a", "e"},
		"gatekeeper":             {"a", "b", "d"}, // no such word: same beginning
		"garde":                  {"a", "c"},
		"gar":                    nil, // too short a beginning
		"the":                    nil,
		"":                       nil,
	} {
		if got := find(x, query); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	x.Set("a", "replaced")
	x.Remove("b")
	x.Remove("nobody")
	if got := find(x, "gate"); !slices.Equal(got, []string{"d"}) {
		t.Errorf("after changes: %q", got)
	}
	if got := find(x, "nothing"); !slices.Equal(got, []string{"f"}) {
		t.Errorf("a word of little meaning: %q", got)
	}
	for _, id := range []string{"a", "c", "d", "e", "f"} {
		x.Remove(id)
	}
	if x.Len() != 0 || len(x.stems) != 0 {
		t.Errorf("left are %v", x.stems)
	}
}

func TestShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"The car is in Main Street", "cars", 1},
		{"The car is in Main Street", "The car is behind the station", 1.0 / 3},
		{"tea", "coffee", 0},
		{"", "tea", 0},
	} {
		if got := Overlap(c.a, c.b); got != c.want {
			t.Errorf("Overlap(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// many returns an index with n texts.
func many(n int) *Index {
	x := New()
	for i := range n {
		x.Set(fmt.Sprint(i), fmt.Sprintf("memory number %d about thing%d and place%d, said on day %d of a long year", i,
			i%500, i%37, i%365))
	}
	return x
}

func BenchmarkFindAmong10000(b *testing.B) {
	x := many(10_000)
	for b.Loop() {
		x.Find("what about thing42 at place5", cmp.Compare[string])
	}
}

func BenchmarkFindNowhereAmong10000(b *testing.B) {
	x := many(10_000)
	for b.Loop() {
		x.Find("elephant", cmp.Compare[string])
	}
}

func BenchmarkSet(b *testing.B) {
	x := many(10_000)
	for b.Loop() {
		x.Set("1", "memory number one about a thing and a place, said on a day of a long year")
	}
}

func FuzzStems(f *testing.F) {
	for _, s := range []string{"", "The kettles' чайники ёлка", "'", "’s", strings.Repeat("й", 200), "a\x00b\xff", "y",
		"ied", "ость", time.Now().Format(time.RFC3339)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stems := Stems(text)
		if !slices.IsSorted(stems) || len(slices.Compact(slices.Clone(stems))) != len(stems) {
			t.Errorf("%q", stems)
		}
		x := New()
		x.Set("1", text)
		if len(stems) > 0 && len(find(x, text)) != 1 {
			t.Errorf("%q does not find itself", text)
		}
		x.Remove("1")
		if len(x.stems) != 0 {
			t.Errorf("left are %v", x.stems)
		}
	})
}
