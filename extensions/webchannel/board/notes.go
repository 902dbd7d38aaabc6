package board

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// notes holds what a change said until the page that follows shows it.
type notes struct {
	mu  sync.Mutex
	all map[string]note
}

type note struct {
	who, text string
	at        time.Time
}

const (
	noteKept = time.Minute
	mostKept = 1000
)

// put keeps a text for a visitor and returns its id.
func (n *notes) put(v door.Visitor, text string, now time.Time) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]note{}
	}
	for id, old := range n.all {
		if now.Sub(old.at) > noteKept || len(n.all) >= mostKept {
			delete(n.all, id)
		}
	}
	id := rand.Text()
	n.all[id] = note{who: whose(v), text: text, at: now}
	return id
}

// take returns a text that was kept for the visitor; empty: there is none.
func (n *notes) take(v door.Visitor, id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.all[id]
	if kept.who != whose(v) {
		return ""
	}
	delete(n.all, id)
	return kept.text
}

func whose(v door.Visitor) string { return v.Person + "\x00" + v.Login + "\x00" + v.Token }
