package ledger

import (
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/processes"
)

// Kernel is the process of a kernel, which can be started again after it has ended. It is
// safe for concurrent use, but for Start.
type Kernel struct {
	mu    sync.Mutex
	last  *exec.Cmd // nil: none was started
	ended chan struct{}

	leaving sync.WaitGroup // goroutines that watch for leftover processes
	left    []string
}

// Start starts the process.
func (k *Kernel) Start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.ended = cmd, ended
	return nil
}

// running returns the process, and a channel that is closed when it has ended; nil: none
// runs.
func (k *Kernel) running() (*exec.Cmd, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		return nil, nil
	}
	select {
	case <-k.ended:
		return nil, nil
	default:
		return k.last, k.ended
	}
}

// PID returns the process id, 0 if none runs.
func (k *Kernel) PID() int {
	if cmd, _ := k.running(); cmd != nil {
		return cmd.Process.Pid
	}
	return 0
}

// Kill kills the process with -9, and returns the descendants that it had.
func (k *Kernel) Kill() []processes.Process {
	cmd, ended := k.running()
	if cmd == nil {
		return nil
	}
	were := processes.Below(cmd.Process.Pid)
	_ = cmd.Process.Kill()
	<-ended
	return were
}

// Signal sends a signal to the process, if one runs.
func (k *Kernel) Signal(s syscall.Signal) {
	if cmd, _ := k.running(); cmd != nil {
		_ = cmd.Process.Signal(s)
	}
}

// Stop asks the process to end, and waits until it has.
func (k *Kernel) Stop() {
	k.Signal(syscall.SIGTERM)
	k.Wait()
}

// Wait waits until the process has ended.
func (k *Kernel) Wait() {
	if _, ended := k.running(); ended != nil {
		<-ended
	}
}

// Watch records the processes that do not end by themselves.
func (k *Kernel) Watch(were []processes.Process) {
	k.leaving.Go(func() {
		for _, p := range processes.Left(were, 30*time.Second) {
			k.mu.Lock()
			k.left = append(k.left, fmt.Sprintf("%d %s", p.PID, p.Command))
			k.mu.Unlock()
		}
	})
}

// ProcessesLeft returns and resets the leftover processes of killed kernels.
func (k *Kernel) ProcessesLeft() []string {
	k.leaving.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.left
	k.left = nil
	return found
}
