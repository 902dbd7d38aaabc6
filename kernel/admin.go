package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/kernel/admin"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// AdminOptions are for the owner's clients.
type AdminOptions struct {
	// Token authorizes clients of the socket in RunDir; empty: there is none.
	Token   string
	Home    string  // where the kernel is installed, for texts
	Backups Backups // nil: none are made
}

// Backups makes backups of the installation for its owner.
type Backups interface {
	// Create makes one in a file, which it chooses if it is empty, and describes it
	// as a value for JSON.
	Create(ctx context.Context, file string, secrets bool) (info any, err error)
	// State describes what there is, as a value for JSON.
	State(now time.Time) any
	// Advice adds to an error about a damaged store how to get it back.
	Advice(err error) error
}

// serveControl opens the socket of the owner's clients and returns a function that
// serves it until the context ends.
func (k *Kernel) serveControl() (serve func(context.Context), err error) {
	if k.options.Admin.Token == "" {
		return func(context.Context) {}, nil
	}
	listener, err := listenPrivate(filepath.Join(k.options.RunDir, contract.ControlSocket))
	if err != nil {
		return nil, err
	}
	log := k.log.Named("admin")
	own := ownuser.Listen(listener, func(pid int) { log.Debug("a process connects too often", "pid", pid) })
	service := &admin.Service{
		Installation: installation{k}, Started: k.started, StoreBytes: k.store.Size, Bus: k.bus, Store: k.sessions, Known: k.directory,
		Router: k.router, Tools: k.tools, Ledger: k.ledger, Supervisor: k.super,
	}
	return func(ctx context.Context) {
		if err := service.Serve(ctx, own, k.options.Admin.Token); err != nil {
			log.Error("the control socket is not served any more", "error", err)
		}
	}, nil
}

// installation is what the admin service asks of the kernel and of its options.
type installation struct{ *Kernel }

// Describe implements admin.Installation.
func (i installation) Describe(s *adminv1.Status) {
	i.mu.Lock()
	s.Problems, s.Hints = slices.Clone(i.plan.Problems), i.plan.Hints
	i.mu.Unlock()
	s.Version, s.Home, s.Sandbox = i.options.Version, i.options.Admin.Home, sandbox.Detect().String()
	if b := i.options.Admin.Backups; b != nil {
		s.Backup, _ = json.Marshal(b.State(time.Now())) // without one the status is still worth having
	}
}

// Damage implements admin.Installation.
func (i installation) Damage(err error) string {
	if err == nil {
		err = i.store.Damage()
	}
	switch {
	case errors.Is(err, journal.ErrLost), errors.Is(err, journal.ErrFenced):
		return err.Error()
	case !errors.Is(err, journal.ErrDamaged):
		return ""
	}
	err = fmt.Errorf("%w. Stop the kernel: new messages may be lost", err)
	if b := i.options.Admin.Backups; b != nil {
		err = b.Advice(err)
	}
	return err.Error()
}

// MakeBackup implements admin.Installation.
func (i installation) MakeBackup(ctx context.Context, file string, secrets bool) ([]byte, error) {
	b := i.options.Admin.Backups
	if b == nil {
		return nil, fmt.Errorf("%w: this kernel makes no backups", contract.ErrUnavailable)
	}
	info, err := b.Create(ctx, file, secrets)
	switch {
	case errors.Is(err, contract.ErrInvalid):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", contract.ErrUnavailable, err)
	}
	return json.Marshal(info)
}

// Extensions implements admin.Installation.
func (i installation) Extensions() (all []*adminv1.Extension) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range i.plan.all {
		e := &i.plan.all[n]
		x := &adminv1.Extension{Id: e.ID, Name: e.Name, Version: e.Version, Builtin: e.Builtin, Kinds: kinds(e), Problem: e.Problem}
		if e.Off != nil {
			x.State, x.Detail = admin.Invalid, e.Off.Reason
			if e.Off.Disabled {
				x.State = admin.Disabled
			}
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(x, y *adminv1.Extension) int { return strings.Compare(x.Id, y.Id) })
	return all
}

func kinds(s *Spec) (kinds []string) {
	for kind, is := range map[string]bool{
		"channel": s.Provides.Channel != nil, "agent": s.Agent != nil, "tools": s.Provides.Tools, "models": len(s.Provides.Models) > 0,
	} {
		if is {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}
