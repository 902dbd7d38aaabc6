package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// dropIn installs an extension into the home as a user does: the directory is
// made complete beside the others and then moved in.
func (w *world) dropIn(id, executable, manifest string, fifos ...string) {
	w.t.Helper()
	staging := w.file("staging", id)
	if err := os.MkdirAll(staging, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if executable != "" {
		copyFile(w, binary(executable), filepath.Join(staging, executable))
	}
	for _, name := range fifos {
		path := filepath.Join(staging, name)
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

// probe drops the probe in; more is added to its manifest.
func (w *world) probe(id, mode, more string) {
	w.t.Helper()
	w.dropIn(id, "probe", fmt.Sprintf("api: 1\nid: %s\nname: %s\nversion: 1.0.0\ndescription: A probe.\nrun: {command: ./probe, args: [%s, %s]}\n%s\n",
		id, strings.ToUpper(id), id, mode, more), "in")
}

// requests sends a line to an extension that reads a fifo.
func (w *world) request(id, fifo, line string) {
	w.t.Helper()
	f, err := os.OpenFile(w.file("extensions", id, fifo), os.O_RDWR, 0) // never blocks, somebody reads or not
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		w.t.Fatal(err)
	}
}

// lines are those of a file of an extension; none if it does not exist yet.
func (w *world) lines(id string, file ...string) []string {
	f, err := os.Open(w.file(append([]string{"extensions", id}, file...)...))
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []string
	for s := bufio.NewScanner(f); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}

// line waits for the nth line of a file of an extension.
func (w *world) line(n int, id string, file ...string) string {
	w.t.Helper()
	w.eventually(fmt.Sprintf("line %d of %s of %s", n, filepath.Join(file...), id), func() bool { return len(w.lines(id, file...)) >= n })
	return w.lines(id, file...)[n-1]
}
