package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/processes"
	"github.com/switchboard-run/switchboard/bench/servers"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/store/postgres"
)

// scene harms a cluster in one certain way.
type scene struct {
	name        string
	nodes       []string
	synchronous bool
	kv          bool
	env         map[string]string // of nodes, by name
	lossy       bool              // PostgreSQL loses commits: what comes to harm is to be told and marked
	play        func(w *world, s *stage) error
	spoil       string // how a kernel must be spoiled for the scene to notice; empty: none
}

// stage collects what a scene did.
type stage struct {
	messages []ledger.Message
	problems []string
	n        int
}

func (s *stage) wrong(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// ask writes a message in a chat of its own.
func (s *stage) ask(w *world) ledger.Message {
	s.n++
	m := w.ask(fmt.Sprintf("<s%d>", s.n), s.n, ledger.Job{Delay: 1})
	s.messages = append(s.messages, m)
	return m
}

// tell writes a message and waits for all that comes of it.
func (s *stage) tell(w *world) error {
	m := s.ask(w)
	return ledger.Until("what comes of "+m.Token, w.Patience, func() bool { return w.Complete([]ledger.Message{m}) })
}

// all are the scenes. Those that a spoiled kernel must not pass come first.
var all = []scene{
	{
		name: "a statement of a dead owner arrives late", nodes: []string{"a", "b"},
		play: func(w *world, s *stage) error {
			a := w.nodes[0]
			late, held := holdAppend(a)
			s.ask(w)
			if err := came(held); err != nil {
				return err
			}
			a.kill()
			if err := w.ownedBy("b"); err != nil {
				return err
			}
			if err := s.tell(w); err != nil {
				return err
			}
			close(late)
			a.proxy.AwaitServers()
			if err := s.tell(w); err != nil {
				return err
			}
			return w.startAll()
		},
	},
	{
		name: "an owner that was cut off comes back", nodes: []string{"a", "b"}, kv: true, spoil: "fence",
		play: func(w *world, s *stage) error {
			a := w.nodes[0]
			a.proxy.Down(true)
			if err := w.ownedBy("b"); err != nil {
				return err
			}
			if err := s.tell(w); err != nil {
				return err
			}
			a.proxy.Down(false)
			return s.tell(w)
		},
	},
	{
		name: "a stopped statement goes on after it was sent again", nodes: []string{"a"}, spoil: "head",
		play: func(w *world, s *stage) error {
			a := w.nodes[0]
			late, held := holdAppend(a)
			s.ask(w)
			if err := came(held); err != nil {
				return err
			}
			a.proxy.CutClients()
			if err := s.tell(w); err != nil {
				return err
			}
			close(late)
			a.proxy.AwaitServers()
			return s.tell(w)
		},
	},
	{
		name: "an owner dies after a reply was sent", nodes: []string{"a", "b"}, spoil: "early",
		play: func(w *world, s *stage) error {
			sent := make(chan struct{}, 100)
			w.onMessage(func(ledger.Arrived) { sent <- struct{}{} })
			s.ask(w)
			if err := came(sent); err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond) // the receipt is stored
			w.nodes[0].kill()
			w.onMessage(nil)
			if err := w.ownedBy("b"); err != nil {
				return err
			}
			return w.startAll()
		},
	},
	{
		name: "a wait for the standby is cancelled, and the standby promoted", nodes: []string{"a", "b"}, synchronous: true,
		kv: true, spoil: "plain",
		play: func(w *world, s *stage) error {
			w.servers.Standby.Kill()
			s.ask(w)
			for range 12 {
				time.Sleep(100 * time.Millisecond)
				w.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND " +
					"application_name LIKE 'switchboard %'")
			}
			w.servers.Primary.Kill()
			w.servers.Standby.Run()
			w.failover()
			return s.tell(w)
		},
	},
	{
		name: "the answer to an append is lost", nodes: []string{"a", "b"}, kv: true, spoil: "alone",
		play: func(w *world, s *stage) error {
			for range 5 {
				owner, err := w.await()
				if err != nil {
					return err
				}
				loseAnswer(owner)
				if err := s.tell(w); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		name: "a kernel alone is stopped for longer than the lease", nodes: []string{"a", "b"}, kv: true, spoil: "lease",
		play: func(w *world, s *stage) error {
			a := w.nodes[0]
			were := a.extensions()
			a.signal(syscall.SIGSTOP, false)
			s.ask(w)
			if err := w.ownedBy("b"); err != nil {
				return err
			}
			time.Sleep(postgres.LeaseTime / 2)
			for _, p := range were {
				if p.Runs() {
					s.wrong("%s runs though the lease of its kernel has ended", shortly(p))
				}
			}
			a.signal(syscall.SIGCONT, true)
			return s.tell(w)
		},
	},
	{
		name: "a commit that waited for the standby is read after a crash", nodes: []string{"a", "b", "c"},
		synchronous: true, kv: true,
		play: func(w *world, s *stage) error {
			if err := s.tell(w); err != nil {
				return err
			}
			w.servers.Standby.Kill()
			s.ask(w)
			time.Sleep(200 * time.Millisecond) // an append waits
			w.servers.Primary.Kill()
			w.servers.Primary.Run()
			time.Sleep(2 * time.Second) // the nodes read what they can
			w.servers.Primary.Kill()
			w.servers.Standby.Run()
			w.failover()
			return s.tell(w)
		},
	},
	{
		name: "a draft of an owner that was cut off arrives late", nodes: []string{"a", "b"}, kv: true,
		play: func(w *world, s *stage) error {
			const edit = "editMessageText"
			telegram := w.Platform.(*ledger.Telegram) //nolint:forcetypeassert // as in newWorld
			s.n++
			m := w.ask("<late>", s.n, ledger.Job{Reply: ledger.ForLong})
			s.messages = append(s.messages, m)
			before := telegram.Calls(edit)
			telegram.Fail(edit, 1, telegramtest.Fault{Chat: m.Chat, Late: true})
			if err := ledger.Until("a draft to grow", w.Patience, func() bool { return telegram.Calls(edit) > before }); err != nil {
				return err
			}
			a := w.nodes[0]
			a.proxy.Down(true)
			if err := w.ownedBy("b"); err != nil {
				return err
			}
			if err := ledger.Until("the reply", w.Patience, func() bool { return w.Look(s.messages).Whole(m) }); err != nil {
				return err
			}
			telegram.Release()
			a.proxy.Down(false)
			return s.tell(w)
		},
	},
	{
		name: "a stale standby is promoted", nodes: []string{"a", "b", "c"}, synchronous: true, lossy: true,
		play: func(w *world, s *stage) error { return w.lose(s, false) },
	},
	{
		name: "a stale standby is promoted, and a node comes back from the lost branch", nodes: []string{"a", "b", "c"},
		synchronous: true, lossy: true,
		play: func(w *world, s *stage) error { return w.lose(s, true) },
	},
	{
		name: "the clock of a node is an hour ahead", nodes: []string{"a", "b"}, env: map[string]string{"a": "SWITCHBOARD_CLOCK=1h"},
		play: handOver,
	},
	{
		name: "the clock of a node is an hour behind", nodes: []string{"a", "b"}, env: map[string]string{"b": "SWITCHBOARD_CLOCK=-1h"},
		play: handOver,
	},
	{name: "pgbouncer in transaction mode", nodes: []string{"a"}, play: pooled},
}

func shortly(p processes.Process) string {
	f := strings.Fields(p.Command)
	return strings.Join(f[:min(3, len(f))], " ")
}

// came waits for a value.
func came[T any](c <-chan T) error {
	select {
	case <-c:
		return nil
	case <-time.After(30 * time.Second):
		return ledger.ErrTime
	}
}

// ownedBy waits until a node owns the cell.
func (w *world) ownedBy(name string) error {
	return ledger.Until("node "+name+" to own the cell", w.Patience, func() bool {
		n := w.owner()
		return n != nil && n.name == name
	})
}

// handOver has each node own the cell for a while.
func handOver(w *world, s *stage) error {
	for range 2 {
		for _, n := range w.nodes {
			if err := w.ownedBy(n.name); err != nil {
				return err
			}
			if err := s.tell(w); err != nil {
				return err
			}
			s.ask(w)
			n.kill()
			if err := s.tell(w); err != nil {
				return err
			}
			if err := w.startAll(); err != nil {
				return err
			}
		}
	}
	return nil
}

// lose makes PostgreSQL lose commits that it has reported, and fails unless a node reports it.
func (w *world) lose(s *stage, late bool) error {
	if err := s.tell(w); err != nil {
		return err
	}
	stale := w.servers.Standby
	stale.Kill()
	servers.Desert(w.servers.Primary)
	for range 3 { // these are lost
		if err := s.tell(w); err != nil {
			return err
		}
	}
	c := w.nodes[2]
	if late {
		c.kill()
	}
	w.servers.Primary.Kill()
	stale.Run()
	w.failover()
	s.messages = s.messages[:1]
	for range 5 {
		if err := s.tell(w); err != nil {
			return err
		}
	}
	if late {
		if err := c.start(); err != nil {
			return err
		}
		if err := s.tell(w); err != nil {
			return err
		}
		if _, err := os.Stat(c.file("switchboard.db.discarded")); err != nil {
			s.wrong("the node that came back has not kept its lost branch: %v", err)
		}
	}
	if w.told() == 0 {
		s.wrong("no node told of the lost commits")
	}
	return nil
}

// pooled has a node connect through pgbouncer in transaction mode, which it must refuse.
func pooled(w *world, s *stage) error {
	bouncer, err := exec.LookPath("pgbouncer")
	if err != nil {
		bouncer = "/usr/sbin/pgbouncer"
		if _, err := os.Stat(bouncer); err != nil {
			fmt.Println("left out: pgbouncer is not installed")
			return nil
		}
	}
	n := w.nodes[0]
	n.Stop()
	dir, err := os.MkdirTemp("/tmp", "sbb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary
	conf := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n%s = host=%s user=switchboard\n[pgbouncer]\nunix_socket_dir = %s\nlisten_port = 6543\n"+
		"auth_type = any\npool_mode = transaction\nignore_startup_parameters = extra_float_digits\n",
		w.database, filepath.Dir(w.servers.Primary.Socket()), dir)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
		return err
	}
	cmd := exec.Command(bouncer, "-q", conf)
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, _ := strconv.Atoi(u.Uid)
		if err := os.Chown(dir, uid, 0); err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid)}} //nolint:gosec // a uid
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	defer func() {
		_ = cmd.Process.Kill()
		<-ended
	}()
	whole, err := os.ReadFile(n.file("dsn"))
	if err != nil {
		return err
	}
	dsn := fmt.Sprintf("host=%s port=6543 user=switchboard dbname=%s sslmode=disable", dir, w.database)
	if err := os.WriteFile(n.file("dsn"), []byte(dsn), 0o600); err != nil {
		return err
	}
	err = ledger.Until("the node to refuse pgbouncer", time.Minute, func() bool {
		if n.PID() == 0 {
			if err := n.start(); err != nil {
				return false
			}
			n.Wait()
		}
		return n.said("a connection pooler is in between") > 0
	})
	if err != nil {
		s.wrong("%v", err)
	}
	n.Stop()
	if err := os.WriteFile(n.file("dsn"), whole, 0o600); err != nil {
		return err
	}
	if err := n.start(); err != nil {
		return err
	}
	return s.tell(w)
}

