package backup

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// nights makes the nightly backups of a home; each makes one.
func nights(t *testing.T, home *config.Home, keep int) (each func(night int) string) {
	t.Helper()
	k := &Keeper{
		Home: home, Log: hclog.NewNullLogger(),
		Settings: func() (config.Backup, *time.Location) {
			return config.Backup{Nightly: true, At: "03:30", Keep: keep}, time.UTC
		},
		Make: func(ctx context.Context, file string) (Info, error) {
			s := source(home)
			s.FilesBeside = true
			return Create(ctx, s, file)
		},
	}
	return func(night int) string {
		at := time.Date(2026, 1, night, 3, 30, 0, 0, time.UTC)
		k.night(t.Context(), at)
		return nightlyName(home, at)
	}
}

// forget ends what keeps the files with these hashes in the store of a home.
func forget(t *testing.T, home *config.Home, hashes ...string) {
	t.Helper()
	store, err := sqlite.Open(home.Database())
	if err != nil {
		t.Fatal(err)
	}
	if err := journal.Do(t.Context(), store, func(tx journal.Tx) error {
		for _, hash := range hashes { // holds that end at once
			if err := tx.HoldBlob(journal.Blob{Hash: hash}, "x", 1); err != nil {
				return err
			}
		}
		_, _, err := tx.SweepBlobs(2, "", 100)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, hash := range hashes {
		if err := blobfiles.Dir(home.Files()).Remove(hash); err != nil {
			t.Fatal(err)
		}
	}
}

// kept lists the files beside the backups.
func kept(t *testing.T, home *config.Home) (hashes []string) {
	t.Helper()
	if err := NightlyFiles(home).Each(func(hash string) error { hashes = append(hashes, hash); return nil }); err != nil {
		t.Fatal(err)
	}
	return hashes
}

// whole expects that every backup in the home has all of its files.
func whole(t *testing.T, home *config.Home, when string) {
	t.Helper()
	for _, f := range List(home) {
		if info, err := Verify(t.Context(), f.File, t.TempDir()); err != nil || len(info.Lost) > 0 {
			t.Errorf("%s: %s: %v, lost %q", when, filepath.Base(f.File), err, info.Lost)
		}
	}
}

func sorted(hashes ...string) []string {
	slices.Sort(hashes)
	return hashes
}

func TestNightlyBackupsKeepAFileOnce(t *testing.T) {
	t.Parallel()
	home := house(t, "old")
	night := nights(t, home, 7)
	cat := attach(t, home, "a cat")
	night(1)
	before, err := os.Stat(NightlyFiles(home).Path(cat))
	if err != nil {
		t.Fatal(err)
	}
	if original, err := os.Stat(blobfiles.Dir(home.Files()).Path(cat)); err != nil || os.SameFile(original, before) {
		t.Errorf("the backup is the file itself: %v", err)
	}
	dog := attach(t, home, "a dog")
	second := night(2)
	if got, want := kept(t, home), sorted(cat, dog); !slices.Equal(got, want) {
		t.Errorf("kept are %q, want %q", got, want)
	}
	if after, err := os.Stat(NightlyFiles(home).Path(cat)); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was written again: %v", err)
	}
	for name := range members(t, second) {
		if strings.HasPrefix(name, partFiles) {
			t.Errorf("the archive has %s", name)
		}
	}
	whole(t, home, "after two nights")

	// A person's own backup has everything in it.
	own := backUp(t, home)
	if info, err := Verify(t.Context(), own, t.TempDir()); err != nil || len(info.Lost)+len(info.Beside) > 0 {
		t.Errorf("a backup of a person: %v, %+v", err, info)
	}

	forget(t, home, cat, dog)
	r, err := Restore(t.Context(), home, second, false)
	if err != nil || len(r.Lost) > 0 {
		t.Fatalf("restoring: %v, lost %q", err, r.Lost)
	}
	sizes, err := sqlite.Blobs(home.Database())
	if err != nil || len(sizes) != 2 {
		t.Fatalf("the restored store names %v, %v", sizes, err)
	}
	if lost, err := blobfiles.Dir(home.Files()).Lost(sizes); err != nil || len(lost) > 0 {
		t.Errorf("lost %q, %v", lost, err)
	}
	restored, err := os.Stat(blobfiles.Dir(home.Files()).Path(cat))
	if err != nil || os.SameFile(restored, before) {
		t.Errorf("the restored file is the backup itself: %v", err)
	}
}

// A nightly backup that was copied without files/ is restored without these files, and
// names them. A home that has a file itself gives it.
func TestANightlyBackupElsewhere(t *testing.T) {
	t.Parallel()
	home := house(t, "old")
	cat := attach(t, home, "a cat")
	b, err := os.ReadFile(nights(t, home, 7)(1))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copied"+Extension)
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := Verify(t.Context(), copied, t.TempDir()); err != nil || !slices.Equal(info.Lost, []string{cat}) {
		t.Errorf("checking: %v, lost %q", err, info.Lost)
	}
	link := filepath.Join(t.TempDir(), "link"+Extension)
	if err := os.Symlink(List(home)[0].File, link); err != nil {
		t.Fatal(err)
	}
	if info, err := Verify(t.Context(), link, t.TempDir()); err != nil || len(info.Lost) > 0 {
		t.Errorf("checking by a link: %v, lost %q", err, info.Lost)
	}
	other := house(t, "another")
	if r, err := Restore(t.Context(), other, copied, false); err != nil || !slices.Equal(r.Lost, []string{cat}) ||
		says(t, other) != "old" {
		t.Errorf("restoring: %v, lost %q, the store says %q", err, r.Lost, says(t, other))
	}
	fill(t, home, "new")
	if err := os.RemoveAll(string(NightlyFiles(home))); err != nil {
		t.Fatal(err)
	}
	if missing, err := Missing(List(home)[0].File); err != nil || !slices.Equal(missing, []string{cat}) {
		t.Errorf("missing %q, %v", missing, err)
	}
	if r, err := Restore(t.Context(), home, copied, true); err != nil || len(r.Lost) > 0 || says(t, home) != "old" {
		t.Errorf("restoring where the file is: %v, lost %q", err, r.Lost)
	}
}

// A damaged file in the home does not replace its copy, and a damaged copy is replaced.
func TestADamagedFileAndItsCopy(t *testing.T) {
	t.Parallel()
	home := house(t, "old")
	night := nights(t, home, 7)
	cat, dog, cow := attach(t, home, "a cat"), attach(t, home, "a dog"), attach(t, home, "a cow")
	night(1)
	damage := func(d blobfiles.Dir, hash string) {
		if err := os.WriteFile(d.Path(hash), []byte("xxxxx"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage(blobfiles.Dir(home.Files()), cat)
	damage(NightlyFiles(home), dog)
	damage(blobfiles.Dir(home.Files()), cow)
	damage(NightlyFiles(home), cow)
	if missing, err := Missing(List(home)[0].File); err != nil || len(missing) > 0 {
		t.Errorf("missing %q, %v", missing, err)
	}
	if info, err := Verify(t.Context(), List(home)[0].File, t.TempDir()); err != nil ||
		!slices.Equal(info.Lost, sorted(dog, cow)) {
		t.Errorf("lost %q, %v", info.Lost, err)
	}
	second := night(2)
	info, err := Verify(t.Context(), second, t.TempDir())
	if err != nil || !slices.Equal(info.Lost, []string{cow}) || slices.Contains(info.Beside, cow) {
		t.Errorf("after another night: lost %q, needs %q, %v", info.Lost, info.Beside, err)
	}
	if r, err := Restore(t.Context(), home, second, false); err != nil || !slices.Equal(r.Lost, []string{cow}) {
		t.Errorf("restoring: lost %q, %v", r.Lost, err)
	}
}

// Removing old backups is killed in front of each step: what a backup needs is there, and
// the next night removes what none needs. A renamed backup goes on needing its files.
func TestKilledWhileRemovingOldBackups(t *testing.T) { // replaces remove: not in parallel
	defer func() { remove = os.Remove }()
	for steps, done := 0, false; !done; steps++ {
		home := house(t, "old")
		night := nights(t, home, 1)
		first := attach(t, home, "of a store that was removed")
		night(1)
		if renamed, err := KeepNightly(home); err != nil || len(renamed) != 1 {
			t.Fatalf("renamed are %q, %v", renamed, err)
		}
		all := attach(t, home, "in all")
		old := []string{attach(t, home, "a cat"), attach(t, home, "a dog"), attach(t, home, "a cow")}
		night(2)
		forget(t, home, old...)
		left := steps
		remove = func(path string) error {
			if left--; left < 0 {
				return errKilled
			}
			return os.Remove(path)
		}
		night(3)
		done = left >= 0
		remove = os.Remove
		whole(t, home, "killed")
		last := night(4)
		whole(t, home, "after the next night")
		if got, want := kept(t, home), sorted(all, first); !slices.Equal(got, want) {
			t.Errorf("killed after %d steps: kept are %q, want %q", steps, got, want)
		}
		if found := List(home); len(found) != 2 || found[1].File != last && found[0].File != last {
			t.Errorf("killed after %d steps: there are %+v", steps, found)
		}
		if steps > 30 {
			t.Fatal("it does not come to an end")
		}
	}
}

// A nightly backup on a disk that becomes full at each step leaves messages their room,
// and the backups that there are keep their files.
func TestANightlyBackupLeavesRoomForMessages(t *testing.T) { // replaces freeIn: not in parallel
	defer func(before func(string) (uint64, error)) { freeIn = before }(freeIn)
	asked := 0
	for done := false; !done; asked++ {
		home := house(t, "old")
		night := nights(t, home, 7)
		attach(t, home, "a cat")
		night(1)
		attach(t, home, "a dog")
		left, real := asked, freeIn
		freeIn = func(string) (uint64, error) {
			if left--; left < 0 {
				return 0, nil
			}
			return 1 << 40, nil
		}
		second := night(2)
		freeIn = real
		failed := LastFailure(home)
		if done = failed == nil; done != exists(second) {
			t.Errorf("the backup exists: %t, its failure: %+v", exists(second), failed)
		}
		if failed != nil && !strings.Contains(failed.Reason, "not enough disk space: the disk of ") {
			t.Errorf("the failure is %q", failed.Reason)
		}
		whole(t, home, "on a full disk")
		night(3)
		whole(t, home, "when there is room")
	}
	if asked < 3 {
		t.Errorf("room was asked for %d times", asked)
	}
}

// What a backup that cannot be read needs is unknown: nothing is removed. Other files are
// no backups.
func TestFilesStayWhenABackupCannotBeRead(t *testing.T) {
	t.Parallel()
	home := house(t, "old")
	night := nights(t, home, 1)
	cat := attach(t, home, "a cat")
	b, err := os.ReadFile(night(1))
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(home.Backups(), "broken"+Extension)
	if err := errors.Join(os.WriteFile(broken, b[:60], 0o600),
		os.WriteFile(filepath.Join(home.Backups(), "notes"), []byte("mine"), 0o600),
		os.Mkdir(filepath.Join(home.Backups(), "more"), 0o700)); err != nil {
		t.Fatal(err)
	}
	forget(t, home, cat)
	night(2)
	if got := kept(t, home); !slices.Equal(got, []string{cat}) {
		t.Errorf("kept are %q", got)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	night(3)
	if got := kept(t, home); len(got) > 0 {
		t.Errorf("kept are %q", got)
	}
	if got := slices.Sorted(maps.Keys(members(t, List(home)[0].File))); slices.Contains(got, partFiles+"/") {
		t.Errorf("the archive has %q", got)
	}
}
