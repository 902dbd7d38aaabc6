package cluster

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/home/cluster/link"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/pin"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/store/postgres"
)

const (
	// compareEvery is how often a node tells what it has, if that has changed, and reads what
	// the others have.
	compareEvery = 2 * time.Second
	// inspectEvery is how often a home is read again whose settings are the same: files of
	// programs may have changed.
	inspectEvery = 5 * time.Minute
	// completeFirst is how much longer a node that lacks secrets waits for one that has them to
	// take a cell.
	completeFirst = 10 * time.Second
	// digestBytes is how much of a digest is told.
	digestBytes = 16
)

// Holding is what a node has for a cell: for the extensions that are enabled there.
type Holding struct {
	Secrets  []Secret
	Programs map[string]string // hashes of allowed programs by extension; empty: not allowed
	Data     map[string]bool   // extensions whose data is pinned; true: they run on this machine
}

// Secret is a secret that is set.
type Secret struct {
	Name, Value string
	Required    bool // an extension does not work without it
}

// Held is what a node tells of a Holding. No value of a secret can be found out from it
// without the key of the cluster.
type Held struct {
	Secrets  map[string]SecretDigest `json:"secrets,omitempty"`  // by name
	Programs map[string]string       `json:"programs,omitempty"` // as in Holding
	Last     *Tenancy                `json:"last,omitempty"`     // nil: it never owned the cell
}

// SecretDigest stands for the value of a secret.
type SecretDigest struct {
	Digest   string `json:"digest,omitempty"` // empty: the node lacks the key of the cluster
	Required bool   `json:"required,omitempty"`
}

// held returns what is told of a holding. Equal values have other digests in another cell
// and under another name.
func held(key *link.Key, cell string, h Holding) Held {
	told := Held{Secrets: map[string]SecretDigest{}, Programs: h.Programs}
	for _, s := range h.Secrets {
		d := SecretDigest{Required: s.Required || told.Secrets[s.Name].Required}
		if key != nil {
			d.Digest = hex.EncodeToString(key.MAC("secret", cell, s.Name, s.Value)[:digestBytes])
		}
		told.Secrets[s.Name] = d
	}
	return told
}

// What differs between nodes.
const (
	KeyDiffers        = "key"             // the node lacks the key of the cluster, or has another one
	SecretsMissing    = "secrets_missing" //nolint:gosec // no secret
	SecretsDiffer     = "secrets_differ"  //nolint:gosec // no secret
	ProgramsForbidden = "programs_not_allowed"
	ProgramsDiffer    = "programs_differ"
)

// Difference is what a node has otherwise than another one.
type Difference struct {
	What  string   `json:"what"`
	Node  string   `json:"node"`
	Cell  string   `json:"cell,omitempty"`
	Names []string `json:"names,omitempty"` // of secrets or extensions
	Than  string   `json:"than"`            // the node that it was compared with
}

// String describes it for people.
func (d Difference) String() string {
	names := strings.Join(d.Names, ", ")
	switch d.What {
	case SecretsMissing:
		return fmt.Sprintf("the node %s lacks secrets of the cell %s that %s has: %s", d.Node, d.Cell, d.Than, names)
	case SecretsDiffer:
		return fmt.Sprintf("the node %s has other values than %s for secrets of the cell %s: %s", d.Node, d.Than, d.Cell,
			names)
	case ProgramsForbidden:
		return fmt.Sprintf("the node %s doesn't allow programs of the cell %s that %s runs: %s", d.Node, d.Cell, d.Than,
			names)
	case ProgramsDiffer:
		return fmt.Sprintf("the node %s allows other programs than %s for extensions of the cell %s: %s", d.Node, d.Than,
			d.Cell, names)
	}
	return fmt.Sprintf("the node %s doesn't have the cluster key of %s", d.Node, d.Than)
}

// Hint says what to do about it.
func (d Difference) Hint() string {
	switch d.What {
	case SecretsMissing, SecretsDiffer:
		return fmt.Sprintf("correct secrets.env on %s", d.Node)
	case ProgramsForbidden:
		return fmt.Sprintf("copy the files to %s, then run `switchboard cluster allow` there", d.Node)
	case ProgramsDiffer:
		return fmt.Sprintf("compare the files of the extensions on %s and %s", d.Node, d.Than)
	}
	return fmt.Sprintf("copy it with `switchboard cluster key show` on %s and `switchboard cluster key set` on %s", d.Than,
		d.Node)
}

