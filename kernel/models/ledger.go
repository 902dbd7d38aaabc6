package models

import (
	"context"
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

// bytesPerToken is the estimate where a provider reports no tokens.
const bytesPerToken = 4

func estimateTokens(bytes int) int64 { return int64(bytes+bytesPerToken-1) / bytesPerToken }

// Ledger records what completions cost, and enforces the daily limits. It is safe
// for concurrent use.
//
// Every completion is an event (model.usage) that names the agent, the session
// and the purpose, and adds to the sum of its day, agent and model. Event and sum
// are written with the next commit, before any commit that is submitted later: an
// answer that is on disk implies its cost. A crash loses at most the cost of
// completions without a stored answer. The ledger keeps sums for Kept days, and
// events as long as all other events. A day is one in the configured time zone; a
// sum stays with the day that it was counted for. Where a provider reports no
// tokens, they are estimated by size, and marked.
//
// A limit is checked before a completion, and estimates of completions that run or
// wait for a slot count: at most the completion that reaches the limit exceeds it. A changed
// configuration applies at once. When four fifths of the limit for all models are
// used, the owner gets a notice, once a day.
type Ledger struct {
	bus       *bus.Bus
	directory *directory.Directory
	log       hclog.Logger

	mu    sync.Mutex // held while a commit is submitted, which may block
	today *day
	names map[string]string // <extension>/* -> the model that answered last
}

// day holds the tokens that the limits of one day are checked against.
type day struct {
	name     string
	used     tokens
	underway tokens // estimated
	warned   bool   // the owner was told that the limit is near
}

// tokens counts input and output together, by what a limit may be for.
type tokens map[subject]int64

// subject is an agent or a model.
type subject struct{ agent, model string }

var everything = subject{model: Total}

func (t tokens) add(agent, model string, n int64) {
	t[everything] += n
	t[subject{agent: agent}] += n
	t[subject{model: model}] += n
}

// NewLedger returns the ledger of a store.
func NewLedger(b *bus.Bus, d *directory.Directory, log hclog.Logger) *Ledger {
	return &Ledger{bus: b, directory: d, log: log, names: map[string]string{}}
}

// open returns today; the caller holds l.mu. It reads the sums of a new day from
// the store: no commit for that day can be pending yet.
func (l *Ledger) open(dir *directory.Snapshot) (*day, error) {
	local := time.Now().In(dir.Location)
	name := local.Format(time.DateOnly)
	if l.today != nil && l.today.name == name {
		return l.today, nil
	}
	d := &day{name: name, used: tokens{}, underway: tokens{}}
	err := l.bus.View(context.Background(), func(r journal.Reader) error { // the store ends it when it closes
		return scan(r, sumPrefix+name+"/", func(r Row) { d.used.add(r.Agent, r.Model, r.Input+r.Output) })
	})
	if err != nil {
		return nil, fmt.Errorf("read the model usage of %s: %w", name, err)
	}
	l.today = d
	l.prune(local)
	return d, nil
}

// Completion is a completion that runs or waits for a slot.
type Completion struct {
	ledger    *Ledger
	day       *day
	agent     string
	requested string // the model, as in the configuration
	model     string // requested, or the name that it answered with last
	tokens    int64  // estimated
}

// LimitError says that a daily limit is reached, in words for people.
type LimitError struct {
	EveryModel bool // the limit refuses all models
	text       string
}

func (e *LimitError) Error() string { return e.text }

// Unwrap makes it a temporary error.
func (e *LimitError) Unwrap() error { return contract.ErrUnavailable }

// Begin counts a completion of about that many tokens as under way, or refuses it
// with a *LimitError. Agent is the id of an agent or an extension, model is
// <extension>/<model>. A nil ledger refuses nothing.
func (l *Ledger) Begin(agent, model string, estimate int64) (*Completion, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // a nil *Completion records nothing
	}
	dir := l.directory.Current()
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.open(dir)
	if err != nil {
		return nil, err
	}
	c := &Completion{ledger: l, day: d, agent: agent, requested: model, model: model, tokens: estimate}
	if name := l.names[model]; name != "" {
		c.model = name
	}
	if refused := d.refuse(dir, agent, c.model); refused != nil {
		return nil, refused
	}
	d.underway.add(agent, c.model, estimate)
	return c, nil
}

