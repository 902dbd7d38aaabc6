package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/control"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// admin is the kernel as the command line sees it.
type admin struct{ *Kernel }

var _ control.Kernel = admin{}

// Control is what a person can ask of the kernel while it runs.
func (k *Kernel) Control() control.Kernel { return admin{k} }

// AdminOptions are for the owner's command line.
type AdminOptions struct {
	// Token authorizes clients of the socket in RunDir; empty: there is none.
	Token   string
	Home    string // where the kernel is installed, for texts
	Backups Backups
}

// Backups makes backups of the installation for its owner.
type Backups interface {
	// Create makes one in a file, which it chooses if it is empty.
	Create(ctx context.Context, file string, secrets bool) (backup.Info, error)
	State(now time.Time) backup.State
	// Advice adds to an error about a damaged store how to get it back.
	Advice(err error) error
}

// serveControl opens the socket of the command line and returns what serves it
// until the context ends.
func (k *Kernel) serveControl() (serve func(context.Context), err error) {
	if k.options.Admin.Token == "" {
		return func(context.Context) {}, nil
	}
	listener, err := listenPrivate(filepath.Join(k.options.RunDir, control.SocketName))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { k.answer(ctx, listener, k.options.Admin.Token) }, nil
}

func (k *Kernel) answer(ctx context.Context, listener net.Listener, token string) {
	if err := control.Serve(ctx, listener, token, k.Control(), k.log.Named("control")); err != nil {
		k.log.Error("the command line cannot reach the kernel any more", "error", err)
	}
}

// Status implements control.Kernel. A damaged store is part of it.
func (a admin) Status(ctx context.Context) (control.Status, error) {
	s, err := a.examine(ctx)
	if s.Damage = a.damaged(err); s.Damage != "" {
		return s, nil
	}
	return s, err
}

func (a admin) examine(ctx context.Context) (control.Status, error) {
	now, p := a.directory.Current(), a.current()
	s := control.Status{
		Version: a.options.Version, PID: os.Getpid(), Home: a.options.Admin.Home, StartedAt: a.started, Timezone: now.Location.String(),
		StoreBytes: a.store.Size(), Sandbox: sandbox.Detect().String(), Models: models.Candidates(now, "default"), Extensions: a.extensions(), Waiting: []control.Waiting{},
		Problems: append([]string{}, p.Problems...), Hints: append([]string{}, p.Hints...),
	}
	if a.options.Admin.Backups != nil {
		s.Backup = a.options.Admin.Backups.State(time.Now())
	}
	var err error
	if s.Limits, err = a.ledger.Reached(); err != nil {
		return s, err
	}
	return s, a.bus.View(ctx, func(r journal.Reader) error {
		last, err := r.LastSeq()
		if err != nil {
			return err
		}
		if last > 0 {
			s.LastEvent = journal.EventID(last)
		}
		dead, err := r.Deliveries(journal.DeliveryFilter{States: []journal.DeliveryState{journal.Dead}, Limit: 1000})
		if err != nil {
			return err
		}
		s.DeadLetters = len(dead)
		if s.Waiting, err = a.waiting(r); err != nil {
			return err
		}
		_, waiting, err := router.People(r, time.Now())
		if err != nil {
			return err
		}
		s.Strangers = len(waiting)
		return nil
	})
}

// waiting counts the deliveries that are not settled.
func (a admin) waiting(r journal.Reader) ([]control.Waiting, error) {
	subs, err := r.Subscriptions()
	if err != nil {
		return nil, err
	}
	counts := map[int64]int{}
	if err := r.Pending(func(d journal.Delivery) bool {
		counts[d.Subscription]++
		return true
	}); err != nil {
		return nil, err
	}
	loads := a.bus.Loads()
	waiting := []control.Waiting{}
	for _, s := range subs {
		if counts[s.ID] == 0 {
			continue
		}
		w := control.Waiting{Extension: s.Extension, Topic: s.Pattern, Deliveries: counts[s.ID], Parked: s.ParkedAt != 0}
		for _, l := range loads[s.Extension] {
			if l.Pattern == s.Pattern {
				w.InFlight = l.InFlight
			}
		}
		waiting = append(waiting, w)
	}
	slices.SortFunc(waiting, func(x, y control.Waiting) int {
		return cmp.Or(cmp.Compare(x.Extension, y.Extension), cmp.Compare(x.Topic, y.Topic))
	})
	return waiting, nil
}

// current is the plan in force.
func (a admin) current() *plan {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plan
}

