package schedule

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/internal/seed"
)

func made(t testing.TB, kind, text string) Schedule {
	t.Helper()
	s, _, err := New(kind, request(t, text), env(t))
	if err != nil {
		t.Fatal(err)
	}
	s.ID = "r1"
	return s
}

func TestDecide(t *testing.T) {
	t.Parallel()
	started := utc(t, now)
	for _, c := range []struct {
		name, kind, request, at string
		started                 string
		fire, late              bool
		skipped                 int64
		due, next               string
		state                   State
	}{
		{"in time", Once, `{"message":"m","delay_seconds":300}`, "2026-11-20T14:05:00Z", "", true, false, 0,
			"2026-11-20T14:05:00Z", "", Done},
		{"a little behind", Once, `{"message":"m","delay_seconds":300}`, "2026-11-20T14:05:03Z", "", true, false, 0,
			"2026-11-20T14:05:00Z", "", Done},
		{"overdue after a start", Once, `{"message":"m","delay_seconds":300}`, "2026-11-20T14:05:03Z",
			"2026-11-20T14:05:02Z", true, true, 0, "2026-11-20T14:05:00Z", "", Done},
		{"overdue by a year", Once, `{"message":"m","delay_seconds":300}`, "2027-11-20T14:05:03Z",
			"2027-11-20T14:05:02Z", true, true, 0, "2026-11-20T14:05:00Z", "", Done},
		{"recurring in time", Recurring, `{"message":"m","cron":"@hourly"}`, "2026-11-20T15:00:00Z", "", true, false, 0,
			"2026-11-20T15:00:00Z", "2026-11-20T16:00:00Z", Active},
		{"a day of hourly ones: once", Recurring, `{"message":"m","cron":"@hourly"}`, "2026-11-21T14:20:00Z",
			"2026-11-21T14:20:00Z", true, true, 23, "2026-11-21T14:00:00Z", "2026-11-21T15:00:00Z", Active},
		{"a day of hourly ones: too old", Recurring, `{"message":"m","cron":"@hourly"}`, "2026-11-21T14:40:00Z",
			"2026-11-21T14:40:00Z", false, true, 24, "2026-11-21T14:00:00Z", "2026-11-21T15:00:00Z", Active},
		{"its own grace", Recurring, `{"message":"m","cron":"@hourly","grace":"10m"}`, "2026-11-20T15:20:00Z", "",
			false, true, 1, "2026-11-20T15:00:00Z", "2026-11-20T16:00:00Z", Active},
		{"no grace still fires in time", Recurring, `{"message":"m","cron":"@hourly","grace":0}`,
			"2026-11-20T15:00:01Z", "", true, false, 0, "2026-11-20T15:00:00Z", "2026-11-20T16:00:00Z", Active},
		{"each minute for a year", Recurring, `{"message":"m","cron":"* * * * *"}`, "2027-11-20T14:00:20Z",
			"2027-11-20T14:00:20Z", true, true, maxCounted, "2027-11-20T14:00:00Z", "2027-11-20T14:01:00Z", Active},
		{"each 10 seconds for a year", Recurring, `{"message":"m","every_seconds":10}`, "2027-11-20T14:00:25Z",
			"2027-11-20T14:00:25Z", true, true, 3153601, "2027-11-20T14:00:20Z", "2027-11-20T14:00:30Z", Active},
		{"the last one before until", Recurring, `{"message":"m","cron":"@hourly","until":"2026-11-20T16:30"}`,
			"2026-11-20T15:00:00Z", "", true, false, 0, "2026-11-20T15:00:00Z", "", Done},
		{"missed up to until", Recurring, `{"message":"m","every_seconds":600,"until":"2026-11-20T15:25"}`,
			"2026-11-20T20:00:00Z", "", false, true, 2, "2026-11-20T14:20:00Z", "", Done},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := made(t, c.kind, c.request)
			since := started
			if c.started != "" {
				since = utc(t, c.started)
			}
			d, after, due := s.Decide(utc(t, c.at), since)
			if !due || d.Fire != c.fire || d.Late != c.late || d.Skipped != c.skipped || !d.Due.Equal(utc(t, c.due)) ||
				after.State != c.state {
				t.Fatalf("got %+v, %s (due %t)", d, after.State, due)
			}
			switch {
			case c.next == "" && after.Next != nil:
				t.Errorf("next %s, want none", after.Next)
			case c.next != "" && (after.Next == nil || !after.Next.Equal(utc(t, c.next))):
				t.Errorf("next %v, want %s", after.Next, c.next)
			}
			if _, _, again := after.Decide(utc(t, c.at), since); again {
				t.Error("it is due again at the same moment")
			}
			if after.Skipped != c.skipped || (c.skipped > 0) != (after.LastSkipped != nil) {
				t.Errorf("the row has %d skipped", after.Skipped)
			}
		})
	}
}

