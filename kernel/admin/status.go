package admin

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// Status implements adminv1.ReadServer. A damaged store is part of it.
func (s *Service) Status(ctx context.Context, _ *adminv1.StatusRequest) (*adminv1.Status, error) {
	dir := s.Known.Current()
	x := &adminv1.Status{
		Pid: int64(os.Getpid()), StartedAtUs: s.Started.UnixMicro(), Timezone: dir.Location.String(), StoreBytes: s.StoreBytes(),
		Models: models.Candidates(dir, "default"), Extensions: s.extensions(dir),
	}
	s.Describe(x)
	for i, problem := range x.Problems {
		x.Problems[i] = valid(problem)
	}
	limits, err := s.Ledger.Reached()
	if x.Limits = limits; err == nil {
		err = s.Bus.View(ctx, func(r journal.Reader) error { return s.count(r, x) })
	}
	if x.Damage = s.Damage(err); x.Damage != "" {
		err = nil
	}
	return x, err
}

// count fills in what the store knows.
func (s *Service) count(r journal.Reader, x *adminv1.Status) error {
	last, err := r.LastSeq()
	if err != nil {
		return err
	}
	if last > 0 {
		x.LastEvent = journal.EventID(last)
	}
	dead, err := r.Deliveries(journal.DeliveryFilter{States: []journal.DeliveryState{journal.Dead}, Limit: 1000})
	if err != nil {
		return err
	}
	subs, err := r.Subscriptions()
	if err != nil {
		return err
	}
	counts := map[int64]int32{}
	if err := r.Pending(func(d journal.Delivery) bool {
		counts[d.Subscription]++
		return true
	}); err != nil {
		return err
	}
	loads := s.Bus.Loads()
	for _, sub := range subs {
		if counts[sub.ID] == 0 {
			continue
		}
		w := &adminv1.Waiting{Extension: sub.Extension, Topic: sub.Pattern, Deliveries: counts[sub.ID], Parked: sub.ParkedAt != 0}
		for _, l := range loads[sub.Extension] {
			if l.Pattern == sub.Pattern {
				w.InFlight = int32(l.InFlight)
			}
		}
		x.Waiting = append(x.Waiting, w)
	}
	slices.SortFunc(x.Waiting, func(a, b *adminv1.Waiting) int {
		return cmp.Or(cmp.Compare(a.Extension, b.Extension), cmp.Compare(a.Topic, b.Topic))
	})
	_, strangers, err := router.People(r, time.Now())
	x.DeadLetters, x.Strangers = int32(len(dead)), int32(len(strangers))
	return err
}

func (s *Service) extensions(dir *directory.Snapshot) []*adminv1.Extension {
	statuses := map[string]supervisor.Status{}
	for _, status := range s.Supervisor.Statuses() {
		statuses[status.ID] = status
	}
	all := s.Extensions()
	for _, x := range all {
		if x.Problem, x.Detail = valid(x.Problem), valid(x.Detail); x.State == "" { // it takes part
			s.fill(x, statuses[x.Id], dir)
		}
	}
	return all
}

// fill fills in what is known of the process of an extension.
func (s *Service) fill(x *adminv1.Extension, status supervisor.Status, dir *directory.Snapshot) {
	x.State, x.Detail, x.Pid = string(cmp.Or(status.State, supervisor.Inactive)), valid(status.Detail), int64(status.PID)
	x.Restarts, x.LastError, x.Crash = int32(status.Restarts), valid(status.LastError), valid(status.Crash)
	x.SinceUs, x.RetryAtUs, x.LastErrorAtUs = micros(status.Since), micros(status.RetryAt), micros(status.LastErrorAt)
	if status.PID != 0 {
		x.Sandbox = s.Sandbox(x.Id, status.PID)
	}
	if status.State != supervisor.Active {
		return
	}
	x.Readiness, x.Detail = directory.ReadinessWord(status.Readiness), valid(status.ReadinessDetail)
	var said *extensionv1.Readiness // the directory knows which secrets are missing
	if c := dir.Channel(x.Id); c != nil {
		said = c.Readiness
	} else if p := dir.Provider(x.Id); p != nil {
		said = p.Readiness
	}
	if said != nil {
		x.Readiness, x.Detail = directory.ReadinessWord(said.GetState()), valid(said.GetDetail())
	}
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Directory implements adminv1.ReadServer.
func (s *Service) Directory(context.Context, *adminv1.DirectoryRequest) (*adminv1.DirectoryResponse, error) {
	dir := s.Known.Current()
	all := &adminv1.DirectoryResponse{Extensions: s.extensions(dir)}
	for i := range dir.Channels {
		c := &dir.Channels[i]
		x := &adminv1.Channel{
			Id: c.ID, Name: c.Name, Status: c.Status(), Detail: valid(c.Readiness.GetDetail()), Default: c.ID == dir.DefaultChannel,
			MaxLength: int32(c.MaxLength), Agent: cmp.Or(dir.Routing[c.ID], router.DefaultAgent(dir)),
		}
		if !c.Local { // of that, who may open its socket is admitted
			x.AllowFrom = c.AllowFrom
		}
		all.Channels = append(all.Channels, x)
	}
	for _, g := range dir.Agents {
		x := &adminv1.Agent{
			Id: g.ID, Name: g.Name, Description: g.Description, State: g.State, Enabled: dir.Enabled(g.ID),
			Default: g.ID == router.DefaultAgent(dir), Memory: g.Spec.GetMemory(), History: "session",
		}
		if g.Spec.GetNoHistory() {
			x.History = "none"
		}
		if !g.Spec.GetEcho() {
			x.Model = g.Spec.GetModel()
		}
		for i := range dir.Tools {
			if t := &dir.Tools[i]; dir.MayUse(g.ID, t) {
				x.Tools = append(x.Tools, t.Name)
			}
		}
		all.Agents = append(all.Agents, x)
	}
	return all, nil
}

// People implements adminv1.ReadServer.
func (s *Service) People(ctx context.Context, _ *adminv1.PeopleRequest) (*adminv1.PeopleResponse, error) {
	all := &adminv1.PeopleResponse{}
	return all, s.Bus.View(ctx, func(r journal.Reader) error {
		approved, waiting, err := router.People(r, time.Now())
		for _, p := range approved {
			all.Approved = append(all.Approved, person(p))
		}
		for _, w := range waiting {
			all.Waiting = append(all.Waiting, &adminv1.Pairing{
				Code: w.Code, Channel: w.Channel, UserId: w.UserID, Name: valid(w.Name), ExpiresAtUs: w.ExpiresAt,
			})
		}
		return err
	})
}

func person(p router.Person) *adminv1.Person {
	return &adminv1.Person{Channel: p.Channel, UserId: p.UserID, Name: valid(p.Name), Owner: p.Owner, ApprovedAtUs: p.ApprovedAt}
}