// Compare compares what the nodes told of themselves with the owners of the cells, which
// owners names. The owner of a cell is compared with nodes that have more than it.
func Compare(all []postgres.Told, owners map[string]string) []Difference {
	facts := map[string]Facts{}
	for _, t := range all {
		facts[t.Node] = FactsOf(t)
	}
	found := keyDifferences(facts, owners)
	for _, cell := range slices.Sorted(maps.Keys(owners)) {
		owner := owners[cell]
		own, told := facts[owner].Cells[cell]
		if !told {
			continue
		}
		add := func(what, node, than string, names []string) {
			if len(names) > 0 {
				found = append(found, Difference{What: what, Node: node, Cell: cell, Names: names, Than: than})
			}
		}
		for _, node := range slices.Sorted(maps.Keys(facts)) {
			its, told := facts[node].Cells[cell]
			if node == owner || !told {
				continue
			}
			add(SecretsMissing, node, owner, lacks(its, slices.Sorted(maps.Keys(own.Secrets))))
			if facts[node].Key == facts[owner].Key { // digests of another key say nothing
				add(SecretsDiffer, node, owner, differing(its, own))
			}
			add(ProgramsForbidden, node, owner, forbidden(its, own))
			add(ProgramsDiffer, node, owner, otherPrograms(its, own))
			add(SecretsMissing, owner, node, lacks(own, required(its)))
			add(ProgramsForbidden, owner, node, forbidden(own, its))
		}
	}
	return found
}

// keyDifferences compares the keys of nodes with that of an owner, or of the first node
// that has one.
func keyDifferences(facts map[string]Facts, owners map[string]string) (found []Difference) {
	than := ""
	for _, cell := range slices.Sorted(maps.Keys(owners)) {
		if than == "" && facts[owners[cell]].Key != "" {
			than = owners[cell]
		}
	}
	for _, node := range slices.Sorted(maps.Keys(facts)) {
		if than == "" && facts[node].Key != "" {
			than = node
		}
	}
	for _, node := range slices.Sorted(maps.Keys(facts)) {
		if than != "" && facts[node].Key != facts[than].Key {
			found = append(found, Difference{What: KeyDiffers, Node: node, Than: than})
		}
	}
	return found
}

// differing returns the secrets that both have, with other values.
func differing(its, own Held) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(own.Secrets)) {
		if mine, set := its.Secrets[name]; set && mine.Digest != own.Secrets[name].Digest {
			names = append(names, name)
		}
	}
	return names
}

// forbidden returns the extensions whose programs only the other one allows.
func forbidden(its, other Held) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(other.Programs)) {
		if other.Programs[id] != "" && its.Programs[id] == "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func otherPrograms(its, own Held) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(own.Programs)) {
		if mine, hash := its.Programs[id], own.Programs[id]; mine != "" && hash != "" && mine != hash {
			ids = append(ids, id)
		}
	}
	return ids
}

