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

func spawn(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	spawner() <- func() {
		children.Lock()
		defer children.Unlock()
		err := cmd.Start()
		if err == nil {
			children.pids[cmd.Process.Pid] = true
		}
		result <- err
	}
	return <-result
}

func forget(p *process) {
	children.Lock()
	defer children.Unlock()
	delete(children.pids, p.cmd.Process.Pid)
}

// sweep kills what a server left behind: children of this process, which adopts them, with
// the mark of the server.
func sweep(mark string) {
	for range 50 { // a killed process leaves orphans of its own
		found := false
		children.Lock()
		for _, pid := range procfs.Children(os.Getpid()) {
			if children.pids[pid] || !marked(pid, mark) {
				continue
			}
			found = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
		children.Unlock()
		if !found {
			return
		}
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
