package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// attach stores a file of a message in a home.
func attach(t *testing.T, home *config.Home, text string) (hash string) {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	hash = hex.EncodeToString(sum[:])
	f, err := blobfiles.Dir(home.Files()).Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := f.Keep(hash); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(home.Database())
	if err != nil {
		t.Fatal(err)
	}
	if err := journal.Do(t.Context(), store, func(tx journal.Tx) error {
		return tx.HoldBlob(journal.Blob{Hash: hash, Size: int64(len(text)), Owner: "x"}, "x", 1<<60)
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestABackupHasTheFilesOfMessages(t *testing.T) {
	t.Parallel()
	for name, storeOnly := range map[string]bool{"all": false, "the store only": true} {
		home := house(t, "old")
		cat, dog := attach(t, home, "a cat"), attach(t, home, "a dog")
		file := filepath.Join(t.TempDir(), "b"+Extension)
		if _, err := Create(t.Context(), source(home), file); err != nil {
			t.Fatal(err)
		}
		if info, err := Verify(t.Context(), file, t.TempDir()); err != nil || len(info.Lost) > 0 {
			t.Errorf("%s: %v, lost %q", name, err, info.Lost)
		}
		files := blobfiles.Dir(home.Files())
		if err := os.Remove(files.Path(cat)); err != nil {
			t.Fatal(err)
		}
		attach(t, home, "a new one")
		if _, err := Restore(t.Context(), home, file, storeOnly); err != nil {
			t.Fatal(err)
		}
		sizes, err := sqlite.Blobs(home.Database())
		if err != nil || len(sizes) != 2 || sizes[cat] != 5 || sizes[dog] != 5 {
			t.Errorf("%s: the restored store names %v, %v", name, sizes, err)
		}
		if lost, err := files.Lost(sizes); err != nil || len(lost) > 0 {
			t.Errorf("%s: lost %q, %v", name, lost, err)
		}
	}
}

// A home with a damaged file is backed up all the same, and the check names the file.
func TestACheckNamesLostAndDamagedFiles(t *testing.T) {
	t.Parallel()
	home := house(t, "old")
	missing, damaged := attach(t, home, "missing"), attach(t, home, "damaged")
	attach(t, home, "fine")
	files := blobfiles.Dir(home.Files())
	if err := os.Remove(files.Path(missing)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.Path(damaged), []byte("Damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b"+Extension)
	if _, err := Create(t.Context(), source(home), file); err != nil {
		t.Fatal(err)
	}
	info, err := Verify(t.Context(), file, t.TempDir())
	want := []string{missing, damaged}
	slices.Sort(want)
	if err != nil || !slices.Equal(info.Lost, want) {
		t.Errorf("lost %q, %v, want %q", info.Lost, err, want)
	}
}
