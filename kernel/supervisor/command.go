package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// newCommand is the command of l, with the program before it that applies the
// sandbox. It never fails: errors of the command appear when it is started.
func newCommand(l launch) *exec.Cmd {
	cmd := command(l.Command, l.Dir)
	if l.Policy == nil || len(l.Confine) == 0 {
		return cmd
	}
	if _, err := exec.LookPath(cmd.Path); err != nil || cmd.Err != nil {
		return cmd // for a clearer error
	}
	return command(slices.Concat(l.Confine, []string{cmd.Path}, l.Command[1:]), l.Dir)
}

func command(args []string, dir string) *exec.Cmd {
	if len(args) == 0 {
		return &exec.Cmd{}
	}
	path := args[0]
	if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	cmd := exec.Command(path, args[1:]...) //nolint:noctx // no context ends it
	cmd.Args[0] = args[0]
	cmd.Dir = dir
	cmd.SysProcAttr = processAttributes()
	return cmd
}

// explainStart adds the cause and the remedy to an error of exec.
func explainStart(cmd *exec.Cmd, err error) error {
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
