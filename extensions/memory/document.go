package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/extensions/memory/markdown"
	"github.com/switchboard-run/switchboard/sdk"
)

func (m *memory) exportAll(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a struct {
		Scope string `json:"scope"`
	}
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	var items []item.Item
	err := m.use(ctx, c, a.Scope, func(all *rows, may func(string) bool) error {
		for _, r := range inOrder(all.in(may)) {
			items = append(items, r.Item)
		}
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.ToolResult{Content: markdown.Format(items)}, nil
}

// imported is the result of import_memories.
type imported struct {
	Added     int    `json:"added"`
	Updated   int    `json:"updated"`
	Unchanged int    `json:"unchanged"`
	Forgotten int    `json:"forgotten"` // checked off, or replaced
	Text      string `json:"text"`
}

// maxImport is the most bytes that one import changes: a commit has to fit into
// a message.
const maxImport = contract.MaxMessage / 2

func (m *memory) importAll(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a struct {
		Text    string `json:"text"`
		Scope   string `json:"scope"`
		Replace bool   `json:"replace"`
		Check   bool   `json:"check"`
		Upload  string `json:"upload"`
		Part    int    `json:"part"`
		More    bool   `json:"more"`
	}
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	scope, err := writable(c, a.Scope)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if a.More {
		return sdk.JSON(map[string]any{"text": "kept: the other parts are waited for"}, sdk.Put(partKey(a.Upload, a.Part), a.Text))
	}
	before, clean, err := m.parts(ctx, a.Upload, a.Part)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	entries, err := markdown.Parse(before+a.Text, scope, m.zoneOf(c))
	if err != nil {
		return sdk.ToolResult{}, notImported(err)
	}
	for _, e := range entries {
		if err := granted(c, e.Scope); err != nil {
			return sdk.ToolResult{}, notImported(markdown.Problems{{Line: e.Line, Text: err.Error()}})
		}
	}
	var out imported
	var effects sdk.Effects
	err = m.use(ctx, c, "", func(all *rows, may func(string) bool) error {
		merge := &merging{all: all, may: may, now: m.moment(c), lines: map[string]int{}, texts: map[likeness]int{}, keep: map[string]bool{}}
		for _, e := range entries {
			merge.add(e)
		}
		if a.Replace {
			merge.dropOthers()
		}
		merge.findTwins()
		if len(merge.problems) > 0 {
			return notImported(merge.problems)
		}
		if size := merge.size(); size > maxImport {
			return fmt.Errorf("the document changes %d bytes at once, the limit is %d: import it in parts", size, maxImport)
		}
		out = merge.out
		out.Forgotten = len(merge.drop)
		if !a.Check {
			effects = m.store.write(merge.put, merge.drop)
		}
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out.Text = fmt.Sprintf("added %d, updated %d, unchanged %d, forgotten %d", out.Added, out.Updated, out.Unchanged, out.Forgotten)
	if a.Check {
		out.Text = "nothing is changed yet; it would be: " + out.Text
	}
	return sdk.JSON(out, append(effects, clean...)...)
}

// partPrefix is where the parts of a document wait for the last one.
const partPrefix = "import/"

func partKey(upload string, part int) string {
	return fmt.Sprintf("%s%s/%04d", partPrefix, upload, part)
}

// parts joins the first n parts of an upload, and removes what any has left.
func (m *memory) parts(ctx context.Context, upload string, n int) (text string, clean sdk.Effects, err error) {
	kept := 0
	err = m.k.Scan(ctx, partPrefix, func(v sdk.Value) error {
		clean = append(clean, sdk.Delete(v.Key))
		if upload == "" || !strings.HasPrefix(v.Key, partPrefix+upload+"/") {
			return nil
		}
		var part string
		if err := v.Decode(&part); err != nil {
			return err
		}
		text += part
		kept++
		return nil
	})
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("read the parts of the document: %w", err)
	case upload != "" && kept != n:
		return "", nil, fmt.Errorf("nothing was imported: of %d parts of the document before the last one, %d are here: begin again", n, kept)
	}
	return text, clean, nil
}

func notImported(err error) error {
	return errors.New("nothing was imported:\n" + err.Error())
}

// merging brings a document and what is stored together.
type merging struct {
	all   *rows
	may   func(scope string) bool
	now   time.Time
	lines map[string]int   // of ids
	texts map[likeness]int // lines of texts
	keep  map[string]bool  // ids that the document holds

	put, drop []row
	out       imported
	problems  markdown.Problems
}

func (g *merging) wrong(line int, format string, args ...any) {
	g.problems = append(g.problems, markdown.Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (g *merging) add(e markdown.Entry) {
	alike := likenessOf(e.Item)
	if line, twice := g.texts[alike]; twice {
		g.wrong(e.Line, "this says the same as line %d: remove one of them", line)
		return
	}
	g.texts[alike] = e.Line
	old, known := g.old(e)
	if known && !g.may(old.Scope) {
		g.wrong(e.Line, "the id %s is that of another scope", e.ID)
		return
	}
	switch {
	case known:
		e.ID = old.ID
	case e.ID == "":
		e.ID = item.NewID(e.Scope, e.Text, func(id string) bool { return g.all.free(id) && g.lines[id] == 0 })
	}
	if line := g.lines[e.ID]; line != 0 {
		g.wrong(e.Line, "this is memory %s, as line %d is: remove one of them, or its id", e.ID, line)
		return
	}
	g.lines[e.ID] = e.Line
	if e.Done {
		if known {
			g.drop = append(g.drop, old)
		}
		g.keep[e.ID] = true
		return
	}
	g.keep[e.ID] = true
	fresh := e.Item
	dates(&fresh, old.Item, known, g.now)
	switch {
	case !known:
		g.out.Added++
		g.put = append(g.put, row{fresh, g.all.version(fresh.ID)})
	case equal(fresh, old.Item):
		g.out.Unchanged++
	default:
		g.out.Updated++
		g.put = append(g.put, row{fresh, old.version})
	}
}

// old is the stored memory that an entry stands for: by its id, or by what it
// says.
func (g *merging) old(e markdown.Entry) (row, bool) {
	if e.ID != "" {
		if old, ok := g.all.byID[e.ID]; ok {
			return old, true
		}
	}
	old, ok := g.all.same(e.Scope, e.Text)
	return old, ok && g.may(old.Scope)
}

// dates fills in the dates that the document does not give, and says that what
// was edited has changed now.
func dates(fresh *item.Item, old item.Item, known bool, now time.Time) {
	edited := known && (!sameContent(*fresh, old) || fresh.Scope != old.Scope || fresh.By != old.By)
	if fresh.Created.IsZero() {
		if fresh.Created = now; known {
			fresh.Created = old.Created
		}
	}
	switch {
	case edited && (fresh.Updated.IsZero() || fresh.Updated.Equal(old.Updated)):
		fresh.Updated = now
	case !fresh.Updated.IsZero():
	case known && fresh.Created.Equal(old.Created) && !old.Updated.Equal(old.Created):
		fresh.Updated = old.Updated
	default:
		fresh.Updated = fresh.Created
	}
}

func equal(a, b item.Item) bool {
	return sameContent(a, b) && a.Scope == b.Scope && a.By == b.By && a.Created.Equal(b.Created) && a.Updated.Equal(b.Updated)
}

// dropOthers forgets what the document does not hold.
func (g *merging) dropOthers() {
	for _, r := range g.all.in(g.may) {
		if !g.keep[r.ID] {
			g.drop = append(g.drop, r)
		}
	}
}

// findTwins refuses what would say the same as a memory that the document does
// not hold.
func (g *merging) findTwins() {
	gone := map[string]bool{}
	for _, r := range g.drop {
		gone[r.ID] = true
	}
	for _, r := range g.put {
		if twin, ok := g.all.same(r.Scope, r.Text); ok && twin.ID != r.ID && !gone[twin.ID] && g.lines[twin.ID] == 0 {
			g.wrong(g.lines[r.ID], "memory %s says that already: give this the id %s, or remove it", twin.ID, twin.ID)
		}
	}
}

func (g *merging) size() int {
	const around = 300 // keys, ids, dates
	n := 0
	for _, r := range g.put {
		n += len(r.Text) + strings.Count(r.Text, `"`) + around
	}
	return n + len(g.drop)*around
}
