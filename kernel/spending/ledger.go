// Package spending keeps account of what models cost: every completion is an
// event (model.usage) with who asked, for which session, and what for, and adds
// to the sum of its day, agent and model.
//
// # Promises
//
// Event and sum are committed with the next commit, before any that is submitted
// later: an answer that is on disk implies what it cost. A crash loses at most
// what nobody had an answer from. Sums are kept for Kept, events as long as all
// events. A day is one in the configured time zone, and a sum stays with the day
// that it was counted for.
//
// A limit is checked before a completion, with what is under way counted as
// estimated: beyond it goes at most the completion that reaches it. A change of
// the configuration counts at once. When four fifths of the limit for all models
// are used, the owner is told, once a day.
//
// # Not promised
//
// Exact numbers where a provider says none: those are estimated by size, and
// marked.
package spending

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Total is the key of the limit over all models in directory.Snapshot.DailyTokens.
const Total = "total"

// bytesPerToken is the rule of thumb where a provider says nothing.
const bytesPerToken = 4

// Tokens estimates the tokens of a text of that many bytes.
func Tokens(bytes int) int64 { return int64(bytes+bytesPerToken-1) / bytesPerToken }

// Ledger is the account. It is safe for concurrent use.
type Ledger struct {
	bus       *bus.Bus
	directory *directory.Directory
	log       hclog.Logger
	now       func() time.Time

	mu     sync.Mutex // held while something is submitted, which may take a moment
	today  *day
	names  map[string]string // what <extension>/* answered as last
	pruned string            // the day on which sums were pruned last

	// joining guards pending: a batch that was submitted, or is about to be, and
	// that the store has not begun with. Nobody who holds it waits for the store.
	joining sync.Mutex
	pending *batch
}

// day is what the limits of one day are checked against.
type day struct {
	name     string
	zone     *time.Location
	begins   time.Time
	ends     time.Time
	used     spent
	underway spent // estimated
	told     bool  // the owner knows that the limit is near
}

// spent is tokens, input and output together.
type spent struct {
	total  int64
	agents map[string]int64
	models map[string]int64
}

func newSpent() spent { return spent{agents: map[string]int64{}, models: map[string]int64{}} }

func (s *spent) add(agent, model string, n int64) {
	s.total += n
	s.agents[agent] += n
	s.models[model] += n
}

// New returns the ledger of a store.
func New(b *bus.Bus, d *directory.Directory, log hclog.Logger) *Ledger {
	return &Ledger{bus: b, directory: d, log: log, now: time.Now, names: map[string]string{}}
}

// Clock replaces the clock, for tests.
func (l *Ledger) Clock(now func() time.Time) { l.now = now }

// open is today; the caller holds l.mu. What was used before is read from the
// store when a day is opened: nothing of it can be on its way there then.
func (l *Ledger) open(now *directory.Snapshot) (*day, error) {
	at := l.now()
	if d := l.today; d != nil && d.zone == now.Location && !at.Before(d.begins) && at.Before(d.ends) {
		return d, nil
	}
	local := at.In(now.Location)
	name := local.Format(time.DateOnly)
	begins := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, now.Location)
	ends := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, now.Location)
	if d := l.today; d != nil && d.name == name { // in another zone
		d.zone, d.begins, d.ends = now.Location, begins, ends
		return d, nil
	}
	d := &day{name: name, zone: now.Location, begins: begins, ends: ends, used: newSpent(), underway: newSpent()}
	if err := l.bus.View(contextOfStore, func(r journal.Reader) error {
		return scan(r, prefix+name+"/", func(k key, s Sum) error {
			d.used.add(k.agent, k.model, s.Input+s.Output)
			return nil
		})
	}); err != nil {
		return nil, fmt.Errorf("reading what was spent on %s: %w", name, err)
	}
	l.today = d
	if l.pruned != name {
		l.pruned = name
		go l.prune(name)
	}
	return d, nil
}

// Completion is one that is under way.
type Completion struct {
	ledger *Ledger
	day    *day
	agent  string
	asked  string // the model that was asked, as in the configuration
	model  string // that one, or the one it answered as last
	tokens int64  // estimated
}

// Refused says why a completion is not made: a limit is reached.
type Refused struct {
	Whole  bool // whatever the model
	reason string
}

func (r *Refused) Error() string { return r.reason }

// Unwrap makes it an error that may pass.
func (r *Refused) Unwrap() error { return contract.ErrUnavailable }

// Begin counts a completion of about so many tokens as under way, or refuses it
// with a *Refused: the sentence is for people. Agent is an agent's id or an
// extension's, model <extension>/<model>. A nil ledger refuses nothing.
func (l *Ledger) Begin(agent, model string, tokens int64) (*Completion, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // a nil *Completion records nothing
	}
	now := l.directory.Current()
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.open(now)
	if err != nil {
		return nil, err
	}
	c := &Completion{ledger: l, day: d, agent: agent, asked: model, model: model, tokens: tokens}
	if name := l.names[model]; name != "" {
		c.model = name
	}
	if refused := d.refuse(now, agent, c.model); refused != nil {
		return nil, refused
	}
	d.underway.add(agent, c.model, tokens)
	return c, nil
}

// Check says whether Begin would refuse a completion now.
func (l *Ledger) Check(agent, model string) error {
	c, err := l.Begin(agent, model, 0)
	if err == nil {
		c.Drop()
	}
	return err
}

