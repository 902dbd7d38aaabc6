// Package powercut is a disk whose power can be cut, for tests of what SQLite
// leaves behind.
//
// Watch records every write, truncation, sync, creation and deletion that
// SQLite makes in a directory, in order, through a file system layer of its own
// (a VFS). Cut then writes, into another directory, what a disk may hold when
// the power fails at any point of that record: all that was synced by then, and
// of the rest any part. Each write that was not synced is there, or not, or
// there in some of its sectors, independently of those before it; a file may
// lack what was never synced of its length; a name that was made or removed
// without a sync of the directory may be there or not.
//
// What the model takes for granted is what SQLite does: a sector of 512 bytes
// is written whole or not at all, and writing one does not harm its neighbors.
// What other code writes is not recorded; a file that is there when SQLite opens
// it for the first time counts as synced.
//
// The layer is installed for the whole process when the package is imported;
// directories that nobody watches pass through it. It is for tests only.
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
	data  []byte // of a write; of a creation, what was there already
	known bool   // of a creation: the file was there before the record
}

// Disk is the record of one directory.
type Disk struct {
	dir   string
	lying bool

	mu     sync.Mutex
	ops    []op
	inodes map[string]int
	next   int
	fresh  map[int]bool // made, and its directory not synced since
}

var watched struct {
	sync.RWMutex
	disks []*Disk
}

// Watch records what SQLite does in a directory from now to the end of the test.
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

// diskOf is who records a file; nil: nobody.
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

// Position is how much was recorded so far.
func (d *Disk) Position() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ops)
}

// opened notes a file; before is what was there when SQLite opened it, nil if
// there was none.
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

// synced notes that a file is on the disk. SQLite syncs the directory with the
// first sync of a log or journal that it has made.
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

// Lie makes it a disk that says that it has synced and has not. It breaks every
// promise: a test that does not notice it is worth nothing.
func (d *Disk) Lie() { d.lying = true }

// file is one inode at the moment of the cut.
type file struct {
	durable []byte
	pending []op
}

// Cut writes what the disk may hold if the power fails at a position of the
// record into dir, which must be empty; r decides what of the unsynced is there.
func (d *Disk) Cut(at int, r *rand.Rand, dir string) error {
	d.mu.Lock()
	ops := d.ops[:min(at, len(d.ops))]
	d.mu.Unlock()
	files := map[int]*file{}
	names := map[string][]int{} // what a name may stand for; 0: nothing; the newest last
	for _, o := range ops {
		switch o.kind {
		case create:
			files[o.inode] = &file{durable: slices.Clone(o.data)}
			if o.known {
				names[o.name] = []int{o.inode}
			} else {
				names[o.name] = append(orNothing(names[o.name]), o.inode)
			}
		case write, truncate:
			files[o.inode].pending = append(files[o.inode].pending, o)
		case syncFile:
			if f := files[o.inode]; !d.lying {
				for _, p := range f.pending {
					f.durable = apply(f.durable, p)
				}
				f.pending = nil
			}
		case syncDir:
			for name, may := range names {
				if !d.lying {
					names[name] = may[len(may)-1:]
				}
			}
		case remove:
			names[o.name] = append(orNothing(names[o.name]), 0)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		may := names[name]
		inode := may[r.IntN(len(may))]
		if inode == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), files[inode].cut(r), 0o600); err != nil {
			return fmt.Errorf("writing what the power cut left: %w", err)
		}
	}
	return nil
}

func orNothing(may []int) []int {
	if len(may) == 0 {
		return []int{0}
	}
	return may
}

// cut is what the file holds if all that was not synced may be lost.
func (f *file) cut(r *rand.Rand) []byte {
	content := slices.Clone(f.durable)
	fate := r.IntN(5)
	keep := r.IntN(len(f.pending) + 1)
	for i, p := range f.pending {
		switch fate {
		case 0: // all of it is lost
			continue
		case 1: // nothing is lost: the process alone died
		case 2: // what was written first is there
			if i >= keep {
				continue
			}
		default: // any part
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

// before reads what is there; nil: nothing.
func before(path string) []byte {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		panic(fmt.Sprintf("powercut: reading %s: %v", path, err))
	case b == nil:
		return []byte{}
	}
	return b
}
