package schedule

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// now is a Friday, 15:00 in Berlin.
const now = "2026-11-20T14:00:00Z"

func env(t testing.TB) Env {
	t.Helper()
	return Env{Now: utc(t, now), Timezone: "Europe/Berlin", MinEvery: 10 * time.Second}
}

func request(t testing.TB, text string) Request {
	t.Helper()
	var r Request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewIsDueWhenAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, request, want, note string }{
		{Once, `{"message":"m","delay_seconds":300}`, "2026-11-20T14:05:00Z", ""},
		{Once, `{"message":"m","delay_seconds":5400}`, "2026-11-20T15:30:00Z", ""}, // an hour and a half
		{Once, `{"message":"m","delay_seconds":1.5}`, "2026-11-20T14:00:01.5Z", ""},
		{Once, `{"message":"m","at":"2026-11-21T09:00"}`, "2026-11-21T08:00:00Z", ""},
		{Once, `{"message":"m","at":"2026-11-21 09:00:30"}`, "2026-11-21T08:00:30Z", ""},
		{Once, `{"message":"m","at":"2026-11-21T09:00","timezone":"America/New_York"}`, "2026-11-21T14:00:00Z", ""},
		{Once, `{"message":"m","at":"2026-11-21T09:00+03:00"}`, "2026-11-21T06:00:00Z", ""},
		{Once, `{"message":"m","at":"2026-11-21T09:00:00Z","timezone":"Asia/Tokyo"}`, "2026-11-21T09:00:00Z", ""},
		{Once, `{"message":"m","at":"18:30","delay_seconds":0,"timezone":"","channel_id":"","topic":"","payload":null}`,
			"2026-11-20T17:30:00Z", ""},
		{Once, `{"message":"m","delay_seconds":300,"at":""}`, "2026-11-20T14:05:00Z", ""},
		{Recurring, `{"message":"m","cron":"@hourly","every_seconds":0,"until":""}`, "2026-11-20T15:00:00Z", ""},
		{Once, `{"message":"m","at":"18:30"}`, "2026-11-20T17:30:00Z", ""},
		{Once, `{"message":"m","at":"08:30"}`, "2026-11-21T07:30:00Z", ""},
		{Once, `{"message":"m","at":"2027-03-28T02:30"}`, "2027-03-28T01:00:00Z", "the clocks skip 02:30"},
		{Once, `{"message":"m","at":"2027-10-31T02:30"}`, "2027-10-31T00:30:00Z", "the clocks show 02:30 twice"},
		{Recurring, `{"message":"m","cron":"30 8 * * 1-5"}`, "2026-11-23T07:30:00Z", ""},
		{Recurring, `{"message":"m","cron":"0 18 * * *","timezone":"europe/london"}`, "2026-11-20T18:00:00Z", ""},
		{Recurring, `{"message":"m","cron":"@hourly"}`, "2026-11-20T15:00:00Z", ""},
		{Recurring, `{"message":"m","every_seconds":600}`, "2026-11-20T14:10:00Z", ""},
		{Recurring, `{"message":"m","every_seconds":600,"until":"2026-11-20"}`, "2026-11-20T14:10:00Z", ""},
	} {
		s, notes, err := New(c.kind, request(t, c.request), env(t))
		if err != nil {
			t.Errorf("%s: %v", c.request, err)
			continue
		}
		if !s.Next.Equal(utc(t, c.want)) {
			t.Errorf("%s: due %s, want %s", c.request, s.Next, c.want)
		}
		if got := strings.Join(notes, " "); (c.note == "") != (got == "") || !strings.Contains(got, c.note) {
			t.Errorf("%s: note %q, want %q", c.request, got, c.note)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, request string
		want          []string // parts of the error
	}{
		{Once, `{"message":"m"}`, []string{"delay_seconds or at"}},
		{Once, `{"message":"m","delay_seconds":-5}`, []string{"at least 1"}},
		{Once, `{"message":"m","delay_seconds":0}`, []string{"at least 1"}},
		{Once, `{"message":"m","delay_seconds":1e300}`, []string{"50 years"}},
		{Once, `{"message":"m","at":"2026-11-20T14:59"}`, []string{"1 min in the past",
			"Fri 20 Nov 2026 15:00 (Europe/Berlin)", "later time"}},
		{Once, `{"message":"m","at":"3026-01-01T00:00"}`, []string{"check the year"}},
		{Once, `{"message":"m","at":"tomorrow"}`, []string{`parse at "tomorrow"`, "2026-11-21T15:00"}},
		{Once, `{"message":"m","at":"2026-02-30T10:00"}`, []string{`parse at "2026-02-30T10:00"`}},
		{Once, `{"message":"m","at":"18:30","delay_seconds":5}`, []string{"give only one"}},
		{Once, `{"message":"m","at":"18:30","cron":"* * * * *"}`, []string{"schedule_recurring"}},
		{Once, `{"message":" ","delay_seconds":5}`, []string{"message is empty"}},
		{Once, `{"message":"m","delay_seconds":5,"timezone":"Europe/Berln"}`, []string{"did you mean Europe/Berlin?"}},
		{Once, `{"message":"m","delay_seconds":5,"timezone":"Berlin"}`, []string{"Europe/Berlin"}},
		{Once, `{"message":"m","delay_seconds":5,"timezone":"New York"}`, []string{"America/New_York"}},
		{Once, `{"message":"m","delay_seconds":5,"timezone":"PST"}`, []string{"America/Los_Angeles"}},
		{Once, `{"message":"m","delay_seconds":5,"timezone":"UTC+3"}`, []string{"unknown"}},
		{Once, `{"message":"m","delay_seconds":5,"timezone":"../../etc/passwd"}`, []string{"unknown"}},
		{Once, `{"message":"m","delay_seconds":5,"timezone":"Local"}`, []string{"IANA"}},
		{Once, `{"message":"m","delay_seconds":5,"topic":"user.message"}`,
			[]string{"cannot be scheduled", "system.user.notify", "system.agent.task", "lights.on"}},
		{Once, `{"message":"m","delay_seconds":5,"topic":"channel.send.telegram_channel"}`,
			[]string{"cannot be scheduled"}},
		{Once, `{"message":"m","delay_seconds":5,"topic":"system.delivery.dead"}`, []string{"cannot be scheduled"}},
		{Once, `{"message":"m","delay_seconds":5,"topic":"Lights"}`, []string{"cannot be scheduled"}},
		{Once, `{"message":"m","delay_seconds":5,"payload":{"conversation":"123"}}`, []string{`"conversation"`}},
		{Once, `{"message":"m","delay_seconds":5,"payload":[1]}`, []string{"not a JSON object"}},
		{Once, `{"message":"` + strings.Repeat("x", 9000) + `","delay_seconds":5}`, []string{"at most"}},
		{Recurring, `{"message":"m"}`, []string{"cron or every_seconds"}},
		{Recurring, `{"message":"m","cron":"0 0 30 2 *"}`, []string{"never fires", "no such date"}},
		{Recurring, `{"message":"m","cron":"0 0 31 4,6,9,11 *"}`, []string{"never fires"}},
		{Recurring, `{"message":"m","cron":", * * * *"}`, []string{"never fires"}},
		{Recurring, `{"message":"m","cron":"61 * * * *"}`, []string{`parse cron "61 * * * *"`, "five fields"}},
		{Recurring, `{"message":"m","cron":"0 0 8 * * *"}`, []string{"six fields", "five fields"}},
		{Recurring, `{"message":"m","cron":"daily"}`, []string{`parse cron "daily"`, "@daily"}},
		{Recurring, `{"message":"m","cron":""}`, []string{"cron or every_seconds"}},
		{Recurring, `{"message":"m","cron":"@every 5s"}`, []string{"every_seconds"}},
		{Recurring, `{"message":"m","cron":"TZ=Europe/Berlin"}`, []string{"timezone"}},
		{Recurring, `{"message":"m","cron":"CRON_TZ=UTC 0 8 * * *"}`, []string{"timezone"}},
		{Recurring, `{"message":"m","cron":"@daily","every_seconds":60}`, []string{"give only one"}},
		{Recurring, `{"message":"m","every_seconds":1}`, []string{"must be at least 10"}},
		{Recurring, `{"message":"m","every_seconds":-60}`, []string{"must be at least 10"}},
		{Recurring, `{"message":"m","every_seconds":1e300}`, []string{"50 years"}},
		{Recurring, `{"message":"m","every_seconds":60,"delay_seconds":5}`, []string{"schedule_once"}},
		{Recurring, `{"message":"m","cron":"@daily","until":"2026-11-20T16:00"}`, []string{"never fires", "until"}},
		{Recurring, `{"message":"m","cron":"@daily","until":"2020-01-01"}`, []string{"in the past"}},
		{Recurring, `{"message":"m","cron":"@daily","until":"9999-12-31","timezone":"America/New_York"}`,
			[]string{"too far ahead"}},
		{Recurring, `{"message":"m","cron":"@daily","timezone":"` + strings.Repeat("Europe/", 1000) + `"}`,
			[]string{"unknown"}},
		// One error lists all problems.
		{Once, `{"message":"","at":"nonsense","timezone":"Mars/Olympus"}`,
			[]string{"message is empty", "Mars/Olympus", "nonsense"}},
	} {
		s, _, err := New(c.kind, request(t, c.request), env(t))
		if err == nil {
			t.Errorf("%s: accepted, next %s", c.request, s.Next)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q lacks %q", c.request, err, want)
			}
		}
	}
}

func TestGraceForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{`90`: 90 * time.Second, `"2h"`: 2 * time.Hour, `0`: 0} {
		s, _, err := New(Recurring, request(t, `{"message":"m","cron":"@daily","grace":`+text+`}`), env(t))
		if err != nil || s.Grace() != want {
			t.Errorf("grace %s: %s, %v", text, s.Grace(), err)
		}
	}
	for _, text := range []string{`"soon"`, `-1`, `true`} {
		if err := json.Unmarshal([]byte(`{"grace":`+text+`}`), &Request{}); err == nil {
			t.Errorf("grace %s was accepted", text)
		}
	}
	for cron, want := range map[string]time.Duration{"* * * * *": time.Minute, "@hourly": 30 * time.Minute,
		"@daily": 2 * time.Hour} {
		s, _, err := New(Recurring, request(t, `{"message":"m","cron":"`+cron+`"}`), env(t))
		if err != nil || s.Grace() != want {
			t.Errorf("default grace of %s: %s, want %s (%v)", cron, s.Grace(), want, err)
		}
	}
}

func TestPayloadCannotSmuggleADestination(t *testing.T) {
	t.Parallel()
	s, _, err := New(Once,
		request(t, `{"message":"m","delay_seconds":5,"payload":{"channel_id":"telegram_channel",`+
			`"reply_to":"someone else","text":"other"}}`), env(t))
	if err != nil {
		t.Fatal(err)
	}
	// A channel in the payload is used, and checked, like channel_id.
	if s.ChannelID != "telegram_channel" || s.ReplyTo != "" || s.Message != "m" || s.Payload != nil {
		t.Errorf("got %+v", s)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	s, _, err := New(Recurring, request(t, `{"message":"m","cron":"0 9 * * *","channel_id":"a"}`), env(t))
	if err != nil {
		t.Fatal(err)
	}
	s.ID = "r1"
	words, _, err := s.Edit(request(t, `{"message":"other"}`), env(t))
	if err != nil || words.Message != "other" || words.Revision != 1 || !words.Next.Equal(*s.Next) ||
		words.ChannelID != "a" {
		t.Errorf("words: %+v, %v", words, err)
	}
	moved, _, err := s.Edit(request(t, `{"timezone":"Asia/Tokyo"}`), env(t))
	if err != nil || moved.Revision != 2 || !moved.Next.Equal(utc(t, "2026-11-21T00:00:00Z")) {
		t.Errorf("zone: %+v, %v", moved, err)
	}
	paused, err := s.Pause()
	if err != nil || paused.Next != nil {
		t.Fatalf("pause: %+v, %v", paused, err)
	}
	paused, _, err = paused.Edit(request(t, `{"every_seconds":60}`), env(t))
	if err != nil || paused.State != Paused || paused.Next != nil || paused.Cron != "" {
		t.Errorf("edit while paused: %+v, %v", paused, err)
	}
	later := utc(t, "2026-12-24T08:00:30Z")
	resumed, err := paused.Resume(later)
	if err != nil || resumed.State != Active || !resumed.Next.Equal(utc(t, "2026-12-24T08:01:00Z")) {
		t.Errorf("resume: %+v, %v", resumed, err)
	}
	if _, _, err := s.Edit(request(t, `{"at":"18:00"}`), env(t)); err == nil {
		t.Error("at was accepted for a recurring schedule")
	}

	once, _, err := New(Once, request(t, `{"message":"m","delay_seconds":60}`), env(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := once.Edit(request(t, `{"timezone":"Asia/Tokyo"}`), env(t)); err == nil {
		t.Error("a one-shot changed its zone without a new time")
	}
	stopped, _ := once.Pause()
	if _, err := stopped.Resume(later); err == nil || !strings.Contains(err.Error(), "in the past") {
		t.Errorf("resumed although its time has passed: %v", err)
	}
	_, done, _ := once.Decide(later, utc(t, now))
	if _, _, err := done.Edit(request(t, `{"message":"x"}`), env(t)); err == nil {
		t.Error("a fired one-shot was edited")
	}
}

func TestRealign(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"message":"m","cron":"0 9 * * *"}`, `{"message":"m","every_seconds":600}`} {
		s, _, err := New(Recurring, request(t, text), env(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Realign(s.Anchor.Add(-23 * time.Hour)); ok {
			t.Errorf("%s: realigned after a day's difference: past fires would repeat", text)
		}
		back := s.Anchor.AddDate(-10, 0, 0)
		near, ok := s.Realign(back)
		if !ok || near.Next.Sub(back) > 24*time.Hour || near.Revision != 2 {
			t.Errorf("%s: next %s, revision %d, after %s", text, near.Next, near.Revision, back)
		}
		if _, again := near.Realign(back); again {
			t.Errorf("%s: realigned twice", text)
		}
	}
}

func TestStoredFormIsReadBack(t *testing.T) {
	t.Parallel()
	s, _, err := New(Recurring,
		request(t, `{"message":"m","cron":"0 9 * * *","until":"2027-01-01","grace":60,"topic":"lights.on",`+
			`"payload":{"lamp":1}}`), env(t))
	if err != nil {
		t.Fatal(err)
	}
	s.ID = "r1"
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, back); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{``, `null`, `{}`, `[]`, `{"id":"r1"}`, `{"id":"r1","kind":"once","state":"active"}`,
		`{"id":"r1","kind":"once","state":"lost"}`} {
		if _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// Every other day at 8:00 stays at 8:00 when the clocks change, and keeps its days when
// the hour changes.
func TestEveryDays(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	e := Env{Now: time.Date(2026, 3, 25, 12, 0, 0, 0, berlin), Timezone: "Europe/Berlin", MinEvery: time.Minute}
	due := func(s Schedule, now time.Time) string {
		t.Helper()
		data, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if s, err = Decode(data); err != nil {
			t.Fatal(err)
		}
		rule, err := s.Rule()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, at := range rule.Upcoming(now, 4) {
			all = append(all, at.In(berlin).Format("01-02T15:04Z07"))
		}
		return strings.Join(all, " ")
	}
	s, _, err := New(Recurring, request(t, `{"message": "water", "cron": "0 8 * * *", "every_days": 2}`), e)
	if err != nil {
		t.Fatal(err)
	}
	s.ID = "s1"
	if got, want := due(s, e.Now), "03-26T08:00+01 03-28T08:00+01 03-30T08:00+02 04-01T08:00+02"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := s.Timing(), `cron "0 8 * * *" (Europe/Berlin), every 2 days`; got != want {
		t.Errorf("timing %q, want %q", got, want)
	}
	e.Now = time.Date(2026, 3, 27, 7, 0, 0, 0, berlin)
	later, _, err := s.Edit(request(t, `{"cron": "0 18 * * *", "every_days": 2}`), e)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := due(later, e.Now), "03-28T18:00+01 03-30T18:00+02 04-01T18:00+02 04-03T18:00+02"; got != want {
		t.Errorf("at 18:00: got  %s\nwant %s", got, want)
	}
	daily, _, err := s.Edit(request(t, `{"cron": "0 8 * * *"}`), e)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := due(daily, e.Now), "03-27T08:00+01 03-28T08:00+01 03-29T08:00+02 03-30T08:00+02"; got != want {
		t.Errorf("daily: got  %s\nwant %s", got, want)
	}
	mondays, _, err := New(Recurring, request(t, `{"message": "pay", "cron": "0 9 * * 1", "every_days": 14}`), e)
	if err != nil {
		t.Fatal(err)
	}
	mondays.ID = "s2"
	if got, want := due(mondays, e.Now), "03-30T09:00+02 04-13T09:00+02 04-27T09:00+02 05-11T09:00+02"; got != want {
		t.Errorf("mondays: got  %s\nwant %s", got, want)
	}
	for text, want := range map[string]string{
		`{"message": "m", "every_seconds": 3600, "every_days": 2}`: "every_days needs cron",
		`{"message": "m", "cron": "0 8 * * *", "every_days": 367}`: "must be 1 to 366",
	} {
		if _, _, err := New(Recurring, request(t, text), e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
