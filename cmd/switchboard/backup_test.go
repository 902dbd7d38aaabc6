package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// TestHowBackupsAreTold has status and doctor say how the backups are.
func TestHowBackupsAreTold(t *testing.T) {
	t.Parallel()
	now := time.Date(2020, 11, 20, 12, 0, 0, 0, time.UTC)
	fresh, old := &backup.Found{At: now.Add(-time.Hour), Bytes: 2048},
		&backup.Found{At: now.Add(-100 * time.Hour), Bytes: 2048}
	next := now.Add(14 * time.Hour)
	for name, c := range map[string]struct {
		state         backup.State
		level, status string
	}{
		"good": {backup.State{Nightly: true, Newest: fresh, Next: &next}, levelOK,
			"2020-11-20 11:00, 2.0 KiB; next 2020-11-21 02:00"},
		"none yet":    {backup.State{Nightly: true, Next: &next}, levelNote, "none yet; next 2020-11-21 02:00"},
		"none at all": {backup.State{}, levelWarning, "none yet; nightly backups are off"},
		"old":         {backup.State{Nightly: true, Newest: old}, levelWarning, "2020-11-16 08:00, 2.0 KiB"},
		"a failed one": {backup.State{Nightly: true, Newest: fresh, Failure: "no room", FailedAt: &now}, levelError,
			"The nightly backup failed at 2020-11-20 12:00: no room"},
	} {
		d := &diagnosis{}
		d.backups(c.state, now)
		if len(d.findings) != 1 || d.findings[0].Level != c.level {
			t.Errorf("%s: the doctor finds %+v, want %s", name, d.findings, c.level)
		}
		var out bytes.Buffer
		p := &printer{w: &out, zone: time.UTC}
		p.line("%s", p.newestBackup(c.state))
		p.backups(c.state)
		if got := out.String(); !strings.Contains(got, c.status) {
			t.Errorf("%s: the status says %q, want %q", name, got, c.status)
		}
	}
}

// TestHowDamageIsTold has doctor and status say that the store of a kernel that
// runs is damaged, and how to get it back.
func TestHowDamageIsTold(t *testing.T) {
	t.Parallel()
	s := admin.Status{Status: &adminv1.Status{Damage: "the store is damaged (page 7). Stop the kernel\nThe newest " +
		"backup is of yesterday"}}
	d := &diagnosis{}
	d.openStore(s)
	if len(d.findings) != 1 || d.findings[0].Level != levelError ||
		d.findings[0].Hint != "The newest backup is of yesterday" {
		t.Errorf("the doctor finds %+v", d.findings)
	}
	d = &diagnosis{}
	if d.openStore(admin.Status{Status: &adminv1.Status{}}); len(d.findings) != 0 {
		t.Errorf("of a whole one the doctor finds %+v", d.findings)
	}
	var out bytes.Buffer
	(&printer{w: &out, zone: time.UTC}).status(statusReport{Status: s})
	if !strings.Contains(out.String(), s.Damage) {
		t.Errorf("the status is %q", out.String())
	}
}
