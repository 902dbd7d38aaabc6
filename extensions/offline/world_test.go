package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// world plays the run loop and the tools with their state, at 14:20 on a
// Wednesday in Berlin: three reminders, one memory, two channels.
type world struct {
	t         testing.TB
	now       time.Time
	schedules []*planned
	memories  []*kept
	messages  []*extensionv1.Message
	did       []string // since the last message of the user
	calls     int
}

// planned is a schedule as list_schedules returns it.
type planned struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	State     string     `json:"state"`
	Message   string     `json:"message"`
	Timing    string     `json:"timing"`
	Timezone  string     `json:"timezone"`
	EveryDays int        `json:"every_days,omitempty"`
	Next      *time.Time `json:"next,omitempty"`
	LastFired *time.Time `json:"last_fired,omitempty"`
	Channel   string     `json:"channel_id,omitempty"`
	before    *planned   // the last change
}

// kept is a memory as recall returns it.
type kept struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Text    string `json:"text"`
	Created string `json:"created"`
}

// newWorld returns a world in the language of a text.
func newWorld(t testing.TB, text string) *world {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: time.Date(2026, 3, 11, 14, 20, 0, 0, zone)}
	texts := []string{"take the pills", "pay rent", "Reminder: call mum", "my wife's name is Anna"}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
		texts = []string{"принять таблетки", "заплатить за квартиру",
			"Напоминание: позвонить маме", "мою жену зовут Анна"}
	}
	at := func(month time.Month, day, hour int) *time.Time {
		next := time.Date(2026, month, day, hour, 0, 0, 0, zone)
		return &next
	}
	w.schedules = []*planned{
		{ID: "r1", Kind: "recurring", State: "active", Message: texts[0], Timing: `cron "0 9 * * *" (Europe/Berlin)`,
			Timezone: zone.String(), Next: at(3, 12, 9)},
		{ID: "r2", Kind: "recurring", State: "active", Message: texts[1], Timing: `cron "0 10 1 * *" (Europe/Berlin)`,
			Timezone: zone.String(), Next: at(4, 1, 10)},
		{ID: "r3", Kind: "once", State: "active", Message: texts[2], Timing: "once, Thu 12 Mar 2026 18:00 (Europe/Berlin)",
			Timezone: zone.String(), Next: at(3, 12, 18)},
	}
	w.memories = []*kept{{"m1w1fe", "fact", texts[3], "2026-03-01T10:00:00+01:00"}}
	w.messages = []*extensionv1.Message{{Role: "system", Content: "You are an assistant."}}
	return w
}

// deliver delivers a reminder to the conversation.
func (w *world) deliver(text string) {
	w.messages = append(w.messages, &extensionv1.Message{Role: "user", Content: "[record from switchboard]\n~~~\n" +
		"You sent this to the user here, from outside this conversation:\n\n" + text + "\n~~~"})
}

// say has the user say something ten seconds later and returns the answer.
func (w *world) say(text string) string {
	w.t.Helper()
	w.now, w.did = w.now.Add(10*time.Second), nil
	from := len(w.messages)
	w.messages = append(w.messages, &extensionv1.Message{Role: "user", Content: "[now]\n~~~\nCurrent time: " +
		w.now.Format(time.RFC3339) + " (" + w.now.Weekday().String() + ", Europe/Berlin)\n~~~\n" + text})
	for range 12 {
		said, kept := w.ask()
		w.messages = append(w.messages, said)
		if len(said.GetCalls()) == 0 {
			if !kept {
				w.messages = w.messages[:from]
			}
			return said.GetContent()
		}
		for _, c := range said.GetCalls() {
			w.messages = append(w.messages, &extensionv1.Message{Role: "tool", CallId: c.GetCallId(), Content: w.run(c)})
		}
	}
	w.t.Errorf("no answer to %q after %q", text, w.did)
	return ""
}