// damaged says what is known of a damaged store, and how to get it back; empty:
// it is not damaged.
func (a admin) damaged(err error) string {
	if err == nil {
		err = a.store.Damage()
	}
	if !errors.Is(err, journal.ErrDamaged) {
		return ""
	}
	err = fmt.Errorf("%w. Stop the kernel: what comes in may not be kept", err)
	if a.options.Admin.Backups != nil {
		err = a.options.Admin.Backups.Advice(err)
	}
	return err.Error()
}

// Backup implements control.Kernel.
func (a admin) Backup(ctx context.Context, file string, secrets bool) (backup.Info, error) {
	if a.options.Admin.Backups == nil {
		return backup.Info{}, fmt.Errorf("%w: this kernel makes no backups", contract.ErrUnavailable)
	}
	info, err := a.options.Admin.Backups.Create(ctx, file, secrets)
	if err != nil {
		return info, fmt.Errorf("%w: %w", contract.ErrUnavailable, err)
	}
	return info, nil
}

// Extensions implements control.Kernel.
func (a admin) Extensions(context.Context) ([]control.Extension, error) { return a.extensions(), nil }

func (a admin) extensions() []control.Extension {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []control.Extension{}
	now := a.directory.Current()
	for i := range a.plan.all {
		e := &a.plan.all[i]
		x := control.Extension{ID: e.ID, Name: e.Name, Version: e.Version, Builtin: e.Builtin, Kinds: kinds(e), Problem: e.Problem}
		if e.Off != nil {
			x.State, x.Detail = control.StateInvalid, e.Off.Reason
			if e.Off.Disabled {
				x.State = control.StateDisabled
			}
			all = append(all, x)
			continue
		}
		show(&x, a.status[e.ID])
		if x.PID != 0 {
			x.Sandbox = a.sandboxOf(e.ID, x.PID)
		}
		if c := now.Channel(e.ID); c != nil && x.State == string(supervisor.Active) {
			x.Readiness, x.Detail = directory.ReadinessWord(c.Readiness.GetState()), c.Readiness.GetDetail()
		} else if p := now.Provider(e.ID); p != nil && x.State == string(supervisor.Active) {
			x.Readiness, x.Detail = directory.ReadinessWord(p.Readiness.GetState()), p.Readiness.GetDetail()
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(x, y control.Extension) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// show fills in what the supervisor knows.
func show(x *control.Extension, s supervisor.Status) {
	x.State, x.Detail, x.PID, x.Restarts = string(cmp.Or(s.State, supervisor.Inactive)), s.Detail, s.PID, s.Restarts
	x.LastError, x.Crash = s.LastError, s.Crash
	x.Since, x.RetryAt, x.LastErrorAt = moment(s.Since), moment(s.RetryAt), moment(s.LastErrorAt)
	if s.State == supervisor.Active {
		x.Readiness, x.Detail = directory.ReadinessWord(s.Readiness), s.ReadinessDetail
	}
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func microseconds(us int64) *time.Time {
	if us == 0 {
		return nil
	}
	t := time.UnixMicro(us)
	return &t
}

func kinds(m *Spec) []string {
	kinds := []string{}
	for kind, is := range map[string]bool{
		"channel": m.Provides.Channel != nil, "agent": m.Agent != nil, "tools": m.Provides.Tools, "models": len(m.Provides.Models) > 0,
	} {
		if is {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// settleTime is how long a restart is watched.
const settleTime = 15 * time.Second

// RestartExtension implements control.Kernel.
func (a admin) RestartExtension(ctx context.Context, id string) (control.Extension, error) {
	all := a.extensions()
	i := slices.IndexFunc(all, func(x control.Extension) bool { return x.ID == id })
	switch {
	case i < 0:
		return control.Extension{}, fmt.Errorf("%w: there is no extension %q: `switchboard extensions list` shows those there are", contract.ErrNotFound, id)
	case all[i].State == control.StateDisabled || all[i].State == control.StateInvalid:
		return all[i], fmt.Errorf("%w: %s is %s and cannot be started: %s", contract.ErrInvalid, id, all[i].State, all[i].Detail)
	}
	if err := a.super.Restart(id); err != nil {
		return all[i], err
	}
	wait, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		_ = a.super.Wait(wait) // what the state is then, is the answer
		x := all[i]
		for _, s := range a.super.Statuses() {
			if s.ID == id {
				show(&x, s)
			}
		}
		if wait.Err() != nil || x.State != string(supervisor.Starting) && x.State != string(supervisor.Stopping) {
			return x, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-wait.Done():
		}
	}
}

// Channels implements control.Kernel.
func (a admin) Channels(context.Context) ([]control.Channel, error) {
	now := a.directory.Current()
	channels := make([]control.Channel, 0, len(now.Channels))
	for i := range now.Channels {
		c := &now.Channels[i]
		channels = append(channels, control.Channel{
			ID: c.ID, Name: c.Name, Status: c.Status(), Detail: c.Readiness.GetDetail(), Default: c.ID == now.DefaultChannel,
			MaxLength: c.MaxLength, AllowFrom: a.allowFrom(c.ID), Agent: cmp.Or(now.Routing[c.ID], router.DefaultAgent(now)),
		})
	}
	return channels, nil
}

// allowFrom is what the owner set for a channel.
func (a admin) allowFrom(channel string) []string {
	if s := a.current().members[channel]; s != nil && s.Provides.Channel != nil {
		return s.Provides.Channel.AllowFrom
	}
	return nil
}

// Send implements control.Kernel.
func (a admin) Send(ctx context.Context, channel, text string) (control.Sent, error) {
	if strings.TrimSpace(text) == "" {
		return control.Sent{}, fmt.Errorf("%w: there is no text to send", contract.ErrInvalid)
	}
	if len(text) > contract.MaxPayload/2 {
		return control.Sent{}, fmt.Errorf("%w: the text has %d bytes, the limit is %d", contract.ErrTooLarge, len(text), contract.MaxPayload/2)
	}
	d, err := a.tools.Send(ctx, channel, text)
	if err != nil {
		return control.Sent{}, err
	}
	return control.Sent{Status: d.Status, Channel: channel, Detail: d.Detail, Events: d.Events, ProviderID: d.ProviderIDs}, nil
}

// Agents implements control.Kernel.
func (a admin) Agents(context.Context) ([]control.Agent, error) {
	now := a.directory.Current()
	agents := make([]control.Agent, 0, len(now.Agents))
	for _, g := range now.Agents {
		x := control.Agent{
			ID: g.ID, Name: g.Name, Description: g.Description, State: g.State, Enabled: now.Enabled(g.ID), Default: g.ID == router.DefaultAgent(now),
			Model: g.Spec.GetModel(), Tools: []string{}, Memory: append([]string{}, g.Spec.GetMemory()...), History: "session",
		}
		if g.Spec.GetNoHistory() {
			x.History = "none"
		}
		if g.Spec.GetEcho() {
			x.Model = ""
		}
		for i := range now.Tools {
			if t := &now.Tools[i]; now.MayUse(g.ID, t) {
				x.Tools = append(x.Tools, t.Name)
			}
		}
		agents = append(agents, x)
	}
	return agents, nil
}

// People implements control.Kernel.
func (a admin) People(ctx context.Context) (control.People, error) {
	p := control.People{Approved: []control.Person{}, Waiting: []control.Pairing{}}
	return p, a.bus.View(ctx, func(r journal.Reader) error {
		approved, waiting, err := router.People(r, time.Now())
		for _, one := range approved {
			p.Approved = append(p.Approved, person(one))
		}
		for _, w := range waiting {
			p.Waiting = append(p.Waiting, control.Pairing{
				Code: w.Code, Channel: w.Channel, UserID: w.UserID, Name: w.Name, ExpiresAt: time.UnixMicro(w.ExpiresAt),
			})
		}
		return err
	})
}

func person(p router.Person) control.Person {
	return control.Person{Channel: p.Channel, UserID: p.UserID, Name: p.Name, Owner: p.Owner, ApprovedAt: time.UnixMicro(p.ApprovedAt)}
}

// Approve implements control.Kernel.
func (a admin) Approve(_ context.Context, code string) (control.Person, error) {
	var approved control.Person
	return approved, a.bus.Do(func(tx *bus.Tx) error {
		p, err := a.router.Approve(tx, code)
		if err == nil {
			approved = person(*p)
		}
		return err
	})
}

// Revoke implements control.Kernel.
func (a admin) Revoke(_ context.Context, channel, user string) error {
	return a.bus.Do(func(tx *bus.Tx) error { return a.router.Revoke(tx, channel, user) })
}

// CallTool implements control.Kernel.
func (a admin) CallTool(ctx context.Context, name string, arguments json.RawMessage) (control.ToolResult, error) {
	result, err := a.tools.Alone(ctx, name, arguments)
	if err != nil {
		return control.ToolResult{}, err
	}
	return control.ToolResult{Content: result.GetContent(), IsError: result.GetIsError()}, nil
}
