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

// row is one row of a history in memory. Rows with the same turn that stand
// next to each other are kept or left out together.
type row struct {
	*busv1.Entry
	turn  int64 // as the kernel numbers it; negative while it is not known
	bytes int
	shown []*extensionv1.Message // of a row whose turn is over, once rendered
}

// entryOverhead stands for what surrounds a row's text in a request.
const entryOverhead = 32

func newRow(e *busv1.Entry, turn int64) row {
	n := entryOverhead + len(e.GetText()) + len(e.GetSender()) + len(e.GetTold())
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
	group   bool // rows are shown as in a group
	rows    []row
}

// current reports whether h still is what the kernel has.
func (h *history) current(t *busv1.TurnContext) bool {
	return h.valid(t) && h.seq == t.GetHistorySeq()
}

// behind reports whether it is as the kernel has it, but for rows behind it: what
// the kernel has recorded since.
func (h *history) behind(t *busv1.TurnContext) bool {
	return h.valid(t) && h.seq < t.GetHistorySeq()
}

func (h *history) valid(t *busv1.TurnContext) bool {
	return h != nil && !t.GetResumed() && h.epoch == t.GetHistoryEpoch() && h.group == t.GetGroup()
}

// add takes over a row as the kernel has it. One that belongs to no turn stands
// for itself.
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

// predict takes over rows that the kernel numbers in the order given.
func (h *history) predict(entries []*busv1.Entry, turn int64) {
	for _, e := range entries {
		h.seq++
		e.Seq = h.seq
		h.rows = append(h.rows, newRow(e, turn))
	}
}

// whole reports whether rows at which older ones were cut off hold all of a turn,
// behind some of whose rows may stand those of a turn that had interrupted it.
func whole(rows []*busv1.Entry, turn int64) bool {
	return len(rows) > 0 && rows[0].GetTurn() != turn && slices.ContainsFunc(rows, func(e *busv1.Entry) bool {
		return e.GetTurn() == turn && e.GetKind() == contract.EntryInput
	})
}

// wholeTurns leaves out the turn at which older rows were cut off, if it does
// not begin with what it answers. The turn that is under way stays.
func wholeTurns(rows []*busv1.Entry, current int64) []*busv1.Entry {
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

// maxRows bounds what a model is sent of a history, however short its rows are:
// what is older stands in the summary, and old exchanges cost every further one.
const maxRows = 100

// window returns the index of the first row of the newest whole turns that fit
// into the given size and are not more than most. What stands at or behind from
// is always in it.
func window(rows []row, from, bytes, most int) int {
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
		if bytes -= size; bytes < 0 || len(rows)-start > most {
			return from
		}
		from = start
	}
	return 0
}

// keptFor is how long an unused history stays in memory. After that the next turn
// reads it from the kernel, which takes a millisecond or two.
const keptFor = time.Minute

// histories keeps the histories of the sessions used last. A turn takes its
// history out and puts it back when it has ended well: what a turn did whose
// end is not known is read again from the kernel.
type histories struct {
	limit  int // of all
	window int // of one

	mu     sync.Mutex
	bytes  int
	used   *list.List // of *kept, the last used first
	by     map[string]*list.Element
	expiry *time.Timer // nil while nothing is kept
}

type kept struct {
	history *history
	bytes   int
	since   time.Time
}

func newHistories(limit, window int) *histories {
	return &histories{limit: limit, window: window, used: list.New(), by: map[string]*list.Element{}}
}

// take removes and returns the history of a session; nil if it is not kept.
func (c *histories) take(session string) *history {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[session]
	if e == nil {
		return nil
	}
	return c.remove(e)
}

func (c *histories) remove(e *list.Element) *history {
	k := c.used.Remove(e).(*kept)
	delete(c.by, k.history.session)
	c.bytes -= k.bytes
	return k.history
}

// put keeps h, cut to what the next turn can use: no turn is under way, so what
// the newest summary stands for is not sent any more.
func (c *histories) put(h *history) {
	first := max(window(h.rows, len(h.rows), c.window, 2*maxRows), firstBehind(h.rows, summaryOf(h.rows).GetCovers()))
	if first > 0 {
		h.rows = slices.Clone(h.rows[first:])
	}
	k := &kept{history: h, bytes: 256, since: time.Now()}
	for _, r := range h.rows {
		k.bytes += 256 + r.bytes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[h.session]; e != nil {
		c.remove(e)
	}
	c.by[h.session] = c.used.PushFront(k)
	c.bytes += k.bytes
	for c.bytes > c.limit && c.used.Len() > 0 {
		c.remove(c.used.Back())
	}
	if c.expiry == nil && c.used.Len() > 0 {
		c.expiry = time.AfterFunc(keptFor, c.expire)
	}
}

// expire removes what has been kept for long enough.
func (c *histories) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.used.Back(); e != nil; e = c.used.Back() {
		if left := keptFor - time.Since(e.Value.(*kept).since); left > 0 {
			c.expiry.Reset(left)
			return
		}
		c.remove(e)
	}
	c.expiry = nil
}
