package item

import (
	"testing"
	"time"
)

// A text is either refused or a due date whose methods work at any time in any
// zone.
func FuzzDue(f *testing.F) {
	for _, seed := range []string{"", "2026-03-01", "2026-03-29 02:30", "2026-03-01T18:30:00+14:00", "0000-01-01",
		"9999-12-31T23:59:59-12:00", "2026-02-30", "24:00"} {
		f.Add(seed, int64(0))
	}
	zone, err := time.LoadLocation("Pacific/Apia")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		d, err := ParseDue(text, zone)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<38), 0).In(zone)
		if d.IsZero() && d.Passed(now) {
			t.Errorf("%q is never, and past at %s", text, now)
		}
		if d.Passed(now) && !d.Passed(now.AddDate(1, 0, 0)) {
			t.Errorf("%q is past at %s and not a year later", text, now)
		}
	})
}
