// Package shared keeps the configuration of a cell the same on all its nodes: config.yaml,
// mcp.json, consent.json and the manifests of extensions. It is part of the cell's state;
// the files on the nodes are copies of it that people may edit.
//
// # Promises
//
// An edit counts with the revision that it was made on. The first one of a revision is
// taken, on any node, and appears on all others; a later or an invalid one is kept
// beside the file as FILE.conflict, and the file shows what is in force.
//
// A file in the state is authenticated with the cluster's key, so write access to
// PostgreSQL is not enough to change it, and a node takes no revision that is older than
// one that it knows. What is not authentic is ignored; the owner replaces it by its own
// file.
package shared

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/manifests"
)

// Prefix begins the keys of the files among those of the kernel.
const Prefix = "shared/"

const (
	lookEvery = 500 * time.Millisecond
	stateFile = ".shared.json"
	// Aside ends the name of an edit that was not taken.
	Aside = ".conflict"
)

var (
	// ErrStale means that an edit was made on an older revision than the newest one.
	ErrStale = errors.New("another node has changed the file meanwhile")
	// ErrInvalid means that an edit has mistakes.
	ErrInvalid = errors.New("the file has mistakes")
)

// Authentic makes what only nodes of the cluster can make.
type Authentic interface {
	MAC(purpose string, parts ...string) []byte
}

// Edit is a change of one file.
type Edit struct {
	Name string `json:"name"`
	Base int64  `json:"base"` // the revision that it was made on; 0: there was none
	Gone bool   `json:"gone,omitempty"`
	Text []byte `json:"text,omitempty"`
	By   string `json:"by"` // the node
}

// row is a file in the state.
type row struct {
	Revision int64  `json:"revision"`
	Gone     bool   `json:"gone,omitempty"`
	Text     []byte `json:"text,omitempty"`
	By       string `json:"by"`
	MAC      []byte `json:"mac"`
}

// known is a revision that this node has exported, or taken.
type known struct {
	Revision int64  `json:"revision"`
	Hash     string `json:"hash"` // empty: the file is gone
}

// Options configure Files.
type Options struct {
	Home *config.Home
	Key  Authentic
	Cell string
	Node string
	Log  hclog.Logger
	// Check returns what is wrong with a file's text.
	Check func(name string, text []byte) error
}

// Files are those of one cell on this node. They are safe for concurrent use.
type Files struct {
	Options

	mu      sync.Mutex
	rows    map[string]row                         // authentic ones
	known   map[string]known                       // by name
	put     func(Edit) (revision int64, err error) // nil: the state is not known yet
	changed int64
	dirty   bool // the rows have changed since the last settlement
	seen    string
	settled string
	said    map[string]string
	news    chan struct{} // the rows have changed
}

// Open reads what this node knows of its files.
func Open(o Options) (*Files, error) {
	f := &Files{Options: o, rows: map[string]row{}, known: map[string]known{}, said: map[string]string{},
		news: make(chan struct{}, 1)}
	text, err := os.ReadFile(filepath.Join(o.Home.Path(), stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f.known)
	}
	if err != nil {
		return nil, fmt.Errorf("read which revisions of the shared files this node has: %w", err)
	}
	return f, nil
}

