package admin

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// Status implements adminv1.ReadServer. A damaged store is part of it.
func (s *Service) Status(ctx context.Context, _ *adminv1.StatusRequest) (*adminv1.Status, error) {
	dir := s.Known.Current()
	x := &adminv1.Status{
		Pid: int64(os.Getpid()), StartedAtUs: s.Started.UnixMicro(), Timezone: dir.Location.String(),
		StoreBytes: s.Journal.Size(), Models: models.Candidates(dir, "default"),
	}
	limits, err := s.Ledger.Reached()
	if x.Limits = limits; err == nil {
		err = s.Bus.View(ctx, func(r journal.Reader) (err error) {
			x.Waiting, err = s.waiting(r)
			return err
		})
	}
	damage := cmp.Or(s.Journal.Damage(), err)
	if errors.Is(damage, journal.ErrDamaged) || errors.Is(damage, journal.ErrLost) ||
		errors.Is(damage, journal.ErrFenced) {
		x.Damage, err = damage.Error(), nil
	}
	s.Describe(x, damage)
	return x, err
}

// waiting returns the subscriptions with unsettled deliveries.
func (s *Service) waiting(r journal.Reader) (all []*adminv1.Subscription, err error) {
	counts := map[int64]int32{}
	if err := r.Pending(func(d journal.Delivery) bool {
		counts[d.Subscription]++
		return true
	}); err != nil {
		return nil, err
	}
	subscriptions, err := r.Subscriptions()
	loads := s.Bus.Loads()
	for _, x := range subscriptions {
		if counts[x.ID] == 0 {
			continue
		}
		all = append(all, &adminv1.Subscription{
			Extension: x.Extension, Topic: x.Pattern, Deliveries: counts[x.ID], Parked: x.ParkedAt != 0,
			InFlight: int32(loads[x.ID].InFlight), HandlingSinceUs: loads[x.ID].Since, NoCredit: loads[x.ID].NoCredit,
		})
	}
	return all, err
}

// Extensions implements adminv1.ReadServer.
func (s *Service) Extensions(context.Context, *adminv1.ExtensionsRequest) (*adminv1.ExtensionsResponse, error) {
	dir := s.Known.Current()
	var rows []*adminv1.Extension
	for _, status := range s.Supervisor.Statuses() {
		rows = append(rows, extension(&status, dir))
	}
	return &adminv1.ExtensionsResponse{Extensions: s.Installation.Extensions(rows)}, nil
}

func extension(status *supervisor.Status, dir *directory.Snapshot) *adminv1.Extension {
	x := &adminv1.Extension{
		Id: status.ID, Name: status.Name, State: string(cmp.Or(status.State, supervisor.Inactive)),
		Detail: valid(status.Detail), Pid: int64(status.PID), Restarts: int32(status.Restarts),
		SinceUs: max(0, status.Since.UnixMicro()), RetryAtUs: max(0, status.RetryAt.UnixMicro()),
		LastError: valid(status.LastError), LastErrorAtUs: max(0, status.LastErrorAt.UnixMicro()), Crash: valid(status.Crash),
	}
	if status.State != supervisor.Active {
		return x
	}
	readiness := &extensionv1.Readiness{State: status.Readiness, Detail: status.ReadinessDetail}
	if c := dir.Channel(x.Id); c != nil { // the directory knows which secrets are missing
		readiness = c.Readiness
	} else if p := dir.Provider(x.Id); p != nil {
		readiness = p.Readiness
	}
	x.Readiness, x.Detail = directory.ReadinessWord(readiness.GetState()), valid(readiness.GetDetail())
	return x
}

// Directory implements adminv1.ReadServer.
func (s *Service) Directory(_ context.Context, q *adminv1.DirectoryRequest) (*adminv1.DirectoryResponse, error) {
	dir := s.Known.Current()
	all := &adminv1.DirectoryResponse{
		DefaultChannel: dir.DefaultChannel, DefaultAgent: router.DefaultAgent(dir), Routing: dir.Routing,
	}
	for i := range dir.Channels {
		c := &dir.Channels[i]
		x := &adminv1.Channel{
			Id: c.ID, Name: c.Name, State: c.State, Readiness: c.Readiness, MaxLength: int32(c.MaxLength),
		}
		if !c.Local { // a local channel admits everyone who can open its socket
			x.AllowFrom = c.AllowFrom
		}
		all.Channels = append(all.Channels, x)
	}
	for _, g := range dir.Agents {
		x := &adminv1.Agent{
			Id: g.ID, Name: g.Name, Description: g.Description, State: g.State, Enabled: dir.Enabled(g.ID),
			Spec: g.Spec,
		}
		for i := range dir.Tools {
			if t := &dir.Tools[i]; dir.MayUse(g.ID, t) {
				x.Tools = append(x.Tools, t.Name)
			}
		}
		all.Agents = append(all.Agents, x)
	}
	for i := 0; i < len(dir.Tools) && q.GetTools(); i++ {
		all.Tools = append(all.Tools, dir.Tools[i].Full())
	}
	return all, nil
}

