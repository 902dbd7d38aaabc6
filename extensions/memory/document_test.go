package memory

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if got := b.MustCall("export_memories", nil); got != "# Memory\n" {
		t.Errorf("the export of no memories is %q", got)
	}
	b.remember(fields{"text": "Write to me in Telegram", "kind": "preference", "channel_id": "telegram_channel"})
	b.pass(time.Hour)
	b.remember(fields{"text": "- [x] no list\n## no heading\n\n\\ no mark"})
	b.remember(fields{"text": "Water the plants", "due": "2026-03-05T18:00"})
	b.remember(fields{"text": "At work", "scope": "work"})
	b.pass(time.Hour)
	b.remember(fields{"text": "At work", "scope": "work"})
	doc := b.MustCall("export_memories", nil)
	if got := b.MustCall("export_memories", fields{"scope": "work"}); strings.Contains(got, "Telegram") ||
		!strings.Contains(got, "- At work") {
		t.Errorf("one scope: %s", got)
	}

	b.pass(24 * time.Hour)
	b.wantImport(doc, nil, imported{Unchanged: 4})
	other := setup(t)
	other.wantImport(doc, nil, imported{Added: 4})
	if again := other.MustCall("export_memories", nil); again != doc {
		t.Errorf("after export and import it is\n%s\nwas\n%s", again, doc)
	}
	other.wantImport(doc, fields{"replace": true}, imported{Unchanged: 4})

	edited := strings.Replace(doc, "Water the plants", "Water all the plants", 1)
	edited = strings.Replace(edited, "- Write to me", "- Please write to me", 1)
	edited += "\n- A new one at work\n"
	b.wantImport(edited, fields{"check": true}, imported{Added: 1, Updated: 2, Unchanged: 2})
	b.wantImport(edited, nil, imported{Added: 1, Updated: 2, Unchanged: 2})
	b.wantList("recall", fields{"query": "all plants"}, "Water all the plants")
	v := decode[listing](t, b.MustCall("list_memories", fields{"kind": "open"})).Memories[0]
	if !v.Created.Equal(time.Date(2026, 3, 1, 13, 0, 0, 0, berlin(t))) || !v.Updated.Equal(b.clock()) {
		t.Errorf("the edited memory was created %s, updated %s", v.Created, v.Updated)
	}
	b.wantList("list_memories", fields{"scope": "work"}, "A new one at work", "At work")
	b.wantImport("- [x] water all the plants\n- [x] never heard of", nil, imported{Forgotten: 1})
	b.wantImport("- only this", fields{"replace": true}, imported{Added: 1, Forgotten: 4})
	b.wantList("list_memories", nil, "only this")
}

func (b *bench) wantImport(doc string, f fields, want imported) {
	b.t.Helper()
	all := fields{"text": doc}
	maps.Copy(all, f)
	got := decode[imported](b.t, b.MustCall("import_memories", all))
	if got.Text = ""; got != want {
		b.t.Errorf("import: got %+v, want %+v", got, want)
	}
}

func TestImportIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.remember(fields{"text": "one"})
	two := b.remember(fields{"text": "two"})
	for doc, want := range map[string]string{
		"- good\n- \n":                                              "nothing was imported:\nline 2: text is empty",
		"- good\n- Good!\n":                                         "line 2: same text as line 1",
		"- a\n  - id: mx\n- b\n  - id: mx":                          "line 3: same memory mx as line 1",
		"- new words\n  - id: " + one.ID + "\n- one":                "line 3: same memory " + one.ID + " as line 1",
		"- good\n- two!\n  - id: " + one.ID:                         "line 2: memory " + two.ID + " has the same text",
		"- good\n## Scope: A\n- bad":                                `line 2: invalid scope "A"`,
		"- three\n  - id: " + two.ID + "\n  - due: 2026-01-01\n- x": "line 1: a fact cannot have a due date",
	} {
		b.refuses("import_memories", fields{"text": doc}, want)
	}
	b.wantList("list_memories", fields{"kind": "fact", "limit": 5, "offset": 2})
	b.wantImport("- two\n  - id: "+one.ID+"\n- one\n  - id: "+two.ID, nil, imported{Updated: 2}) // swapped
	b.wantImport("- one\n  - id: "+one.ID, fields{"replace": true}, imported{Updated: 1, Forgotten: 1})
}

func TestImportByHandKeepsStoredFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.remember(fields{"text": "Buy milk", "kind": "open"})
	b.pass(time.Hour)
	b.wantImport("## Open items\n- buy milk\n  - due: 2026-03-09\n  - channel: telegram_channel", nil,
		imported{Updated: 1})
	v := decode[listing](t, b.MustCall("open_items", nil)).Memories[0]
	if v.ID != made.ID || !v.Created.Equal(made.Created) || v.ChannelID != "telegram_channel" ||
		v.Due.String() != "2026-03-09" || !v.Updated.Equal(b.clock()) {
		t.Errorf("got %+v", v)
	}
}

func TestImportInParts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 12 {
		b.MustCall("import_memories", fields{"text": fmt.Sprintf("- part %d", i), "upload": "U", "part": 2 * i,
			"more": true})
		b.MustCall("import_memories", fields{"text": " of many\n", "upload": "U", "part": 2*i + 1, "more": true})
	}
	b.wantList("list_memories", nil)
	b.refuses("import_memories", fields{"text": "- last", "upload": "U", "part": 25},
		"received 24 of 25 parts before the last one")
	b.restart()
	b.wantImport("- last", fields{"upload": "U", "part": 24}, imported{Added: 13})
	if keys := b.Keys(partPrefix); len(keys) != 0 {
		t.Errorf("left are %q", keys)
	}
}
