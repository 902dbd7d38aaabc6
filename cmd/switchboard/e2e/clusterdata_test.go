package e2e

import (
	"os"
	"strings"
	"testing"
)

// stays waits until `cluster status` shows where the data of the cell is; empty: nowhere.
func (w *world) stays(node string) {
	w.t.Helper()
	w.eventually("the data of the cell on "+node, func() bool {
		for _, c := range list[struct {
			Cells []struct {
				Pinned *struct{ Node string }
			}
		}](w, "cluster", "status").Cells {
			if c.Pinned == nil || c.Pinned.Node != node {
				return node == "" && c.Pinned == nil
			}
		}
		return true
	})
}

// A cell with pinned data waits for the node that has it, unless it is moved by command; one
// whose data may be lost is taken over.
func TestACellWaitsForItsData(t *testing.T) {
	t.Parallel()
	_, all := nodes(t, "a", "b")
	a, b := all[0], all[1]
	const script, reason = "#!/bin/sh\nsleep 1\n", "the data of jotter is only on a"
	a.write(script, 0o700, "extensions", "jotter", "run")
	a.write("api: 1\nid: jotter\nname: Jotter\nversion: 1.0.0\nrun: {command: ./run}\ndata: pinned\n", 0o600,
		"extensions", "jotter", "manifest.yaml")
	a.start()
	a.telegramReady()
	b.standsBy()
	b.stays("a")
	b.eventually("the manifest on the standby", func() bool {
		_, err := os.Stat(b.file("extensions", "jotter", "manifest.yaml"))
		return err == nil
	})
	first := a.ask(1)
	a.hears(first)
	contains(t, "status", b.must("status"), "no other machine takes over", "jotter")
	b.refused(reason, "cluster", "move", "main", "b")
	contains(t, "drain", a.must("cluster", "drain"), "keeps main")
	a.must("cluster", "drain", "--undo")

	a.crash()
	second := a.ask(2)
	b.eventually("why it does not take over", func() bool {
		return strings.Contains(b.kernel.output.String(), "doesn't take a cell that has no owner")
	})
	contains(t, "cluster status", b.must("cluster", "status"), "main has no owner, because "+reason+": start a")
	b.eventually("status to say why", func() bool {
		_, complaint, code := b.cli("status")
		return code != 0 && strings.Contains(complaint, reason)
	})
	contains(t, "doctor", b.prints("doctor", "--offline"), reason)
	a.refused("would be left behind", "cluster", "leave")
	a.standsBy()
	a.hears(second)
	a.owns("a", "main")

	// It is moved without the data, while the node that has it is gone.
	b.write(script, 0o700, "extensions", "jotter", "run")
	b.must("cluster", "allow", "jotter")
	a.crash()
	third := a.ask(3)
	b.must("cluster", "move", "main", "b", "--yes")
	b.hears(third)
	b.stays("b")
	a.standsBy()
	b.owns("b", "main")

	b.config(strings.Replace(b.text("config.yaml"), "extensions:\n", "extensions:\n    jotter: {data: cache}\n", 1))
	a.stays("")
	b.crash()
	fourth := a.ask(4)
	a.hears(fourth)
	a.owns("a", "main")
	a.answeredOnce(first, second, third, fourth)
	lostNothing(t, a, b)
}
