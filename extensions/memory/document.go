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
	err := m.use(ctx, c, a.Scope, func(all *rows, allowed reach) error {
		for _, r := range inOrder(all.within(allowed)) {
			items = append(items, r.Item)
		}
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.ToolResult{Content: markdown.Format(items, c.Principal.Own)}, nil
}

// imported is the result of import_memories.
type imported struct {
	Added     int `json:"added"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
	Forgotten int `json:"forgotten"` // checked off, or replaced
	// Missing is how many files the document names that are not stored here.
	Missing int    `json:"missing_files,omitempty"`
	Text    string `json:"text"`
}

// maxImport is the most bytes that one import changes: its commit must fit into a
// message.
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
		return sdk.JSON(map[string]any{"text": "part received"}, sdk.Put(partKey(a.Upload, a.Part), a.Text))
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
	missing, err := m.findFiles(ctx, c, entries)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	var out imported
	var effects sdk.Effects
	err = m.use(ctx, c, "", func(all *rows, allowed reach) error {
		merge := &merger{all: all, allowed: allowed, principal: c.Principal, now: m.timeOf(c), lines: map[string]int{},
			texts: map[textKey]int{}, keep: map[string]bool{}}
		for _, e := range entries {
			merge.add(e)
		}
		if a.Replace {
			merge.dropMissing()
		}
		merge.refuseDuplicates()
		if len(merge.problems) > 0 {
			return notImported(merge.problems)
		}
		if size := merge.size(); size > maxImport {
			return fmt.Errorf("import changes %d bytes, must be at most %d: split the document", size, maxImport)
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
	out.Text = fmt.Sprintf("added %d, updated %d, unchanged %d, forgotten %d",
		out.Added, out.Updated, out.Unchanged, out.Forgotten)
	if out.Missing = missing; missing > 0 {
		out.Text += fmt.Sprintf("; %d files were left out: they are not stored here, and a document holds none", missing)
	}
	if a.Check {
		out.Text = "nothing was changed; an import would give: " + out.Text
	}
	return sdk.JSON(out, append(effects, clean...)...)
}

// findFiles completes the files that the entries name, and leaves out those that memory has
// not: it returns how many.
func (m *memory) findFiles(ctx context.Context, c sdk.ToolCall, entries []markdown.Entry) (missing int, err error) {
	for i := range entries {
		var found []contract.Attachment
		for _, a := range entries[i].Attachments {
			b, err := m.k.FindBlob(ctx, nameFor(c, a))
			switch {
			case errors.Is(err, contract.ErrNotFound):
				missing++
			case err != nil:
				return 0, err
			default:
				a.Size = b.Size
				found = append(found, a)
			}
		}
		entries[i].Attachments = found
	}
	return missing, nil
}

// partPrefix is the key prefix of a document's parts until the last one arrives.
const partPrefix = "import/"

func partKey(upload string, part int) string {
	return fmt.Sprintf("%s%s/%04d", partPrefix, upload, part)
}

// parts joins the first n parts of an upload, and returns the effects that delete
// the parts of all uploads.
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
		return "", nil, fmt.Errorf("read parts of the document: %w", err)
	case upload != "" && kept != n:
		return "", nil, fmt.Errorf("nothing was imported: received %d of %d parts before the last one: import again",
			kept, n)
	}
	return text, clean, nil
}

func notImported(err error) error {
	return errors.New("nothing was imported:\n" + err.Error())
}

// merger merges a document into the stored memories.
type merger struct {
	all       *rows
	allowed   reach
	principal contract.Principal
	now       time.Time
	lines     map[string]int  // by id
	texts     map[textKey]int // lines by text
	keep      map[string]bool // ids in the document

	put, drop []row
	out       imported
	problems  markdown.Problems
}

func (g *merger) problem(line int, format string, args ...any) {
	g.problems = append(g.problems, markdown.Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (g *merger) add(e markdown.Entry) {
	old, known := g.old(&e)
	if known {
		e.Principal = old.Principal
	}
	key := keyOf(e.Item)
	if line, twice := g.texts[key]; twice {
		g.problem(e.Line, "same text as line %d: remove one of them", line)
		return
	}
	g.texts[key] = e.Line
	if known && !g.allowed.use(old.Item) {
		g.problem(e.Line, "id %s belongs to another scope", e.ID)
		return
	}
	switch {
	case known:
		e.ID = old.ID
	case e.ID == "":
		e.ID = item.NewID(e.Scope+e.Whose(), e.Text, func(id string) bool { return g.all.free(id) && g.lines[id] == 0 })
	}
	if line := g.lines[e.ID]; line != 0 {
		g.problem(e.Line, "same memory %s as line %d: remove one of them, or its id", e.ID, line)
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
	if known && len(fresh.Attachments) == 0 { // a document may be older than them
		fresh.Attachments = old.Attachments
	}
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

// old returns the stored memory of an entry, by its id or its text. Of a new one, it
// completes whose it is, and removes an id that the caller may not use.
func (g *merger) old(e *markdown.Entry) (old row, ok bool) {
	if old, ok = g.all.byID[e.ID]; ok && g.principal.Sees(old.Principal) {
		return old, true
	}
	if _, damaged := g.all.unreadable[e.ID]; ok || damaged && !g.allowed.damaged() {
		e.ID = ""
	}
	if stated := e.Principal; !g.principal.Confined && (stated.Own || stated.Group != "") && g.principal.Sees(stated) {
		old, ok = g.all.byID[g.all.byText[keyOf(e.Item)]]
	} else {
		e.Principal = g.principal
		if e.Household && !g.principal.Confined {
			e.Principal.Own = false
		}
		old, ok = g.all.same(e.Principal, e.Scope, e.Text)
	}
	return old, ok && g.allowed.use(old.Item)
}

// dates sets the dates that the document does not give. An edited memory was
// updated now.
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
	return sameContent(a, b) && a.Scope == b.Scope && a.By == b.By &&
		a.Created.Equal(b.Created) && a.Updated.Equal(b.Updated)
}

// dropMissing forgets the memories that are not in the document.
func (g *merger) dropMissing() {
	for _, r := range g.all.within(g.allowed) {
		if !g.keep[r.ID] {
			g.drop = append(g.drop, r)
		}
	}
}

// refuseDuplicates refuses the text of a stored memory that is not in the
// document.
func (g *merger) refuseDuplicates() {
	dropped := map[string]bool{}
	for _, r := range g.drop {
		dropped[r.ID] = true
	}
	for _, r := range g.put {
		other, ok := g.all.byID[g.all.byText[keyOf(r.Item)]]
		if ok && other.ID != r.ID && !dropped[other.ID] && g.lines[other.ID] == 0 {
			g.problem(g.lines[r.ID], "memory %s has the same text: use its id, or remove this line", other.ID)
		}
	}
}

func (g *merger) size() int {
	const overhead = 300 // keys, ids, dates
	n := 0
	for _, r := range g.put {
		n += len(r.Text) + strings.Count(r.Text, `"`) + overhead
	}
	return n + len(g.drop)*overhead
}
