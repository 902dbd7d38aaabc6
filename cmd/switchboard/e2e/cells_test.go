package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// standing is what `cluster status` and `cells` print of a cell.
type standing struct {
	Name, Owner, Wanted string
	Epoch               int64
	Nodes               []struct{ Node, Role string }
}

// owners returns the owners of the cells.
func (w *world) owners() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, c := range list[[]standing](w, "cells", "list") {
		all[c.Name] = c.Owner
	}
	return all
}

func (w *world) owns(owner string, cells ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s as the owner of %v", owner, cells), func() bool {
		all := w.owners()
		for _, c := range cells {
			if all[c] != owner {
				return false
			}
		}
		return true
	})
}

// A household is handed over and back while messages come, and each is answered once.
func TestACellIsHandedOverUnderLoad(t *testing.T) {
	t.Parallel()
	_, all := serving(t, "a", "b")
	a, b := all[0], all[1]
	b.must("cells", "create", "flat", "--node", "b")
	var tokens []string
	say := func(n int) {
		for i := range 4 {
			tokens = append(tokens, a.ask(10*n+i))
		}
	}
	for n, to := range []string{"b", "a"} {
		say(n + 1)
		var moving sync.WaitGroup
		moving.Go(func() {
			if _, complaint, code := all[n].cli("cluster", "move", "main", to); code != 0 {
				t.Errorf("moving to %s: %s", to, complaint)
			}
		})
		say(n + 3)
		moving.Wait()
		say(n + 5)
		for _, token := range tokens {
			a.hears(token)
		}
	}
	if got := a.owners(); got["main"] != "a" || got["flat"] != "b" {
		t.Errorf("the owners are %v", got)
	}

	// A node that drains hands over all that it has, and takes nothing.
	contains(t, "draining", b.must("cluster", "drain", "--node", "a"), "has no cells")
	b.owns("b", "main", "flat")
	b.refused("no other node runs", "cluster", "drain")
	b.refused("takes no cells", "cluster", "move", "main", "a")
	say(20)
	for _, token := range tokens {
		a.hears(token)
	}
	b.must("cluster", "drain", "--node", "a", "--undo")

	// Another process with the name of a node is refused.
	second := newWorld(t)
	for _, file := range []string{"cluster.yaml", "cluster.key", "dsn"} {
		second.write(b.text(file), 0o600, file)
	}
	second.refused("another process runs as this node", "run", "--cluster")

	// The owner of both dies: the other one has both.
	say(30)
	b.crash()
	a.owns("a", "main", "flat")
	for _, token := range tokens {
		a.hears(token)
	}
	a.answeredOnce(tokens...)
	lostNothing(t, a, b)
}

