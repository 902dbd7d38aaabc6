package blobfiles

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var someHash = strings.Repeat("3f", 32)

func write(t *testing.T, d Dir, hash, text string) {
	t.Helper()
	f, err := d.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
	if err := f.Keep(hash); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsThereOnceItIsKept(t *testing.T) {
	t.Parallel()
	d := Dir(filepath.Join(t.TempDir(), "blobs"))
	if _, err := d.Open(someHash); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening a file that is not there: %v", err)
	}
	write(t, d, someHash, "hello")
	write(t, d, someHash, "hello") // again
	f, err := d.Open(someHash)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || !bytes.Equal(b, []byte("hello")) {
		t.Errorf("the file has %q, %v", b, err)
	}
	if info, err := os.Stat(d.Path(someHash)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	for range 2 {
		if err := d.Remove(someHash); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.Open(someHash); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening a removed file: %v", err)
	}
}

func TestCleanRemovesWhatIsUnknownOrUnfinished(t *testing.T) {
	t.Parallel()
	d := Dir(filepath.Join(t.TempDir(), "blobs"))
	if err := d.Clean(nil); err != nil {
		t.Errorf("cleaning a directory that does not exist: %v", err)
	}
	unknown := strings.Repeat("00", 32)
	write(t, d, someHash, "known")
	write(t, d, unknown, "unknown")
	var left []string
	for range 2 {
		f, err := d.Create() // its process was killed
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, f.(*newFile).Name())
		_ = f.(*newFile).Close()
	}
	old := time.Now().Add(-2 * unfinishedFor)
	if err := os.Chtimes(left[0], old, old); err != nil {
		t.Fatal(err)
	}
	if err := d.Clean(func(hash string) (bool, error) { return hash == someHash, nil }); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{d.Path(someHash): true, d.Path(unknown): false, left[0]: false, left[1]: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
	var hashes []string
	if err := d.Each(func(hash string, size int64) error {
		hashes = append(hashes, hash)
		return nil
	}); err != nil || len(hashes) != 1 || hashes[0] != someHash {
		t.Errorf("the files are %q, %v", hashes, err)
	}
}
