package board

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// scheduled is what the extension scheduler says of a schedule.
type scheduled struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind"`
	State       string     `json:"state"`
	Message     string     `json:"message"`
	Topic       string     `json:"topic"`
	Timing      string     `json:"timing"`
	Next        *time.Time `json:"next"`
	Destination string     `json:"destination"`
	DeclaredBy  string     `json:"declared_by"`
	Problem     string     `json:"problem"`
}

// timing is a schedule's timing in fields, and when it is due.
type timing struct {
	ID           string      `json:"id"`
	At           string      `json:"at"`
	Cron         string      `json:"cron"`
	EverySeconds float64     `json:"every_seconds"`
	Until        string      `json:"until"`
	Due          []time.Time `json:"due"`
	More         bool        `json:"more"`
}

const (
	schedulesPath  = "/board/schedules"
	schedulesShown = 1000
	daysOfWeek     = 7
	mostWeeks      = 52
)

// schedules shows the reminders and schedules, as a list and as a week.
func (b *board) schedules(mux *http.ServeMux) {
	b.page(mux, schedulesPath, members, door.ScopeSchedules, func(q *request) (*sheet, error) {
		week := min(number(q.URL.Query().Get("week"), 0), mostWeeks)
		all := q.URL.Query().Get("all") == "yes"
		found, err := ask[struct {
			Schedules  []scheduled `json:"schedules"`
			More       int         `json:"more"`
			Unreadable []struct {
				ID, Error string
			} `json:"unreadable"`
		}](q, "scheduler/list_schedules", map[string]any{"all": all, "limit": schedulesShown})
		if err != nil {
			return nil, err
		}
		from := q.midnight(week * daysOfWeek)
		due, err := ask[struct {
			Schedules []timing `json:"schedules"`
		}](q, "scheduler/calendar", map[string]any{"from": from, "days": daysOfWeek})
		if err != nil {
			return nil, err
		}
		timings := map[string]timing{}
		for _, t := range due.Schedules {
			timings[t.ID] = t
		}
		listed := block{Title: q.say("All"), Table: q.scheduleTable(found.Schedules, timings)}
		if found.More > 0 {
			listed.Text = []string{q.say("and %d more", found.More)}
		}
		for _, u := range found.Unreadable {
			listed.Problems = append(listed.Problems, q.say("%s can't be read and won't fire: %s", u.ID, q.translate(u.Error)))
			listed.Forms = append(listed.Forms, q.cancelSchedule(u.ID, u.ID))
		}
		if !all {
			listed.Links = []link{{Text: q.say("Show finished ones, and those of extensions"), Href: schedulesPath + "?all=yes"}}
		}
		return &sheet{Title: q.say("Schedules"), Blocks: []block{
			{Forms: []form{q.addSchedule()}}, q.weekBlock(week, from, found.Schedules, timings), listed,
		}}, nil
	})
	b.scheduleChanges(mux)
}

// midnight is when the day begins that is so many days ahead.
func (q *request) midnight(ahead int) time.Time {
	now := q.b.Now().In(q.zone)
	return time.Date(now.Year(), now.Month(), now.Day()+ahead, 0, 0, 0, 0, q.zone)
}

// weekBlock shows when schedules are due in seven days.
func (q *request) weekBlock(week int, from time.Time, all []scheduled, timings map[string]timing) block {
	days := make([]day, daysOfWeek)
	for i := range days {
		at := time.Date(from.Year(), from.Month(), from.Day()+i, 0, 0, 0, 0, q.zone)
		days[i] = day{
			Title: words.Say(q.v.Language, at.Format("Mon")) + " " + words.Day(q.v.Language, at),
			Today: week == 0 && i == 0, Empty: none,
		}
	}
	type due struct {
		at time.Time
		item
	}
	var dues []due
	for _, s := range all {
		t := timings[s.ID]
		for _, at := range t.Due {
			dues = append(dues, due{at.In(q.zone), item{
				At: at.In(q.zone).Format("15:04"), Text: shorten(cmp.Or(s.Message, s.Topic), 80), Sub: s.ID,
			}})
		}
		if n := len(t.Due); t.More && n > 0 {
			dues[len(dues)-1].Sub += ", " + q.say("and so on")
		}
	}
	slices.SortStableFunc(dues, func(a, b due) int { return a.at.Compare(b.at) })
	for _, d := range dues {
		for i := range days {
			end := time.Date(from.Year(), from.Month(), from.Day()+i+1, 0, 0, 0, 0, q.zone)
			if d.at.Before(end) {
				days[i].Items = append(days[i].Items, d.item)
				break
			}
		}
	}
	b := block{Title: q.say("The week"), Week: days}
	if week > 0 {
		b.Links = append(b.Links, link{Text: q.say("← earlier"), Href: fmt.Sprintf("%s?week=%d", schedulesPath, week-1)})
	}
	if week < mostWeeks {
		b.Links = append(b.Links, link{Text: q.say("later →"), Href: fmt.Sprintf("%s?week=%d", schedulesPath, week+1)})
	}
	return b
}

