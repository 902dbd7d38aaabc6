package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/internal/seed"
)

func cronRule(t testing.TB, expr, zoneName string) Rule {
	t.Helper()
	spec, err := parseCron(expr)
	if err != nil {
		t.Fatal(err)
	}
	return Rule{loc: zone(t, zoneName), cron: spec}
}

func TestCronOverChangesOfTheClocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cron, zone, from string
		want                   []string
	}{
		{
			"a skipped time fires at the next valid instant, once", "30 2 * * *", "Europe/Berlin",
			"2026-03-28T00:00:00+01:00",
			[]string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		{
			"a repeated time fires once, the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00+02:00",
			[]string{"2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		{
			"created between the two, it waits for the next day", "30 2 * * *", "Europe/Berlin",
			"2026-10-25T02:10:00+01:00",
			[]string{"2026-10-26T02:30:00+01:00"},
		},
		{
			"several times in the gap are one", "0,20,40 2 * * *", "Europe/Berlin", "2026-03-29T01:59:59+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		{
			"the gap's end coincides with another time", "0 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		{
			"every quarter of an hour does not pause", "*/15 * * * *", "Europe/Berlin", "2026-10-25T02:40:00+02:00",
			[]string{"2026-10-25T02:45:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T02:15:00+01:00"},
		},
		{
			"every quarter of an hour does not bunch", "*/15 * * * *", "Europe/Berlin", "2026-03-29T01:40:00+01:00",
			[]string{"2026-03-29T01:45:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:15:00+02:00"},
		},
		{
			"skipped midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00",
			[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		},
		{
			"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		{
			"a day that is missing", "0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"},
		},
		{
			"noon stays noon", "0 12 * * *", "Europe/Berlin", "2026-03-28T13:00:00+01:00",
			[]string{"2026-03-29T12:00:00+02:00"},
		},
		{"Sunday as 7", "0 9 * * 7", "UTC", "2026-11-20T00:00:00Z",
			[]string{"2026-11-22T09:00:00Z", "2026-11-29T09:00:00Z"}},
		{"to Sunday as 7", "0 9 * * 6-7", "UTC", "2026-11-20T00:00:00Z",
			[]string{"2026-11-21T09:00:00Z", "2026-11-22T09:00:00Z"}},
		{"leap day", "0 9 29 2 *", "UTC", "2026-11-20T00:00:00Z",
			[]string{"2028-02-29T09:00:00Z", "2032-02-29T09:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rule := cronRule(t, c.cron, c.zone)
			var got []string
			for _, at := range rule.Upcoming(utc(t, c.from), len(c.want)) {
				got = append(got, at.In(rule.loc).Format(time.RFC3339))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestEverySecondsCountsElapsedTime(t *testing.T) {
	t.Parallel()
	anchor := utc(t, "2026-03-29T00:30:00Z")
	rule := Rule{loc: zone(t, "Europe/Berlin"), every: 45 * time.Minute, anchor: anchor}
	want := anchor
	for _, at := range rule.Upcoming(anchor, 5) {
		want = want.Add(45 * time.Minute)
		if !at.Equal(want) {
			t.Errorf("got %s, want %s", at, want)
		}
	}
	if got := rule.Next(anchor.Add(-time.Hour)); !got.Equal(anchor.Add(45 * time.Minute)) {
		t.Errorf("before its anchor: %s", got)
	}
	if got := rule.Next(anchor.AddDate(20, 0, 0)); !got.After(anchor.AddDate(20, 0, 0)) {
		t.Errorf("20 years later: %s", got)
	}
}

func drawCron(t *rapid.T) string {
	minute := rapid.SampledFrom([]string{"*", "0", "30", "*/15", "*/7", "5,35", "0-10", "59"}).Draw(t, "minute")
	hour := rapid.SampledFrom([]string{"*", "0", "1", "2", "3", "23", "*/2", "1-3", "0,2,12"}).Draw(t, "hour")
	day := rapid.SampledFrom([]string{"*", "1", "29", "31", "*/10"}).Draw(t, "day")
	month := rapid.SampledFrom([]string{"*", "3", "10", "11", "*/5"}).Draw(t, "month")
	weekday := rapid.SampledFrom([]string{"*", "0", "7", "1-5", "6-7", "sun"}).Draw(t, "weekday")
	return strings.Join([]string{minute, hour, day, month, weekday}, " ")
}

// Around every clock change, due times ascend, do not depend on the time between
// them from which Next starts, and match the expression or are at the end of a
// gap.
func TestNextProperties(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		loc := zoneOf(t)
		expr := drawCron(t)
		spec, err := parseCron(expr)
		if err != nil {
			t.Fatal(err)
		}
		rule := Rule{loc: loc, cron: spec}
		at := instantOf(t)
		for range 5 {
			next := rule.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q in %s: after %s comes %s", expr, loc, at, next)
			}
			between := at.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(at)-1)).Draw(t, "between")))
			if again := rule.Next(between); !again.Equal(next) {
				t.Fatalf("%q in %s: after %s comes %s, but after %s comes %s", expr, loc, at, next, between, again)
			}
			wall := wallOf(next, loc)
			named := spec.spec.Next(wall.Add(-time.Second)).Equal(wall)
			start, _ := next.In(loc).ZoneBounds()
			if !named && !next.Equal(start) {
				t.Fatalf("%q in %s fires at %s, which it does not name", expr, loc, next.In(loc))
			}
			at = next
		}
	})
}

// An expression with fixed hours never fires twice at the same wall-clock time.
func TestRepeatedReadingFiresOnce(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		loc := zoneOf(t)
		expr := fmt.Sprintf("%d %d * * *", rapid.IntRange(0, 59).Draw(t, "minute"),
			rapid.IntRange(0, 23).Draw(t, "hour"))
		spec, err := parseCron(expr)
		if err != nil {
			t.Fatal(err)
		}
		times := Rule{loc: loc, cron: spec}.Upcoming(instantOf(t), 4)
		for i := 1; i < len(times); i++ {
			if wallOf(times[i-1], loc).Equal(wallOf(times[i], loc)) {
				t.Fatalf("%q in %s fires twice at %s", expr, loc, wallOf(times[i], loc))
			}
		}
	})
}

// TestMissedAgreesWithCounting compares the shortcut with a simple loop.
func TestMissedAgreesWithCounting(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		loc := zoneOf(t)
		spec, err := parseCron(drawCron(t))
		if err != nil {
			t.Fatal(err)
		}
		rule := Rule{loc: loc, cron: spec}
		first := rule.Next(instantOf(t))
		if first.IsZero() {
			return
		}
		now := first.Add(time.Duration(rapid.Int64Range(0, int64(20*24*time.Hour)).Draw(t, "later")))
		latest, earlier := rule.missed(first, now)
		if latest.After(now) || latest.Before(first) {
			t.Fatalf("latest %s is not between %s and %s", latest, first, now)
		}
		if next := rule.Next(latest); !next.IsZero() && !next.After(now) {
			t.Fatalf("latest %s, but %s is due before %s too", latest, next, now)
		}
		if earlier < maxCounted && (earlier == 0) != latest.Equal(first) {
			t.Fatalf("%d earlier, latest %s, first %s", earlier, latest, first)
		}
	})
}
