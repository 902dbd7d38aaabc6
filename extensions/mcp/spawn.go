package mcp

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/internal/procfs"
)

// spawner starts processes on one operating system thread, which lives as long as this
// process: Linux sends the parent-death signal when the thread ends.
var spawner = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for request := range requests {
			request()
		}
	}()
	adopt()
	return requests
})

// children are the processes of servers that run.
var children = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// onThread runs a function on the thread that starts processes. Only this one may send them
// signals: with Landlock each thread has a sandbox of its own, and those of the processes
// are inside of that of the thread that started them.
func onThread(f func()) {
	done := make(chan struct{})
	spawner() <- func() {
		defer close(done)
		f()
	}
	<-done
}

func spawn(cmd *exec.Cmd) (err error) {
	onThread(func() {
		children.Lock()
		defer children.Unlock()
		if err = cmd.Start(); err == nil {
			children.pids[cmd.Process.Pid] = true
		}
	})
	return err
}

// signalGroup sends a signal to a process group.
func signalGroup(pid int, signal syscall.Signal) {
	onThread(func() { _ = syscall.Kill(-pid, signal) })
}

func forget(p *process) {
	children.Lock()
	defer children.Unlock()
	delete(children.pids, p.cmd.Process.Pid)
}

// A killed process leaves orphans of its own, so a sweep repeats, at most maxSweeps times.
const (
	maxSweeps  = 200
	sweepPause = time.Millisecond
)

// sweep kills what a server left behind: children of this process, which adopts them, with
// the mark of the server.
func sweep(mark string) {
	for range maxSweeps {
		found := false
		onThread(func() {
			children.Lock()
			defer children.Unlock()
			for _, pid := range procfs.Children(os.Getpid()) {
				if !children.pids[pid] && marked(pid, mark) {
					found = true
					_ = syscall.Kill(pid, syscall.SIGKILL)
					_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
				}
			}
		})
		if !found {
			return
		}
		time.Sleep(sweepPause)
	}
}

// marked reports whether a process has the mark in its environment, or hides it.
func marked(pid int, mark string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(environ) == 0 {
		return true
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if name, _, _ := strings.Cut(mark, "="); bytes.HasPrefix(entry, []byte(name+"=")) {
			return string(entry) == mark
		}
	}
	return true
}

// usage returns the resident memory, in bytes, and the number of a process and its
// descendants.
func usage(pid int) (memory int64, processes int) {
	queue := []int{pid}
	for len(queue) > 0 && processes <= 10*maxProcesses {
		pid, queue = queue[0], queue[1:]
		processes++
		if data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm"); err == nil {
			if fields := strings.Fields(string(data)); len(fields) > 1 {
				pages, _ := strconv.ParseInt(fields[1], 10, 64)
				memory += pages * int64(os.Getpagesize())
			}
		}
		queue = append(queue, procfs.Children(pid)...)
	}
	return memory, processes
}
