package item

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestDue(t *testing.T) {
	t.Parallel()
	zone := berlin(t)
	for _, c := range []struct {
		text, want, local string
	}{
		{"", "", ""},
		{"2026-03-01", "2026-03-01", "Sun 1 Mar 2026"},
		{" 2026-03-01 18:30 ", "2026-03-01T18:30:00+01:00", "Sun 1 Mar 2026 18:30"},
		{"2026-07-01T18:30", "2026-07-01T18:30:00+02:00", "Wed 1 Jul 2026 18:30"},
		{"2026-07-01T18:30:05", "2026-07-01T18:30:05+02:00", "Wed 1 Jul 2026 18:30"},
		{"2026-07-01T18:30:00Z", "2026-07-01T18:30:00Z", "Wed 1 Jul 2026 20:30"},
		{"2026-07-01 18:30:00.75-05:00", "2026-07-01T18:30:00-05:00", "Thu 2 Jul 2026 01:30"},
	} {
		d, err := ParseDue(c.text, zone)
		if err != nil || d.String() != c.want || d.Local(zone) != c.local {
			t.Errorf("%q: got %s, %s, %v", c.text, d, d.Local(zone), err)
		}
		again, err := ParseDue(d.String(), time.UTC)
		if err != nil || !again.Equal(d) {
			t.Errorf("%q is read again as %s, %v", c.text, again, err)
		}
	}
	for _, text := range []string{"tomorrow", "2026-02-30", "26-01-01", "2026-03-01T25:00", "0000-12-31", "0001-01-01",
		"10000-01-01"} {
		if d, err := ParseDue(text, zone); err == nil {
			t.Errorf("%q is read as %s", text, d)
		}
	}
}

func TestDuePasses(t *testing.T) {
	t.Parallel()
	zone := berlin(t)
	day, moment := must(t, "2026-03-01"), must(t, "2026-03-01T12:00")
	for _, c := range []struct {
		due        Due
		now        string
		passed, is bool
	}{
		{Due{}, "2026-03-01T12:00", false, false},
		{day, "2026-02-28T23:59", false, false},
		{day, "2026-03-01T00:00", true, false},
		{day, "2026-03-01T23:59", true, false},
		{day, "2026-03-02T00:00", true, true},
		{moment, "2026-03-01T11:59", false, false},
		{moment, "2026-03-01T12:00", true, false},
		{moment, "2026-03-01T12:01", true, true},
	} {
		now, err := time.ParseInLocation("2006-01-02T15:04", c.now, zone)
		if err != nil {
			t.Fatal(err)
		}
		if c.due.Passed(now) != c.passed || c.due.Late(now) != c.is {
			t.Errorf("%q at %s: passed %v, late %v", c.due, c.now, c.due.Passed(now), c.due.Late(now))
		}
	}
	if day.Compare(moment) >= 0 || moment.Compare(Due{}) >= 0 || (Due{}).Compare(day) <= 0 ||
		(Due{}).Compare(Due{}) != 0 {
		t.Error("the order is wrong")
	}
}

func must(t *testing.T, text string) Due {
	t.Helper()
	d, err := ParseDue(text, berlin(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " \n\t\n": "", " a ": "a", "a \r\n  b": "a\nb", "a\n\n\n\nb\n\n": "a\n\nb", "\r\ra\rb": "a\nb",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ id, scope, channel bool }{
		"": {}, "1a": {}, "_a": {}, "A": {}, "aB": {}, "a b": {}, "a\n": {}, "aé": {}, "a.b": {},
		"a": {true, true, true}, "m4k2q7": {true, true, true}, "cli_channel": {false, true, true},
		"my-scope":              {false, true, false},
		strings.Repeat("a", 32): {true, true, true}, strings.Repeat("a", 33): {false, true, true},
		strings.Repeat("a", 48): {false, true, true}, strings.Repeat("a", 49): {false, false, true},
		strings.Repeat("a", 64): {false, false, true}, strings.Repeat("a", 65): {},
	} {
		if isID(name) != tc.id || isScope(name) != tc.scope || isChannel(name) != tc.channel {
			t.Errorf("%q: id %v, scope %v, channel %v", name, isID(name), isScope(name), isChannel(name))
		}
	}
}

func TestNewID(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	free := func(id string) bool { return !taken[id] }
	first := NewID("personal", "Buy  milk!", free)
	if first != NewID("personal", "buy milk", free) || first == NewID("work", "buy milk", free) ||
		first == NewID("personal", "buy tea", free) {
		t.Error("an id is not computed from text and scope")
	}
	for range 40 {
		id := NewID("personal", "buy milk", free)
		if taken[id] || !isID(id) {
			t.Fatalf("%q is taken, or none", id)
		}
		taken[id] = true
	}
}

func TestStored(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	i := Item{ID: "m1", Scope: "personal", Kind: Open, Text: "x", Due: must(t, "2026-03-05"), Created: at, Updated: at}
	b, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(b); err != nil || !got.Due.Equal(i.Due) || got.Text != "x" || !got.Created.Equal(at) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "null", "[]", `{"id":"m1"}`,
		`{"id":"m1","scope":"s","kind":"fact","text":"x","created":"2026-03-01T12:00:00Z",` +
			`"updated":"2026-03-01T12:00:00Z","due":"soon"}`} {
		if i, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, i)
		}
	}
}
