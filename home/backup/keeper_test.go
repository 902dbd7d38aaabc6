package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/home/config"
)

// night is a keeper in a bubble whose backups are empty files.
type night struct {
	*testing.T
	*Keeper
	zone *time.Location
	stop context.CancelFunc

	mu       sync.Mutex
	settings config.Backup
	fails    error
	made     []string // when, in the zone
}

// set changes what the keeper finds.
func (n *night) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func atNight(t *testing.T, play func(n *night)) {
	t.Helper()
	t.Parallel()
	home, err := config.OpenHomeAt(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := &night{T: t, settings: config.Backup{Nightly: true, At: "03:30", Keep: 7}, zone: berlin}
		n.Keeper = &Keeper{
			Home: home, Log: hclog.NewNullLogger(),
			Settings: func() (config.Backup, *time.Location) {
				n.mu.Lock()
				defer n.mu.Unlock()
				return n.settings, n.zone
			},
			Make: func(_ context.Context, file string) (Info, error) {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.made = append(n.made, time.Now().In(n.zone).Format("02 15:04"))
				if n.fails != nil {
					return Info{}, n.fails
				}
				return Info{File: file}, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600))
			},
		}
		n.starts()
		play(n)
		n.stops()
	})
}

func (n *night) starts() {
	ctx, stop := context.WithCancel(n.Context())
	n.stop = stop
	go n.Keeper.Run(ctx)
}

func (n *night) stops() {
	n.stop()
	synctest.Wait()
}

// passes lets time pass and compares when backups were made.
func (n *night) passes(d time.Duration, want ...string) {
	n.Helper()
	n.set(func() { n.made = nil })
	time.Sleep(d)
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.made, want) {
		n.Errorf("backups were made at %q, want %q", n.made, want)
	}
}

const day = 24 * time.Hour

func TestEachNight(t *testing.T) { // a bubble begins on 2000-01-01 at 01:00 in Berlin
	atNight(t, func(n *night) {
		n.passes(time.Minute)
		n.passes(time.Hour, "01 01:02") // there was none
		n.passes(2*day, "01 03:30", "02 03:30")
		s := n.State(time.Now())
		if s.Kept != 3 || s.Next.Format("02 15:04") != "03 03:30" ||
			s.Newest.At.In(n.zone).Format("02 15:04") != "02 03:30" || s.Failure != "" {
			n.Errorf("the state is %+v", s)
		}
		n.passes(8*day, "03 03:30", "04 03:30", "05 03:30", "06 03:30", "07 03:30", "08 03:30", "09 03:30", "10 03:30")
		if s := n.State(time.Now()); s.Kept != 7 {
			n.Errorf("%d are kept, want 7", s.Kept)
		}
		n.set(func() { n.settings.Keep, n.settings.At = 2, "12:00" })
		n.passes(day, "11 02:02", "11 12:00") // the noon of yesterday was missed
		if s := n.State(time.Now()); s.Kept != 2 {
			n.Errorf("%d are kept, want 2", s.Kept)
		}
		n.set(func() { n.settings.Nightly = false })
		n.passes(3 * day)
		if s := n.State(time.Now()); s.Nightly || s.Next != nil {
			n.Errorf("switched off, the state is %+v", s)
		}
	})
}

func TestNightsMissed(t *testing.T) {
	atNight(t, func(n *night) {
		n.passes(4*time.Hour, "01 01:02", "01 03:30")
		n.stops()
		n.passes(5*day + 10*time.Hour) // off
		n.starts()
		n.passes(time.Hour, "06 15:02") // once
		n.stops()
		n.starts()
		n.passes(time.Hour) // not again
		n.passes(day, "07 03:30")
	})
}

func TestANightThatFails(t *testing.T) {
	atNight(t, func(n *night) {
		n.passes(time.Hour, "01 01:02")
		n.set(func() { n.fails = errors.New("no room") })
		n.passes(4*time.Hour, "01 03:30", "01 04:30", "01 05:30")
		s := n.State(time.Now())
		if s.Failure != "no room" || s.FailedAt.In(n.zone).Format("02 15:04") != "01 05:30" {
			n.Errorf("the state is %+v", s)
		}
		n.set(func() { n.fails = nil })
		n.passes(2*time.Hour, "01 06:30")
		if s := n.State(time.Now()); s.Failure != "" {
			n.Errorf("the state is %+v", s)
		}
	})
}

// TestAWrongClock finds a backup of the future: it neither keeps others from
// being made, nor has the newest one removed.
func TestAWrongClock(t *testing.T) {
	atNight(t, func(n *night) {
		if err := os.MkdirAll(n.Home.Backups(), 0o700); err != nil {
			n.Fatal(err)
		}
		n.set(func() { n.settings.Keep = 2 })
		for _, year := range []int{2031, 2032} {
			if err := os.WriteFile(nightlyName(n.Home, time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)), nil, 0o600); err != nil {
				n.Fatal(err)
			}
		}
		n.passes(4*time.Hour, "01 01:02", "01 03:30")
		if newest := n.newest(time.Now()); newest == nil || newest.At.Year() != 2000 {
			n.Errorf("the newest is %+v", newest)
		}
	})
}

