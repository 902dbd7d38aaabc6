package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// killedAt runs a command and kills it after a time, and reports whether that was before
// it had ended by itself.
func (w *world) killedAt(after time.Duration, args ...string) bool {
	w.t.Helper()
	cmd := w.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	if err != nil && cmd.ProcessState.Exited() {
		w.t.Fatalf("switchboard %s: %v: %s", strings.Join(args, " "), err, out.String())
	}
	return err != nil
}

// untilDone kills a command later and later, until it has ended by itself.
func (w *world) untilDone(args ...string) {
	w.t.Helper()
	killed := 0
	for after := time.Duration(seed.Rand(w.t).Int64N(int64(killStep))); w.killedAt(after, args...); after += killStep {
		killed++
	}
	w.t.Logf("switchboard %s was killed %d times", strings.Join(args, " "), killed)
}

const killStep = 40 * time.Millisecond

const passport = "renew the passport"

// aHomeWithData is one with a reminder, a conversation and a file.
func aHomeWithData(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.start()
	contains(t, "a reminder", w.chats("in 400 days remind me to "+passport), "passport")
	w.chats("/attach "+sparse(t, 3<<20), "look at this")
	if w.fileCount() == 0 {
		t.Fatal("the file was not stored")
	}
	return w
}

// reaches gives a home what it needs to reach PostgreSQL and the other nodes.
func (w *world) reaches(dsn string) {
	w.write(dsn+"\n", 0o600, "dsn")
	w.write(clusterKey+"\n", 0o600, "cluster.key")
	w.write("# mine\nlisten: 127.0.0.1:0\n", 0o600, "cluster.yaml")
}

// fileCount counts the files of messages in the home.
func (w *world) fileCount() (n int) {
	_ = filepath.WalkDir(w.file("blobs"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return nil
	})
	return n
}

// A home joins with all that it has, leaves the cell to another machine, which has it too,
// and takes it back; each command is killed at random instants.
func TestAHomeJoinsAndLeaves(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dsn := server.Database()
	a := aHomeWithData(t)
	a.reaches(dsn)
	join := []string{"cluster", "join", "--dsn-file", a.file("dsn"), "--node", "a"}
	a.refused("stop it first", join...)
	a.stop()

	a.untilDone(join...)
	contains(t, "join again", a.must(join...), "serves the cell main")
	contains(t, "the settings of the node", a.text("cluster.yaml"), "# mine", "listen: 127", "node: a", "cell: main",
		"dsn_file: dsn")
	a.refused("belongs to a cluster", "run")
	for _, name := range []string{"switchboard.db", "switchboard.db.before-cluster"} {
		if _, err := os.Stat(a.file(name)); err != nil {
			t.Error(err)
		}
	}
	// The old store is not one to start with.
	old := newWorld(t)
	kept, err := os.ReadFile(a.file("switchboard.db.before-cluster"))
	if err != nil {
		t.Fatal(err)
	}
	old.write(string(kept), 0o600, "switchboard.db")
	old.refused("belongs to a cluster", "run")

	a.runs = []string{"--cluster"}
	a.start()
	a.owner()
	contains(t, "the reminders", a.must("schedules", "list"), passport)
	contains(t, "a new one", a.chats("in 300 days remind me to water the plants"), "plants")
	a.refused("stop it first", "cluster", "leave", "--keep-data")

	// A second machine only writes its configuration; one with a state of its own is refused.
	b, other := newWorld(t), aHomeWithData(t)
	other.stop()
	b.reaches(dsn)
	other.reaches(dsn)
	other.refused("both have a state", "cluster", "join", "--dsn-file", other.file("dsn"), "--node", "other")
	b.refused("is running already", "cluster", "join", "--dsn-file", b.file("dsn"), "--node", "a")
	contains(t, "b joins", b.must("cluster", "join", "--dsn-file", b.file("dsn"), "--node", "b"), "serves the cell main")
	a.crash()
	b.runs = []string{"--cluster"}
	b.start()
	b.owner()
	contains(t, "the reminders of b", b.must("schedules", "list"), passport, "plants")
	a.refused("other nodes serve the cell (b)", "cluster", "leave", "--keep-data")
	b.crash()

	if err := os.RemoveAll(b.file("blobs")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	b.untilDone("cluster", "leave", "--keep-data", "--dsn-file", b.file("dsn")) // the settings go before it ends
	if b.fileCount() == 0 {
		t.Error("the file of the message did not come along")
	}
	a.refused("the node b took its state along", "run", "--cluster")
	contains(t, "a leaves", a.must("cluster", "leave"), "has left the cell main")
	b.runs = nil
	b.start()
	contains(t, "the reminders that b took along", b.must("schedules", "list"), passport, "plants")
	contains(t, "a check", b.must("doctor", "--offline"), "1 file of messages")
}

// bothJoin has two new homes join a cluster, and starts the first one, which owns the cell.
func bothJoin(t *testing.T, dsn string) (a, b *world) {
	t.Helper()
	a, b = newWorld(t), newWorld(t)
	for name, w := range map[string]*world{"a": a, "b": b} {
		w.reaches(dsn)
		w.must("cluster", "join", "--dsn-file", w.file("dsn"), "--node", name)
		w.runs = []string{"--cluster"}
	}
	a.start()
	a.owner()
	return a, b
}

// PostgreSQL loses commits, and the node that takes over had none of them: it begins again,
// with marks, when the one that had them comes back.
func TestAnOwnerIsToldOfLostCommits(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dsn := server.Database()
	sql := func(query string) []string { return server.DoIn(postgrestest.Name(dsn), query) }
	a, b := bothJoin(t, dsn)
	head := sql("SELECT head FROM switchboard.cell")[0]
	contains(t, "a reminder", a.chats("in 400 days remind me to "+passport), "passport")
	a.crash()
	sql("DELETE FROM switchboard.log WHERE position > " + head)
	sql("UPDATE switchboard.cell SET head = " + head + ", hash = (SELECT substring(entry FROM 79 FOR 32) " +
		"FROM switchboard.log WHERE position = " + head + ")") // the hash in the header of an entry
	b.start()
	b.owner()
	epoch := sql("SELECT epoch FROM switchboard.cell")[0]
	a.start()
	b.eventually("an owner that marks what was lost", func() bool {
		both := a.kernel.output.String() + b.kernel.output.String()
		return sql("SELECT epoch FROM switchboard.cell")[0] != epoch && len(sql("SELECT 1 FROM switchboard.lost")) == 0 &&
			strings.Contains(both, "what they did may have happened")
	})
}

// A home brings its state into a cluster that runs, as a cell of its own.
func TestAHomeJoinsARunningCluster(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t).Database()
	a, b := newWorld(t), aHomeWithData(t)
	a.reaches(dsn)
	b.reaches(dsn)
	b.stop()
	a.runs = []string{"--cluster"}
	a.must("cluster", "join", "--dsn-file", a.file("dsn"), "--node", "a")
	a.start()
	a.owner()
	join := []string{"cluster", "join", "--dsn-file", b.file("dsn"), "--node", "b", "--cell"}
	for _, name := range []string{"../flat", "Flat"} {
		b.refused("cell", append(join, name)...)
	}
	join = append(join, "flat")
	b.killedAt(killStep, join...)
	if names := a.must("cells", "list"); strings.Contains(names, "a (ready)") {
		t.Errorf("a serves a cell whose state is not there yet: %s", names)
	}
	b.untilDone(join...)
	b.refused("belongs to a cluster", "run")
	b.runs = []string{"--cluster"}
	b.start()
	b.eventually("the reminders", func() bool { // its owner changes if a has taken it meanwhile
		out, _, code := b.cli("schedules", "list")
		return code == 0 && strings.Contains(out, passport)
	})
}