// play plays a scene with a new cluster, and returns all that went wrong.
func (r *run) play(sc scene, spoil string, patience time.Duration) (c ledger.Counts, f figures, told int, problems []string,
	err error,
) {
	err = servers.Stand(func(g *servers.Ground) error {
		w, err := newWorld(g, r.binary, servers.Start(g, sc.synchronous), sc.kv)
		if err != nil {
			return err
		}
		w.keep = r.keep
		if err := w.grow(sc.nodes...); err != nil {
			return err
		}
		for _, n := range w.nodes {
			if spoil != "" {
				n.extra = append(n.extra, "SWITCHBOARD_SPOIL_LOG="+spoil)
			}
			if env := sc.env[n.name]; env != "" {
				n.extra = append(n.extra, env)
			}
		}
		if err := w.begin(); err != nil {
			return err
		}
		w.Patience = patience
		s := &stage{}
		if err := sc.play(w, s); err != nil {
			s.wrong("%v", err)
		}
		c, problems = w.Settle(s.messages)
		c.Kills = 1
		if sc.lossy { // what was sent on the lost branch is there, and nothing leads to it any more
			c.Stray = 0
		}
		told = w.told()
		if !sc.lossy && told > 0 {
			s.wrong("a node told %d times that commits were lost, and none were", told)
		}
		var more []string
		f, more = w.check()
		problems = append(append(problems, s.problems...), more...)
		if len(problems) > 0 && spoil == "" {
			w.keep = true
			for _, n := range w.nodes {
				problems = append(problems, "see "+n.dir)
			}
		}
		return nil
	})
	return c, f, told, problems, err
}