// TestManyOfTheFuture were made while the clock was wrong: they do not take the
// places of those that are made now.
func TestManyOfTheFuture(t *testing.T) {
	atNight(t, func(n *night) {
		if err := os.MkdirAll(n.Home.Backups(), 0o700); err != nil {
			n.Fatal(err)
		}
		n.set(func() { n.settings.Keep = 2 })
		for day := range 5 {
			if err := os.WriteFile(nightlyName(n.Home, time.Date(2031, 1, 1+day, 0, 0, 0, 0, time.UTC)), nil,
				0o600); err != nil {
				n.Fatal(err)
			}
		}
		n.passes(3*day, "01 01:02", "01 03:30", "02 03:30", "03 03:30")
		left := map[int]int{}
		for _, f := range List(n.Home) {
			left[f.At.Year()]++
		}
		if left[2000] != 2 || left[2031] != 5 {
			n.Errorf("there are %v, by year", left)
		}
	})
}

// TestAFailureIsRemembered over a restart, and without a kernel, until a backup
// is made.
func TestAFailureIsRemembered(t *testing.T) {
	atNight(t, func(n *night) {
		n.set(func() { n.fails = errors.New("no room") })
		n.passes(time.Hour, "01 01:02")
		n.stops()
		n.failed = nil // what is in memory is gone
		for name, f := range map[string]*Failure{"without a kernel": LastFailure(n.Home),
			"after a restart": {Reason: n.State(time.Now()).Failure, At: *n.State(time.Now()).FailedAt}} {
			if f == nil || f.Reason != "no room" || f.At.In(n.zone).Format("02 15:04") != "01 01:02" {
				n.Errorf("%s: the failure is %+v", name, f)
			}
		}
		n.set(func() { n.fails = nil })
		n.starts()
		n.passes(time.Hour, "01 02:02")
		if s := n.State(time.Now()); s.Failure != "" || LastFailure(n.Home) != nil {
			n.Errorf("the state is %+v", s)
		}
		if left := names(n.T, n.Home.Backups()); len(left) != 1 {
			n.Errorf("there are %q", left)
		}
	})
}

// TestAStoreThatBeginsAfresh keeps the backups of the one before for good.
func TestAStoreThatBeginsAfresh(t *testing.T) {
	atNight(t, func(n *night) {
		n.set(func() { n.settings.Keep = 2 })
		n.passes(2*day, "01 01:02", "01 03:30", "02 03:30")
		n.stops()
		kept, err := KeepNightly(n.Home)
		if err != nil || len(kept) != 2 {
			n.Fatalf("kept are %q, %v", kept, err)
		}
		n.done = time.Time{}
		n.starts()
		n.passes(9*day, "03 01:02", "03 03:30", "04 03:30", "05 03:30", "06 03:30", "07 03:30", "08 03:30", "09 03:30",
			"10 03:30", "11 03:30")
		for _, file := range kept {
			if !exists(file) {
				n.Errorf("%s was removed", file)
			}
		}
		if s := n.State(time.Now()); s.Kept != 2 {
			n.Errorf("%d nightly ones are kept, want 2", s.Kept)
		}
	})
}

// TestOthersStay keeps what people have made.
func TestOthersStay(t *testing.T) {
	atNight(t, func(n *night) {
		if err := os.MkdirAll(n.Home.Backups(), 0o700); err != nil {
			n.Fatal(err)
		}
		mine := []string{filepath.Join(n.Home.Backups(), "nightly-mine.tar.gz"),
			filepath.Join(n.Home.Backups(), "backup-1.tar.gz"), filepath.Join(n.Home.Backups(), "notes")}
		for _, file := range mine {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				n.Fatal(err)
			}
		}
		n.set(func() { n.settings.Keep = 1 })
		n.passes(3*day, "01 01:02", "01 03:30", "02 03:30", "03 03:30")
		for _, file := range mine {
			if !exists(file) {
				n.Errorf("%s was removed", file)
			}
		}
		if left := strings.Join(names(n.T, n.Home.Backups()), " "); strings.Count(left, "Z.tar.gz") != 1 {
			n.Errorf("there are %s", left)
		}
	})
}

func TestLastNight(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ now, at, want string }{
		{"2026-11-20 03:30", "03:30", "2026-11-20 03:30"},
		{"2026-11-20 03:29", "03:30", "2026-11-19 03:30"},
		{"2026-01-01 00:10", "23:00", "2025-12-31 23:00"},
		{"2026-03-29 09:00", "02:30", "2026-03-29 03:30"}, // that hour is skipped
		{"2026-10-25 09:00", "02:30", "2026-10-25 02:30"}, // that hour comes twice
	} {
		now, err := time.ParseInLocation("2006-01-02 15:04", c.now, berlin)
		if err != nil {
			t.Fatal(err)
		}
		if got := lastNight(now, c.at).Format("2006-01-02 15:04"); got != c.want {
			t.Errorf("the last %s before %s is %s, want %s", c.at, c.now, got, c.want)
		}
	}
}
