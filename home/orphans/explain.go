package orphans

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// Unwatched implements launch.Processes for a program that is not the parent of what its
// descendants leave behind: that is not ended.
type Unwatched struct{}

// Start implements launch.Processes.
func (Unwatched) Start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return explain(cmd, err)
	}
	return nil
}

// Sweep implements launch.Processes.
func (Unwatched) Sweep(int) {}

// KillMarked implements launch.Processes.
func (Unwatched) KillMarked(string) []int { return nil }

// Stopped implements launch.Processes.
func (Unwatched) Stopped(int) bool { return false }

// explain adds the cause and the remedy to an error of starting a command.
func explain(cmd *exec.Cmd, err error) error {
	path := cmd.Path
	_, statErr := os.Stat(path)
	if cmd.Dir != "" {
		if info, dirErr := os.Stat(cmd.Dir); dirErr != nil || !info.IsDir() {
			return fmt.Errorf("start %s in %s: the directory does not exist: %w", path, cmd.Dir, err)
		}
	}
	switch {
	case path == "":
		return errors.New("no command: set run.command")
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("the executable %q is not in PATH: install it, or give its path as run.command", path)
	case errors.Is(err, fs.ErrNotExist) && statErr == nil:
		return fmt.Errorf("%s exists, but its interpreter or loader does not: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the executable %s does not exist: build it, or correct run.command", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not executable: chmod +x %[1]s", path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine (is it built for another system, or a script without #!): %w",
			path, err)
	}
	return fmt.Errorf("start %s: %w", path, err)
}