func required(h Held) (names []string) {
	for name, s := range h.Secrets {
		if s.Required {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func lacks(h Held, needed []string) (names []string) {
	for _, name := range needed {
		if _, set := h.Secrets[name]; !set {
			names = append(names, name)
		}
	}
	return names
}

// lacking counts the required secrets of a cell that each node lacks and another one of them
// has. A node that told nothing of the cell lacks them all.
func lacking(facts map[string]Facts, cell string, nodes []postgres.Member) map[string]int {
	var needed []string
	for _, m := range nodes {
		needed = append(needed, required(facts[m.Name].Cells[cell])...)
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	counts := map[string]int{}
	for _, m := range nodes {
		counts[m.Name] = len(lacks(facts[m.Name].Cells[cell], needed))
	}
	return counts
}

// completest puts nodes that lack less before the others.
func completest(nodes []postgres.Member, lacking map[string]int) {
	slices.SortStableFunc(nodes, func(a, b postgres.Member) int { return cmp.Compare(lacking[a.Name], lacking[b.Name]) })
}

// patience is how long a node waits before it takes a cell that has no owner: place is its
// place among nodes.
func patience(nodes []postgres.Member, place int, lacking map[string]int) time.Duration {
	wait := time.Duration(place) * stepIn
	for _, m := range nodes[:place] {
		if lacking[m.Name] < lacking[nodes[place].Name] {
			return wait + completeFirst
		}
	}
	return wait
}

// kept is what was found in a home, and for which state of its files.
type kept struct {
	state string
	at    time.Time
	held  *Held           // nil: finding it out failed
	data  map[string]bool // Holding.Data
}

// compare tells the other nodes what this one has for its cells, and reads what they have,
// until ctx ends.
func (n *Node) compare(ctx context.Context) {
	known, problem := map[string]kept{}, ""
	for ctx.Err() == nil {
		n.mu.Lock()
		seats := n.all()
		n.mu.Unlock()
		if len(seats) == 0 { // it has not looked at the cluster yet
			pause(ctx, watchEvery)
			continue
		}
		err := n.reach.exchange(ctx, n.holdings(seats, known))
		text := ""
		if err != nil && ctx.Err() == nil {
			if text = err.Error(); text != problem {
				n.options.Log.Warn("comparing the secrets of the nodes failed; this is tried again", "error", err)
			}
		}
		problem = text
		pause(ctx, compareEvery)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// having is what a node has for a cell now.
type having struct {
	held  *Held           // nil: not known, so what it told before stays
	data  map[string]bool // Holding.Data
	mark  string          // of the cell
	epoch int64           // of its tenure; 0: it is not the owner
}

// after returns what a node tells after what it told before.
func (x having) after(before Held) Held {
	if x.held == nil {
		return before
	}
	now := *x.held
	now.Last = before.Last
	if x.epoch > 0 && (now.Last == nil || now.Last.Mark != x.mark || now.Last.Epoch <= x.epoch) {
		now.Last = tenancy(now.Last, x.mark, x.epoch, x.data)
	}
	return now
}

// holdings returns what this node has for its cells. It is not known for a cell whose state
// the node has not followed yet.
func (n *Node) holdings(seats []*seat, known map[string]kept) map[string]having {
	all := map[string]having{}
	for _, s := range seats {
		s.mu.Lock()
		home, x := s.home, having{mark: s.order.seen.Mark}
		switch {
		case s.tenure != nil:
			x.epoch = s.tenure.State().Epoch
		case s.position == 0:
			home = nil
		}
		s.mu.Unlock()
		if home != nil && n.options.Reach.Holding != nil {
			state := stateOf(home)
			k, found := known[s.name]
			if !found || k.state != state || time.Since(k.at) >= inspectEvery {
				k = kept{state: state, at: time.Now()}
				if h, err := n.options.Reach.Holding(home, s.own); err != nil {
					n.options.Log.Warn("what this node has for a cell can't be found out", "cell", s.name, "error", err)
				} else {
					told := held(n.reach.key, s.name, h)
					k.held, k.data = &told, h.Data
				}
				known[s.name] = k
			}
			if x.held, x.data = k.held, k.data; x.held != nil {
				s.mu.Lock()
				s.data = k.data
				s.mu.Unlock()
			}
		}
		all[s.name] = x
	}
	return all
}

// stateOf changes when a file does that decides which secrets and programs a home needs and
// has.
func stateOf(h *config.Home) string {
	files, _ := filepath.Glob(filepath.Join(h.Extensions(), "*", manifests.FileName))
	files = append(files, h.Config(), h.Secrets(), h.Servers(), pin.File(h), filepath.Join(h.Path(), "consent.json"))
	var all strings.Builder
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintf(&all, "%s %d %d\n", file, info.Size(), info.ModTime().UnixNano())
		}
	}
	return all.String()
}

// exchange tells what this node has, if that has changed, and reads what the others have.
func (r *reach) exchange(ctx context.Context, now map[string]having) error {
	err := r.change(ctx, func(cells map[string]Held) {
		before := maps.Clone(cells)
		clear(cells)
		for cell, x := range now {
			if h, told := before[cell]; told || x.held != nil {
				cells[cell] = x.after(h)
			}
		}
	})
	if err == nil {
		_, err = r.listen(ctx)
	}
	return err
}

// listen reads what the nodes tell, and reports whether it is something new.
func (r *reach) listen(ctx context.Context) (news bool, err error) {
	all, err := r.database.Told(ctx)
	return err == nil && r.hear(all), err
}

func (r *reach) hear(all []postgres.Told) (news bool) {
	facts := map[string]Facts{}
	for _, t := range all {
		facts[t.Node] = FactsOf(t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	news = !slices.Equal(all, r.told)
	r.told, r.others = all, facts
	return news
}

// heard returns what the nodes told, as it was read last.
func (r *reach) heard() map[string]Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.others
}

// missing returns the required secrets of a cell that this node lacks and another one has,
// or had when it ran last.
func (r *reach) missing(cell string) []string {
	all := r.heard()
	var needed []string
	for _, f := range all {
		needed = append(needed, required(f.Cells[cell])...)
	}
	slices.Sort(needed)
	return lacks(all[r.node].Cells[cell], slices.Compact(needed))
}
