package clichannel

import (
	"sync"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

const (
	maxTerminals = 64
	keepIDs      = 4096 // of messages that were shown or echoed, and of drafts that have ended
)

// hub knows which terminals are attached and which messages wait to be shown.
type hub struct {
	mu        sync.Mutex
	terminals map[*terminal]struct{}
	waiting   map[string]*delivery
	done      *recent            // message id to the conversation of the terminal that showed it
	arriving  map[string]arrival // messages that the kernel is being given, by id
	echoed    *recent
	drafts    map[string]wire.Frame // the newest draft of a conversation
	drafted   *recent               // ids of drafts that have ended
	changed   chan struct{}         // a terminal came or went
}

// arrival is a message written at a terminal.
type arrival struct {
	from  *terminal
	frame wire.Frame
}

// delivery is a message that Send waits for.
type delivery struct {
	frame   wire.Frame
	shown   chan struct{}
	at      string // conversation where it was shown; set before shown is closed
	senders int
}

func newHub() *hub {
	return &hub{
		terminals: map[*terminal]struct{}{}, waiting: map[string]*delivery{},
		arriving: map[string]arrival{}, done: newRecent(), echoed: newRecent(), drafts: map[string]wire.Frame{},
		drafted: newRecent(), changed: make(chan struct{}, 1),
	}
}

// attach adds a terminal and gives it what waits for one like it. It reports
// false when there are too many.
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

// attached is the number of terminals.
func (h *hub) attached() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.terminals)
}

// open begins to wait until a message is shown; close ends it.
func (h *hub) open(f wire.Frame) *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.echoArriving(f.Conversation)
	h.endDraft(f.Conversation, f.Draft)
	d := h.waiting[f.ID]
	if d == nil {
		d = &delivery{frame: f, shown: make(chan struct{})}
		if at, ok := h.done.get(f.ID); ok {
			d.at = at
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

// offer gives d to t if it is for t and t does not have it yet; h.mu is held.
func (h *hub) offer(t *terminal, d *delivery) {
	if !t.wants(d.frame.Conversation) || t.offered.has(d.frame.ID) {
		return
	}
	t.offered.put(d.frame.ID, "")
	t.queue.put(d.frame)
}

// confirm records that t shows message id. Only what was offered counts.
func (h *hub) confirm(t *terminal, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !t.offered.has(id) || h.done.has(id) {
		return
	}
	h.done.put(id, t.conversation)
	if d := h.waiting[id]; d != nil {
		delete(h.waiting, id)
		d.at = t.conversation
		close(d.shown)
	}
}

// echo shows what was written at t on the other terminals of its conversation,
// once.
func (h *hub) echo(t *terminal, f wire.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.arriving, f.ID)
	h.show(t, f)
}

// arrive notes that the kernel is being given what was written at t. The answer
// to a command can be faster than the word that it was taken: what is shown in
// the conversation meanwhile stands below it, not above. left takes the note back.
func (h *hub) arrive(t *terminal, f wire.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arriving[f.ID] = arrival{t, f}
}

func (h *hub) left(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.arriving, id)
}

// echoArriving echoes what arrives in a conversation; h.mu is held.
func (h *hub) echoArriving(conversation string) {
	for _, a := range h.arriving {
		if a.from.conversation == conversation {
			h.show(a.from, a.frame)
		}
	}
}

// show is echo; h.mu is held.
func (h *hub) show(t *terminal, f wire.Frame) {
	if h.echoed.has(f.ID) {
		return
	}
	h.echoed.put(f.ID, "")
	for other := range h.terminals {
		if other != t && other.conversation == t.conversation && !other.script {
			other.queue.put(wire.Frame{Type: wire.Echo, ID: f.ID, Text: f.Text})
		}
	}
}

// draft shows a draft; one that comes after its end is late, and shown no more.
func (h *hub) draft(f wire.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case f.Done:
		h.endDraft(f.Conversation, f.ID)
	case f.ID != "" && h.drafted.has(f.ID):
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
		h.drafted.put(id, "")
	}
}
