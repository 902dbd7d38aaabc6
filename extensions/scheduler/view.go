package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// view is a schedule in the tools' results. It has no opaque handles.
type view struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind"`
	State       string     `json:"state"`
	Message     string     `json:"message,omitempty"`
	Topic       string     `json:"topic"`
	Timing      string     `json:"timing"`
	EveryDays   int        `json:"every_days,omitempty"`
	Timezone    string     `json:"timezone"`
	Next        *time.Time `json:"next,omitempty"`
	NextLocal   string     `json:"next_local,omitempty"`
	In          string     `json:"in,omitempty"`
	ChannelID   string     `json:"channel_id,omitempty"`
	Destination string     `json:"destination"`
	Person      string     `json:"person,omitempty"` // another one, who gets it
	Owner       string     `json:"declared_by,omitempty"`
	CreatedBy   string     `json:"created_by,omitempty"`
	Fired       int64      `json:"fired,omitempty"`
	LastFired   *time.Time `json:"last_fired,omitempty"`
	Skipped     int64      `json:"skipped,omitempty"`
	LastSkipped *time.Time `json:"last_skipped,omitempty"`
	Problem     string     `json:"problem,omitempty"`
}

func viewOf(sc schedule.Schedule, c sdk.ToolCall, now time.Time) view {
	v := view{
		ID: sc.ID, Kind: sc.Kind, State: string(sc.State), Message: sc.Message, Topic: sc.Topic,
		Timing: sc.Timing(), EveryDays: sc.EveryDays, Timezone: sc.Timezone, Next: sc.Next, ChannelID: sc.ChannelID,
		Destination: destination(sc, c), Owner: sc.Owner, CreatedBy: sc.CreatedBy,
		Fired: sc.Fired, LastFired: sc.LastFired, Skipped: sc.Skipped, LastSkipped: sc.LastSkipped, Problem: sc.Problem,
	}
	if sc.To != nil {
		v.Person = sc.To.Name
	}
	if sc.Next != nil {
		v.NextLocal = words.LocalTime(*sc.Next, sc.Location())
		v.In = words.Span(rounded(sc.Next.Sub(now)))
	}
	return v
}

// rounded drops what does not matter about a time that is far away.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= 48*time.Hour:
		return d.Round(time.Hour)
	case d >= time.Hour:
		return d.Round(time.Minute)
	}
	return d
}

// line formats a schedule for people.
func (v view) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", v.ID, quoted(v.Message, v.Topic))
	switch {
	case v.Kind == schedule.Recurring:
		fmt.Fprintf(&b, ", %s", v.Timing)
	case v.NextLocal == "":
		fmt.Fprintf(&b, ", %s", strings.TrimPrefix(v.Timing, "once, "))
	}
	if v.State != string(schedule.Active) {
		fmt.Fprintf(&b, ", %s", v.State)
	}
	if v.NextLocal != "" {
		fmt.Fprintf(&b, ", next %s, in %s", v.NextLocal, v.In)
	}
	if v.Person != "" {
		fmt.Fprintf(&b, ", will reach %s", v.Destination)
	} else {
		fmt.Fprintf(&b, ", to %s", v.Destination)
	}
	if v.Skipped > 0 {
		fmt.Fprintf(&b, ", skipped %d", v.Skipped)
	}
	if v.Problem != "" {
		fmt.Fprintf(&b, ", problem: %s", v.Problem)
	}
	return b.String()
}

func quoted(message, topic string) string {
	if message == "" {
		return topic
	}
	if runes := []rune(message); len(runes) > 80 {
		message = string(runes[:79]) + "…"
	}
	return "“" + message + "”"
}