// People implements adminv1.ReadServer.
func (s *Service) People(ctx context.Context, _ *adminv1.PeopleRequest) (*adminv1.PeopleResponse, error) {
	all := &adminv1.PeopleResponse{}
	return all, s.Bus.View(ctx, func(r journal.Reader) error {
		persons, accounts, err := people.All(r)
		if err != nil {
			return err
		}
		for _, p := range persons {
			x := person(p, accounts[p.ID])
			all.People = append(all.People, x)
			for _, a := range x.GetAccounts() {
				if a.GetApprovedAtUs() != 0 {
					all.Approved = append(all.Approved, a)
				}
			}
		}
		waiting, err := router.Waiting(r, time.Now())
		for _, w := range waiting {
			all.Waiting = append(all.Waiting, &adminv1.Pairing{
				Code: w.Code, Channel: w.Channel, UserId: w.UserID, Name: valid(w.Name), ExpiresAtUs: w.ExpiresAt,
			})
		}
		if err != nil {
			return err
		}
		groups, err := journal.All[session.Group](r, contract.KernelSource, session.GroupPrefix)
		for i := range groups {
			all.Groups = append(all.Groups, group(&groups[i]))
		}
		return err
	})
}

// Approvals implements adminv1.ReadServer.
func (s *Service) Approvals(ctx context.Context, _ *adminv1.ApprovalsRequest) (*adminv1.ApprovalsResponse, error) {
	all := &adminv1.ApprovalsResponse{}
	return all, s.Bus.View(ctx, func(r journal.Reader) error {
		found, err := journal.All[tools.Approval](r, contract.KernelSource, tools.ApprovalPrefix)
		for i := 0; i < len(found) && err == nil; i++ {
			a := found[i]
			x := &adminv1.Approval{Agent: a.Agent, Tool: a.Tool, By: valid(a.By), AtUs: a.At}
			var c *journal.Conversation
			if c, err = r.ConversationByHandle(a.Conversation); c != nil {
				x.Channel, x.Conversation = c.Channel, valid(c.Address)
			}
			all.Approvals = append(all.Approvals, x)
		}
		return err
	})
}

// Questions implements adminv1.ReadServer.
func (s *Service) Questions(ctx context.Context, _ *adminv1.QuestionsRequest) (*adminv1.QuestionsResponse, error) {
	var rows adminv1.QuestionsResponse
	err := s.Bus.View(ctx, func(r journal.Reader) error {
		open, _, err := s.Router.Questions().Open(r, time.Now().UnixMicro())
		for i := range open {
			q := &open[i]
			p, errOf := s.Router.Asked(r, q)
			rows.Questions = append(rows.Questions, &adminv1.Question{
				Id: q.ID, Kind: q.Kind, Text: valid(q.Text), Options: q.Options, Asker: q.Asker, Call: q.Call,
				Channel: q.Channel, Person: p, AskedAtUs: q.AskedAt, DeadlineUs: q.Deadline,
			})
			err = errors.Join(err, errOf)
		}
		return err
	})
	return &rows, err
}

func group(g *session.Group) *adminv1.Group {
	return &adminv1.Group{
		Id: g.ID, Channel: g.Channel, Conversation: valid(g.Address), Name: valid(g.Name), Household: g.Household,
	}
}

func account(a *people.Account) *adminv1.Account {
	return &adminv1.Account{
		Id: a.ID, Channel: a.Channel, UserId: a.UserID, Name: valid(a.Name), Owner: a.Person == people.Owner,
		ApprovedAtUs: a.ApprovedAt, Conversation: valid(a.Conversation),
	}
}

func withoutAccounts(p *people.Person) *adminv1.Person { return person(p, nil) }

func person(p *people.Person, accounts []people.Account) *adminv1.Person {
	x := &adminv1.Person{
		Id: p.ID, Name: valid(p.Name), Role: cmp.Or(p.Role, people.RoleMember), Timezone: p.Timezone, Quiet: p.Quiet,
		Home: p.Home,
	}
	for i := range accounts {
		x.Accounts = append(x.Accounts, account(&accounts[i]))
		x.Name = cmp.Or(x.GetName(), valid(accounts[i].Name))
	}
	return x
}
