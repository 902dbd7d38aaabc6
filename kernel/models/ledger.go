package models

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// bytesPerToken is the estimate where a provider reports no tokens.
const bytesPerToken = 4

func estimateTokens(bytes int) int64 { return int64(bytes+bytesPerToken-1) / bytesPerToken }

// Ledger records what completions cost, and enforces the limits of days and months. It is safe
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
// configuration applies at once; what was recorded keeps its price. When four fifths of a
// limit for all models are used, the owner gets a notice, once in its period.
type Ledger struct {
	bus       *bus.Bus
	directory *directory.Directory
	log       hclog.Logger

	mu    sync.Mutex // held while a commit is submitted, which may block
	today *day
	names map[string]string // <extension>/* -> the model that answered last
}

// day holds what the limits of one day, and of its month, are checked against.
type day struct {
	name     string
	used     tally
	month    tally
	underway tally           // estimated
	warned   map[string]bool // settings whose limits are near, and the owner was told
}

// tally counts what was spent, by what a limit may be for.
type tally map[subject]int64

// subject is an agent or a model; empty: all together. The unit is a currency; empty: tokens.
type subject struct{ agent, model, unit string }

// add adds a completion, or with -1 takes it off.
func (t tally) add(u *contract.ModelUsage, sign int64) {
	for _, of := range []subject{{}, {agent: u.Agent}, {model: u.Model}} {
		t[of] += sign * (u.InputTokens + u.OutputTokens)
		of.unit = u.Currency
		t[of] += sign * u.CostMicros
	}
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
	d := &day{name: name, used: tally{}, month: tally{}, underway: tally{}, warned: map[string]bool{}}
	err := l.bus.View(context.Background(), func(r journal.Reader) error { // the store ends it when it closes
		return scan(r, sumPrefix+local.Format("2006-01"), func(r Row) {
			u := contract.ModelUsage{Agent: r.Agent, Model: r.Model, InputTokens: r.Input, OutputTokens: r.Output}
			d.count(&u, r.Day == name)
			u.InputTokens, u.OutputTokens = 0, 0
			for u.Currency, u.CostMicros = range r.Costs {
				d.count(&u, r.Day == name)
			}
		})
	})
	if err != nil {
		return nil, words.Errorf("read the model usage of %s: %w", name, err)
	}
	l.today = d
	l.prune(local)
	return d, nil
}

// count counts a completion of the month, or of today.
func (d *day) count(u *contract.ModelUsage, today bool) {
	if d.month.add(u, 1); today {
		d.used.add(u, 1)
	}
}

// Completion is a completion that runs or waits for a slot.
type Completion struct {
	ledger    *Ledger
	day       *day
	requested string              // the model, as in the configuration
	estimate  contract.ModelUsage // of the requested model, or of that which answered for it last
}

// LimitError says that a limit is reached, in words for people.
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
	u := contract.ModelUsage{Agent: agent, Model: cmp.Or(l.names[model], model), InputTokens: estimate}
	for i := range dir.Limits {
		if limit := &dir.Limits[i]; limit.Agent != "" && limit.Agent != agent || limit.Model != "" && limit.Model != u.Model {
			continue
		} else if refused := d.refuse(dir, limit); refused != nil {
			return nil, refused
		}
	}
	charge(dir, &u)
	d.underway.add(&u, 1)
	return &Completion{l, d, model, u}, nil
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
	for i := range dir.Limits {
		if refused := d.refuse(dir, &dir.Limits[i]); refused != nil {
			all = append(all, refused.Error())
		}
	}
	return all, nil
}

// of returns what a limit counts, without what is under way.
func (d *day) of(l *directory.Limit) int64 {
	if l.Monthly {
		return d.month[subject{l.Agent, l.Model, l.Currency}]
	}
	return d.used[subject{l.Agent, l.Model, l.Currency}]
}

// refuse returns a *LimitError if a limit is reached.
func (d *day) refuse(dir *directory.Snapshot, l *directory.Limit) error {
	if d.of(l)+d.underway[subject{l.Agent, l.Model, l.Currency}] < l.Amount {
		return nil
	}
	text := words.Sprintf("%v is reached (%s): %v (%s)", l.Name, l.Setting, l.Then, dir.Location)
	return &LimitError{l.Model == "", text}
}

// charge sets the cost of a completion.
func charge(dir *directory.Snapshot, u *contract.ModelUsage) {
	if dir.Price != nil {
		dir.Price(u)
	}
}

// Drop ends a completion that cost nothing; after Spent it does nothing.
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
	c.day.underway.add(&c.estimate, -1)
	c.estimate = contract.ModelUsage{}
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
	charge(dir, &u)
	name := c.day.name
	if d, err := l.open(dir); err != nil {
		l.log.Error("read the model usage of today; the limits miss a completion", "error", err)
	} else {
		name = d.name
		d.count(&u, true)
	}
	record := use{name, cause, u, l.warning(dir)}
	l.bus.Commit(bus.Change{Lazy: true, Apply: record.write, Done: func(err error) {
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

// nearPercent is the share of a limit for all models that makes a notice.
const nearPercent = 80

// warning returns the notice for the owner about a limit that is near, once for each in
// its period, or nil. The caller holds l.mu.
func (l *Ledger) warning(dir *directory.Snapshot) *notice {
	d := l.today
	for i := range dir.Limits {
		x := &dir.Limits[i]
		if d == nil || x.Agent != "" || x.Model != "" || d.warned[x.Setting] {
			continue
		}
		percent := d.of(x) * 100 / max(x.Amount, 1)
		if percent < nearPercent {
			continue
		}
		d.warned[x.Setting] = true
		key := d.name
		if x.Monthly {
			key = d.name[:len("2006-01")]
		}
		return &notice{key: key + x.Setting, text: words.Sprintf(
			"%d %% of %v is used (%s). Once it is reached, %v (%s).%v", percent, x.Name, x.Setting, x.Then, dir.Location,
			directory.Hint(" %s shows where it went.", dir.Program.Usage))}
	}
	return nil
}
