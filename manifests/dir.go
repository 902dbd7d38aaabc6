package manifests

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/internal/filewatch"
)

// Kind is the kind of a Change.
type Kind string

// Kinds of changes.
const (
	ManifestChanged   Kind = "manifest"   // it is new, or its Entry changed
	ExecutableChanged Kind = "executable" // the files that run it changed
	Removed           Kind = "removed"    // its manifest was deleted
)

// Change is one change in a Dir.
type Change struct {
	ID   string
	Kind Kind
}

// Dir holds the manifests of a directory, <id>/manifest.yaml each. After a bad edit the
// last valid version stays in force, beside the error. Its methods are safe for
// concurrent use.
type Dir struct {
	path string

	mu     sync.Mutex
	places map[string]*place
}

// place is one extension's directory. A change is applied once it looks the same in two
// scans, so that no half-written file is read.
type place struct {
	entry                   Entry
	seenManifest, manifest  string // state at the last scan, and when applied
	seenProgram, program    string
	manifestDue, programDue bool
	removed                 bool // reported as removed, and the directory still exists
}

const gone = ""

// OpenDir reads a directory, which need not exist. Watch reports later changes.
func OpenDir(path string) (*Dir, error) {
	d := &Dir{path: filepath.Clean(path), places: map[string]*place{}}
	ids, err := extensionDirs(d.path)
	if err != nil {
		return nil, fmt.Errorf("list the extensions in %s: %w", d.path, err)
	}
	places := make([]place, len(ids))
	next := atomic.Int64{}
	var reading sync.WaitGroup
	for range min(len(ids), runtime.GOMAXPROCS(0)) { // as the start waits for it
		reading.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(ids)); i = next.Add(1) - 1 {
				places[i] = newPlace(d.path, ids[i])
			}
		})
	}
	reading.Wait()
	for i, id := range ids {
		d.places[id] = &places[i]
	}
	return d, nil
}

func newPlace(root, id string) place {
	data, err := filewatch.Read(filepath.Join(root, id, FileName))
	p := place{manifest: stateOf(data, err), entry: entryOf(root, id, data, err)}
	p.program = programState(p.entry.Manifest)
	p.seenManifest, p.seenProgram = p.manifest, p.program
	return p
}

// Reread reads the directory again now. It must not be called while Watch runs.
func (d *Dir) Reread() error {
	fresh, err := OpenDir(d.path)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places = fresh.places
	return nil
}

// Entries returns the current entries, by id.
func (d *Dir) Entries() []Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Entry, 0, len(d.places))
	for _, p := range d.places {
		out = append(out, p.entry)
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Watch calls onChange, on the calling goroutine, after changes since OpenDir, until the
// context ends. Entries is already up to date. It reports a change once it has settled,
// which takes about a tenth of a second.
func (d *Dir) Watch(ctx context.Context, onChange func([]Change)) {
	filewatch.Run(ctx, filewatch.Target{
		Paths: d.watched,
		Scan: func() bool {
			changes, settling := d.scan()
			if len(changes) > 0 {
				onChange(changes)
			}
			return settling
		},
		Poll: 5 * time.Second,
	})
}

// watched returns the directory, those of the extensions, and those of the files that run
// them.
func (d *Dir) watched() []string {
	paths := []string{filewatch.Existing(d.path)}
	ids, _ := extensionDirs(d.path)
	for _, id := range ids {
		paths = append(paths, filepath.Join(d.path, id))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.places {
		for _, file := range programFiles(p.entry.Manifest) {
			paths = append(paths, filepath.Dir(file))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// scan compares the directory with its known state. Settling: a difference must look the
// same in the next scan.
func (d *Dir) scan() (changes []Change, settling bool) {
	ids, err := extensionDirs(d.path)
	if err != nil {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if d.places[id] == nil {
			d.places[id] = &place{entry: Entry{ID: id}, seenManifest: "new", manifest: "new"}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.places)) {
		p := d.places[id]
		kind, again := d.scanPlace(id, p)
		settling = settling || again
		if p.manifest == gone && !again && !slices.Contains(ids, id) {
			if !p.removed {
				kind = Removed
			}
			delete(d.places, id)
		}
		if kind != "" {
			changes = append(changes, Change{ID: id, Kind: kind})
		}
	}
	return changes, settling
}

func (d *Dir) scanPlace(id string, p *place) (kind Kind, settling bool) {
	now := d.manifestState(id)
	if now != p.seenManifest {
		p.seenManifest = now
		return "", true
	}
	if now != p.manifest {
		p.manifest = now
		if had := p.entry.Manifest != nil; now == gone && had {
			p.entry = readEntry(d.path, id)
			p.entry.Manifest = nil
			p.manifestDue, p.programDue, p.removed = false, false, true
			p.program, p.seenProgram = gone, gone
			return Removed, false
		}
		p.manifestDue = p.read(d.path) || p.manifestDue
		p.removed = false
	}
	program := programState(p.entry.Manifest)
	if program != p.seenProgram {
		p.seenProgram = program
		return "", true
	}
	if program != p.program {
		p.program = program
		p.programDue = true
	}
	switch {
	case p.manifestDue:
		kind = ManifestChanged
	case p.programDue:
		kind = ExecutableChanged
	}
	p.manifestDue, p.programDue = false, false
	return kind, false
}

// read reads the manifest again and reports whether it changed.
func (p *place) read(root string) bool {
	old := p.entry
	next := readEntry(root, old.ID)
	if next.Err == nil && old.Err == nil && old.Manifest != nil && next.Manifest.Digest == old.Manifest.Digest {
		return false
	}
	if next.Err != nil {
		next.Manifest = old.Manifest
	}
	p.entry = next
	return true
}

// manifestState returns a value that changes with the content; gone: no manifest.
func (d *Dir) manifestState(id string) string {
	return stateOf(filewatch.Read(filepath.Join(d.path, id, FileName)))
}

func stateOf(data []byte, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return gone
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// programFiles returns the files that run an extension: its executable, the arguments that
// are files in its directory, such as a script, and the record of its installation, which
// stands for all other files.
func programFiles(m *Manifest) []string {
	if m == nil {
		return nil
	}
	var files []string
	if record := filepath.Join(m.Dir(), RecordName); exists(record) {
		files = append(files, record)
	}
	if m.Run.Command == "" {
		return files
	}
	if exe := m.Executable(); filepath.IsAbs(exe) || strings.ContainsRune(exe, filepath.Separator) {
		files = append(files, exe)
	}
	for _, arg := range m.Run.Args {
		if !filepath.IsLocal(arg) {
			continue
		}
		file := filepath.Join(m.Dir(), arg)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	return files
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// programState returns a value that changes when a file that runs an extension does.
func programState(m *Manifest) string {
	var state strings.Builder
	for _, file := range programFiles(m) {
		info, err := os.Stat(file)
		if err != nil {
			fmt.Fprintf(&state, "%s is missing;", file)
			continue
		}
		fmt.Fprintf(&state, "%s %d %d %o %v;", file, info.Size(), info.ModTime().UnixNano(), info.Mode(), inode(info))
	}
	return state.String()
}
