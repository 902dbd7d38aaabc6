package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/processes"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// node is one machine: a home, its way to PostgreSQL, and a kernel.
type node struct {
	world *world
	name  string
	dir   string
	proxy *postgrestest.Proxy
	extra []string // environment of the next kernel
	out   *os.File

	mu     sync.Mutex
	kernel *exec.Cmd
	ended  chan struct{}

	leaving sync.WaitGroup // goroutines that watch for leftover processes
	left    []string
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
		n.leaving.Wait()
		_ = n.out.Close()
	})
	w.nodes = append(w.nodes, n)
	return nil
}

func (n *node) file(parts ...string) string {
	return filepath.Join(append([]string{n.dir}, parts...)...)
}

func (n *node) start() error {
	if n.pid() != 0 {
		return nil
	}
	cmd := exec.Command(n.world.binary, "run", "--cluster")
	cmd.Env = append(ledger.Environment(n.dir, n.world.openai.BaseURL()), append(n.world.Platform.Env(), n.extra...)...)
	cmd.Stdout, cmd.Stderr = n.out, n.out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kernel, n.ended = cmd, ended
	return nil
}

// pid returns the kernel's pid, 0 if none runs.
func (n *node) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kernel == nil {
		return 0
	}
	select {
	case <-n.ended:
		return 0
	default:
		return n.kernel.Process.Pid
	}
}

// kill kills the kernel with -9, and watches for what it leaves.
func (n *node) kill() {
	pid := n.pid()
	if pid == 0 {
		return
	}
	were := processes.Below(pid)
	_ = n.kernel.Process.Kill()
	<-n.ended
	n.watch(were)
}

// stop ends the kernel in order.
func (n *node) stop() {
	if n.pid() == 0 {
		return
	}
	_ = n.kernel.Process.Signal(syscall.SIGTERM)
	<-n.ended
}

// watch records the processes that do not end by themselves.
func (n *node) watch(were []processes.Process) {
	n.leaving.Go(func() {
		for _, p := range processes.Left(were, 30*time.Second) {
			n.mu.Lock()
			n.left = append(n.left, fmt.Sprintf("%d %s", p.PID, p.Command))
			n.mu.Unlock()
		}
	})
}

// processesLeft returns and resets the leftover processes of killed kernels.
func (n *node) processesLeft() []string {
	n.leaving.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	found := n.left
	n.left = nil
	return found
}

// signal sends a signal to the kernel; whole, to all of its processes too.
func (n *node) signal(signal syscall.Signal, whole bool) {
	pid := n.pid()
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
	return slices.DeleteFunc(processes.Below(n.pid()), func(p processes.Process) bool {
		return strings.Contains(p.Command, "lease-guard")
	})
}

// said counts the lines with a text in the kernel's output.
func (n *node) said(text string) int {
	raw, _ := os.ReadFile(n.out.Name())
	return strings.Count(string(raw), text)
}
