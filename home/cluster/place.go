package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/store/postgres"
)

const (
	// stepIn is how much longer the next node waits for one before it to take a cell.
	stepIn = time.Second
	// handing is how many cells a node hands over at once while it drains.
	handing = 4
	// handingTime is how long a draining node waits for the next owner to be ready.
	handingTime = 15 * time.Second
	// reportEvery is how often a node reports what it knows of its cells.
	reportEvery = 2 * time.Second
)

// order is what a seat is to do. Orders are compared: an equal one is not news.
type order struct {
	seen   postgres.Seen
	take   bool // the cell has no owner, and it is this node's turn
	warm   bool // hold the extensions ready
	tell   bool // say when they are
	relay  bool // lead programs of this machine to the owner
	over   bool // the next owner is ready: hand the cell over
	ask    string
	asks   int  // times that this was asked
	gone   bool // the cell is deleted
	absent bool // its row is gone
	// pinned says why the cell has no owner, if this node leaves it to the one with the data.
	pinned string
}

func (o order) same(other order) bool {
	a, b := o.seen, other.seen
	o.seen, other.seen = postgres.Seen{}, postgres.Seen{}
	return o == other && a.Position == b.Position && a.Epoch == b.Epoch && a.Ready == b.Ready && a.First == b.First
}

// rank orders nodes for a cell, so that the cells of a node that ends are spread over the
// others, and all nodes agree.
func rank(cell int64, nodes []postgres.Member) []postgres.Member {
	weight := func(m postgres.Member) uint64 {
		h := fnv.New64a()
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(cell))) //nolint:gosec // only mixed
		_, _ = h.Write([]byte(m.Name))
		x := h.Sum64()
		x ^= x >> 31 // the last bytes of short names change too little
		return x * 0x9e3779b97f4a7c15
	}
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b postgres.Member) int {
		return cmp.Or(-cmp.Compare(weight(a), weight(b)), cmp.Compare(a.Name, b.Name))
	})
	return nodes
}

// candidates are the nodes that may take a cell: those that drain only if there are no
// others.
func candidates(all []postgres.Member) (ready []postgres.Member) {
	var draining []postgres.Member
	for _, m := range all {
		switch {
		case !m.Live || m.State == postgres.Stopping:
		case m.Draining:
			draining = append(draining, m)
		default:
			ready = append(ready, m)
		}
	}
	if len(ready) == 0 {
		return draining
	}
	return ready
}

func index(nodes []postgres.Member, name string) int {
	return slices.IndexFunc(nodes, func(m postgres.Member) bool { return m.Name == name })
}

// place gives each seat its orders.
func (n *Node) place(ctx context.Context, v postgres.View) {
	able := candidates(v.Members)
	me, self := n.options.Name, index(v.Members, n.options.Name)
	draining := self >= 0 && v.Members[self].Draining && index(able, me) < 0
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return
	}
	heard := n.reach.heard()
	warm, moving, there := 0, 0, map[int64]bool{}
	for _, c := range v.Cells {
		if c.Node == me && c.Wanted != "" && c.Wanted != me {
			moving++
		}
	}
	for _, c := range v.Cells {
		there[c.ID] = true
		s := n.seats[c.ID]
		if s == nil {
			if c.Gone || c.Ended != "" && c.Name != n.options.Cell || config.CellName(c.Name) != nil {
				continue
			}
			s = n.seat(ctx, c)
		}
		owned := s.owned()
		o := order{seen: c, gone: c.Gone}
		owner := index(v.Members, c.Node)
		live := owner >= 0 && v.Members[owner].Live && (c.Node != me || owned != nil)
		nodes := rank(c.ID, able)
		lacks := lacking(heard, c.Name, nodes)
		completest(nodes, lacks)
		if i := index(nodes, c.Wanted); i > 0 {
			wanted := nodes[i]
			nodes = slices.Insert(slices.Delete(nodes, i, i+1), 0, wanted)
		}
		pin := pinOf(heard, c)
		if pin != nil {
			nodes = holders(v.Members, pin, c.Wanted)
		}
		place := index(nodes, me)
		switch {
		case c.Gone:
		case owned != nil:
			s.vacant, s.told = time.Time{}, false
			next := index(able, c.Wanted)
			o.over = c.Wanted != "" && c.Wanted != me && next >= 0 && c.Ready == c.Wanted
			if draining && pin == nil && (c.Wanted == "" && moving < handing ||
				c.Wanted != "" && c.Wanted != me && time.Since(s.asked) > handingTime && c.Ready == "") {
				nodes = slices.DeleteFunc(nodes, func(m postgres.Member) bool { return m.Name == me })
				if len(nodes) > 0 {
					o.ask = nodes[s.asks%len(nodes)].Name
					s.asks++
					o.asks = s.asks
					s.asked = time.Now()
					moving++
				}
			}
		case !live:
			if s.vacant.IsZero() {
				s.vacant = time.Now()
			}
			o.take = place >= 0 && time.Since(s.vacant) >= patience(nodes, place, lacks)
			o.warm = s.own
			if pin != nil && place < 0 {
				o.pinned = pin.Waiting(c.Name)
				o.relay = true // it says so
				n.sayPinned(s, o.pinned)
			}
		default:
			s.vacant, s.told = time.Time{}, false
			nodes = slices.DeleteFunc(nodes, func(m postgres.Member) bool { return m.Name == c.Node })
			wanted := c.Wanted == me
			o.warm = s.own || wanted || warm < n.options.Standbys && len(nodes) > 0 && nodes[0].Name == me
			if o.warm && !s.own && !wanted {
				warm++
			}
			o.tell = wanted && c.Ready != me
			o.relay = true
		}
		s.give(o)
	}
	for id, s := range n.seats {
		if !there[id] {
			o := s.last()
			o.take, o.warm, o.over, o.ask, o.absent = false, false, false, "", true
			s.give(o)
			delete(n.seats, id)
		}
	}
	if time.Since(n.reported) >= reportEvery {
		n.reported = time.Now()
		n.report()
	}
}

// Standing is what a node reports of one cell.
type Standing struct {
	Role     string `json:"role"` // owner, ready, follows or failed
	Position int64  `json:"position"`
	Own      bool   `json:"own,omitempty"` // the cell of the node's own home
	Problem  string `json:"problem,omitempty"`
	// Those of the owner.
	Appends   int64 `json:"appends,omitempty"`
	P99Micros int64 `json:"append_p99_us,omitempty"`
	Standby   int64 `json:"standby_waits,omitempty"`
	Unknown   int64 `json:"unknown_outcomes,omitempty"`
}

// report tells other nodes; n.mu is held.
func (n *Node) report() {
	all := map[string]Standing{}
	for _, s := range n.seats {
		all[s.name] = s.standing()
	}
	if b, err := json.Marshal(all); err == nil {
		n.node.Report(string(b))
	}
}
