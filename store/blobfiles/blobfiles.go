// Package blobfiles keeps the bytes of blobs as files of a directory, by their SHA-256. It
// makes the directory with the first file.
package blobfiles

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Dir is a directory of files. A file with the hash 3f2a... is 3f/3f2a...
type Dir string

var _ blobs.Files = Dir("")

const (
	unfinished    = ".unfinished-"
	unfinishedFor = time.Hour
)

// Path is where the file with a hash is, or would be.
func (d Dir) Path(hash string) string {
	return filepath.Join(string(d), hash[:min(2, len(hash))], hash)
}

type newFile struct {
	*os.File
	dir  Dir
	done bool
}

// Create implements blobs.Files.
func (d Dir) Create() (blobs.NewFile, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, classify(err)
	}
	f, err := os.CreateTemp(string(d), unfinished)
	if err != nil {
		return nil, classify(err)
	}
	return &newFile{File: f, dir: d}, nil
}

// Write implements io.Writer.
func (f *newFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, classify(err)
}

// Keep implements blobs.NewFile.
func (f *newFile) Keep(hash string) error {
	path := f.dir.Path(hash)
	if err := errors.Join(f.Chmod(0o600), f.Sync(), ensureDir(string(f.dir)), ensureDir(filepath.Dir(path))); err != nil {
		return classify(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return classify(err)
	}
	f.done = true
	return classify(errors.Join(f.Close(), syncDir(filepath.Dir(path))))
}

// durable are the directories whose names this process has synced.
var durable sync.Map

// ensureDir makes a directory, and has its name survive a power cut. One that exists may
// have been made by a process that ended before it did that.
func ensureDir(path string) error {
	err := os.Mkdir(path, 0o700)
	if _, known := durable.Load(path); known && errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	durable.Store(path, true)
	return nil
}

// Discard implements blobs.NewFile.
func (f *newFile) Discard() {
	if !f.done {
		f.done = true
		_, _ = f.Close(), os.Remove(f.Name())
	}
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Open implements blobs.Files.
func (d Dir) Open(hash string) (io.ReadSeekCloser, error) { return os.Open(d.Path(hash)) }

// Remove implements blobs.Files.
func (d Dir) Remove(hash string) error {
	if err := os.Remove(d.Path(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a file that nothing keeps: %w", err)
	}
	return nil
}

// Each implements blobs.Files.
func (d Dir) Each(f func(hash string) error) error {
	return filepath.WalkDir(string(d), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ignoreGone(err)
		case entry.IsDir():
			return nil
		case d.isFile(path):
			return f(entry.Name())
		case !strings.HasPrefix(entry.Name(), unfinished):
			return nil // not a file of a message
		}
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > unfinishedFor {
			err = os.Remove(path) //nolint:gosec // no one else writes to the directory
		}
		return ignoreGone(err)
	})
}

// Lost returns, of files with these sizes, the hashes of those that are missing or whose
// bytes are not those of the hash. It reads all of them.
func (d Dir) Lost(sizes map[string]int64) (hashes []string, err error) {
	for _, hash := range slices.Sorted(maps.Keys(sizes)) {
		sum, err := d.sum(hash)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if sum != hash {
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}

// sum returns the hash of the bytes that a file has.
func (d Dir) sum(hash string) (string, error) {
	f, err := d.Open(hash)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}

// Sample is the result of comparing files with their names.
type Sample struct {
	Files, Read int
	Bytes       int64    // of all files
	Damaged     []string // of those that were read
}

// Sample compares the newest files with their names, up to a number of bytes; -1: all.
// The files may change meanwhile.
func (d Dir) Sample(most int64) (s Sample, err error) {
	files := map[string]fs.FileInfo{}
	err = filepath.WalkDir(string(d), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !d.isFile(path) {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err == nil {
			files[entry.Name()] = info
			s.Bytes += info.Size()
		}
		return ignoreGone(err)
	})
	newest := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(files[b].ModTime().Compare(files[a].ModTime()), strings.Compare(a, b))
	})
	s.Files = len(files)
	for _, hash := range newest {
		size := files[hash].Size()
		if err != nil || most >= 0 && size > most {
			continue
		}
		sum, readErr := d.sum(hash)
		switch {
		case errors.Is(readErr, fs.ErrNotExist): // removed since
			continue
		case readErr != nil:
			err = readErr
		case sum != hash:
			s.Damaged = append(s.Damaged, hash)
		}
		s.Read++
		if most >= 0 {
			most -= size
		}
	}
	return s, err
}

// isFile reports whether a path in the directory is that of a file with a hash.
func (d Dir) isFile(path string) bool {
	name := filepath.Base(path)
	return len(name) == 2*sha256.Size && path == d.Path(name)
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// classify adds what the owner can do, and the class of the store's own errors.
func classify(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("store a file: %w: free some space: %w", journal.ErrFull, err)
	case err != nil:
		return fmt.Errorf("store a file: %w: %w", journal.ErrRefused, err)
	}
	return nil
}
