package models

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/metering"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

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
	used     metering.Tally
	month    metering.Tally
	underway metering.Tally  // estimated
	warned   map[string]bool // settings whose limits are near, and the owner was told
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
	d := &day{
		name: name, used: metering.Tally{}, month: metering.Tally{}, underway: metering.Tally{}, warned: map[string]bool{},
	}
	err := l.bus.View(context.Background(), func(r journal.Reader) error { // the store ends it when it closes
		return scan(r, sumPrefix+local.Format("2006-01"), func(r metering.Row) {
			u := contract.ModelUsage{
				Agent: r.Agent, Model: r.Model, Person: r.Person, InputTokens: r.Input, OutputTokens: r.Output,
			}
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
	if d.month.Add(u, 1); today {
		d.used.Add(u, 1)
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

// Begin counts a completion of about that cost as under way, or refuses it with a
// *LimitError. Its agent is the id of an agent or an extension, its model is
// <extension>/<model>. A nil ledger refuses nothing.
func (l *Ledger) Begin(u contract.ModelUsage) (*Completion, error) {
	if l == nil {
		return nil, nil //nolint:nilnil // a nil *Completion records nothing
	}
	dir, requested := l.directory.Current(), u.Model
	l.mu.Lock()
	defer l.mu.Unlock()
	u.Model = cmp.Or(l.names[requested], requested)
	d, reached, err := l.reached(dir, &u)
	if err != nil {
		return nil, err
	}
	if len(reached) > 0 {
		return nil, &LimitError{reached[0].Model == "", cmp.Or(reached[0].Refusal, reached[0].describe(dir))}
	}
	charge(dir, &u)
	d.underway.Add(&u, 1)
	return &Completion{l, d, requested, u}, nil
}

// Reached describes the limits that are reached now, for people.
func (l *Ledger) Reached() ([]string, error) {
	dir := l.directory.Current()
	l.mu.Lock()
	defer l.mu.Unlock()
	_, reached, err := l.reached(dir, nil)
	var all []string
	for _, x := range reached {
		all = append(all, x.describe(dir))
	}
	return all, err
}

// reached returns today, and the limits that are reached, of those that count a
// completion; nil: of all. The caller holds l.mu.
func (l *Ledger) reached(dir *directory.Snapshot, u *contract.ModelUsage) (d *day, all []limit, err error) {
	if d, err = l.open(dir); err == nil {
		all, err = l.limits(dir)
	}
	return d, slices.DeleteFunc(all, func(x limit) bool {
		used, underway := d.of(&x)
		return used+underway < x.Amount || u != nil && !x.counts(u)
	}), err
}

// limit is a limit, and what it counts.
type limit struct {
	*metering.Limit
	subjects []metering.Subject
}

// limits returns the configured limits. That of a person counts all their accounts.
func (l *Ledger) limits(dir *directory.Snapshot) (all []limit, err error) {
	var known []*people.Person
	var accounts map[string][]people.Account
	if slices.ContainsFunc(dir.Limits, func(x metering.Limit) bool { return x.Person != "" }) {
		if err := l.bus.View(context.Background(), func(r journal.Reader) (err error) {
			known, accounts, err = people.All(r)
			return err
		}); err != nil {
			return nil, words.Errorf("read whose accounts the budgets count: %w", err)
		}
	}
	for i := range dir.Limits {
		x := limit{&dir.Limits[i], nil}
		if x.Person == "" {
			x.subjects = []metering.Subject{{Agent: x.Agent, Model: x.Model, Unit: x.Currency}}
		} else {
			for _, id := range people.Named(known, accounts, x.Person) {
				x.subjects = append(x.subjects, metering.Subject{Account: id, Unit: x.Currency})
			}
		}
		all = append(all, x)
	}
	return all, nil
}

// counts reports whether the limit counts a completion.
func (x *limit) counts(u *contract.ModelUsage) bool {
	return slices.ContainsFunc(x.subjects, func(s metering.Subject) bool { return s.Counts(u) })
}

// of returns what a limit counts, and what is under way.
func (d *day) of(x *limit) (used, underway int64) {
	period := d.used
	if x.Monthly {
		period = d.month
	}
	for _, s := range x.subjects {
		used, underway = used+period[s], underway+d.underway[s]
	}
	return used, underway
}

// describe says that the limit is reached.
func (x *limit) describe(dir *directory.Snapshot) string {
	return words.Sprintf("%v is reached (%s): %v (%s)", x.Name, x.Setting, x.Then, dir.Location)
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
	c.day.underway.Add(&c.estimate, -1)
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
	limits, err := l.limits(dir)
	if err != nil {
		l.log.Error("read the limits of people; the owner may miss a notice", "error", err)
	}
	for i := range limits {
		x := &limits[i]
		if d == nil || x.Agent != "" || x.Model != "" || d.warned[x.Setting] {
			continue
		}
		used, _ := d.of(x)
		percent := used * 100 / max(x.Amount, 1)
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