// ask asks the model once. It reports whether the answer stays in the history.
func (w *world) ask() (*extensionv1.Message, bool) {
	w.t.Helper()
	r := &sdk.CompleteRequest{Model: Model, Messages: w.messages}
	for _, name := range append(slices.Clone(toolNames), "scheduler__update_schedule") {
		r.Tools = append(r.Tools, &extensionv1.Tool{Name: name})
	}
	said := &extensionv1.Message{Role: "assistant"}
	finish := ""
	err := model{now: time.Now}.Complete(w.t.Context(), r, func(d *sdk.Delta) error {
		said.Content += d.GetText()
		finish += d.GetFinish()
		if c := d.GetCall(); c != nil {
			w.calls++
			said.Calls = append(said.Calls, &busv1.Call{CallId: fmt.Sprint("c", w.calls), Name: c.GetName(),
				Arguments: c.GetArguments()})
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
	return said, finish == "stop"
}

// readOnly are the tools that change nothing.
var readOnly = []string{"list_channels", "list_schedules", "recall", "list_memories"}

// run runs a call, and notes it if it changes something.
func (w *world) run(c *busv1.Call) string {
	tool := plainName(c.GetName())
	if !slices.Contains(readOnly, tool) {
		w.did = append(w.did, tool+" "+string(c.GetArguments()))
	}
	var a struct {
		ID, Action, Message, Cron, At, Query, About, Text, Kind string
		DelaySeconds                                            float64 `json:"delay_seconds"`
		EverySeconds                                            float64 `json:"every_seconds"`
		EveryDays                                               int     `json:"every_days"`
		All                                                     bool
		ChannelID                                               string `json:"channel_id"`
		IDs                                                     []string
	}
	if err := json.Unmarshal(c.GetArguments(), &a); err != nil {
		return failure + err.Error()
	}
	switch tool {
	case "list_channels":
		return `{"channels":[{"id":"cli_channel","name":"Terminal","readiness":"ready"},` +
			`{"id":"telegram_channel","name":"Telegram","readiness":"ready"}]}`
	case "send_to_channel", "send_to_all_channels":
		return `{"status":"delivered"}`
	case "list_schedules":
		active := slices.DeleteFunc(slices.Clone(w.schedules), func(p *planned) bool {
			return !a.All && (p.State == "cancelled" || p.State == "done")
		})
		return asJSON(map[string]any{"schedules": active})
	case "schedule_once", "schedule_recurring":
		p := &planned{ID: fmt.Sprint("r", len(w.schedules)+1), State: "active", Message: a.Message,
			Timezone: "Europe/Berlin", Channel: a.ChannelID, EveryDays: a.EveryDays}
		p.plan(w.now, a.At, a.DelaySeconds, a.Cron, a.EverySeconds)
		if a.EveryDays > 0 {
			p.Timing += fmt.Sprintf(", every %d days", a.EveryDays)
		}
		w.schedules = append(w.schedules, p)
		return withStatus(p, "scheduled")
	case "cancel_schedule", "update_schedule":
		i := slices.IndexFunc(w.schedules, func(p *planned) bool { return p.ID == a.ID })
		if i < 0 {
			return failure + "there is no schedule " + a.ID
		}
		return w.change(w.schedules[i], tool, a.Action, func(p *planned) {
			if a.Message != "" {
				p.Message = a.Message
			}
			if a.ChannelID != "" {
				p.Channel = a.ChannelID
			}
			p.plan(w.now, a.At, a.DelaySeconds, a.Cron, a.EverySeconds)
		})
	case "remember":
		k := &kept{fmt.Sprint("m", len(w.memories)+1, "new"), "fact", a.Text, w.now.Format(time.RFC3339)}
		if a.Kind != "" {
			k.Kind = a.Kind
		}
		w.memories = append(w.memories, k)
		return withStatus(k, "remembered")
	case "forget":
		var gone []*kept
		w.memories = slices.DeleteFunc(w.memories, func(k *kept) bool {
			if slices.Contains(a.IDs, k.ID) {
				gone = append(gone, k)
				return true
			}
			return false
		})
		return asJSON(map[string]any{"forgotten": gone})
	}
	found := slices.DeleteFunc(slices.Clone(w.memories), func(k *kept) bool {
		return !sharesAWord(k.Text, a.Query) || !sharesAWord(k.Text, a.About) || a.Kind != "" && k.Kind != a.Kind
	})
	return asJSON(map[string]any{"memories": found})
}

// sharesAWord reports whether a text has a word of the query, or the query has none.
func sharesAWord(text, query string) bool {
	words := wordsOf(text)
	for _, q := range wordsOf(query) {
		if slices.ContainsFunc(words, func(word string) bool { return len(q) > 2 && sameStem(q, word) }) {
			return true
		}
	}
	return query == ""
}

func (w *world) change(p *planned, tool, action string, edit func(*planned)) string {
	before := *p
	switch {
	case tool == "cancel_schedule":
		p.State, p.before = "cancelled", &before
		return withStatus(p, "cancelled")
	case action == "undo":
		if p.before == nil {
			return failure + "nothing to undo"
		}
		*p = *p.before
		p.before = &before
		return withStatus(p, "restored")
	case action == "pause":
		p.State = "paused"
		return withStatus(p, "paused")
	case action == "resume":
		p.State = "active"
		return withStatus(p, "resumed")
	}
	if edit(p); p.State == "done" {
		p.State = "active"
	}
	p.before = &before
	return withStatus(p, "changed")
}

// plan sets the time of a schedule, roughly as the scheduler does.
func (p *planned) plan(now time.Time, at string, delay float64, cron string, every float64) {
	switch {
	case at != "":
		next, err := time.Parse(time.RFC3339, at)
		if err == nil {
			next = next.In(now.Location())
			p.Kind, p.Next, p.Timing = "once", &next, "once, "+next.Format("Mon 2 Jan 2006 15:04 (Europe/Berlin)")
		}
	case delay > 0:
		next := now.Add(time.Duration(delay * float64(time.Second)))
		p.Kind, p.Next, p.Timing = "once", &next, "once, "+next.Format("Mon 2 Jan 2006 15:04 (Europe/Berlin)")
	case cron != "":
		var minute, hour int
		_, _ = fmt.Sscanf(cron, "%d %d", &minute, &hour)
		next := time.Date(now.Year(), now.Month(), now.Day()+1, hour, minute, 0, 0, now.Location())
		p.Kind, p.Next, p.Timing = "recurring", &next, fmt.Sprintf("cron %q (Europe/Berlin)", cron)
	case every > 0:
		next := now.Add(time.Duration(every * float64(time.Second)))
		p.Kind, p.Next, p.Timing = "recurring", &next, fmt.Sprintf("every %g s", every)
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return failure + err.Error()
	}
	return string(b)
}

// withStatus is a result with the status of a change.
func withStatus(v any, status string) string {
	return fmt.Sprintf(`{"status":%q,%s`, status, asJSON(v)[1:])
}
