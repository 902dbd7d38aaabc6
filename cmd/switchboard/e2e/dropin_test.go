package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/switchboard-run/switchboard/home/consent/consenttest"
)

// dropIn installs an extension into the home as a user does, who allows what it asks for.
func (w *world) dropIn(id, executable, manifest string, fifos ...string) {
	w.t.Helper()
	if err := consenttest.Allow(w.home, id, manifest); err != nil {
		w.t.Fatal(err)
	}
	w.dropInAsking(id, executable, manifest, fifos...)
}

// dropInAsking installs an extension into the home: the directory is made complete beside
// the others and then moved in. Fifos are made in the directory box of the example, and
// otherwise in the data directory.
func (w *world) dropInAsking(id, executable, manifest string, fifos ...string) {
	w.t.Helper()
	staging := w.file("staging", id)
	if err := os.MkdirAll(staging, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if executable != "" {
		copyFile(w, binary(executable), filepath.Join(staging, executable))
	}
	for _, name := range fifos {
		path := w.file("data", id, name)
		if strings.HasPrefix(name, "box/") {
			path = filepath.Join(staging, name)
		}
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(staging, "manifest.yaml"), []byte(manifest), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.MkdirAll(w.file("extensions"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(staging, w.file("extensions", id)); err != nil {
		w.t.Fatal(err)
	}
}

// copyFile puts an executable in place at once, so that a running one can be
// replaced.
func copyFile(w *world, from, to string) {
	w.t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+"~", data, 0o700)
	}
	if err == nil {
		err = os.Rename(to+"~", to)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// probe drops the probe in, which is allowed; more is added to its manifest.
func (w *world) probe(id, mode, more string) {
	w.t.Helper()
	w.dropIn(id, "probe", probeManifest(id, mode, more), "in")
}

func probeManifest(id, mode, more string) string {
	return fmt.Sprintf("api: 1\nid: %s\nname: %s\nversion: 1.0.0\ndescription: A probe.\nrun: {command: "+
		"./probe, args: [%s, %s], start_timeout: %s}\n%s\n",
		id, strings.ToUpper(id), id, mode, patience, more)
}

// request sends a line to an extension that reads a fifo, now or once it runs.
func (w *world) request(id, fifo, line string) {
	w.t.Helper()
	path := w.place(id, fifo)
	f := w.fifos[path]
	if f == nil {
		var err error
		if f, err = os.OpenFile(path, os.O_RDWR, 0o600); err != nil { // both ways, so that unread data is kept
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = f.Close() })
		w.fifos[path] = f
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		w.t.Fatal(err)
	}
}

// lines are those of a file of an extension; none if it does not exist yet.
func (w *world) lines(id string, file ...string) []string {
	return w.linesOf(w.place(id, file...))
}

// place is where an extension has a file: the example in the directory box beside
// its manifest, which that lets it write, the probe in its data directory.
func (w *world) place(id string, file ...string) string {
	in := "data"
	if strings.HasPrefix(file[0], "box") {
		in = "extensions"
	}
	return w.file(append([]string{in, id}, file...)...)
}

func (w *world) linesOf(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// line waits for the nth line of a file of an extension.
func (w *world) line(n int, id string, file ...string) string {
	w.t.Helper()
	w.eventually(fmt.Sprintf("line %d of %s of %s", n, filepath.Join(file...), id),
		func() bool { return len(w.lines(id, file...)) >= n })
	return w.lines(id, file...)[n-1]
}
