package agent

import (
	"container/list"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// row is one row of a history in memory. Adjacent rows of the same turn are kept or
// left out together.
type row struct {
	*busv1.Entry
	turn     int64 // the kernel's number; negative until it is known
	bytes    int
	rendered []*extensionv1.Message // cached once the turn is over
}

// entryOverhead is the estimated size of a row in a request besides its text.
const entryOverhead = 32

func newRow(e *busv1.Entry, turn int64) row {
	n := entryOverhead + len(e.GetText()) + len(e.GetSender()) + len(e.GetPreamble())
	for _, c := range e.GetCalls() {
		n += entryOverhead + len(c.GetName()) + len(c.GetArguments())
	}
	return row{Entry: e, turn: turn, bytes: n}
}

// history is the newest part of a session's history, as of row seq.
type history struct {
	session string
	seq     int64
	epoch   int64
	group   bool // rows are rendered as in a group
	rows    []row
}

// current reports whether h is the kernel's current history.
func (h *history) current(t *busv1.TurnContext) bool {
	return h.valid(t) && h.seq == t.GetHistorySeq()
}

// extendable reports whether h is valid and lacks only newer rows.
func (h *history) extendable(t *busv1.TurnContext) bool {
	return h.valid(t) && h.seq < t.GetHistorySeq()
}

func (h *history) valid(t *busv1.TurnContext) bool {
	return h != nil && !t.GetResumed() && h.epoch == t.GetHistoryEpoch() && h.group == t.GetGroup()
}

// add adds a row that the kernel returned. One without a turn gets a number of its
// own.
func (h *history) add(e *busv1.Entry, turn int64) {
	if turn == 0 {
		turn = math.MinInt64 + e.GetSeq()
	}
	if e.GetKind() == contract.EntryResult {
		e.Text = cutText(e.GetText(), contract.MaxToolResult)
	}
	h.rows = append(h.rows, newRow(e, turn))
	h.seq = max(h.seq, e.GetSeq())
}

// predict adds rows of a commit, which the kernel numbers in this order.
func (h *history) predict(entries []*busv1.Entry, turn int64) {
	for _, e := range entries {
		h.seq++
		e.Seq = h.seq
		h.rows = append(h.rows, newRow(e, turn))
	}
}

// containsTurn reports whether rows, the newest of a history, contain a whole turn.
// Rows of a turn that interrupted it may lie between its own.
func containsTurn(rows []*busv1.Entry, turn int64) bool {
	return len(rows) > 0 && rows[0].GetTurn() != turn && slices.ContainsFunc(rows, func(e *busv1.Entry) bool {
		return e.GetTurn() == turn && e.GetKind() == contract.EntryInput
	})
}

// dropPartialTurn removes the first turn of rows, the newest of a history, if its
// beginning is missing. It keeps the current turn.
func dropPartialTurn(rows []*busv1.Entry, current int64) []*busv1.Entry {
	if len(rows) == 0 || rows[0].GetTurn() == current {
		return rows
	}
	if kind := rows[0].GetKind(); kind != contract.EntryAnswer && kind != contract.EntryResult {
		return rows
	}
	cut := rows[0].GetTurn()
	for len(rows) > 0 && rows[0].GetTurn() == cut {
		rows = rows[1:]
	}
	return rows
}

// maxRows is the number of rows of a history in a request, even if they are short:
// older ones are in the summary, and each costs tokens in every request.
const maxRows = 100

// window returns the index of the first row of the newest whole turns that fit into
// bytes and have at most maxRows rows. The rows from index from on are always
// included.
func window(rows []row, from, bytes, maxRows int) int {
	for _, r := range rows[from:] {
		bytes -= r.bytes
	}
	for from > 0 {
		start := from - 1
		size := rows[start].bytes
		for start > 0 && rows[start-1].turn == rows[start].turn {
			start--
			size += rows[start].bytes
		}
		if bytes -= size; bytes < 0 || len(rows)-start > maxRows {
			return from
		}
		from = start
	}
	return 0
}

// cacheTTL is how long an unused history stays in memory. After that the next turn
// reads it from the kernel, which takes a millisecond or two.
const cacheTTL = time.Minute

// histories caches the histories of the most recently used sessions. A turn takes its
// history out and puts it back when it has ended well. If the outcome of a turn is
// unknown, the history is read from the kernel again.
type histories struct {
	limit  int // of all, in bytes
	window int // of one, in bytes

	mu        sync.Mutex
	bytes     int
	used      *list.List // of *cached, the last used first
	bySession map[string]*list.Element
	expiry    *time.Timer // nil while the cache is empty
}

type cached struct {
	history *history
	bytes   int
	since   time.Time
}

func newHistories(limit, window int) *histories {
	return &histories{limit: limit, window: window, used: list.New(), bySession: map[string]*list.Element{}}
}

// take removes and returns the history of a session; nil if it is not cached.
func (c *histories) take(session string) *history {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.bySession[session]
	if e == nil {
		return nil
	}
	return c.remove(e)
}

func (c *histories) remove(e *list.Element) *history {
	k := c.used.Remove(e).(*cached)
	delete(c.bySession, k.history.session)
	c.bytes -= k.bytes
	return k.history
}

// put caches h without the rows that the next turn cannot use: old ones, and those
// that the newest summary replaces.
func (c *histories) put(h *history) {
	first := max(window(h.rows, len(h.rows), c.window, 2*maxRows), firstAfter(h.rows, summaryOf(h.rows).GetCovers()))
	if first > 0 {
		h.rows = slices.Clone(h.rows[first:])
	}
	k := &cached{history: h, bytes: 256, since: time.Now()}
	for _, r := range h.rows {
		k.bytes += 256 + r.bytes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.bySession[h.session]; e != nil {
		c.remove(e)
	}
	c.bySession[h.session] = c.used.PushFront(k)
	c.bytes += k.bytes
	for c.bytes > c.limit && c.used.Len() > 0 {
		c.remove(c.used.Back())
	}
	if c.expiry == nil && c.used.Len() > 0 {
		c.expiry = time.AfterFunc(cacheTTL, c.expire)
	}
}

// expire removes the histories whose time is over.
func (c *histories) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.used.Back(); e != nil; e = c.used.Back() {
		if left := cacheTTL - time.Since(e.Value.(*cached).since); left > 0 {
			c.expiry.Reset(left)
			return
		}
		c.remove(e)
	}
	c.expiry = nil
}
