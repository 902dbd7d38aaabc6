package home

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/support"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// describedHome is a home as its owner sees it, without a kernel.
func describedHome(t *testing.T, lines string) (described, *plan) {
	t.Helper()
	f, p := planned(t, lines)
	f.specs(p)
	i := &Installation{options: f.options, log: hclog.NewNullLogger(), files: f}
	i.options.Version = "1.2.3"
	i.keeper = &backup.Keeper{Home: f.options.Home, Settings: func() (config.Backup, *time.Location) {
		return p.config.Backup, time.UTC
	}}
	i.plan.Store(p)
	return described{i}, p
}

func TestTheOwnerSeesEveryExtension(t *testing.T) {
	t.Parallel()
	d, p := describedHome(t, "extensions: {echo: {enabled: false}, b: {sandbox: false}}\n")
	p.problems["a"] = errors.New("line 3 is \xff bad")
	pid := int64(os.Getpid()) // in no sandbox
	all := map[string]*adminv1.Extension{}
	var ids []string
	for _, x := range d.Extensions([]*adminv1.Extension{
		{Id: "a", State: "active", Pid: pid}, {Id: "b", State: "active", Pid: pid}, {Id: "tasks", State: "backing_off"},
		{Id: "removed", State: "stopping"},
	}) {
		all[x.GetId()], ids = x, append(ids, x.GetId())
	}
	if !slices.IsSorted(ids) || all["removed"] != nil {
		t.Errorf("the extensions are %v", ids)
	}
	for id, state := range map[string]string{
		"a": "active", "c": stateInvalid, "echo": stateDisabled, "tasks": "backing_off", "memory": "inactive",
	} {
		if all[id].GetState() != state {
			t.Errorf("%s is %q, want %q", id, all[id].GetState(), state)
		}
	}
	if x := all["a"]; x.GetName() != "Agent a" || x.GetVersion() != "1.0.0" ||
		!slices.Equal(x.GetKinds(), []string{"agent"}) || x.GetProblem() != "line 3 is \uFFFD bad" {
		t.Errorf("a is %+v", x)
	}
	if !strings.Contains(all["c"].GetDetail(), "nobody") || !all["echo"].GetBuiltin() || all["tasks"].GetSandbox() != nil {
		t.Errorf("c is %+v, echo %+v, tasks %+v", all["c"], all["echo"], all["tasks"])
	}
	for id, reason := range map[string]string{"a": "an extension that shares its process has none",
		"b": "switched off in config.yaml (extensions.b.sandbox)"} {
		if s := all[id].GetSandbox(); s.GetLevel() != support.LevelNone || s.GetReason() != reason {
			t.Errorf("%s is limited by %+v", id, s)
		}
	}
}

func TestTheOwnerSeesProblemsAndDamage(t *testing.T) {
	t.Parallel()
	d, p := describedHome(t, "")
	p.fileErrors = []error{errors.New("config.yaml:1: one\nconfig.yaml:2: \xff two")}
	s := &adminv1.Status{Damage: "page 7 is damaged"}
	d.Describe(s, journal.ErrDamaged)
	if want := []string{"config.yaml:1: one", "config.yaml:2: \uFFFD two"}; !slices.Equal(s.GetProblems(), want) {
		t.Errorf("problems %q", s.GetProblems())
	}
	if !strings.HasPrefix(s.GetDamage(),
		"page 7 is damaged. Stop the kernel: new messages may be lost\nThere is no backup") {
		t.Errorf("damage %q", s.GetDamage())
	}
	if s.GetVersion() != "1.2.3" || s.GetHome() != d.options.Home.Path() || s.GetSandbox() == "" ||
		!strings.Contains(string(s.GetBackup()), `"nightly":true`) {
		t.Errorf("%+v", s)
	}
	relative := &adminv1.BackupRequest{File: "relative"}
	if _, err := d.Backup(context.Background(), relative); !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("a backup with a relative name: %v", err)
	}
}
