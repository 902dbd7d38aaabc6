package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

// counts has the numbers of failures, and of chances for them.
type counts struct {
	Messages int `json:"messages"`
	Kills    int `json:"kills"`
	// NotReached counts points without a kill, because the job ended first.
	NotReached int `json:"not_reached"`

	Unanswered int `json:"unanswered"`    // messages without a reply
	Twice      int `json:"replies_twice"` // replies sent again without a mark
	SendsLost  int `json:"sends_lost"`    // messages that did not reach the second channel
	SendsTwice int `json:"sends_twice"`   // or came again without a mark
	// tools with an effect that ran twice, or did not run although the model got a result
	ToolsTwice      int `json:"tools_twice"`
	RemindersMissed int `json:"reminders_missed"` //
	RemindersTwice  int `json:"reminders_twice"`  // came again without a mark
	ProcessesLeft   int `json:"processes_left"`   // of a kernel that was killed
	EventsStuck     int `json:"events_stuck"`     // unsettled deliveries
	Dead            int `json:"dead"`             // dead letters
	Stray           int `json:"stray"`            // texts without a message
	HeardTwice      int `json:"heard_twice"`      // messages or replies repeated in one request to the model
	Marked          int `json:"marked"`           // repeated with a mark, which is allowed
	DraftsLeft      int `json:"drafts_left"`      // unfinished drafts
	ToolsUnknown    int `json:"tools_unknown"`    // the model was told that the outcome is unknown, which is allowed
	// Latest is the maximal delay of a reminder in seconds.
	Latest float64 `json:"latest_reminder_seconds"`
}

// losses is the sum of the counts that must be 0.
func (c counts) losses() int {
	return c.Unanswered + c.Twice + c.SendsLost + c.SendsTwice + c.ToolsTwice + c.RemindersMissed + c.RemindersTwice +
		c.ProcessesLeft + c.EventsStuck + c.Dead + c.Stray + c.HeardTwice
}

func (c *counts) add(o counts) {
	c.Messages += o.Messages
	c.Kills += o.Kills
	c.NotReached += o.NotReached
	c.Unanswered += o.Unanswered
	c.Twice += o.Twice
	c.SendsLost += o.SendsLost
	c.SendsTwice += o.SendsTwice
	c.ToolsTwice += o.ToolsTwice
	c.RemindersMissed += o.RemindersMissed
	c.RemindersTwice += o.RemindersTwice
	c.ProcessesLeft += o.ProcessesLeft
	c.EventsStuck += o.EventsStuck
	c.Dead += o.Dead
	c.Stray += o.Stray
	c.HeardTwice += o.HeardTwice
	c.Marked += o.Marked
	c.DraftsLeft += o.DraftsLeft
	c.Latest = max(c.Latest, o.Latest)
	c.ToolsUnknown += o.ToolsUnknown
}

// row is one line of the table.
type row struct {
	Part   string `json:"part"`
	Victim string `json:"victim"`
	counts
	Seconds float64 `json:"seconds"`
}

// report has the results of a run.
type report struct {
	Seed     uint64   `json:"seed"`
	Rows     []row    `json:"rows"`
	Soak     *soaked  `json:"soak,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

func (r *report) add(part, victim string, c counts, took time.Duration) {
	for i := range r.Rows {
		if r.Rows[i].Part == part && r.Rows[i].Victim == victim {
			r.Rows[i].add(c)
			r.Rows[i].Seconds += took.Seconds()
			return
		}
	}
	r.Rows = append(r.Rows, row{Part: part, Victim: victim, counts: c, Seconds: took.Seconds()})
}

func (r *report) bad() bool {
	for _, row := range r.Rows {
		if row.losses() > 0 {
			return true
		}
	}
	return r.Soak != nil && r.Soak.bad()
}

func (r *report) print() {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "part\tkilled\tkills\tmessages\tunanswered\ttwice\tsends lost\ttwice\ttools twice\treminders "+
		"missed\ttwice\tprocesses left\tstuck\tdead\tstray\theard twice\t|\tmarked\tunknown\tdrafts left\tlatest\t")
	total := counts{}
	line := func(part, victim string, c counts) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t|\t%d\t%d\t%d\t%.1f s\t\n", part,
			victim, c.Kills, c.Messages, c.Unanswered, c.Twice, c.SendsLost, c.SendsTwice,
			c.ToolsTwice, c.RemindersMissed, c.RemindersTwice, c.ProcessesLeft, c.EventsStuck, c.Dead, c.Stray, c.HeardTwice,
			c.Marked, c.ToolsUnknown, c.DraftsLeft, c.Latest)
	}
	for _, row := range r.Rows {
		line(row.Part, row.Victim, row.counts)
		total.add(row.counts)
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
		total.losses())
}
