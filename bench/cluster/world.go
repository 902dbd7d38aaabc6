package main

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/servers"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// world is a cluster, and the servers around it.
type world struct {
	ledger.Ledger
	ground   *servers.Ground
	binary   string
	servers  *servers.Pair
	database string
	openai   *openaitest.Server
	nodes    []*node
	config   string // added to the configuration of each node
	kv       bool   // the nodes have the extension kv
	backlog  bool   // the nodes have the extension backlog
	keep     bool   // the homes
	tmpfs    string // home of the node whose disk is small; empty: none has one

	mu     sync.Mutex
	onSent func(ledger.Arrived)
}

// lean is a configuration with only the extensions that the job needs.
const lean = `extensions: {offline: {enabled: false}, memory: {enabled: false}, heartbeat: {enabled: false}, ` +
	`tasks: {enabled: false}, links: {enabled: false}}
`

// newWorld makes a cluster without nodes.
func newWorld(g *servers.Ground, binary string, s *servers.Pair, kv bool) (*world, error) {
	w := &world{ground: g, binary: binary, servers: s, config: lean, kv: kv}
	w.database = postgrestest.Name(s.Primary.Database())
	w.Ledger = ledger.Ledger{
		Model: ledger.NewScript(), Patience: ledger.Patience, Noted: w.noted,
		Pending: func() []string { return w.ofOwner(ledger.Pending) },
		Dead:    func() []string { return w.ofOwner(ledger.Dead) },
	}
	var err error
	if w.Platform, err = ledger.Platforms["telegram"](w.sent); err != nil {
		return nil, err
	}
	g.Cleanup(w.Platform.Close)
	if w.openai, err = openaitest.Start(); err != nil {
		return nil, err
	}
	g.Cleanup(w.openai.Close)
	w.openai.Keep(1)
	w.openai.Handle(w.Model.Answer)
	return w, nil
}

// grow adds nodes.
func (w *world) grow(names ...string) error {
	for _, name := range names {
		if err := w.addNode(name, ""); err != nil {
			return err
		}
	}
	return nil
}

// sent is called for each message that the platform accepts.
func (w *world) sent(m ledger.Arrived) {
	w.mu.Lock()
	f := w.onSent
	w.mu.Unlock()
	if f != nil {
		f(m)
	}
}

func (w *world) onMessage(f func(ledger.Arrived)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onSent = f
}

// noted are the lines that the shops of all nodes have recorded.
func (w *world) noted(file string) (all []string) {
	for _, n := range w.nodes {
		all = append(all, ledger.Noted(n.file("data", "shop", file))...)
	}
	return all
}

func (w *world) ofOwner(look func(path string) []string) []string {
	n := w.owner()
	if n == nil {
		return []string{"no node owns the cell"}
	}
	return look(n.file("switchboard.db"))
}

// query asks the primary, and returns nil where it does not answer.
func (w *world) query(sql string) (rows []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := pgconn.Connect(ctx, w.servers.Primary.DSN(w.database))
	if err != nil {
		return nil
	}
	defer func() { _ = c.Close(ctx) }()
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return nil
	}
	for _, row := range results[len(results)-1].Rows {
		text := make([]string, len(row))
		for i := range row {
			text[i] = string(row[i])
		}
		rows = append(rows, strings.Join(text, "|"))
	}
	return rows
}

// owner is the node that the log names as the writer; nil: none is known.
func (w *world) owner() *node {
	rows := w.query("SELECT node FROM switchboard.cell ORDER BY id LIMIT 1")
	for _, n := range w.nodes {
		if len(rows) > 0 && rows[0] == n.name {
			return n
		}
	}
	return nil
}

// await waits until a node that runs is the owner, and returns it.
func (w *world) await() (n *node, err error) {
	err = ledger.Until("a node to own the cell", w.Patience, func() bool {
		n = w.owner()
		return n != nil && n.PID() != 0
	})
	return n, err
}

// others are the nodes that are not the owner.
func (w *world) others(owner *node) (all []*node) {
	for _, n := range w.nodes {
		if n != owner {
			all = append(all, n)
		}
	}
	return all
}

// ask writes a message and returns it.
func (w *world) ask(token string, chat int, j ledger.Job) ledger.Message {
	m := ledger.Message{Token: token, Chat: ledger.ChatOf(chat), Reminder: j.Delay > 0}
	w.Model.Want(token, j)
	w.Platform.Write(m.Chat, "message "+token)
	return m
}

// begin starts all nodes and waits until everything runs, and each standby follows.
func (w *world) begin() error {
	if err := w.nodes[0].start(); err != nil {
		return err
	}
	m := w.ask("<warm>", 0, ledger.Job{})
	if err := ledger.Until("the first reply", w.Patience, func() bool {
		return w.Complete([]ledger.Message{m})
	}); err != nil {
		return err
	}
	return w.startAll()
}

// startAll starts the nodes that do not run, and waits until they take part.
func (w *world) startAll() error {
	for _, n := range w.nodes {
		if n.PID() != 0 {
			continue
		}
		before := n.said("as the node")
		if err := n.start(); err != nil {
			return err
		}
		if err := ledger.Until("node "+n.name+" to start", w.Patience, func() bool {
			return n.said("as the node") > before
		}); err != nil {
			return err
		}
	}
	return nil
}

// heal ends all faults: everything runs, and the ways are whole.
func (w *world) heal() error {
	for _, n := range w.nodes {
		n.proxy.Filter(nil)
		n.proxy.Down(false)
		n.signal(syscall.SIGCONT, true)
	}
	return w.startAll()
}

// failover kills the primary and promotes its standby, which gets a standby of its own.
func (w *world) failover() {
	s := w.servers
	s.Primary.Kill()
	s.Standby.Promote()
	servers.Desert(s.Standby)
	s.Primary, s.Standby = s.Standby, nil
	for _, n := range w.nodes {
		n.proxy.Lead(s.Primary)
		n.proxy.Cut()
	}
}