func TestNotDue(t *testing.T) {
	t.Parallel()
	s := made(t, Once, `{"message":"m","delay_seconds":300}`)
	if _, _, due := s.Decide(utc(t, "2026-11-20T14:04:59Z"), utc(t, now)); due {
		t.Error("fired before its time")
	}
	paused, _ := s.Pause()
	if _, _, due := paused.Decide(utc(t, "2026-11-20T14:06:00Z"), utc(t, now)); due {
		t.Error("fired while paused")
	}
}

// A stored row whose zone this build does not know fires at its stored time, and
// then pauses with a problem.
func TestUnknownZoneStillFires(t *testing.T) {
	t.Parallel()
	s := made(t, Recurring, `{"message":"m","cron":"@hourly"}`)
	s.Timezone = "Atlantis/Center"
	d, after, due := s.Decide(utc(t, "2026-11-20T15:00:00Z"), utc(t, now))
	if !due || !d.Fire || after.State != Paused || !strings.Contains(after.Problem, "Atlantis") {
		t.Errorf("got %+v %+v %t", d, after, due)
	}
}

// A late reminder says so in the language of the person who set it.
func TestLateNoteInTheLanguageOfThePerson(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"2026-11-20T17:10:00Z": "⏰ чай (с опозданием, должно было прийти в 16:00; пропущено раньше: 1)",
		"2026-11-22T15:10:00Z": "⏰ чай (с опозданием, должно было прийти пт 20.11 в 16:00; пропущено раньше: 1)",
	} {
		s := made(t, Recurring, `{"message":"чай","cron":"0 15,16 20 11 *","timezone":"Europe/Berlin"}`)
		s.Language = "ru-RU"
		d, after, _ := s.Decide(utc(t, at), utc(t, now))
		raw, err := after.FirePayload(d, utc(t, at))
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("at %s: %s, want %q (%v)", at, raw, want, err)
		}
	}
}

