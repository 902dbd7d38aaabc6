package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newStatusCommand() *cobra.Command {
	c := &cobra.Command{Use: "status", Short: "Show the state of the kernel: extensions, waiting deliveries, problems",
		Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("read the status", func(c *cobra.Command, k *admin.Client, _ []string) error {
		r, err := statusOf(c.Context(), k)
		if err != nil {
			return err
		}
		servers, err := readServers(c.Context(), k, r.Extensions)
		if err != nil {
			r.Problems = append(r.Problems, message(err))
		}
		r.Extensions = append(r.Extensions, brokenServers(servers)...)
		r.heartbeat, err = askHeartbeat(c.Context(), k, r.Extensions)
		switch {
		case c.Context().Err() != nil:
			return c.Context().Err()
		case err != nil:
			r.heartbeatProblem = message(err)
		}
		if *asJSON {
			return printJSON(c, r)
		}
		printerOf(c).status(r)
		return nil
	})
	return c
}

// statusReport is the state of the kernel and of the heartbeat.
type statusReport struct {
	admin.Status
	backup           backup.State
	heartbeat        *beats // nil: there is none, or it did not answer
	heartbeatProblem string // why it did not answer
}

// MarshalJSON implements json.Marshaler.
func (s statusReport) MarshalJSON() ([]byte, error) {
	o := s.JSON()
	if s.heartbeat != nil {
		o.With("heartbeat", s.heartbeat)
	}
	if s.heartbeatProblem != "" {
		o.With("heartbeat_problem", s.heartbeatProblem)
	}
	return o.MarshalJSON()
}

// statusOf reads the status, without the heartbeat.
func statusOf(ctx context.Context, k *admin.Client) (s statusReport, err error) {
	if s.Status, err = admin.ReadStatus(ctx, k); err != nil {
		return s, err
	}
	if err := json.Unmarshal(s.Backup, &s.backup); err != nil {
		return s, fmt.Errorf("read the state of the backups: %w", err)
	}
	return s, nil
}

func (p *printer) status(s statusReport) {
	p.line("Switchboard %s is running, pid %d, since %s (%s)", s.Version, s.Pid, p.clock(at(s.StartedAtUs)),
		strings.TrimSuffix(ago(at(s.StartedAtUs)), " ago"))
	if s.Version != version {
		p.line("%s", p.paint(yellow, fmt.Sprintf("This command is version %s: restart the kernel to update it.", version)))
	}
	model := "none"
	if len(s.Models) > 0 {
		model = strings.Join(s.Models, ", then ")
	}
	newest := "no events yet"
	if s.LastEvent != "" {
		newest = "newest event " + s.LastEvent
	}
	p.line("  home      %s", s.Home)
	p.line("  store     %s, %s", humanize.IBytes(uint64(s.StoreBytes)), newest) //nolint:gosec // a size is not negative
	p.line("  backup    %s", p.newestBackup(s.backup))
	p.line("  model     %s", model)
	p.line("  timezone  %s", s.Timezone)
	p.line("")
	rows := make([][]cell, len(s.Extensions))
	for i, x := range s.Extensions {
		rows[i] = []cell{text(x.Id), state(x.State), state(dash(x.Readiness)), text(detailOf(x))}
	}
	p.table("EXTENSION STATE READINESS DETAIL", rows)
	p.line("")
	p.heartbeat(s.heartbeat, s.heartbeatProblem)
	if len(s.Waiting) == 0 {
		p.line("No deliveries are waiting.")
	}
	for _, w := range s.Waiting {
		note := ""
		if w.InFlight > 0 {
			note = fmt.Sprintf(", %d being handled", w.InFlight)
		}
		if w.Parked {
			note = " (removed or disabled; kept for a day)"
		}
		p.line("%s: %d %s for %s%s", p.paint(yellow, "Waiting"), w.Deliveries, w.Topic, w.Extension, note)
	}
	if s.Strangers > 0 {
		p.line("%s for approval: `switchboard pairing list`", p.paint(yellow, waits(s.Strangers, "person", "people")))
	}
	if s.DeadLetters > 0 {
		p.line("%s: `switchboard events dead`", p.paint(yellow, count(s.DeadLetters, "dead letter")))
	}
	for _, limit := range s.Limits {
		p.line("%s: %s", p.paint(yellow, "Spending"), limit)
	}
	if s.Damage != "" {
		p.line("%s", p.paint(red, s.Damage))
	}
	p.backups(s.backup)
	for _, problem := range s.Problems {
		p.line("%s", p.paint(red, problem))
	}
	for _, x := range s.Extensions {
		if x.Problem == "" || x.State == stateInvalid { // the table shows those of invalid ones
			continue
		}
		for problem := range strings.SplitSeq(x.Problem, "\n") {
			p.line("%s", p.paint(red, problem))
		}
	}
	for _, hint := range s.Hints {
		p.faint("Hint: " + hint)
	}
}

func waits(n int, one, many string) string {
	if n == 1 {
		return "1 " + one + " waits"
	}
	return fmt.Sprintf("%d %s wait", n, many)
}

// brief returns the first of several problems, in one line.
func brief(detail string) string {
	first, rest, several := strings.Cut(detail, "\n")
	if several {
		first += fmt.Sprintf(" (and %d more: `switchboard doctor` shows all)", 1+strings.Count(rest, "\n"))
	}
	return first
}

// detailOf returns the detail of an extension for a table, with a hint if it failed.
func detailOf(x *adminv1.Extension) string {
	if x.State == "failed" {
		extension, _, _ := strings.Cut(x.Id, "/") // of an MCP server
		return fmt.Sprintf("%s; see `switchboard logs %s`", brief(x.Detail), extension)
	}
	return brief(x.Detail)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// at converts a time of the contract; 0: none.
func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func sinceTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return ago(*t)
}

func since(us int64) string {
	if us == 0 {
		return "-"
	}
	return ago(at(us))
}
