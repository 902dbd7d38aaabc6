package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// many returns a document with n memories.
func many(n int) string {
	var doc strings.Builder
	for i := range n {
		switch i % 100 {
		case 0:
			doc.WriteString("## Preferences\n")
		case 10:
			doc.WriteString("## Open items\n")
		case 20:
			doc.WriteString("## Facts\n")
		}
		fmt.Fprintf(&doc, "- memory %d tells of thing%d and place%d in a sentence of some length, о чайнике и кухне "+
			"номер %d\n", i, i%500, i%37, i%11)
		if i%100 >= 10 && i%100 < 20 {
			fmt.Fprintf(&doc, "  - due: 2026-%02d-%02d\n", 1+i%12, 1+i%28)
		}
	}
	return doc.String()
}

func TestManyMemories(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 1500
	b.wantImport(many(n), nil, imported{Added: n})
	b.restart()
	if got := b.list("recall", fields{"query": "thing42 place5"}); len(got) != defaultRecall ||
		!strings.Contains(got[0], "thing42 and place5 ") {
		t.Errorf("got %q", got)
	}
	all := decode[listing](t, b.MustCall("list_memories", fields{"limit": 1000, "offset": 1000}))
	if len(all.Memories) != 500 || all.More != 0 {
		t.Errorf("the last page has %d, and %d more", len(all.Memories), all.More)
	}
	if got := b.MustCall("relevant", fields{"query": "thing42"}); len(got) > relevantBytes {
		t.Errorf("relevant has %d bytes", len(got))
	}
	b.wantImport(b.MustCall("export_memories", nil), nil, imported{Unchanged: n})
}

func BenchmarkAmong10000(b *testing.B) {
	k := sdktest.Start(b, build(time.Now), options())
	k.MustCall("import_memories", fields{"text": many(10_000)})
	k.MustCall("recall", fields{"query": "thing1"})
	for _, bench := range []struct {
		tool string
		f    func(i int) fields
	}{
		{"recall", func(i int) fields {
			return fields{"query": fmt.Sprintf("what of thing%d at place%d", i%500,
				i%37)}
		}},
		{"relevant", func(i int) fields {
			return fields{"query": fmt.Sprintf("what of thing%d at place%d", i%500,
				i%37)}
		}},
		{"open_items", func(int) fields { return nil }},
		{"remember", func(i int) fields { return fields{"text": fmt.Sprintf("another thing %d", i)} }},
	} {
		b.Run(bench.tool, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				k.MustCall(bench.tool, bench.f(i))
			}
		})
	}
	b.Run("first_use", func(b *testing.B) {
		for b.Loop() {
			k.Restart(build(time.Now))
			k.MustCall("recall", fields{"query": "thing1"})
		}
	})
}
