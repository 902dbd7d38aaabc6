package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/extensions/memory/search"
)

// row is a stored memory.
type row struct {
	item.Item
	version int64
}

// rows are all stored memories with their indexes.
type rows struct {
	byID       map[string]row
	byText     map[textKey]string // ids
	index      *search.Index
	unreadable map[string]broken // by id
}

// textKey is the same for memories with the same text that belong to the same person, to
// the same group, or to the household.
type textKey struct{ scope, whose, text string }

func keyOf(i item.Item) textKey { return textKey{i.Scope, i.Whose(), item.Normalize(i.Text)} }

// broken is an unreadable row.
type broken struct {
	version int64
	err     error
}

func newRows() *rows {
	return &rows{byID: map[string]row{}, byText: map[textKey]string{}, index: search.New(),
		unreadable: map[string]broken{}}
}

func (r *rows) set(x row) {
	r.remove(x.ID)
	r.byID[x.ID] = x
	r.byText[keyOf(x.Item)] = x.ID
	r.index.Set(x.ID, x.Text+"\n"+x.ChannelID+"\n"+x.By)
}

func (r *rows) remove(id string) {
	delete(r.unreadable, id)
	old, ok := r.byID[id]
	if !ok {
		return
	}
	delete(r.byID, id)
	if l := keyOf(old.Item); r.byText[l] == id {
		delete(r.byText, l)
	}
	r.index.Remove(id)
}

func (r *rows) version(id string) int64 {
	if b, ok := r.unreadable[id]; ok {
		return b.version
	}
	return r.byID[id].version
}

// free reports whether no memory has the id.
func (r *rows) free(id string) bool { return r.version(id) == 0 }

// same returns the memory of a scope with the same text: the person's own, the
// household's, or what was said in the group of the call.
func (r *rows) same(p contract.Principal, scope, text string) (row, bool) {
	for _, whose := range append(append([]string{p.Person}, p.Accounts...), "", p.Group) {
		if x, ok := r.byID[r.byText[textKey{scope, whose, item.Normalize(text)}]]; ok && p.Sees(x.Principal) {
			return x, true
		}
	}
	return row{}, false
}

// within returns the memories that a call may use, the newest first.
func (r *rows) within(allowed reach) []row {
	return r.filter(func(x row) bool { return allowed.use(x.Item) })
}

// any reports whether there is a memory that want accepts.
func (r *rows) any(want func(item.Item) bool) bool {
	for _, x := range r.byID {
		if want(x.Item) {
			return true
		}
	}
	return false
}

// filter returns the memories that want accepts, the newest first.
func (r *rows) filter(want func(row) bool) []row {
	var all []row
	for _, x := range r.byID {
		if want(x) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, newestFirst)
	return all
}

func newestFirst(a, b row) int {
	return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
}

// dueFirst orders open items by due date, then the newest first.
func dueFirst(a, b row) int { return cmp.Or(a.Due.Compare(b.Due), newestFirst(a, b)) }

// hit is a search result.
type hit struct {
	row
	score float64
}

// find returns the memories that match a query and that want accepts, the best
// first; of equally good ones the newest first.
func (r *rows) find(query string, want func(row) bool) []hit {
	var found []hit
	for _, h := range r.index.Find(query, func(a, b string) int { return newestFirst(r.byID[a], r.byID[b]) }) {
		if x := r.byID[h.ID]; want(x) {
			found = append(found, hit{x, h.Score})
		}
	}
	return found
}

// get returns the memory with the id that a caller gave.
func (r *rows) get(id string, allowed reach) (row, error) {
	id = cleanID(id)
	if b, ok := r.unreadable[id]; ok && allowed.damaged() {
		return row{}, fmt.Errorf("read memory %s: %w: to remove it, use forget", id, b.err)
	}
	x, ok := r.byID[id]
	if !ok || !allowed.use(x.Item) {
		return row{}, words.Errorf("there is no memory %q: list_memories and recall return the ids", id)
	}
	return x, nil
}

func cleanID(id string) string {
	return strings.ToLower(strings.Trim(strings.TrimSpace(id), "#[]"))
}

func (r *rows) brokenIDs() []string { return slices.Sorted(maps.Keys(r.unreadable)) }
