package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/processes"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// node is one machine: a home, its way to PostgreSQL, and a kernel.
type node struct {
	ledger.Kernel
	world *world
	name  string
	dir   string
	proxy *postgrestest.Proxy
	extra []string // environment of the next kernel
	out   *os.File
}

// addNode makes a node with a home of its own; dir: an empty directory for it, or none.
func (w *world) addNode(name, dir string) error {
	n := &node{world: w, name: name, dir: dir}
	if dir == "" {
		var err error
		if n.dir, err = os.MkdirTemp("/tmp", "sbc"); err != nil {
			return err
		}
		w.ground.Cleanup(func() {
			if !w.keep {
				_ = os.RemoveAll(n.dir)
			}
		})
	}
	n.proxy = postgrestest.NewProxy(w.ground, w.servers.Primary)
	if err := ledger.Furnish(n.dir, "telegram", w.config, "extension"); err != nil {
		return err
	}
	if w.kv {
		if err := ledger.Install(n.dir, kvManifest()); err != nil {
			return err
		}
	}
	if w.backlog {
		if err := ledger.Install(n.dir, backlogManifest()); err != nil {
			return err
		}
	}
	dsn := n.proxy.DSN(w.servers.Primary.DSN(w.database))
	if err := os.WriteFile(n.file("dsn"), []byte(dsn+"\n"), 0o600); err != nil {
		return err
	}
	settings := fmt.Sprintf("dsn_file: dsn\nnode: %s\n", name)
	if err := os.WriteFile(n.file("cluster.yaml"), []byte(settings), 0o600); err != nil {
		return err
	}
	var err error
	if n.out, err = os.Create(n.file("kernel.out")); err != nil {
		return err
	}
	w.ground.Cleanup(func() {
		n.kill()
		n.ProcessesLeft()
		_ = n.out.Close()
	})
	w.nodes = append(w.nodes, n)
	return nil
}

func (n *node) file(parts ...string) string {
	return filepath.Join(append([]string{n.dir}, parts...)...)
}

func (n *node) start() error {
	if n.PID() != 0 {
		return nil
	}
	cmd := exec.Command(n.world.binary, "run", "--cluster")
	cmd.Env = append(ledger.Environment(n.dir, n.world.openai.BaseURL()), append(n.world.Platform.Env(), n.extra...)...)
	cmd.Stdout, cmd.Stderr = n.out, n.out
	return n.Start(cmd)
}

// kill kills the kernel with -9, and watches for what it leaves.
func (n *node) kill() { n.Watch(n.Kill()) }

// signal sends a signal to the kernel; whole, to all of its processes too.
func (n *node) signal(signal syscall.Signal, whole bool) {
	pid := n.PID()
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, signal)
	if !whole {
		return
	}
	for _, p := range processes.Below(pid) {
		_ = syscall.Kill(p.PID, signal)
	}
}

// extensions are the processes of the kernel but for the guard.
func (n *node) extensions() []processes.Process {
	return slices.DeleteFunc(processes.Below(n.PID()), func(p processes.Process) bool {
		return strings.Contains(p.Command, "lease-guard")
	})
}

// said counts the lines with a text in the kernel's output.
func (n *node) said(text string) int {
	raw, _ := os.ReadFile(n.out.Name())
	return strings.Count(string(raw), text)
}
