package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
)

// row is one line of the table.
type row struct {
	Part   string `json:"part"`
	Victim string `json:"victim"`
	ledger.Counts
	Seconds float64 `json:"seconds"`
}

// report has the results of a run.
type report struct {
	Seed     uint64   `json:"seed"`
	Rows     []row    `json:"rows"`
	Soak     *soaked  `json:"soak,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

func (r *report) add(part, victim string, c ledger.Counts, took time.Duration) {
	for i := range r.Rows {
		if r.Rows[i].Part == part && r.Rows[i].Victim == victim {
			r.Rows[i].Add(c)
			r.Rows[i].Seconds += took.Seconds()
			return
		}
	}
	r.Rows = append(r.Rows, row{Part: part, Victim: victim, Counts: c, Seconds: took.Seconds()})
}

func (r *report) bad() bool {
	for _, row := range r.Rows {
		if row.Losses() > 0 {
			return true
		}
	}
	return r.Soak != nil && r.Soak.bad()
}

func (r *report) print() {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "part\tkilled\tkills\tmessages\tunanswered\ttwice\tsends lost\ttwice\ttools twice\treminders "+
		"missed\ttwice\tprocesses left\tstuck\tdead\tstray\theard twice\t|\tmarked\tunknown\tdrafts left\tlatest\t")
	total := ledger.Counts{}
	line := func(part, victim string, c ledger.Counts) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t|\t%d\t%d\t%d\t%.1f s\t\n", part,
			victim, c.Kills, c.Messages, c.Unanswered, c.Twice, c.SendsLost, c.SendsTwice,
			c.ToolsTwice, c.RemindersMissed, c.RemindersTwice, c.ProcessesLeft, c.EventsStuck, c.Dead, c.Stray, c.HeardTwice,
			c.Marked, c.ToolsUnknown, c.DraftsLeft, c.Latest)
	}
	for _, row := range r.Rows {
		line(row.Part, row.Victim, row.Counts)
		total.Add(row.Counts)
	}
	line("all", "", total)
	_ = t.Flush()
	if r.Soak != nil {
		r.Soak.print()
	}
	for _, p := range r.Problems {
		fmt.Println("-", p)
	}
	fmt.Printf("seed %d: %d kills, %d messages, %d lost or done twice\n", r.Seed, total.Kills, total.Messages,
		total.Losses())
}
