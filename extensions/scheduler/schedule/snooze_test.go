package schedule

import (
	"testing"
	"time"
)

func TestParseSnooze(t *testing.T) {
	t.Parallel()
	berlin, err := LoadZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	auckland, err := LoadZone("Pacific/Auckland")
	if err != nil {
		t.Fatal(err)
	}
	const at = "2026-03-28T22:30:00Z" // 23:30 in Berlin, before the clocks change
	for _, tc := range []struct {
		text string
		loc  *time.Location
		want string
	}{
		{"", berlin, "2026-03-28T22:40:00Z"},
		{"10m", berlin, "2026-03-28T22:40:00Z"},
		{" for 10 min ", berlin, "2026-03-28T22:40:00Z"},
		{"15", berlin, "2026-03-28T22:45:00Z"},
		{"2 hours", berlin, "2026-03-29T00:30:00Z"},
		{"1h30m", berlin, "2026-03-29T00:00:00Z"},
		{"через 2 часа", berlin, "2026-03-29T00:30:00Z"},
		{"20 мин.", berlin, "2026-03-28T22:50:00Z"},
		{"на 3 дня", berlin, "2026-03-31T22:30:00Z"},
		{"tomorrow", berlin, "2026-03-29T07:00:00Z"},
		{"Tomorrow  Morning", berlin, "2026-03-29T07:00:00Z"},
		{"завтра утром", berlin, "2026-03-29T07:00:00Z"},
		{"tomorrow", time.UTC, "2026-03-29T09:00:00Z"},
		{"tomorrow", auckland, "2026-03-29T20:00:00Z"}, // it is Sunday there
		{"23:45", berlin, "2026-03-28T22:45:00Z"},
		{"2026-04-01T08:00", berlin, "2026-04-01T06:00:00Z"},
		{"0m", berlin, ""},
		{"-5m", berlin, ""},
		{"400 days", berlin, ""},
		{"2026-03-01T08:00", berlin, ""},
		{"2030-03-01T08:00", berlin, ""},
		{"soon", berlin, ""},
		{"10 bananas", berlin, ""},
		{"tomorrow evening", berlin, ""},
	} {
		got, err := ParseSnooze(tc.text, tc.loc, utc(t, at))
		if (err != nil) != (tc.want == "") || err == nil && !got.Equal(utc(t, tc.want)) {
			t.Errorf("%q in %s: %s, %v, want %q", tc.text, tc.loc, got.UTC().Format(time.RFC3339), err, tc.want)
		}
	}
}
