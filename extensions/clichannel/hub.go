package clichannel

import (
	"sync"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

const (
	maxTerminals = 64
	keepIDs      = 4096 // of shown and echoed messages, and of ended drafts
)

// hub tracks the attached terminals and the messages that wait to be shown.
type hub struct {
	mu          sync.Mutex
	terminals   map[*terminal]struct{}
	waiting     map[string]*delivery
	shown       *wire.Recent       // by message id: conversation of the terminal that showed it
	arrivals    map[string]arrival // by message id
	echoed      *wire.Recent
	drafts      map[string]wire.Frame // newest draft, by conversation
	endedDrafts *wire.Recent          // ids
	changed     chan struct{}         // a terminal attached or detached
}

// arrival is a message from a terminal that the kernel has not accepted yet.
type arrival struct {
	from  *terminal
	frame wire.Frame
}

// delivery is a message that Send waits for.
type delivery struct {
	frame        wire.Frame
	shown        chan struct{}
	conversation string // conversation where it was shown; set before shown is closed
	senders      int
}

func newHub() *hub {
	return &hub{
		terminals: map[*terminal]struct{}{}, waiting: map[string]*delivery{},
		arrivals: map[string]arrival{}, shown: wire.NewRecent(keepIDs), echoed: wire.NewRecent(keepIDs),
		drafts:      map[string]wire.Frame{},
		endedDrafts: wire.NewRecent(keepIDs), changed: make(chan struct{}, 1),
	}
}

// attach adds a terminal and queues the messages and the draft for it. It reports
// false if there are too many terminals.
func (h *hub) attach(t *terminal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.terminals) >= maxTerminals {
		return false
	}
	h.terminals[t] = struct{}{}
	for _, d := range h.waiting {
		h.offer(t, d)
	}
	if f, ok := h.drafts[t.conversation]; ok && !t.script {
		t.queue.put(f)
	}
	h.notify()
	return true
}

func (h *hub) detach(t *terminal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.terminals, t)
	h.notify()
}

func (h *hub) notify() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// attached returns the number of terminals.
func (h *hub) attached() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.terminals)
}

// open begins the delivery of a message; close ends it.
func (h *hub) open(f wire.Frame) *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.echoArrivals(f.Conversation)
	h.endDraft(f.Conversation, f.Draft)
	d := h.waiting[f.ID]
	if d == nil {
		d = &delivery{frame: f, shown: make(chan struct{})}
		if at, ok := h.shown.Get(f.ID); ok {
			d.conversation = at
			close(d.shown)
			d.senders++
			return d
		}
		h.waiting[f.ID] = d
		for t := range h.terminals {
			h.offer(t, d)
		}
	}
	d.senders++
	return d
}

func (h *hub) close(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.senders--; d.senders == 0 && h.waiting[d.frame.ID] == d {
		delete(h.waiting, d.frame.ID)
	}
}

// offer queues d for t if t wants it and does not have it; h.mu is held.
func (h *hub) offer(t *terminal, d *delivery) {
	if !t.wants(d.frame.Conversation) || t.offered.Has(d.frame.ID) {
		return
	}
	t.offered.Put(d.frame.ID, "")
	t.queue.put(d.frame)
}

// confirm records that t shows message id, if it was offered.
func (h *hub) confirm(t *terminal, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !t.offered.Has(id) || h.shown.Has(id) {
		return
	}
	h.shown.Put(id, t.conversation)
	if d := h.waiting[id]; d != nil {
		delete(h.waiting, id)
		d.conversation = t.conversation
		close(d.shown)
	}
}

// echo shows a message of t on the other terminals of its conversation, once.
func (h *hub) echo(t *terminal, f wire.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.arrivals, f.ID)
	h.echoLocked(t, f)
}

// addArrival notes a message of t that the kernel is about to accept. The answer to
// a command can arrive before the acceptance; the note lets the message be echoed
// first. removeArrival removes the note.
func (h *hub) addArrival(t *terminal, f wire.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arrivals[f.ID] = arrival{t, f}
}

func (h *hub) removeArrival(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.arrivals, id)
}

// echoArrivals echoes the arrivals of a conversation; h.mu is held.
func (h *hub) echoArrivals(conversation string) {
	for _, a := range h.arrivals {
		if a.from.conversation == conversation {
			h.echoLocked(a.from, a.frame)
		}
	}
}

// echoLocked is echo; h.mu is held.
func (h *hub) echoLocked(t *terminal, f wire.Frame) {
	if h.echoed.Has(f.ID) {
		return
	}
	h.echoed.Put(f.ID, "")
	for other := range h.terminals {
		if other != t && other.conversation == t.conversation && !other.script {
			other.queue.put(wire.Frame{Type: wire.Echo, ID: f.ID, Text: f.Text, Attachments: f.Attachments})
		}
	}
}

// draft shows a draft, unless it has ended.
func (h *hub) draft(f wire.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case f.Done:
		h.endDraft(f.Conversation, f.ID)
	case f.ID != "" && h.endedDrafts.Has(f.ID):
		return
	default:
		h.drafts[f.Conversation] = f
	}
	for t := range h.terminals {
		if !t.script && t.wants(f.Conversation) {
			t.queue.put(f)
		}
	}
}

// endDraft forgets a draft; h.mu is held.
func (h *hub) endDraft(conversation, id string) {
	if h.drafts[conversation].ID == id {
		delete(h.drafts, conversation)
	}
	if id != "" {
		h.endedDrafts.Put(id, "")
	}
}
