package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/control"
)

func TestDoctorOnTheHeartbeat(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { x := now.Add(-d); return &x }
	escalation := func(n int, age time.Duration) control.Escalation {
		return control.Escalation{Event: fmt.Sprintf("e%d", n), At: *at(age), Reason: "the kettle"}
	}
	var many []control.Escalation
	for i := range 8 {
		many = append(many, escalation(i+1, 20*time.Hour-time.Duration(i)*time.Hour))
	}
	for name, tc := range map[string]struct {
		h    *control.Heartbeat
		want []string // level and a part of the text or hint
	}{
		"there is none": {nil, nil},
		"healthy":       {&control.Heartbeat{EverySeconds: 600, LastRun: at(10 * time.Minute), Escalations: 2, Followed: 2, Deliveries: 2}, []string{"ok 2 of the last 2"}},
		"on its way":    {&control.Heartbeat{LastRun: at(0), Undelivered: []control.Escalation{escalation(7, time.Hour)}}, []string{"ok "}},
		"an hour and a bit": {
			&control.Heartbeat{LastRun: at(0), Undelivered: []control.Escalation{escalation(7, time.Hour+time.Second)}},
			[]string{"warning `switchboard trace e7`"},
		},
		"many": {&control.Heartbeat{LastRun: at(0), Undelivered: many}, []string{
			"warning trace e4`", "warning trace e5`", "warning trace e6`", "warning trace e7`", "warning trace e8`", "warning 3 escalations before",
		}},
		"it has stopped":    {&control.Heartbeat{EverySeconds: 600, LastRun: at(32 * time.Minute)}, []string{"warning has not looked since", "ok "}},
		"it has never run":  {&control.Heartbeat{EverySeconds: 60}, []string{"warning has not looked since", "ok "}},
		"it has yet to run": {&control.Heartbeat{EverySeconds: 7200}, []string{"ok "}},
		"a problem":         {&control.Heartbeat{LastRun: at(0), Problem: "no model"}, []string{"note no model", "ok "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &diagnosis{}
			d.heartbeat(tc.h, now.Add(-3*time.Hour), now)
			if len(d.findings) != len(tc.want) {
				t.Fatalf("findings: %+v", d.findings)
			}
			for i, f := range d.findings {
				level, part, _ := strings.Cut(tc.want[i], " ")
				if f.Level != level || !strings.Contains(f.Text+f.Hint, part) {
					t.Errorf("finding %d is %+v, not %s", i+1, f, tc.want[i])
				}
			}
		})
	}
}
