package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// buildUpgraded builds the program with one more migration of the store.
var buildUpgraded = sync.OnceValue(func() error {
	source, err := filepath.Abs(filepath.Join("..", "..", "..", "store", "sqlite", "schema.go"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	const end = "`}\n"
	if !strings.HasSuffix(string(text), end) {
		return fmt.Errorf("%s does not end with its migrations", source)
	}
	changed := strings.TrimSuffix(string(text), end) + "`, `\nALTER TABLE kv ADD COLUMN future INTEGER NOT NULL DEFAULT 7;\n" + end
	replaced := filepath.Join(built, "schema.go")
	if err := os.WriteFile(replaced, []byte(changed), 0o600); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: replaced}})
	if err == nil {
		err = os.WriteFile(filepath.Join(built, "upgrade.json"), overlay, 0o600)
	}
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(built, "upgrade.json"), "-tags", "crashpoints",
		"-o", binary("upgraded"), "github.com/switchboard-run/switchboard/cmd/switchboard").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building with one more migration: %w: %s", err, out)
	}
	return nil
})

// Two nodes are upgraded to a version with another schema one after the other: the standby
// first. A node that was not upgraded stops following, reports why, and takes over nothing.
func TestARollingUpgrade(t *testing.T) {
	t.Parallel()
	if err := buildUpgraded(); err != nil {
		t.Fatal(err)
	}
	server := postgrestest.Start(t)
	dsn := server.Database()
	a, b := newWorld(t), newWorld(t)
	for name, w := range map[string]*world{"a": a, "b": b} {
		w.reaches(dsn)
		w.must("cluster", "join", "--dsn-file", w.file("dsn"), "--node", name)
		w.runs = []string{"--cluster"}
	}
	version := func(w *world) string {
		t.Helper()
		db := postgrestest.Name(dsn)
		return server.DoIn(db, "SELECT schema || ' ' || node FROM switchboard.cell")[0]
	}
	a.start()
	a.owner()
	contains(t, "a reminder", a.chats("in 400 days remind me to "+passport), "passport")
	before := version(a)

	b.program = "upgraded"
	b.standsBy()
	a.eventually("b to have the old state", func() bool {
		out, _, code := b.cli("schedules", "list")
		return code == 0 && strings.Contains(out, passport)
	})
	if got := version(a); got != before {
		t.Errorf("an upgraded standby has changed the schema: %s, was %s", got, before)
	}
	a.stop()
	b.eventually("b to own the cell", func() bool { return b.owner() == b.home })
	contains(t, "the reminders", b.must("schedules", "list"), passport)
	contains(t, "one more", b.chats("in 300 days remind me to water the plants"), "plants")
	if got := version(b); got == before || !strings.HasSuffix(got, " b") {
		t.Errorf("the schema and owner are %s, were %s", got, before)
	}

	a.launch() // not upgraded
	a.eventually("a to stop following", func() bool {
		return strings.Contains(a.kernel.output.String(), "install the newer program")
	})
	b.crash()
	b.launch()
	b.eventually("b to own the cell again", func() bool { return b.owner() == b.home })
	contains(t, "the reminders", b.must("schedules", "list"), passport, "plants")
	a.crash()

	a.program = "upgraded"
	a.standsBy()
	b.stop()
	a.eventually("a to own the cell", func() bool { return a.owner() == a.home })
	contains(t, "the reminders", a.must("schedules", "list"), passport, "plants")
	a.stop()
	a.program = ""
	a.refused("install the newer program", "run", "--cluster")
}
