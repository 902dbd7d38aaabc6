package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/store/postgres"
)

// Nodes do not share the data directories of extensions. Where a manifest says that data is
// pinned, the owner tells the other nodes so, with the epoch in which the extension ran there
// last, and the cell stays with the node that ran it in the newest epoch. What a node told
// stays in PostgreSQL when the node ends.

// Tenancy is what a node tells of the last time it owned a cell.
type Tenancy struct {
	Mark  string `json:"mark"` // of the cell: another one may get its name
	Epoch int64  `json:"epoch"`
	// Data has the enabled extensions whose data is pinned, with the epoch in which each ran
	// last on this node; 0: never.
	Data map[string]int64 `json:"data,omitempty"`
}

// Pin names the node with the data of a cell's extensions.
type Pin struct {
	Node       string   `json:"node"`
	Extensions []string `json:"extensions"` // whose data is only there
}

// String describes it for people.
func (p Pin) String() string {
	return fmt.Sprintf("the data of %s is only on %s", strings.Join(p.Extensions, ", "), p.Node)
}

// Waiting says what to do while the node is gone.
func (p Pin) Waiting(cell string) string {
	return fmt.Sprintf("%s: start %s, or go on without the data with `switchboard cluster move %s NODE --yes`", p, p.Node,
		cell)
}

// pinOf returns which node has the data that a cell needs; nil: it needs none.
func pinOf(facts map[string]Facts, c postgres.Seen) *Pin {
	told := map[string]Tenancy{}
	newest := "" // the last owner that told of itself
	for _, node := range slices.Sorted(maps.Keys(facts)) {
		t := facts[node].Cells[c.Name].Last
		if t == nil || t.Mark != c.Mark {
			continue
		}
		told[node] = *t
		if newest == "" || t.Epoch > told[newest].Epoch {
			newest = node
		}
	}
	holders, best := map[string]string{}, int64(0) // by extension
	p := &Pin{}
	for id := range told[newest].Data {
		var epoch int64
		for _, node := range slices.Sorted(maps.Keys(told)) {
			if ran := told[node].Data[id]; ran > epoch {
				epoch, holders[id] = ran, node
			}
		}
		if epoch > best {
			best, p.Node = epoch, holders[id]
		}
	}
	for _, id := range slices.Sorted(maps.Keys(holders)) {
		if holders[id] == p.Node {
			p.Extensions = append(p.Extensions, id)
		}
	}
	if p.Node == "" {
		return nil
	}
	return p
}

// Pins returns the cells that stay where the data of extensions is, by what the nodes told.
func Pins(all []postgres.Told, cells []postgres.Seen) map[string]Pin {
	facts, pins := map[string]Facts{}, map[string]Pin{}
	for _, t := range all {
		facts[t.Node] = FactsOf(t)
	}
	for _, c := range cells {
		if p := pinOf(facts, c); p != nil && !c.Gone && c.Ended == "" {
			pins[c.Name] = *p
		}
	}
	return pins
}

// holders are the nodes that may take a pinned cell, the first one first: the one that it is
// to move to, and the one with the data.
func holders(all []postgres.Member, p *Pin, wanted string) (nodes []postgres.Member) {
	for _, name := range slices.Compact([]string{wanted, p.Node}) {
		if i := index(all, name); i >= 0 && all[i].Live && all[i].State != postgres.Stopping {
			nodes = append(nodes, all[i])
		}
	}
	return nodes
}

// sayPinned says once for each vacancy why this node does not take a cell; n.mu is held.
func (n *Node) sayPinned(s *seat, why string) {
	if s.told || time.Since(s.vacant) < stepIn {
		return
	}
	s.told = true
	n.options.Log.Warn("this node doesn't take a cell that has no owner", "cell", s.name, "reason", why)
}

// tenancy returns what an owner tells: data has the enabled extensions whose data is pinned;
// true: they run on this node.
func tenancy(before *Tenancy, mark string, epoch int64, data map[string]bool) *Tenancy {
	t := &Tenancy{Mark: mark, Epoch: epoch, Data: map[string]int64{}}
	for id, runs := range data {
		switch {
		case runs:
			t.Data[id] = epoch
		case before != nil && before.Mark == mark:
			t.Data[id] = before.Data[id]
		default:
			t.Data[id] = 0
		}
	}
	return t
}

// tellOwner tells that this node owns the cell, before its extensions run, if they have data
// that is pinned. It tries until the cell is lost or ctx ends.
func (r *round) tellOwner(ctx context.Context, t *tenure) error {
	r.mu.Lock()
	data := r.data
	r.mu.Unlock()
	if data == nil && r.node.options.Reach.Holding != nil { // compare did not look yet
		h, err := r.node.options.Reach.Holding(r.home, r.own)
		if err != nil {
			return fmt.Errorf("find out which data of the cell %s is pinned: %w", r.name, err)
		}
		data = h.Data
	}
	seen := r.last().seen
	if len(data) == 0 && pinOf(r.node.reach.heard(), seen) == nil {
		return nil // compare tells it
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(t.lost, stop)()
	for {
		err := r.node.reach.own(ctx, r.name, seen.Mark, t.State().Epoch, data)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx, tellAgain)
	}
}

// tellAgain is the wait after telling the cluster something failed.
const tellAgain = 100 * time.Millisecond

// own tells that this node owns a cell.
func (r *reach) own(ctx context.Context, cell, mark string, epoch int64, data map[string]bool) error {
	return r.change(ctx, func(cells map[string]Held) {
		h := cells[cell]
		h.Last = tenancy(h.Last, mark, epoch, data)
		cells[cell] = h
	})
}

// change tells what changes changes, unless that is nothing.
func (r *reach) change(ctx context.Context, changes func(cells map[string]Held)) error {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.mu.Lock()
	before := r.facts
	r.facts.Cells = maps.Clone(before.Cells)
	if r.facts.Cells == nil {
		r.facts.Cells = map[string]Held{}
	}
	changes(r.facts.Cells)
	same := r.facts.text() == before.text()
	r.mu.Unlock()
	if same {
		return nil
	}
	err := r.tell(ctx)
	if err != nil {
		r.mu.Lock()
		r.facts = before
		r.mu.Unlock()
	}
	return err
}