// The cells of a node that is stopped past its lease go to the others.
func TestTheCellsOfAStoppedNodeAreSpread(t *testing.T) {
	t.Parallel()
	_, all := nodes(t, "a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	a.start()
	var cells []string
	for n := range 6 {
		cells = append(cells, fmt.Sprintf("flat%d", n))
		a.must("cells", "create", cells[n])
	}
	a.owns("a", cells...)
	b.standsBy()
	c.standsBy()
	b.eventually("extensions that are ready", func() bool {
		ready := 0
		for _, x := range list[[]standing](b, "cells", "list") {
			for _, n := range x.Nodes {
				if n.Role == "ready" && x.Name != "main" {
					ready++
				}
			}
		}
		return ready == len(cells)
	})
	if err := syscall.Kill(a.kernel.pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.eventually("other owners of all cells", func() bool {
		has := map[string]int{}
		for _, owner := range b.owners() {
			has[owner]++
		}
		return has["a"] == 0 && has[""] == 0 && has["b"] > 0 && has["c"] > 0
	})
	if err := syscall.Kill(a.kernel.pid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a.eventually("the old owner to follow", func() bool {
		return strings.Count(a.kernel.output.String(), "as the node") == 2
	})
	c.eventually("the same number of cells on each node, or one more", func() bool {
		c.must("cluster", "balance")
		has := map[string]int{}
		for _, owner := range c.owners() {
			has[owner]++
		}
		return has["a"] >= 2 && has["b"] >= 2 && has["c"] >= 2
	})
	contains(t, "balancing again", c.must("cluster", "balance"), "No cell has to move.")
	b.stop() // in order: its cells go on elsewhere
	c.eventually("owners that run", func() bool {
		for _, owner := range c.owners() {
			if owner != "a" && owner != "c" {
				return false
			}
		}
		return true
	})
}

// cellStatus is a part of what `status` prints.
func (w *world) cellStatus() (s struct {
	Models     []string
	Extensions []struct{ ID, Readiness string }
}) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.must("status", "--json")), &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// cell makes a further cell on the node; its world has the cell's home.
func (w *world) cell(name string) *world {
	w.t.Helper()
	w.must("cells", "create", name)
	c := *w
	c.home = w.file("cells", name)
	c.env = map[string]string{"PATH": os.Getenv("PATH"), "HOME": w.home, "SWITCHBOARD_HOME": c.home, "TZ": "Europe/Berlin"}
	return &c
}

// Cells have nothing of each other, and a deleted one leaves nothing.
func TestCellsAreApart(t *testing.T) {
	t.Parallel()
	server, all := serving(t, "a")
	a := all[0]
	one, two := a.cell("one"), a.cell("two")
	a.refused("there is one with this name", "cells", "create", "one")
	a.refused("lower-case letters", "cells", "create", "../x")
	contains(t, "a chat in one", one.chats("in 300 days remind me to feed the otter"), "otter")
	contains(t, "the reminders of one", a.must("--cell", "one", "schedules", "list"), "otter")
	for name, w := range map[string]*world{"two": two, "the node": a} {
		if out := w.must("schedules", "list"); strings.Contains(out, "otter") {
			t.Errorf("%s has a reminder of one: %s", name, out)
		}
	}
	// A model's key and a bot's token in the node's environment are its own cell's.
	if model := one.cellStatus().Models; len(model) != 1 || !strings.HasPrefix(model[0], "offline") {
		t.Errorf("the models of one are %v", model)
	}
	for _, x := range one.cellStatus().Extensions {
		if x.ID == "telegram_channel" && x.Readiness == "ready" {
			t.Error("one has the bot of the node")
		}
	}
	// The token of one opens nothing of another.
	for _, other := range []string{two.home, a.home} {
		socket := filepath.Join(other, "run", contract.ControlSocket)
		if _, err := os.Stat(socket); err != nil {
			t.Fatal(err)
		}
		k, err := admin.Dial(a.ctx(), socket, one.file(contract.ControlToken))
		if err == nil {
			_, err = k.Status(a.ctx(), &adminv1.StatusRequest{})
			k.Close()
		}
		if err == nil {
			t.Errorf("the token of one opens %s", other)
		}
	}
	sessions := list[[]struct{ ID string }](one, "sessions", "list")
	if len(sessions) == 0 {
		t.Fatal("one has no session")
	}
	for _, s := range list[[]struct{ ID string }](two, "sessions", "list") {
		t.Errorf("two has the session %s", s.ID)
	}
	two.refused("", "sessions", "show", sessions[0].ID)

	db := postgrestest.Name(strings.TrimSpace(a.text("dsn")))
	id := server.DoIn(db, "SELECT id FROM switchboard.cell WHERE name = 'one'")[0]
	contains(t, "deleting", a.must("cells", "delete", "one", "--yes"), "is deleted")
	for _, table := range server.DoIn(db, "SELECT table_name FROM information_schema.columns WHERE "+
		"table_schema = 'switchboard' AND column_name = 'cell'") {
		if n := server.DoIn(db, "SELECT count(*) FROM switchboard."+table+" WHERE cell = "+id); n[0] != "0" {
			t.Errorf("%s rows of the deleted cell are in %s", n[0], table)
		}
	}
	a.eventually("no home of the deleted cell", func() bool {
		_, err := os.Stat(one.home)
		return os.IsNotExist(err)
	})
	a.refused("own cell of this node", "cells", "delete", "main", "--yes")
	a.must("cells", "create", "one")
	if out := a.must("--cell", "one", "schedules", "list"); strings.Contains(out, "otter") {
		t.Errorf("the new cell has what was deleted: %s", out)
	}
	contains(t, "the other cell goes on", two.chats("in 300 days remind me to feed the heron"), "heron")
}
