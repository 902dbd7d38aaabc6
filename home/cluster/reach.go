package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/home/cluster/link"
	"github.com/switchboard-run/switchboard/home/cluster/shared"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/store/postgres"
)

// Reach configures how nodes reach each other.
type Reach struct {
	// KeyFile holds the key of the cluster. The first node of a cluster makes it.
	KeyFile string
	Listen  string // host:port for the other nodes; empty: none reaches this one
	// Ports are what the owner of a cell serves on its machine, for the home of the cell;
	// Control names that of the command line.
	Ports   func(*config.Home) []link.Port
	Control string
	// Check returns what is wrong with the text of a file that nodes share.
	Check func(name string, text []byte) error
	// Holding returns what this machine has for a cell with a home; own: it is the node's own
	// cell.
	Holding func(home *config.Home, own bool) (Holding, error)
}

// Facts are what a node tells the others about itself, in PostgreSQL.
type Facts struct {
	Key   string          `json:"key,omitempty"`   // fingerprint of its key; empty: it has none
	Cells map[string]Held `json:"cells,omitempty"` // what it has for each cell
}

func (f Facts) text() string {
	text, err := json.Marshal(f)
	if err != nil {
		panic("cluster: encode the facts of a node: " + err.Error()) // never, for these types
	}
	return string(text)
}

// reach is this node's end of the connections between nodes.
type reach struct {
	Reach
	node     string
	log      hclog.Logger
	database *postgres.Database
	key      *link.Key
	link     *link.Link // nil: this node lacks the key

	telling sync.Mutex // held while facts change and are told
	mu      sync.Mutex // never held while PostgreSQL is asked: the node's lease waits for it
	facts   Facts
	told    []postgres.Told  // by all nodes, as read last
	others  map[string]Facts // the same, decoded

	locating  sync.Mutex        // held while addresses are read
	addresses map[string]string // of nodes
	asked     time.Time         // when they were read
}

func (n *Node) openReach(ctx context.Context) (_ *reach, err error) {
	r := &reach{Reach: n.options.Reach, node: n.options.Name, log: n.options.Log, database: n.database}
	all, err := n.database.Told(ctx)
	if err != nil {
		return nil, err
	}
	others := map[string]string{} // fingerprints of the other nodes' keys
	for _, t := range all {
		f := FactsOf(t)
		if t.Node == r.node {
			r.facts.Cells = f.Cells
		} else if f.Key != "" {
			others[t.Node] = f.Key
		}
	}
	r.hear(all)
	r.key, err = link.ReadKey(r.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		if err = nil; len(others) == 0 {
			r.key = link.NewKey()
			err = link.WriteKey(r.KeyFile, r.key)
		} else {
			n.options.Log.Warn("this node lacks the key of the cluster, so its command line can't reach the owner, and it "+
				"keeps its own configuration: copy the key with `switchboard cluster key show` on another node and "+
				"`switchboard cluster key set` here, then start again", "file", r.KeyFile)
		}
	}
	if err != nil {
		return nil, err
	}
	if r.key != nil {
		r.facts.Key = r.key.Fingerprint()
		for other, fingerprint := range others {
			if fingerprint != r.facts.Key {
				n.options.Log.Warn("another node has another key of the cluster, so they don't talk to each other: copy "+
					"the right one with `switchboard cluster key show` there and `switchboard cluster key set` on the other node, "+
					"after moving its file away", "node", other)
			}
		}
		r.link, err = link.Open(link.Options{Key: r.key, Node: r.node, Listen: r.Listen, Log: n.options.Log.Named("link")})
		if err != nil {
			return nil, err
		}
	}
	return r, r.tell(ctx)
}

// FactsOf decodes what a node tells; what is not understood is left out.
func FactsOf(t postgres.Told) (f Facts) {
	_ = json.Unmarshal([]byte(t.Facts), &f)
	return f
}

// tell tells the other nodes about this one.
func (r *reach) tell(ctx context.Context) error {
	r.mu.Lock()
	t := postgres.Told{Node: r.node, Facts: r.facts.text()}
	r.mu.Unlock()
	if r.link != nil {
		t.Address = r.link.Address()
	}
	return r.database.Tell(ctx, t)
}

// relay lets the programs of this machine reach the owner of a cell, which owner names.
func (r *reach) relay(cell string, home *config.Home, owner func() (string, error)) (*link.Relay, error) {
	locate := func(ctx context.Context) (node, address string, err error) {
		if node, err = owner(); node != "" {
			address, err = r.address(ctx, node)
		}
		return node, address, err
	}
	return r.link.Relay(link.Relaying{Cell: cell, Locate: locate, Ports: r.Ports(home), Control: r.Control})
}

// addressesFor is how long the addresses of nodes are not read again, for all cells.
const addressesFor = time.Second

func (r *reach) address(ctx context.Context, node string) (string, error) {
	r.locating.Lock()
	defer r.locating.Unlock()
	if time.Since(r.asked) > addressesFor {
		all, err := r.database.Told(ctx)
		if err != nil {
			return "", err
		}
		r.addresses, r.asked = map[string]string{}, time.Now()
		for _, t := range all {
			r.addresses[t.Node] = t.Address
		}
	}
	return r.addresses[node], nil
}

// serve lets the other nodes reach a cell of this one.
func (r *reach) serve(cell string, home *config.Home, files *shared.Files) (stop func()) {
	if r.link == nil {
		return func() {}
	}
	return r.link.Serve(cell, r.Ports(home), edits(files))
}

func (r *reach) close() {
	if r.link != nil {
		r.link.Close()
	}
}