// Who began to join can take it back while the state is not moved.
func TestJoiningIsTakenBack(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	a := aHomeWithData(t)
	a.reaches(server.Database())
	a.stop()
	join := []string{"cluster", "join", "--dsn-file", a.file("dsn"), "--node", "a"}
	for after := killStep; a.killedAt(after, join...); after += killStep / 8 {
		if _, err := os.Stat(a.file("cluster-join.json")); err != nil {
			continue
		}
		a.refused("joining a cluster", "run")
		out, complaints, code := a.cli("cluster", "leave", "--dsn-file", a.file("dsn"))
		if code == 0 {
			contains(t, "leave", out, "Its store is its own again")
			break
		}
		contains(t, "leave", complaints, "its state is in the cell already")
		a.must(join...)
	}
	if strings.Contains(a.text("cluster.yaml"), "node: a") { // the state was moved at once
		a.must("cluster", "leave", "--keep-data")
	}
	a.start()
	contains(t, "the reminders", a.must("schedules", "list"), passport)
}

// A cell goes back to an earlier point while two nodes serve it, and forward again.
func TestACellIsRestored(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	dsn := server.Database()
	a, b := bothJoin(t, dsn)
	contains(t, "the first reminder", a.chats("in 400 days remind me to "+passport), "passport")
	b.standsBy()
	type shown struct {
		Position, Head, Entry int64
		EventsLost            int `json:"events_lost"`
		Restored              bool
	}
	restore := []string{"cluster", "restore", "main"}
	then := list[shown](b, append(restore, "--position", "1", "--dry-run")...)
	at := time.Now()
	contains(t, "the second reminder", a.chats("in 300 days remind me to water the plants"), "plants")
	a.refused("add --yes", append(restore, "--at", at.Format(time.RFC3339Nano))...)
	dry := list[shown](b, append(restore, "--at", at.Format(time.RFC3339Nano), "--dry-run")...)
	if dry.Position < then.Head || dry.EventsLost < 1 || dry.Restored {
		t.Errorf("before: %+v; a dry run: %+v", then, dry)
	}
	reminders := func(has, lacks string) {
		t.Helper()
		a.eventually("the reminders", func() bool {
			for _, w := range []*world{a, b} {
				out, _, code := w.cli("schedules", "list")
				if code != 0 || !strings.Contains(out, has) || lacks != "" && strings.Contains(out, lacks) {
					return false
				}
			}
			return true
		})
	}
	contains(t, "a dry run", a.must(append(restore, "--at", at.Format(time.RFC3339Nano), "--dry-run")...),
		"goes back to commit", "reminders and schedules: ")
	reminders("plants", "")
	back := list[shown](b, append(restore, "--at", at.Format(time.RFC3339Nano), "--yes")...)
	if !back.Restored || back.Entry <= dry.Head {
		t.Errorf("the restore: %+v", back)
	}
	reminders(passport, "plants")
	contains(t, "a third reminder", a.chats("in 200 days remind me to feed the cat"), "cat")
	a.must(append(restore, "--position", fmt.Sprint(back.Entry-1), "--yes")...)
	reminders("plants", "cat")
	a.refused("before what is kept", append(restore, "--at", "2020-01-01", "--yes")...)
	a.refused("nothing has changed since then", append(restore, "--at", "2100-01-01", "--yes")...)
}