// Reached describes the limits that are reached now, for people.
func (l *Ledger) Reached() ([]string, error) {
	dir := l.directory.Current()
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.open(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	check := func(agent, model string) {
		if refused := d.refuse(dir, agent, model); refused != nil && !slices.Contains(all, refused.Error()) {
			all = append(all, refused.Error())
		}
	}
	for i := range dir.Agents {
		check(dir.Agents[i].ID, "")
	}
	for _, model := range slices.Sorted(maps.Keys(dir.DailyTokens)) {
		check("", model)
	}
	return all, nil
}

// refuse returns a *LimitError if a limit is reached.
func (d *day) refuse(dir *directory.Snapshot, agent, model string) error {
	reached := func(limit int64, s subject) bool { return limit > 0 && d.used[s]+d.underway[s] >= limit }
	until := fmt.Sprintf("until midnight (%s)", dir.Location)
	if limit := dir.DailyTokens[Total]; reached(limit, everything) {
		return &LimitError{true, fmt.Sprintf("today's limit of %d tokens for all models is reached "+
			"(models.daily_tokens: {%s: %d}): no model is asked %s", limit, Total, limit, until)}
	}
	if a := dir.Agent(agent); a != nil && reached(a.DailyTokens, subject{agent: agent}) {
		return &LimitError{true, fmt.Sprintf("today's limit of %d tokens for the agent %s is reached "+
			"(agent.limits.daily_tokens: %d in its manifest): it asks no model %s", a.DailyTokens, agent, a.DailyTokens, until)}
	}
	if limit := dir.DailyTokens[model]; reached(limit, subject{model: model}) {
		return &LimitError{false, fmt.Sprintf("today's limit of %d tokens for %s is reached "+
			"(models.daily_tokens: {%s: %d}): it is not asked %s", limit, model, model, limit, until)}
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

// end removes the completion from those under way; the caller holds the ledger's mu.
func (c *Completion) end() {
	if c.tokens != 0 {
		c.day.underway.add(c.agent, c.model, -c.tokens)
		c.tokens = 0
	}
}

// Spent ends a completion that cost something, and records the cost. The cause is
// the event that led to it; nil: none.
func (c *Completion) Spent(cause *busv1.Event, u contract.ModelUsage) {
	if c == nil {
		return
	}
	l := c.ledger
	dir := l.directory.Current()
	l.mu.Lock()
	defer l.mu.Unlock()
	c.end()
	if strings.HasSuffix(c.requested, "/*") && u.Model != c.requested {
		l.names[c.requested] = u.Model
	}
	name := c.day.name
	if d, err := l.open(dir); err != nil {
		l.log.Error("read the model usage of today; the limits miss a completion", "error", err)
	} else {
		name = d.name
		d.used.add(u.Agent, u.Model, u.InputTokens+u.OutputTokens)
	}
	cost := use{name, cause, u, l.warning(dir)}
	l.bus.Commit(bus.Change{Lazy: true, Apply: cost.write, Done: func(err error) {
		if err != nil && !errors.Is(err, journal.ErrClosed) {
			l.log.Error("record model usage", "error", err)
		}
	}})
}

// Forget forgets which model answered for <extension>/*: after a restart it may
// be another one.
func (l *Ledger) Forget(extension string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, extension+"/*")
}

// nearPercent is the share of the limit for all models that makes a notice.
const nearPercent = 80

// warning returns the notice for the owner, once a day, or nil. The caller holds
// l.mu.
func (l *Ledger) warning(dir *directory.Snapshot) *notice {
	limit, d := dir.DailyTokens[Total], l.today
	if limit <= 0 || d == nil || d.warned || d.used[everything] < (limit*nearPercent+99)/100 {
		return nil
	}
	d.warned = true
	used := d.used[everything]
	when := "When none is left"
	if used >= limit {
		when = "As none is left"
	}
	return &notice{day: d.name, text: fmt.Sprintf(
		"%d of the %d tokens that models may use today are spent (%d %%). %s, no model is asked until midnight (%s). "+
			"The limit is models.daily_tokens: {%s: %d}.%s",
		used, limit, used*100/limit, when, dir.Location, Total, limit,
		directory.Hint(" %s shows where they went.", dir.Program.Usage))}
}
