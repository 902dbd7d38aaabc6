// Package powercut simulates a power loss, to test what SQLite leaves on the disk.
//
// Watch records every write, truncation, sync, creation and deletion that SQLite
// makes in a directory, in order, through a VFS. Cut then writes, into another
// directory, what a disk may hold if the power fails at any point of that record:
// everything synced by then, and any part of the rest. Each unsynced write is
// present, missing, or present in some of its sectors, independently of earlier
// ones; a file may lack an unsynced change of its length; a file created or deleted
// without a sync of the directory may exist or not.
//
// The model assumes, as SQLite does, that a sector of 512 bytes is written as a
// whole or not at all, and that writing one does not damage its neighbors. Writes of
// other code are not recorded; a file that exists when SQLite first opens it counts
// as synced.
//
// Importing the package installs the VFS for the whole process; it passes through
// directories that are not watched. It is for tests only.
package powercut

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const sector = 512

type kind int

const (
	create kind = iota
	write
	truncate
	syncFile
	syncDir
	remove
)

type op struct {
	kind  kind
	name  string
	inode int
	at    int64
	data  []byte // of a write; of a creation, the existing content
	known bool   // of a creation: the file was there before the record
}

// Disk is the record of one directory.
type Disk struct {
	dir         string
	ignoreSyncs bool

	mu     sync.Mutex
	ops    []op
	inodes map[string]int
	next   int
	fresh  map[int]bool // created, and the directory not synced since
}

var watched struct {
	sync.RWMutex
	disks []*Disk
}

// Watch records the writes of SQLite to a directory until the end of the test.
func Watch(t testing.TB, dir string) *Disk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := &Disk{dir: dir, inodes: map[string]int{}, fresh: map[int]bool{}}
	watched.Lock()
	watched.disks = append(watched.disks, d)
	watched.Unlock()
	t.Cleanup(func() {
		watched.Lock()
		watched.disks = slices.DeleteFunc(watched.disks, func(x *Disk) bool { return x == d })
		watched.Unlock()
	})
	return d
}

// diskOf returns the disk that records a file; nil: none.
func diskOf(path string) *Disk {
	watched.RLock()
	defer watched.RUnlock()
	for _, d := range watched.disks {
		if filepath.Dir(path) == d.dir && !strings.HasSuffix(path, "-shm") {
			return d
		}
	}
	return nil
}

// Position returns the length of the record so far.
func (d *Disk) Position() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ops)
}

// opened records a file that SQLite opens; before is its content, nil for a new one.
func (d *Disk) opened(path string, before []byte) (inode int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := filepath.Base(path)
	if inode, known := d.inodes[name]; known {
		return inode
	}
	d.next++
	d.inodes[name] = d.next
	d.fresh[d.next] = before == nil
	d.ops = append(d.ops, op{kind: create, name: name, inode: d.next, data: before, known: before != nil})
	return d.next
}

func (d *Disk) wrote(inode int, at int64, data []byte) {
	d.add(op{kind: write, inode: inode, at: at, data: slices.Clone(data)})
}

func (d *Disk) truncated(inode int, size int64) {
	d.add(op{kind: truncate, inode: inode, at: size})
}

// synced records the sync of a file. SQLite also syncs the directory with the first
// sync of a log or journal that it has created.
func (d *Disk) synced(inode int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, op{kind: syncFile, inode: inode})
	if d.fresh[inode] {
		delete(d.fresh, inode)
		d.ops = append(d.ops, op{kind: syncDir})
	}
}

func (d *Disk) removed(path string, synced bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := filepath.Base(path)
	if _, known := d.inodes[name]; !known {
		return
	}
	delete(d.inodes, name)
	if d.ops = append(d.ops, op{kind: remove, name: name}); synced {
		d.ops = append(d.ops, op{kind: syncDir})
	}
}

func (d *Disk) add(o op) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, o)
}

// IgnoreSyncs makes a disk that loses synced data. It breaks every promise, so it
// shows that a test can fail.
func (d *Disk) IgnoreSyncs() { d.ignoreSyncs = true }

// file is one inode at the moment of the cut.
type file struct {
	durable []byte
	pending []op
}

// Cut writes into dir, which must be empty, what the disk may hold if the power
// fails at a position of the record; r selects the unsynced parts that are present.
func (d *Disk) Cut(at int, r *rand.Rand, dir string) error {
	d.mu.Lock()
	ops := d.ops[:min(at, len(d.ops))]
	d.mu.Unlock()
	files := map[int]*file{}
	names := map[string][]int{} // the inodes that a name may have, the newest last; 0: no file
	for _, o := range ops {
		switch o.kind {
		case create:
			files[o.inode] = &file{durable: slices.Clone(o.data)}
			if o.known {
				names[o.name] = []int{o.inode}
			} else {
				names[o.name] = append(orNone(names[o.name]), o.inode)
			}
		case write, truncate:
			files[o.inode].pending = append(files[o.inode].pending, o)
		case syncFile:
			if f := files[o.inode]; !d.ignoreSyncs {
				for _, p := range f.pending {
					f.durable = apply(f.durable, p)
				}
				f.pending = nil
			}
		case syncDir:
			for name, may := range names {
				if !d.ignoreSyncs {
					names[name] = may[len(may)-1:]
				}
			}
		case remove:
			names[o.name] = append(orNone(names[o.name]), 0)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		may := names[name]
		inode := may[r.IntN(len(may))]
		if inode == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), files[inode].cut(r), 0o600); err != nil {
			return fmt.Errorf("write the files after the power cut: %w", err)
		}
	}
	return nil
}

func orNone(may []int) []int {
	if len(may) == 0 {
		return []int{0}
	}
	return may
}

// cut returns the content of the file after the power cut.
func (f *file) cut(r *rand.Rand) []byte {
	content := slices.Clone(f.durable)
	outcome := r.IntN(5)
	keep := r.IntN(len(f.pending) + 1)
	for i, p := range f.pending {
		switch outcome {
		case 0: // all unsynced operations are lost
			continue
		case 1: // none is lost, as if only the process died
		case 2: // a prefix is present
			if i >= keep {
				continue
			}
		default: // any subset, with torn writes
			switch r.IntN(3) {
			case 0:
				continue
			case 1:
				if p.kind == write {
					content = tear(content, p, r)
					continue
				}
			}
		}
		content = apply(content, p)
	}
	return content
}

func apply(content []byte, o op) []byte {
	switch end := o.at + int64(len(o.data)); {
	case o.kind == truncate:
		return grow(content, o.at)[:o.at]
	case end > int64(len(content)):
		content = grow(content, end)
	}
	copy(content[o.at:], o.data)
	return content
}

// tear applies some sectors of a write.
func tear(content []byte, o op, r *rand.Rand) []byte {
	for from := int64(0); from < int64(len(o.data)); {
		to := min(int64(len(o.data)), (o.at+from)/sector*sector+sector-o.at)
		if r.IntN(2) == 0 {
			content = apply(content, op{kind: write, at: o.at + from, data: o.data[from:to]})
		}
		from = to
	}
	return content
}

func grow(content []byte, size int64) []byte {
	if missing := size - int64(len(content)); missing > 0 {
		return append(content, make([]byte, missing)...)
	}
	return content
}

// existing reads a file; nil: there is none.
func existing(path string) []byte {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		panic(fmt.Sprintf("powercut: read %s: %v", path, err))
	case b == nil:
		return []byte{}
	}
	return b
}
