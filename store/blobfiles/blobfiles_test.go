package blobfiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	strays := []string{filepath.Join(string(d), "x"), filepath.Join(string(d), "3f", ".DS_Store"),
		filepath.Join(string(d), someHash)}
	for _, stray := range strays {
		if err := os.WriteFile(stray, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var hashes []string
	err := d.Each(func(hash string) error {
		hashes = append(hashes, hash)
		return d.Remove(hash)
	})
	if err != nil || len(hashes) != 2 || hashes[0] != other || hashes[1] != someHash {
		t.Errorf("the files are %q, %v", hashes, err)
	}
	for path, want := range map[string]bool{d.Path(someHash): false, left[0]: false, left[1]: true, strays[0]: true,
		strays[1]: true, strays[2]: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
}

func TestASampleNamesDamagedFiles(t *testing.T) {
	t.Parallel()
	d := Dir(filepath.Join(t.TempDir(), "blobs"))
	if s, err := d.Sample(-1); err != nil || s.Files != 0 {
		t.Errorf("a directory that does not exist: %+v, %v", s, err)
	}
	now := time.Now()
	put := func(age time.Duration, text, on string) string {
		sum := sha256.Sum256([]byte(text))
		hash := hex.EncodeToString(sum[:])
		write(t, d, hash, on)
		if err := os.Chtimes(d.Path(hash), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	put(1, "1234", "1234")
	newer := put(2, "5678", "567x")
	old := put(3, "abcd", "abcx")
	empty := put(4, "all of it is lost", "")
	for most, want := range map[int64]Sample{
		-1: {4, 4, 12, []string{newer, old, empty}},
		11: {4, 3, 12, []string{newer, empty}},
		4:  {4, 2, 12, []string{empty}},
	} {
		if got, err := d.Sample(most); err != nil || got.Files != want.Files || got.Read != want.Read ||
			got.Bytes != want.Bytes || !slices.Equal(got.Damaged, want.Damaged) {
			t.Errorf("of %d bytes: %+v, %v, want %+v", most, got, err, want)
		}
	}
}
