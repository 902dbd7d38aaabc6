package e2e

import (
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// control is the running kernel as its command line sees it.
func (w *world) control() *admin.Client {
	w.t.Helper()
	var c *admin.Client
	w.eventually("a control socket", func() (ok bool) {
		var err error
		c, err = admin.Dial(w.ctx(), w.file("run", contract.ControlSocket), w.file(contract.ControlToken))
		return err == nil
	})
	w.t.Cleanup(c.Close)
	return c
}

// channels are those that the kernel knows.
func (w *world) channels(c *admin.Client) []admin.Channel {
	w.t.Helper()
	dir, err := c.Directory(w.ctx(), &adminv1.DirectoryRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	return admin.Channels(dir)
}

// extensions are those that the kernel knows.
func (w *world) extensions(c *admin.Client) []*adminv1.Extension {
	w.t.Helper()
	all, err := admin.Extensions(w.ctx(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// extension is what the kernel says of an extension; empty if it knows none.
func (w *world) extension(c *admin.Client, id string) *adminv1.Extension {
	w.t.Helper()
	for _, e := range w.extensions(c) {
		if e.GetId() == id {
			return e
		}
	}
	return &adminv1.Extension{}
}

// state waits until an extension is in a state, and returns what is said of it.
func (w *world) state(c *admin.Client, id, state string) *adminv1.Extension {
	w.t.Helper()
	var e *adminv1.Extension
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