// Changed counts the times that a file was changed for another node.
func (f *Files) Changed() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Follow takes the rows of a copy of the state. Edits of this node go to send, which
// returns the revision when the owner has taken one.
func (f *Files) Follow(values []journal.KV, send func(Edit) (int64, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.take(values)
	f.put = send
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// Own makes this node the one that decides, with the store of the cell. When it returns,
// the files are those of the state.
func (f *Files) Own(ctx context.Context, store journal.Store) error {
	var values []journal.KV
	err := store.View(ctx, func(r journal.Reader) (err error) {
		values, err = r.KVScan(contract.KernelSource, Prefix, "", 1000)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the shared files: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.take(values)
	f.put = func(e Edit) (int64, error) { return f.store(ctx, store, e) }
	return f.settle()
}

// Leave ends what Own or Follow began.
func (f *Files) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put = nil
}

// Put is an edit of another node, for the owner.
func (f *Files) Put(e Edit) (revision int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.put == nil {
		return 0, errors.New("this node does not own the cell")
	}
	if err := f.settle(); err != nil { // edits of this node come first
		return 0, err
	}
	if e.By == f.Node {
		e.By = ""
	}
	if revision, err = f.put(e); err != nil {
		return 0, err
	}
	return revision, f.settle()
}

// Settle brings files and state together now. Run does so after each edit.
func (f *Files) Settle() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.put == nil {
		return nil
	}
	return f.settle()
}

// Run follows edits until ctx ends.
func (f *Files) Run(ctx context.Context) {
	for {
		select {
		case <-time.After(lookEvery):
		case <-f.news:
		case <-ctx.Done():
			return
		}
		f.mu.Lock()
		now := f.stamp()
		stable := now == f.seen // as in the scan before: no program is writing
		f.seen = now
		if f.put != nil && stable && (now != f.settled || f.dirty) {
			if err := f.settle(); err != nil {
				f.say("", "settling the shared files failed; this is tried again", err)
				f.dirty = true
			}
		}
		f.mu.Unlock()
	}
}

// say logs a problem once.
func (f *Files) say(name, what string, err error) {
	if text := what + err.Error(); f.said[name] != text {
		f.said[name] = text
		f.Log.Warn(what, "cell", f.Cell, "file", name, "error", err)
	}
}

// take keeps the authentic rows.
func (f *Files) take(values []journal.KV) {
	f.rows, f.dirty = map[string]row{}, true
	for _, v := range values {
		name := strings.TrimPrefix(v.Key, Prefix)
		var r row
		if err := json.Unmarshal(v.Value, &r); err != nil || !Shares(name) || !hmac.Equal(r.MAC, f.mac(name, r)) {
			f.say(name, "a file in the state is not from a node of this cluster, so it is ignored",
				errors.New("its authentication is wrong"))
			continue
		}
		f.rows[name] = r
	}
}

func (f *Files) mac(name string, r row) []byte {
	return f.Key.MAC("shared file", f.Cell, name, strconv.FormatInt(r.Revision, 10), strconv.FormatBool(r.Gone), r.By,
		string(r.Text))
}

// Shares reports whether nodes share a file of the home.
func Shares(name string) bool {
	switch name {
	case "config.yaml", "mcp.json", "consent.json":
		return true
	}
	parts := strings.Split(name, "/")
	return len(parts) == 3 && parts[0] == "extensions" && parts[2] == manifests.FileName &&
		manifests.Checks["id"](parts[1]) == nil
}

// local returns the names of the shared files of this home.
func (f *Files) local() []string {
	names := []string{"config.yaml", "mcp.json", "consent.json"}
	dirs, _ := os.ReadDir(f.Home.Extensions())
	for _, d := range dirs {
		if name := "extensions/" + d.Name() + "/" + manifests.FileName; Shares(name) {
			names = append(names, name)
		}
	}
	return names
}

func (f *Files) path(name string) string {
	return filepath.Join(f.Home.Path(), filepath.FromSlash(name))
}

// stamp changes when a file does.
func (f *Files) stamp() string {
	var all strings.Builder
	for _, name := range f.local() {
		if info, err := os.Stat(f.path(name)); err == nil {
			fmt.Fprintf(&all, "%s %d %d;", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return all.String()
}

// read returns a file of this home; nil: there is none.
func (f *Files) read(name string) ([]byte, error) {
	text, err := filewatch.Read(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}

func hash(text []byte, gone bool) string {
	if gone {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// settle brings files and state together; f.mu is held.
func (f *Files) settle() error {
	f.dirty = false
	names := map[string]bool{}
	for _, name := range f.local() {
		names[name] = true
	}
	for name := range f.rows {
		names[name] = true
	}
	before := maps.Clone(f.known)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := f.settleOne(name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	f.settled = f.stamp()
	f.seen = f.settled
	if !maps.Equal(before, f.known) {
		text, err := json.Marshal(f.known)
		if err == nil {
			err = config.Replace(filepath.Join(f.Home.Path(), stateFile), text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (f *Files) settleOne(name string) error {
	text, err := f.read(name)
	if err != nil {
		return err
	}
	mine, had := hash(text, text == nil), f.known[name]
	r, inState := f.rows[name]
	theirs := hash(r.Text, r.Gone)
	edited := mine != had.Hash && (had.Revision != 0 || !plain(name, text))
	switch {
	case inState && mine == theirs:
		f.known[name] = known{r.Revision, theirs}
		return nil
	case !inState && text == nil:
		return nil
	case inState && !edited && r.Revision >= had.Revision:
		return f.export(name, r)
	case inState && edited && r.Revision > had.Revision:
		return f.aside(name, text, r, ErrStale)
	}
	e := Edit{Name: name, Base: r.Revision, Gone: text == nil, Text: text, By: f.Node}
	revision, err := f.put(e)
	switch {
	case err == nil:
		f.known[name] = known{revision, mine}
	case errors.Is(err, ErrStale):
		return nil // the newer revision comes
	case errors.Is(err, ErrInvalid) && inState:
		return f.aside(name, text, r, err)
	case errors.Is(err, ErrInvalid):
		f.say(name, "a file is not shared with the other nodes", err)
		return nil
	}
	return err
}

// plain reports whether a file is as a new home has it.
func plain(name string, text []byte) bool {
	if name != "consent.json" {
		return text == nil
	}
	var content struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	return text == nil || json.Unmarshal(text, &content) == nil && len(content.Extensions) == 0
}

// export writes a revision of the state into the home.
func (f *Files) export(name string, r row) error {
	path := f.path(name)
	var err error
	if r.Gone {
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		err = config.Replace(path, r.Text)
	}
	if err != nil {
		return err
	}
	f.changed++
	f.known[name] = known{r.Revision, hash(r.Text, r.Gone)}
	f.Log.Info("took over a file that another node has changed", "cell", f.Cell, "file", name, "revision", r.Revision,
		"node", r.By)
	return nil
}

// aside keeps an edit that is not taken, and exports what is in force.
func (f *Files) aside(name string, text []byte, r row, why error) error {
	if text != nil {
		path := f.path(name) + Aside
		for n := 2; exists(path); n++ {
			path = fmt.Sprintf("%s%s-%d", f.path(name), Aside, n)
		}
		if err := config.Replace(path, text); err != nil {
			return err
		}
		f.Log.Warn("your edit of a file is not in force: it is kept beside the file; look at both, and edit the file again",
			"cell", f.Cell, "file", name, "kept", path, "reason", why)
	}
	return f.export(name, r)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// store is an edit of the state. On the node that decides, its own revision counts where
// the one of the state is missing or not authentic.
func (f *Files) store(ctx context.Context, s journal.Store, e Edit) (revision int64, err error) {
	if !Shares(e.Name) {
		return 0, fmt.Errorf("%w: nodes do not share %q", ErrInvalid, e.Name)
	}
	current := f.rows[e.Name]
	if e.Base != current.Revision {
		return 0, fmt.Errorf("%w: it is at revision %d, the edit was made on %d", ErrStale, current.Revision, e.Base)
	}
	if !e.Gone {
		if err := f.Check(e.Name, e.Text); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	r := row{Revision: max(current.Revision, f.known[e.Name].Revision) + 1, Gone: e.Gone, Text: e.Text, By: e.By}
	r.MAC = f.mac(e.Name, r)
	value, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	err = journal.Do(ctx, s, func(tx journal.Tx) error {
		_, err := tx.KVPut(contract.KernelSource, Prefix+e.Name, value)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("store the shared file: %w", err)
	}
	f.rows[e.Name] = r
	return r.Revision, nil
}

// Asides returns the edits of a home that were not taken.
func Asides(h *config.Home) (paths []string) {
	for _, pattern := range []string{"*" + Aside + "*", filepath.Join("extensions", "*", "*"+Aside+"*")} {
		found, _ := filepath.Glob(filepath.Join(h.Path(), pattern))
		paths = append(paths, found...)
	}
	return paths
}
