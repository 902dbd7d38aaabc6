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

func TestEachRemovesWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	d := Dir(filepath.Join(t.TempDir(), "blobs"))
	if err := d.Each(nil); err != nil {
		t.Errorf("a directory that does not exist: %v", err)
	}
	other := strings.Repeat("00", 32)
	write(t, d, someHash, "one")
	write(t, d, other, "another")
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
	var hashes []string
	err := d.Each(func(hash string) error {
		hashes = append(hashes, hash)
		return d.Remove(hash)
	})
	if err != nil || len(hashes) != 2 || hashes[0] != other || hashes[1] != someHash {
		t.Errorf("the files are %q, %v", hashes, err)
	}
	for path, want := range map[string]bool{d.Path(someHash): false, left[0]: false, left[1]: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
}
