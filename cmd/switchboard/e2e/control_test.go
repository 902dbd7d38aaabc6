package e2e

import (
	"strings"

	"github.com/switchboard-run/switchboard/kernel/control"
)

// control is the running kernel as its command line sees it.
func (w *world) control() *control.Client {
	w.t.Helper()
	var c *control.Client
	w.eventually("a control socket", func() (ok bool) {
		var err error
		c, err = control.Dial(w.ctx(), w.file("run", control.SocketName), w.file(control.TokenName))
		return err == nil
	})
	w.t.Cleanup(c.Close)
	return c
}

// extension is what the kernel says of an extension; empty if it knows none.
func (w *world) extension(c *control.Client, id string) control.Extension {
	w.t.Helper()
	all, err := c.Extensions(w.ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range all {
		if e.ID == id {
			return e
		}
	}
	return control.Extension{}
}

// state waits until an extension is in a state, and returns what is said of it.
func (w *world) state(c *control.Client, id, state string) control.Extension {
	w.t.Helper()
	var e control.Extension
	if !w.waitFor(func() bool { e = w.extension(c, id); return e.State == state }) {
		w.t.Fatalf("%s is not %s: %+v", id, state, e)
	}
	return e
}

// log is what was written to a log file so far.
func (w *world) log(name string) string { return w.text("logs", name+".log") }

// text is the content of a file of the home; empty if it does not exist.
func (w *world) text(parts ...string) string {
	return strings.Join(w.linesOf(w.file(parts...)), "\n")
}