// Reached are the limits that are reached now, in sentences for people.
func (l *Ledger) Reached() ([]string, error) {
	now := l.directory.Current()
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.open(now)
	if err != nil {
		return nil, err
	}
	if refused := d.refuse(now, "", ""); refused != nil {
		return []string{refused.Error()}, nil
	}
	var all []string
	for i := range now.Agents {
		if refused := d.refuse(now, now.Agents[i].ID, ""); refused != nil {
			all = append(all, refused.Error())
		}
	}
	for _, model := range slices.Sorted(maps.Keys(now.DailyTokens)) {
		if refused := d.refuse(now, "", model); refused != nil {
			all = append(all, refused.Error())
		}
	}
	return all, nil
}

func (d *day) refuse(now *directory.Snapshot, agent, model string) error {
	reached := func(limit int64, which func(spent) int64) bool {
		return limit > 0 && which(d.used)+which(d.underway) >= limit
	}
	until := fmt.Sprintf("until midnight (%s)", now.Location)
	if limit := now.DailyTokens[Total]; reached(limit, func(s spent) int64 { return s.total }) {
		return &Refused{true, fmt.Sprintf("today's limit of %d tokens for all models is reached (models.daily_tokens: {%s: %d} in config.yaml): no model is asked %s",
			limit, Total, limit, until)}
	}
	if a := now.Agent(agent); a != nil && reached(a.DailyTokens, func(s spent) int64 { return s.agents[agent] }) {
		return &Refused{true, fmt.Sprintf("today's limit of %d tokens for the agent %s is reached (agent.limits.daily_tokens: %d in its manifest): it asks no model %s",
			a.DailyTokens, agent, a.DailyTokens, until)}
	}
	if limit := now.DailyTokens[model]; reached(limit, func(s spent) int64 { return s.models[model] }) {
		return &Refused{false, fmt.Sprintf("today's limit of %d tokens for %s is reached (models.daily_tokens: {%s: %d} in config.yaml): it is not asked %s",
			limit, model, model, limit, until)}
	}
	return nil
}

// Drop ends a completion that cost nothing.
func (c *Completion) Drop() {
	if c == nil {
		return
	}
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.end()
}

// end takes it out of what is under way; the caller holds the ledger's mu.
func (c *Completion) end() {
	if c.tokens != 0 {
		c.day.underway.add(c.agent, c.model, -c.tokens)
		c.tokens = 0
	}
}

// Spent ends a completion that cost something, and records it. The cause is the
// event that it follows from; nil if there is none.
func (c *Completion) Spent(cause *busv1.Event, u contract.ModelUsage) {
	if c == nil {
		return
	}
	l := c.ledger
	now := l.directory.Current()
	l.mu.Lock()
	defer l.mu.Unlock()
	c.end()
	if strings.HasSuffix(c.asked, "/*") && u.Model != c.asked {
		l.names[c.asked] = u.Model
	}
	name := c.day.name
	if d, err := l.open(now); err != nil {
		l.log.Error("the limits do not know what was spent before", "error", err)
	} else {
		name = d.name
		d.used.add(u.Agent, u.Model, u.InputTokens+u.OutputTokens)
	}
	l.record(key{name, u.Agent, u.Model}, use{cause, u}, l.warning(now))
}

// record has it written with the next commit; the caller holds l.mu, so that
// this stands in the store's queue before the caller goes on.
func (l *Ledger) record(k key, u use, n *notice) {
	l.joining.Lock()
	first := l.pending == nil
	if first {
		l.pending = &batch{sums: map[key]Sum{}}
	}
	l.pending.add(k, u)
	if n != nil {
		l.pending.notice = n
	}
	l.joining.Unlock()
	if !first {
		return
	}
	var taken *batch
	l.bus.Commit(bus.Change{Lazy: true, Apply: func(tx *bus.Tx) error {
		if taken == nil { // a commit may be applied more than once
			l.joining.Lock()
			taken, l.pending = l.pending, nil
			l.joining.Unlock()
		}
		return taken.write(tx)
	}, Done: func(err error) {
		if err != nil && !errors.Is(err, journal.ErrClosed) {
			l.log.Error("recording what completions cost failed", "completions", len(taken.rows()), "error", err)
		}
	}})
}

// Forget is told that an extension was started anew: <extension>/* may be
// another model now.
func (l *Ledger) Forget(extension string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, extension+"/*")
}

// near is the share of the limit for all models at which the owner is told.
const nearPercent = 80

// warning is what the owner is to be told, once a day; nil: nothing. The caller
// holds l.mu.
func (l *Ledger) warning(now *directory.Snapshot) *notice {
	limit, d := now.DailyTokens[Total], l.today
	if limit <= 0 || d == nil || d.told || d.used.total < (limit*nearPercent+99)/100 {
		return nil
	}
	d.told = true
	when := "When none is left"
	if d.used.total >= limit {
		when = "As none is left"
	}
	return &notice{day: d.name, text: fmt.Sprintf(
		"%d of the %d tokens that models may use today are spent (%d %%). %s, no model is asked until midnight (%s). The limit is models.daily_tokens: {%s: %d} in config.yaml; `switchboard usage` shows where they went.",
		d.used.total, limit, d.used.total*100/limit, when, now.Location, Total, limit)}
}