func (q *request) scheduleTable(all []scheduled, timings map[string]timing) *table {
	t := &table{
		Head:  []string{q.say("What"), q.say("Next"), q.say("Timing"), q.say("State"), q.say("To")},
		Empty: q.say("Nothing is scheduled. Ask the assistant: “remind me in 5 minutes to turn off the kettle”."),
	}
	for _, s := range all {
		next := text(none)
		if s.Next != nil {
			next = q.moment(*s.Next)
		}
		to := text(q.translate(s.Destination))
		if s.Problem != "" {
			to.Sub = q.say("problem: %s", q.translate(s.Problem))
		}
		t.Rows = append(t.Rows, row{
			Cells: []cell{
				{Text: cmp.Or(s.Message, s.Topic), Sub: s.ID}, next, text(q.translate(s.Timing)), q.state(s.State), to,
			},
			Forms: q.scheduleForms(s, timings[s.ID]),
		})
	}
	return t
}

// scheduleForms is what may be done with a schedule.
func (q *request) scheduleForms(s scheduled, t timing) (all []form) {
	id := hidden{"id", s.ID}
	if s.State == "done" || s.State == "cancelled" {
		return nil
	}
	if s.DeclaredBy == "" {
		edit := form{
			Action: schedulesPath + "/edit", Label: q.say("Save"), Summary: q.say("Edit"), Hidden: []hidden{id},
			Fields: []field{{Name: "text", Label: q.say("Text"), Type: "area", Value: s.Message}},
		}
		switch {
		case s.Kind == "once":
			edit.Fields = append(edit.Fields, field{Name: "at", Label: q.say("At"), Type: "datetime-local", Value: t.At})
		case t.Cron != "":
			edit.Fields = append(edit.Fields, q.cronField(t.Cron))
		default:
			edit.Fields = append(edit.Fields, field{
				Name: "every", Label: q.say("Every, in minutes"), Type: "number", Value: minutes(t.EverySeconds),
			})
		}
		if s.Kind != "once" {
			edit.Fields = append(edit.Fields, q.untilField(t.Until))
		}
		for _, f := range edit.Fields {
			edit.Hidden = append(edit.Hidden, hidden{"was-" + f.Name, f.Value})
		}
		all = append(all, edit)
	}
	if s.State == "paused" {
		all = append(all, form{Action: schedulesPath + "/resume", Label: q.say("Resume"), Hidden: []hidden{id}})
	} else {
		all = append(all, form{Action: schedulesPath + "/pause", Label: q.say("Pause"), Hidden: []hidden{id}})
	}
	if s.DeclaredBy == "" {
		all = append(all, q.cancelSchedule(s.ID, cmp.Or(s.Message, s.Topic)))
	}
	return all
}

func minutes(seconds float64) string { return strconv.FormatFloat(seconds/60, 'f', -1, 64) }

func (q *request) cronField(value string) field {
	return field{
		Name: "cron", Label: q.say("By a cron expression"), Type: "text", Value: value,
		Hint: q.say("such as 0 9 * * 1-5: at 9:00 on weekdays"),
	}
}

func (q *request) untilField(value string) field {
	return field{Name: "until", Label: q.say("Until, if it ends"), Type: "datetime-local", Value: value}
}

func (q *request) cancelSchedule(id, what string) form {
	return form{
		Action: schedulesPath + "/cancel", Label: q.say("Cancel it for good"), Summary: q.say("Cancel"), Danger: true,
		Hidden: []hidden{{"id", id}}, Question: q.say("Cancel “%s”?", shorten(what, 60)),
	}
}

func (q *request) addSchedule() form {
	return form{
		Action: schedulesPath + "/add", Label: q.say("Add"), Summary: q.say("Add a reminder"), Fields: []field{
			{Name: "text", Label: q.say("Text"), Type: "area", Required: true},
			{Name: "at", Label: q.say("Once, at"), Type: "datetime-local", Hint: q.say("Give one of the four times.")},
			{Name: "in", Label: q.say("or once, in minutes"), Type: "number"},
			{Name: "every", Label: q.say("or again and again, every so many minutes"), Type: "number"},
			q.cronField(""), q.untilField(""),
			{
				Name: "task", Label: q.say("Let the assistant do it, and send me the result"), Type: "check",
			},
		},
	}
}