func TestFirePayload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, request, at string
		want                    string
	}{
		{"notice", Once, `{"message":"kettle","delay_seconds":300,"channel_id":"tg"}`, "2026-11-20T14:05:00Z",
			`{"text":"⏰ kettle","channel_id":"tg","reply_to":"h1","asked":true}`},
		{"a message in its own words", Once, `{"message":"Hi","delay_seconds":300,"payload":{"verbatim":true}}`,
			"2026-11-20T14:05:00Z", `{"text":"Hi","reply_to":"h1","asked":true}`},
		{"late", Once, `{"message":"kettle","delay_seconds":300}`, "2026-11-20T15:00:00Z",
			`{"text":"⏰ kettle (late: was due 15:05)","reply_to":"h1","asked":true}`},
		{"late by days", Once, `{"message":"kettle","delay_seconds":300}`, "2026-11-22T15:00:00Z",
			`{"text":"⏰ kettle (late: was due 15:05 on Fri 20 Nov)","reply_to":"h1","asked":true}`},
		{"late by years", Once, `{"message":"kettle","delay_seconds":300}`, "2028-11-22T15:00:00Z",
			`{"text":"⏰ kettle (late: was due 15:05 on Fri 20 Nov 2026)","reply_to":"h1","asked":true}`},
		{"late and skipped", Recurring, `{"message":"kettle","cron":"@hourly"}`, "2026-11-20T17:10:00Z",
			`{"text":"⏰ kettle (late: was due 18:00; 2 earlier skipped)","reply_to":"h1","asked":true}`},
		{"task", Once, `{"message":"look","delay_seconds":300,"topic":"system.agent.task",` +
			`"payload":{"agent_id":"chat"}}`, "2026-11-20T14:05:00Z",
			`{"prompt":"look","reply_to":"h1","agent_id":"chat"}`},
		{"recurring task", Recurring, `{"message":"look","cron":"@hourly","topic":"system.agent.task"}`,
			"2026-11-20T15:00:00Z", `{"prompt":"look","reply_to":"h1","name":"r1"}`},
		{
			"own topic", Once, `{"message":"on","delay_seconds":300,"topic":"lights.on","payload":{"lamp":7}}`,
			"2026-11-20T14:05:00Z",
			`{"text":"on","lamp":7,"reply_to":"h1","schedule":{"id":"r1","due":"2026-11-20T14:05:00Z","late":false,` +
				`"skipped":0}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := made(t, c.kind, c.request)
			s.ReplyTo = "h1"
			at := utc(t, c.at)
			d, after, _ := s.Decide(at, utc(t, now))
			got, err := after.FirePayload(d, at)
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(c.want), &b) != nil {
				t.Fatal("no JSON")
			}
			fields, _ := a.(map[string]any)
			if _, ok := fields["actions"]; ok != strings.HasPrefix(fmt.Sprint(fields["text"]), ReminderMark) {
				t.Errorf("it has buttons: %t", ok)
			}
			delete(fields, "actions")
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			if string(x) != string(y) {
				t.Errorf("got  %s\nwant %s", x, y)
			}
		})
	}
}

// However time passes, no due time fires twice, and every due time either fires
// or is counted as skipped.
func TestEachDueTimeOnce(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		at := instantOf(t)
		e := Env{Now: at, Timezone: rapid.SampledFrom(someZones).Draw(t, "zone"), MinEvery: time.Second}
		expr := rapid.SampledFrom([]string{"* * * * *", "@hourly", "30 2 * * *", "0 0 * * *", "*/20 1-3 * * *"}).Draw(t,
			"cron")
		message := "m"
		s, _, err := New(Recurring, Request{Message: &message, Cron: &expr}, e)
		if err != nil {
			t.Fatal(err)
		}
		rule, err := s.Rule()
		if err != nil {
			t.Fatal(err)
		}
		seen, accounted := map[string]bool{}, int64(0)
		clock := at
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			clock = clock.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "pass")))
			d, after, due := s.Decide(clock, at)
			if !due {
				continue
			}
			accounted += d.Skipped
			if d.Fire {
				accounted++
				if key := after.DedupeKey(d.Due); seen[key] {
					t.Fatalf("%s fired twice", key)
				} else {
					seen[key] = true
				}
			}
			s = after
		}
		want := int64(0)
		for next := rule.Next(at); !next.IsZero() && !next.After(clock); next = rule.Next(next) {
			want++
		}
		if accounted != want {
			t.Fatalf("%d became due, %d are accounted for", want, accounted)
		}
	})
}

func TestDeclare(t *testing.T) {
	t.Parallel()
	tick := contract.DeclaredSchedule{Name: "tick", Cron: "*/10 * * * *", Topic: "heartbeat.tick"}
	s, err := Declare("heartbeat", tick, nil, env(t))
	if err != nil || s.ID != "heartbeat.tick" || s.Owner != "heartbeat" || s.Topic != "heartbeat.tick" {
		t.Fatalf("got %+v, %v", s, err)
	}
	s.Fired = 7
	later := env(t)
	later.Now = later.Now.Add(15 * time.Minute)
	same, err := Declare("heartbeat", tick, &s, later)
	if err != nil || !same.Next.Equal(*s.Next) || same.Fired != 7 || same.Revision != 1 {
		t.Errorf("declared again: %+v, %v", same, err)
	}
	tick.Cron = "@hourly"
	changed, err := Declare("heartbeat", tick, &s, later)
	if err != nil || changed.Revision != 2 || changed.Fired != 7 ||
		!changed.Next.Equal(utc(t, "2026-11-20T15:00:00Z")) {
		t.Errorf("changed: %+v, %v", changed, err)
	}
	paused, _ := s.Pause()
	if kept, err := Declare("heartbeat", tick, &paused, later); err != nil || kept.State != Paused || kept.Next != nil {
		t.Errorf("paused by a person: %+v, %v", kept, err)
	}
	minutely := contract.DeclaredSchedule{Name: "tick", Every: 60, Topic: "heartbeat.tick"}
	every, err := Declare("heartbeat", minutely, &s, later)
	if err != nil || every.Cron != "" || every.Revision != 2 || !every.Next.Equal(later.Now.Add(time.Minute)) {
		t.Errorf("declared with an interval: %+v, %v", every, err)
	}
	after := later
	after.Now = later.Now.Add(30 * time.Second)
	if same, err := Declare("heartbeat", minutely, &every, after); err != nil || !same.Next.Equal(*every.Next) ||
		same.Revision != 2 {
		t.Errorf("declared again with an interval: %+v, %v", same, err)
	}
	minutely.Every = 120
	if longer, err := Declare("heartbeat", minutely, &every, after); err != nil ||
		!longer.Next.Equal(after.Now.Add(2*time.Minute)) || longer.Revision != 3 {
		t.Errorf("another interval: %+v, %v", longer, err)
	}
	minutely.Every = 1
	if _, err := Declare("heartbeat", minutely, &every, after); err == nil {
		t.Error("an interval below the minimum was accepted")
	}
	for _, topic := range []string{"user.message", "tasks.run", "heartbeat", "channel.send.x"} {
		tick.Topic = topic
		if _, err := Declare("heartbeat", tick, nil, later); err == nil {
			t.Errorf("topic %q was accepted", topic)
		}
	}
}
