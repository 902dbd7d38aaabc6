package markdown

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
)

var zone = time.FixedZone("", 3600)

func due(t testing.TB, text string) item.Due {
	t.Helper()
	d, err := item.ParseDue(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parse(t testing.TB, doc string) []item.Item {
	t.Helper()
	entries, err := Parse(doc, item.Personal, zone)
	if err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	items := []item.Item{}
	for _, e := range entries {
		items = append(items, e.Item)
	}
	return items
}

var byValue = cmp.Comparer(func(a, b item.Due) bool { return a.Equal(b) })

func TestFormatAndParse(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, zone)
	var items []item.Item
	for i, text := range []string{
		"plain", "two\nlines", "an\n\nempty line", "- a list\n- in it", "[ ] a box", "[x] another", `\ a backslash`,
		`\[`, "# heading\n## Facts\n- id: m1",
		"due: tomorrow", "<!-- no comment", "> quoted", "1. numbered", "* star", "+", "юникод и “кавычки”",
		"trailing colon:",
	} {
		for _, kind := range item.Kinds {
			x := item.Item{ID: "m" + string(rune('a'+i)), Scope: "personal", Kind: kind, Text: text, Created: at,
				Updated: at}
			switch kind {
			case item.Open:
				x.Due, x.ChannelID = due(t, "2026-03-02T09:30"), "telegram_channel"
				x.Principal = contract.Principal{Group: "g1", Confined: true}
			case item.Preference:
				x.Scope, x.By, x.Updated = "work", "Anna: the boss", at.Add(time.Hour)
				x.Principal = contract.Principal{Person: "p1", Group: "g1", Confined: true, Own: true}
			case item.Fact:
				x.ID += "f"
				x.Principal = contract.Principal{Person: "p1", Own: true}
			}
			items = append(items, x)
		}
	}
	doc := Format(items, false)
	got := parse(t, doc)
	if again := Format(got, false); again != doc {
		t.Errorf("formatted again, the document differs:\n%s", cmp.Diff(doc, again))
	}
	want := map[string]item.Item{}
	for _, x := range items {
		want[x.ID+string(x.Kind)] = x
	}
	for _, x := range got {
		if x.Updated.IsZero() {
			x.Updated = x.Created
		}
		if diff := cmp.Diff(want[x.ID+string(x.Kind)], x, byValue); diff != "" {
			t.Error(diff)
		}
	}
	if len(got) != len(items) {
		t.Errorf("%d of %d were read", len(got), len(items))
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, zone)
	got := Format([]item.Item{
		{ID: "m1", Scope: "personal", Kind: item.Fact, Text: "A fact\nof two lines", Created: at, Updated: at,
			By: "Anna", Principal: contract.Principal{Person: "anna", Own: true}},
		{ID: "m2", Scope: "personal", Kind: item.Open, Text: "Water the plants", Created: at,
			Updated: at.Add(time.Minute), Due: due(t, "2026-03-02"), ChannelID: "cli_channel"},
	}, true)
	want := `# Memory

## Scope: personal

### Open items

- [ ] Water the plants
  - due: 2026-03-02
  - channel: cli_channel
  - owner: household
  - id: m2
  - created: 2026-03-01T10:00:00+01:00
  - updated: 2026-03-01T10:01:00+01:00

### Facts

- A fact
  of two lines
  - by: Anna
  - owner: anna
  - id: m1
  - created: 2026-03-01T10:00:00+01:00
`
	if got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestWrittenByHand(t *testing.T) {
	t.Parallel()
	got := parse(t, "\ufeff# What I want you to know\r\n\r\nSome words\n- I like tea\n* Anna likes coffee\n\n"+
		"  and cake\n<!-- a\ncomment -->\n"+
		"# Предпочтения ##\n- Пиши мне\n\t- Channel : telegram_channel\n## To do\n+ [ ] one\n- two\n"+
		"    - due: 2026-03-02 18:00\n## Scope work\n- [ ] three\n- [link](x)\n  - created: 2026-01-02\n")
	want := []item.Item{
		{Kind: item.Fact, Text: "I like tea"},
		{Kind: item.Fact, Text: "Anna likes coffee\n\nand cake"},
		{Kind: item.Preference, Text: "Пиши мне", ChannelID: "telegram_channel"},
		{Kind: item.Open, Text: "one"},
		{Kind: item.Open, Text: "two", Due: due(t, "2026-03-02T18:00:00+01:00")},
		{Scope: "work", Kind: item.Open, Text: "three"},
		{Scope: "work", Kind: item.Fact, Text: "[link](x)", Created: time.Date(2026, 1, 2, 12, 0, 0, 0, zone)},
	}
	for i := range want {
		if want[i].Scope == "" {
			want[i].Scope = item.Personal
		}
	}
	if diff := cmp.Diff(want, got, byValue); diff != "" {
		t.Error(diff)
	}
	entries, err := Parse("- [x] done\n- [X] done, too\n- [ ] not", item.Personal, zone)
	if err != nil || !entries[0].Done || !entries[1].Done || entries[2].Done || entries[2].Line != 3 {
		t.Errorf("%+v, %v", entries, err)
	}
	if got := parse(t, ""); len(got) != 0 {
		t.Errorf("an empty document: %v", got)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"- a\nb":                         "line 2: unexpected “b”: indent",
		"## Facts\nb":                    "line 2: unexpected “b”: begin an item",
		"- a\n\n# Title":                 "line 3: unknown heading “Title”",
		"## Things\n- a":                 "line 1: unknown heading “Things”",
		"## Scope: A B\n- a":             "line 1: unknown heading “Scope: A B”",
		"## Scope: UP\n":                 `line 1: invalid scope "UP"`,
		"- a\n  - colour: red":           "line 2: unknown field “colour”: use due, channel",
		"- a\n  - red":                   "line 2: unknown field “- red”: use due, channel",
		"- a\n  - due: soon":             `line 2: parse due date "soon"`,
		"- a\n  - due: 2026-03-01":       "line 1: a fact cannot have a due date",
		"- a\n  - id: m1\n  - id: m1":    "line 3: duplicate field id",
		"- a\n  - id: not an id":         `line 1: invalid id "not an id"`,
		"- a\n  - id: m1\n  more":        "line 3: unexpected “more” after the fields",
		"- a\n  - owner: two people":     "line 2: invalid owner “two people”: use household, or the id",
		"- a\n  - created: yesterday":    "line 2: parse time “yesterday”",
		"- a\n  - channel: Not One":      `line 1: invalid channel "Not One"`,
		"- ":                             "line 1: text is empty",
		"-\n":                            "line 1: text is empty",
		"## Facts\n  indented":           "line 2: indented line without an item",
		"- " + strings.Repeat("x", 5000): "line 1: text has 5000 bytes",
		"- ok\n- a\n  - x\n- b\n  - due: ?": "line 3: unknown field “- x”: use due, channel, file, by, group, owner, id, created or " +
			"updated, or write “\\-” for text\nline 5: parse due date \"?\"",
		strings.Repeat("- \n", 30): "and 10 more",
	} {
		entries, err := Parse(doc, item.Personal, zone)
		if err == nil || !strings.Contains(err.Error(), want) || entries != nil {
			t.Errorf("%q: got %v and %d entries, want %s", doc, err, len(entries), want)
		}
	}
}

// A parsed document, formatted and parsed again, is the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "- a", "# T\n\nintro\n\n## Scope: work\n\n### Open items\n\n- [ ] a\n  b\n\n  c\n  - due: 2026-03-01\n" +
			"  - channel: x\n  - by: Anna\n  - id: m1\n  - created: 2026-03-01T10:00:00+01:00\n" +
			"  - updated: 2026-03-02\n",
		"- \\- a\n  \\\\b", "- [x] done", "\ufeff* a\r\n<!-- x\n-->\r- b", "- a\u0085b\u2028c\vd", "- \\",
		"- a\n\t\\# b\n", "- by\n  - by:  \u00a0x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		entries, err := Parse(doc, item.Personal, zone)
		if err != nil {
			if len(err.(Problems)) == 0 { //nolint:errorlint // it is one
				t.Error("an error without a problem")
			}
			return
		}
		var items []item.Item
		for _, e := range entries {
			if e.Updated.IsZero() {
				e.Updated = e.Created
			}
			items = append(items, e.Item)
		}
		written := Format(items, false)
		again, err := Parse(written, item.Personal, zone)
		if err != nil {
			t.Fatalf("%v in the formatted document:\n%s", err, written)
		}
		if len(again) != len(items) {
			t.Fatalf("%d became %d:\n%s", len(items), len(again), written)
		}
		var second []item.Item
		for _, e := range again {
			if e.Updated.IsZero() {
				e.Updated = e.Created
			}
			second = append(second, e.Item)
		}
		if rewritten := Format(second, false); rewritten != written {
			t.Errorf("formatted again, the document differs:\n%s", cmp.Diff(written, rewritten))
		}
	})
}
