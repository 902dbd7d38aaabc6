package home

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/home/consent"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/manifests"
)

// gate withholds tools that dropped-in extensions describe and that the owner did not allow.
// Allowing an extension to give tools to agents allows those that it describes first. Its
// methods are safe for concurrent use.
type gate struct {
	changed chan struct{} // has a value after an extension has described other tools

	mu   sync.Mutex
	seen map[string]*description
}

// description is what an extension described last.
type description struct {
	tools   []directory.Tool
	asks    manifests.Request // one of each tool
	first   manifests.Request // what it described first, until that is stored
	allowed manifests.Request // with which given was made
	given   []directory.Tool
}

func newGate() *gate { return &gate{changed: make(chan struct{}, 1), seen: map[string]*description{}} }

// offer returns those of the described tools that are allowed by name; all: whichever it
// describes.
func (g *gate) offer(id string, allowed manifests.Request, all bool, tools []directory.Tool) []directory.Tool {
	if len(tools) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.seen[id]
	if d == nil {
		d = &description{}
		g.seen[id] = d
	}
	if !same(d.tools, tools) {
		d.tools, d.asks, d.allowed = tools, nil, nil
		for _, t := range tools {
			d.asks = append(d.asks, manifests.Offer(t.Tool, t.Sum))
		}
		if d.first == nil {
			d.first = d.asks
		}
		g.notify()
	}
	if all {
		return tools
	}
	if len(allowed) == 0 {
		allowed = d.first
	}
	if !same(d.allowed, allowed) {
		withheld := map[manifests.Ask]bool{}
		for _, a := range allowed.Beyond(d.asks) {
			withheld[a] = true
		}
		d.allowed, d.given = allowed, nil
		for i, t := range tools {
			if !withheld[d.asks[i]] {
				d.given = append(d.given, t)
			}
		}
	}
	return d.given
}

// same reports whether two slices are one.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func (g *gate) notify() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// forget forgets the extensions that do not run.
func (g *gate) forget(p *plan) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.seen {
		if p.members[id] == nil {
			delete(g.seen, id)
		}
	}
}

// record notes in a decision what the extension describes, and reports whether that is new.
func (g *gate) record(id string, d consent.Decision) (consent.Decision, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.seen[id]
	if x == nil {
		return d, false
	}
	before := d
	if len(d.Allowed.Offers()) == 0 {
		d.Allowed = d.Allowed.With(x.first)
	}
	d.Wants = d.Allowed.Beyond(x.asks)
	return d, !slices.Equal(d.Wants, before.Wants) || !slices.Equal(d.Allowed, before.Allowed)
}

// offersEvery is how often the tools that extensions describe are recorded at most.
const offersEvery = time.Second

// followOffers records which tools extensions describe that the owner did not allow, and
// asks them, until the context ends.
func (i *Installation) followOffers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.files.gate.changed:
		}
		changed, err := i.recordOffers(i.plan.Load())
		if err != nil {
			i.log.Warn("recording the tools of extensions failed", "error", err)
			i.files.gate.notify()
		}
		if changed {
			i.replan()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(offersEvery):
		}
	}
}

// recordOffers updates the decisions about extensions that describe other tools.
func (i *Installation) recordOffers(p *plan) (changed bool, err error) {
	err = i.files.consent.Update(func(all consent.Decisions) (bool, error) {
		for id := range p.members {
			if !all[id].Allowed.Covers(manifests.Request{{Kind: manifests.AskTools}}) {
				continue
			}
			if d, isNew := i.files.gate.record(id, all[id]); isNew {
				all[id], changed = d, true
			}
		}
		return changed, nil
	})
	return changed, err
}
