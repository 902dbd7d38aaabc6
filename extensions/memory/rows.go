package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/extensions/memory/search"
)

// row is a memory as it is stored now.
type row struct {
	item.Item
	version int64
}

// rows is all that is stored, and where what stands.
type rows struct {
	byID       map[string]row
	byText     map[likeness]string // ids
	index      *search.Index
	unreadable map[string]broken // by id
}

// likeness is equal for memories that say the same.
type likeness struct{ scope, text string }

func likenessOf(i item.Item) likeness { return likeness{i.Scope, item.Likeness(i.Text)} }

// broken is a stored row that cannot be read.
type broken struct {
	version int64
	err     error
}

func newRows() *rows {
	return &rows{byID: map[string]row{}, byText: map[likeness]string{}, index: search.New(), unreadable: map[string]broken{}}
}

func (r *rows) set(x row) {
	r.remove(x.ID)
	r.byID[x.ID] = x
	r.byText[likenessOf(x.Item)] = x.ID
	r.index.Set(x.ID, x.Text+"\n"+x.ChannelID+"\n"+x.By)
}

func (r *rows) remove(id string) {
	delete(r.unreadable, id)
	old, ok := r.byID[id]
	if !ok {
		return
	}
	delete(r.byID, id)
	if l := likenessOf(old.Item); r.byText[l] == id {
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

// free says whether no memory has the id.
func (r *rows) free(id string) bool { return r.version(id) == 0 }

// same is the memory of a scope that says the same.
func (r *rows) same(scope, text string) (row, bool) {
	x, ok := r.byID[r.byText[likeness{scope, item.Likeness(text)}]]
	return x, ok
}

// in is what is remembered in some scopes, the newest first.
func (r *rows) in(may func(scope string) bool) []row {
	return r.pick(func(x row) bool { return may(x.Scope) })
}

// any says whether something is remembered in some scopes.
func (r *rows) any(may func(scope string) bool) bool {
	for _, x := range r.byID {
		if may(x.Scope) {
			return true
		}
	}
	return false
}

// pick is what fits, the newest first.
func (r *rows) pick(fits func(row) bool) []row {
	var all []row
	for _, x := range r.byID {
		if fits(x) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, newestFirst)
	return all
}

func newestFirst(a, b row) int {
	return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
}

// dueFirst orders open items: by their due dates, then the newest first.
func dueFirst(a, b row) int { return cmp.Or(a.Due.Compare(b.Due), newestFirst(a, b)) }

// hit is a memory that was found, and how well it fits.
type hit struct {
	row
	score float64
}

// find finds what fits a query, the best first, and of what fits alike the
// newest first.
func (r *rows) find(query string, fits func(row) bool) []hit {
	var found []hit
	for _, h := range r.index.Find(query, func(a, b string) int { return newestFirst(r.byID[a], r.byID[b]) }) {
		if x := r.byID[h.ID]; fits(x) {
			found = append(found, hit{x, h.Score})
		}
	}
	return found
}

// named finds a memory by the id that a caller gives.
func (r *rows) named(id string, may func(scope string) bool) (row, error) {
	id = cleanID(id)
	if b, ok := r.unreadable[id]; ok {
		return row{}, fmt.Errorf("memory %s cannot be read (%w): forget removes it", id, b.err)
	}
	x, ok := r.byID[id]
	if !ok || !may(x.Scope) {
		return row{}, fmt.Errorf("there is no memory %q: list_memories and recall tell the ids", id)
	}
	return x, nil
}

func cleanID(id string) string {
	return strings.ToLower(strings.Trim(strings.TrimSpace(id), "#[]"))
}

func (r *rows) brokenIDs() []string { return slices.Sorted(maps.Keys(r.unreadable)) }
