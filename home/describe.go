package home

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/support"
	"github.com/switchboard-run/switchboard/kernel/admin"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/manifests"
)

// States of an extension that does not take part.
const (
	stateDisabled   = "disabled"    // by the configuration
	stateInvalid    = "invalid"     // its files, or those of what it requires, are wrong
	stateNotAllowed = "not_allowed" // the owner did not allow what it asks for
)

// described describes an installation for its owner.
type described struct{ *Installation }

var _ admin.Installation = described{}

// Describe implements admin.Installation.
func (d described) Describe(s *adminv1.Status, damage error) {
	p := d.plan.Load()
	s.Version, s.Home, s.Sandbox = d.options.Version, d.options.Home.Path(), support.Detect().String()
	if errors.Is(damage, journal.ErrDamaged) {
		s.Damage += ". Stop the kernel: new messages may be lost\n" + BackupHint(d.options.Home)
	}
	s.Problems = p.fileProblems()
	for _, id := range p.pending() {
		if a := p.asked[id]; !a.older { // the row of an extension says that
			s.Hints = append(s.Hints, valid(id+": "+a.waiting(id)))
		}
	}
	if hint := p.config.AccidentalUTC(config.ThisMachine()); hint != "" {
		s.Hints = append(s.Hints, hint)
	}
	if ids := p.pinnedHere(); d.options.Cluster != nil && len(ids) > 0 {
		s.Hints = append(s.Hints, fmt.Sprintf("no other machine takes over when this one fails, because only this one has "+
			"the data of %s", strings.Join(ids, ", ")))
	}
	s.Backup, _ = json.Marshal(d.keeper.State(time.Now())) // strings, numbers and times
}

// Extensions implements admin.Installation.
func (d described) Extensions(rows []*adminv1.Extension) []*adminv1.Extension {
	p := d.plan.Load()
	running := map[string]*adminv1.Extension{}
	members := map[int64][]string{} // of a process
	for _, x := range rows {
		running[x.Id] = x
		members[x.Pid] = append(members[x.Pid], x.Id)
	}
	all := make([]*adminv1.Extension, 0, len(p.entries))
	for _, e := range p.entries {
		x := &adminv1.Extension{Id: e.ID, State: string(supervisor.Inactive)}
		if off, disabled := p.disabled[e.File]; disabled {
			x.State, x.Detail = stateOf(off.Cause), valid(off.Reason)
		} else if x = cmp.Or(running[e.ID], x); x.Pid != 0 {
			x.Sandbox = d.sandboxOf(p, x, members[x.Pid])
		}
		x.Builtin = e.Builtin
		if m := e.Manifest; m != nil {
			x.Name, x.Version, x.Kinds = m.Name, m.Version, kindsOf(m)
		}
		if a := p.asked[e.ID]; a != nil && !e.Builtin {
			x.Consent = a.row()
			if a.older {
				x.Problem = valid(e.ID + ": " + a.waiting(e.ID))
			}
		}
		if err := p.problems[e.ID]; err != nil {
			x.Problem = valid(err.Error())
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(x, y *adminv1.Extension) int { return strings.Compare(x.Id, y.Id) })
	return all
}

// fileProblems are those of files whose last edit is not in force, and of links, a line each.
func (p *plan) fileProblems() (lines []string) {
	for _, err := range p.fileErrors {
		lines = append(lines, strings.Split(valid(err.Error()), "\n")...)
	}
	for _, problem := range p.linkProblems {
		lines = append(lines, valid(problem.String()))
	}
	return lines
}

func stateOf(c manifests.Cause) string {
	switch c {
	case manifests.SwitchedOff:
		return stateDisabled
	case manifests.Consent:
		return stateNotAllowed
	}
	return stateInvalid
}

// valid returns a text as gRPC carries it.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func kindsOf(m *manifests.Manifest) (kinds []string) {
	for _, kind := range []struct {
		name string
		is   bool
	}{
		{"agent", m.Agent != nil}, {"channel", m.Provides.Channel != nil},
		{"models", len(m.Provides.Models) > 0}, {"tools", m.Provides.Tools},
	} {
		if kind.is {
			kinds = append(kinds, kind.name)
		}
	}
	return kinds
}

// Configuration implements admin.Installation.
func (d described) Configuration(context.Context, *adminv1.ConfigurationRequest,
) (*adminv1.ConfigurationResponse, error) {
	file := d.options.Home.Config()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: read the configuration: %w", contract.ErrUnavailable, err)
	}
	return &adminv1.ConfigurationResponse{
		File: file, Text: valid(string(text)), Problems: d.plan.Load().fileProblems(),
	}, nil
}

// defaultLines is how many lines of a log are returned without a wish.
const defaultLines = 200

// Logs implements admin.Installation.
func (d described) Logs(_ context.Context, q *adminv1.LogsRequest) (*adminv1.LogsResponse, error) {
	p, name := d.plan.Load(), q.GetName()
	if name != kernelLog && !slices.ContainsFunc(p.entries, func(e manifests.Entry) bool { return e.ID == name }) {
		return nil, fmt.Errorf("%w: there is no extension %q", contract.ErrNotFound, name)
	}
	newest, err := d.logs.tail(name, int(cmp.Or(q.GetLines(), defaultLines)))
	if err != nil {
		return nil, fmt.Errorf("%w: read the log of %s: %w", contract.ErrUnavailable, name, err)
	}
	return &adminv1.LogsResponse{Lines: newest}, nil
}

// Backup implements admin.Installation.
func (d described) Backup(ctx context.Context, q *adminv1.BackupRequest) (*adminv1.BackupResponse, error) {
	file := q.GetFile()
	switch {
	case file == "":
		file = backup.Name(d.options.Home, time.Now())
	case !filepath.IsAbs(file):
		return nil, fmt.Errorf("%w: %s is relative; give an absolute path", contract.ErrInvalid, file)
	}
	info, err := d.createBackup(ctx, file, backup.Source{Secrets: q.GetSecrets()})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", contract.ErrUnavailable, err)
	}
	text, err := json.Marshal(info)
	return &adminv1.BackupResponse{Info: text}, err
}

// sandboxOf describes the sandbox of a running extension. The members are the
// extensions of its process, itself included.
func (d described) sandboxOf(p *plan, x *adminv1.Extension, members []string) *adminv1.Sandbox {
	policy, files := p.policies[x.Id], []string(nil)
	var why string
	if policy == nil {
		why = p.config.WhyUnconfined(x.Id)
	}
	for _, id := range members {
		if p.policies[id] == nil && policy != nil {
			policy, why = nil, "an extension that shares its process has none"
		} else if policy != nil {
			policy = sandbox.Union(policy, p.policies[id])
		}
		if m := p.members[id]; m != nil {
			files = append(files, d.files.permitted(m.manifest)...)
		}
	}
	system := support.Detect()
	switch {
	case policy == nil:
	case system.Level() == support.LevelNone:
		policy, why = nil, system.String()
	case !support.Confirmed(int(x.Pid)):
		policy, why = nil, fmt.Sprintf("process %d is in no sandbox", x.Pid)
	}
	if policy == nil {
		return &adminv1.Sandbox{Level: support.LevelNone, Reason: why}
	}
	slices.Sort(files)
	s := &adminv1.Sandbox{Level: system.Level(), Network: system.Summary(policy), Files: slices.Compact(files)}
	if s.Level != support.LevelFull {
		s.Reason = system.String()
	}
	if others := len(members) - 1; others > 0 {
		s.Network += fmt.Sprintf(" (shared with %d others)", others)
	}
	return s
}
