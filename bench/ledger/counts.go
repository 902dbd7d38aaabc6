package ledger

// Counts has the numbers of failures, and of chances for them.
type Counts struct {
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

// Losses is the sum of the counts that must be 0.
func (c Counts) Losses() int {
	return c.Unanswered + c.Twice + c.SendsLost + c.SendsTwice + c.ToolsTwice + c.RemindersMissed + c.RemindersTwice +
		c.ProcessesLeft + c.EventsStuck + c.Dead + c.Stray + c.HeardTwice
}

// Add adds the counts of another measurement.
func (c *Counts) Add(o Counts) {
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
