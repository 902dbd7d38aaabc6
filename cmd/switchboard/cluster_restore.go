package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home/cluster"
)

func newClusterRestore() *cobra.Command {
	var seat seatFlags
	var o cluster.Restoring
	var at string
	var dry, yes bool
	c := &cobra.Command{
		Use: "restore CELL", Short: "Restore a cell to an earlier point", Args: cobra.ExactArgs(1),
		Long: "Makes the state of a cell what it was at a time, or after a commit of its log, and shows first what would\n" +
			"be lost. The nodes may run: they begin again with the old state. What waits in it may have been done since: it\n" +
			"is marked, as after the restore of a backup. A later restore can take it back.",
		Example: "  switchboard cluster restore main --at \"2026-05-04 18:30\" --dry-run\n" +
			"  switchboard cluster restore main --position 41200",
	}
	asJSON := jsonFlag(c)
	c.Flags().StringVar(&seat.dsnFile, "dsn-file", "", "file with PostgreSQL's connection string, for this user alone")
	c.Flags().StringVar(&at, "at", "", "time, such as \"2026-05-04 18:30\"")
	c.Flags().Int64Var(&o.Position, "position", 0, "number of a commit")
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be lost")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.MarkFlagsMutuallyExclusive("at", "position")
	c.MarkFlagsOneRequired("at", "position")
	c.RunE = func(c *cobra.Command, args []string) error {
		p := printerOf(c)
		seat.cell = args[0]
		s, err := seat.open(c, *asJSON)
		if err != nil {
			return err
		}
		if at != "" {
			if o.At, err = parseMoment(at, p.zone); err != nil {
				return err
			}
		}
		o.Confirm = func(plan cluster.Plan) (bool, error) {
			if !*asJSON {
				p.plan(plan)
			}
			if dry {
				return false, nil
			}
			return confirm(c, yes, "Restore the cell "+plan.Cell+"?", "--dry-run shows what would be lost")
		}
		done, err := cluster.Restore(c.Context(), s, o)
		switch {
		case err != nil && c.Context().Err() != nil:
			return errors.New("interrupted; `switchboard cluster restore --dry-run` shows whether it is restored")
		case err != nil:
			return err
		case *asJSON:
			return printJSON(c, struct {
				Cell     string    `json:"cell"`
				Position int64     `json:"position"`
				Time     time.Time `json:"time"`
				Head     int64     `json:"head"`
				Events   int       `json:"events_lost"`
				Done     bool      `json:"restored"`
				Entry    int64     `json:"entry,omitempty"`
				Lost     []string  `json:"lost_files,omitempty"`
			}{
				done.Cell, done.To.Position, done.To.Time, done.Now.Position,
				done.Now.Contents.Events - done.To.Contents.Events, done.Done, done.Entry, done.Lost,
			})
		case done.Done:
			p.line("The cell %s is restored, by commit %d.", done.Cell, done.Entry)
			p.lostFiles(done.Lost, "is not kept any more")
			p.faint(fmt.Sprintf("`switchboard cluster restore %s --position %d` takes that back.", done.Cell,
				done.Entry-1))
		}
		return nil
	}
	return c
}

// plan shows what a restore would lose.
func (p *printer) plan(plan cluster.Plan) {
	to, now := plan.To, plan.Now
	p.line("The cell %s goes back to commit %d of %d, made at %s.", plan.Cell, to.Position, now.Position, p.clock(to.Time))
	if plan.Owner != "" {
		p.line("The node %s owns it, and begins again with the old state.", plan.Owner)
	}
	p.line("Since then until %s: %s.", p.clock(now.Time), count(int(now.Position-to.Position), "commit"))
	for _, row := range []struct {
		what      string
		then, now int
	}{
		{"events", to.Contents.Events, now.Contents.Events}, {"conversations", to.Contents.Sessions, now.Contents.Sessions},
		{"rows of conversations", to.Contents.Rows, now.Contents.Rows},
		{"reminders and schedules", to.Contents.Keys["scheduler/schedule"], now.Contents.Keys["scheduler/schedule"]},
		{"files of messages", len(to.Contents.Blobs), len(now.Contents.Blobs)},
	} {
		if row.then != row.now {
			p.line("  %s: %d, and then %d again", row.what, row.now, row.then)
		}
	}
}

// parseMoment reads a time in the zone of the home.
func parseMoment(s string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write it as \"2006-01-02 15:04\"", s)
}
