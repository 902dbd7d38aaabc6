package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// clusterKey is the key that the nodes share.
var clusterKey = "switchboard-cluster-" + strings.Repeat("5f1d0b7c9e3a2846", 4)

// nodes makes homes that serve one cell over a PostgreSQL server.
func nodes(t *testing.T, names ...string) (server *postgrestest.Server, all []*world) {
	t.Helper()
	server = postgrestest.Start(t)
	dsn := server.Database()
	for i, name := range names {
		w := newWorld(t, withTelegram(), withModel)
		if i > 0 {
			w.telegram, w.model = all[0].telegram, all[0].model
			for _, key := range []string{"TELEGRAM_BOT_TOKEN", "TELEGRAM_API_URL", "OPENAI_BASE_URL"} {
				w.env[key] = all[0].env[key]
			}
		}
		w.write("dsn_file: dsn\nnode: "+name+"\nlisten: 127.0.0.1:0\n", 0o600, "cluster.yaml")
		w.write(clusterKey+"\n", 0o600, "cluster.key")
		w.write(dsn+"\n", 0o600, "dsn")
		w.runs = []string{"--cluster"}
		all = append(all, w)
	}
	all[0].model.Handle(echo)
	return server, all
}

// serving makes nodes and starts them: the first one owns the cell, the others stand by.
func serving(t *testing.T, names ...string) (server *postgrestest.Server, all []*world) {
	t.Helper()
	server, all = nodes(t, names...)
	all[0].start()
	all[0].telegramReady()
	for _, w := range all[1:] {
		w.standsBy()
	}
	return server, all
}

// standsBy starts a node and waits until it holds its extensions ready.
func (w *world) standsBy() {
	w.t.Helper()
	w.launch()
	w.eventually("a standby", func() bool {
		return strings.Contains(w.kernel.output.String(), "as the node") && len(descendants(w.t, w.kernel.pid())) > 1
	})
}

// answeredOnce checks that each message is answered once, or again with a mark.
func (w *world) answeredOnce(tokens ...string) {
	w.t.Helper()
	for _, token := range tokens {
		plain := 0
		for _, text := range w.texts(anna) {
			if strings.Contains(text, token) && !strings.HasPrefix(text, contract.RepeatMark) {
				plain++
			}
		}
		if plain > 1 {
			w.t.Errorf("%s is answered %d times without a mark: %q", token, plain, w.texts(anna))
		}
	}
}

// lostNothing checks that no node tells of commits that PostgreSQL has lost.
func lostNothing(t *testing.T, nodes ...*world) {
	t.Helper()
	for _, n := range nodes {
		if out := n.kernel.output.String(); strings.Contains(out, "has lost commits") {
			t.Errorf("PostgreSQL has lost nothing, but a node wrote:\n%s", out)
		}
	}
}

// ask writes to the bot and returns the token of the message.
func (w *world) ask(n int) string {
	token := fmt.Sprintf("<m%d>", n)
	w.telegram.Say(anna, "hear "+token)
	return token
}

func (w *world) hears(token string) {
	w.t.Helper()
	w.eventually("an answer to "+token, func() bool {
		return strings.Contains(strings.Join(w.texts(anna), "\n"), token)
	})
}

func TestAStandbyTakesOverFromAKilledOwner(t *testing.T) {
	t.Parallel()
	_, all := serving(t, "a", "b")
	a, b := all[0], all[1]
	tokens := []string{a.ask(1)}
	a.hears(tokens[0])
	for n, pair := range [][2]*world{{a, b}, {b, a}} {
		owner, standby := pair[0], pair[1]
		token := owner.ask(10 + n) // nothing is waited for: it is somewhere on its way
		owner.crash()
		tokens = append(tokens, token)
		standby.hears(token)
		owner.standsBy()
	}
	a.answeredOnce(tokens...)
}

func TestAStandbyTakesOverFromAStoppedOwner(t *testing.T) {
	t.Parallel()
	_, all := serving(t, "a", "b")
	a, b := all[0], all[1]
	first := a.ask(1)
	a.hears(first)
	below := descendants(t, a.kernel.pid())
	if err := syscall.Kill(a.kernel.pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second := a.ask(2)
	b.hears(second)
	if err := syscall.Kill(a.kernel.pid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a.eventually("the old owner to be a standby", func() bool {
		return strings.Count(a.kernel.output.String(), "as the node") == 2
	})
	a.gone(below)
	third := b.ask(3)
	b.hears(third)
	a.answeredOnce(first, second, third)
}

func TestACellSurvivesARestartOfPostgreSQL(t *testing.T) {
	t.Parallel()
	server, all := serving(t, "a", "b")
	a := all[0]
	first := a.ask(1)
	a.hears(first)
	server.Restart()
	second := a.ask(2)
	a.hears(second)
	a.answeredOnce(first, second)
}

func TestANodeWaitsForPostgreSQL(t *testing.T) {
	t.Parallel()
	server, all := nodes(t, "a")
	a := all[0]
	server.Kill()
	a.launch()
	a.eventually("the node to wait", func() bool {
		return strings.Contains(a.kernel.output.String(), "PostgreSQL can't be reached")
	})
	server.Run()
	token := a.ask(1)
	a.hears(token)
}
