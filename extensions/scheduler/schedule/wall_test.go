package schedule

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/internal/seed"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func utc(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UTC()
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, wall, want string
		how              placement
	}{
		{"Europe/Berlin", "2026-07-01T12:00:00Z", "2026-07-01T12:00:00+02:00", unique},
		{"Europe/Berlin", "2026-03-29T01:59:59Z", "2026-03-29T01:59:59+01:00", unique},
		{"Europe/Berlin", "2026-03-29T02:00:00Z", "2026-03-29T03:00:00+02:00", skipped},
		{"Europe/Berlin", "2026-03-29T02:30:00Z", "2026-03-29T03:00:00+02:00", skipped},
		{"Europe/Berlin", "2026-03-29T03:00:00Z", "2026-03-29T03:00:00+02:00", unique},
		{"Europe/Berlin", "2026-10-25T01:59:59Z", "2026-10-25T01:59:59+02:00", unique},
		{"Europe/Berlin", "2026-10-25T02:00:00Z", "2026-10-25T02:00:00+02:00", repeated},
		{"Europe/Berlin", "2026-10-25T02:30:00Z", "2026-10-25T02:30:00+02:00", repeated},
		{"Europe/Berlin", "2026-10-25T03:00:00Z", "2026-10-25T03:00:00+01:00", unique},
		// Midnight itself is skipped.
		{"America/Sao_Paulo", "2018-11-04T00:00:00Z", "2018-11-04T01:00:00-02:00", skipped},
		// Half an hour.
		{"Australia/Lord_Howe", "2026-10-04T02:15:00Z", "2026-10-04T02:30:00+11:00", skipped},
		// A whole day.
		{"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T00:00:00+14:00", skipped},
		// The last day of a leap year after the zone's table.
		{"Europe/Berlin", "2040-12-31T18:00:00Z", "2040-12-31T18:00:00+01:00", unique},
		{"Africa/Cairo", "2040-12-31T23:30:00Z", "2040-12-31T23:30:00+02:00", unique},
		{"UTC", "2026-03-29T02:30:00Z", "2026-03-29T02:30:00Z", unique},
		{"Etc/GMT-14", "2026-03-29T02:30:00Z", "2026-03-29T02:30:00+14:00", unique},
	} {
		got, how := place(utc(t, c.wall), zone(t, c.zone))
		if !got.Equal(utc(t, c.want)) || how != c.how {
			t.Errorf("%s %s: got %s (%d), want %s (%d)", c.zone, c.wall, got.In(zone(t, c.zone)).Format(time.RFC3339),
				how, c.want, c.how)
		}
	}
}

var someZones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia",
	"Asia/Kolkata", "Africa/Casablanca", "Asia/Tehran", "America/St_Johns", "Pacific/Chatham", "Antarctica/Troll",
}

// An instant maps to its wall-clock time and back to itself, or to an earlier
// instant with the same wall-clock time. Later wall-clock times never map to
// earlier instants.
func TestPlaceProperty(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		loc := zoneOf(t)
		at := instantOf(t)
		wall := wallOf(at, loc)
		back, how := place(wall, loc)
		if how == skipped {
			t.Fatalf("%s exists in %s and was called skipped", wall, loc)
		}
		if back.After(at) || !wallOf(back, loc).Equal(wall) {
			t.Fatalf("%s in %s: reading %s came back as %s", at, loc, wall, back)
		}
		later := wall.Add(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "later")))
		if next, _ := place(later, loc); next.Before(back) {
			t.Fatalf("in %s reading %s is at %s, but %s is at %s", loc, wall, back, later, next)
		}
	})
}

func zoneOf(t *rapid.T) *time.Location {
	loc, err := LoadZone(rapid.SampledFrom(someZones).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// instantOf generates instants, often close to a clock change.
func instantOf(t *rapid.T) time.Time {
	at := time.Unix(rapid.Int64Range(1_200_000_000, 2_500_000_000).Draw(t, "unix"), 0)
	if rapid.Bool().Draw(t, "near a change") {
		loc, _ := LoadZone(rapid.SampledFrom(someZones).Draw(t, "changing zone"))
		if _, end := at.In(loc).ZoneBounds(); !end.IsZero() {
			at = end.Add(time.Duration(rapid.IntRange(-7200, 7200).Draw(t, "seconds off")) * time.Second)
		}
	}
	return at.UTC()
}
