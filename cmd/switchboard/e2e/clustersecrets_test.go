package e2e

import (
	"slices"
	"strings"
	"testing"
)

// difference is what `cluster status` prints of two nodes.
type difference struct {
	What, Node, Cell, Than string
	Names                  []string
}

// differs waits until `cluster status` shows a difference about a secret or an extension.
func (w *world) differs(what, node, name, than string) {
	w.t.Helper()
	w.eventually(what+" of "+name+" on "+node, func() bool {
		all := list[struct{ Differences []difference }](w, "cluster", "status").Differences
		for _, d := range all {
			if d.What == what && d.Node == node && d.Than == than && d.Cell == "main" && slices.Contains(d.Names, name) {
				return true
			}
		}
		return false
	})
}

// The secrets of the nodes are compared by name, and a node without them takes over last.
func TestSecretsOfNodesAreCompared(t *testing.T) {
	t.Parallel()
	const token = "TELEGRAM_BOT_TOKEN"
	_, all := nodes(t, "a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	delete(c.env, token) // c would be the next owner
	for w, key := range map[*world]string{a: "one", b: "another", c: "one"} {
		w.config(strings.Replace(w.text("config.yaml"), "extensions:\n", "extensions:\n    web: {}\n", 1))
		w.write("BRAVE_API_KEY="+key+"\n", 0o600, "secrets.env")
	}
	a.start()
	a.telegramReady()
	b.standsBy()
	c.standsBy()
	a.differs("secrets_differ", "b", "BRAVE_API_KEY", "a")
	a.differs("secrets_missing", "c", token, "a")
	contains(t, "doctor on c", c.prints("doctor", "--offline"),
		"the node c lacks secrets of the cell main that a has: "+token,
		"correct secrets.env on c", "the node b has other values than a")
	first := a.ask(1)
	a.hears(first)
	a.crash()
	second := b.ask(2)
	b.hears(second)
	b.owns("b", "main")
	b.differs("secrets_missing", "c", token, "b")

	// c takes over when there is no other, and logs what is missing.
	b.crash()
	c.owns("c", "main")
	c.differs("secrets_missing", "c", token, "a")
	c.eventually("a word about the secret", func() bool {
		return strings.Contains(c.kernel.output.String(), "without secrets that another node has")
	})
	contains(t, "status", c.prints("cluster", "status"), "the node c lacks secrets of the cell main that b has: "+token)
	for _, w := range all {
		if strings.Contains(w.kernel.output.String()+w.prints("cluster", "status", "--json"), a.env[token]) {
			t.Error("the value of a secret is shown")
		}
	}
	a.answeredOnce(first, second)
}

// prints returns what a command prints, also if it finds problems.
func (w *world) prints(args ...string) string {
	w.t.Helper()
	out, _, _ := w.cli(args...)
	return out
}