// scenes plays all scenes with kernels as they are.
func scenes(r *run, _ *rand.Rand) error {
	for i, sc := range all {
		if r.short && i%4 != 1 || !strings.Contains(sc.name, r.like) { // a few
			continue
		}
		began := time.Now()
		c, f, told, problems, err := r.play(sc, "", ledger.Patience)
		if err != nil {
			return fmt.Errorf("%s: %w", sc.name, err)
		}
		r.add(sc.name, c, f, problems, told, time.Since(began))
		fmt.Printf("%s: %s\n", sc.name, time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// soon is the patience with kernels that lose messages.
const soon = 15 * time.Second

// lucky is how often a spoiled kernel may break a promise without being noticed: some of
// what it does wrong depends on what comes first.
const lucky = 3

// spoiled plays scenes with kernels that break a promise, and fails if nothing notices it.
func spoiled(r *run, random *rand.Rand) error {
	chosen := 1 + random.IntN(6) // those with a spoil
	for i, sc := range all {
		if sc.spoil == "" || r.short && i != chosen || !strings.Contains(sc.name, r.like) {
			continue
		}
		var problems []string
		for tries := 0; len(problems) == 0 && tries < lucky; tries++ {
			_, _, _, found, err := r.play(sc, sc.spoil, soon)
			if problems = found; err != nil {
				problems = append(problems, err.Error())
			}
		}
		if len(problems) == 0 {
			return fmt.Errorf("a kernel that is spoiled in %q is not noticed when %s", sc.spoil, sc.name)
		}
		fmt.Printf("noticed: %s, when %s: %.300s\n", sc.spoil, sc.name, problems[0])
	}
	return nil
}
