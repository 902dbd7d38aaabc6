package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// Stamp identifies the executable of a command by its path, inode, size and
// time of change, for Spec.Fingerprint: it differs once the file is replaced.
func Stamp(command []string, dir string) string {
	cmd := newCommand(launch{Command: command, Dir: dir})
	info, err := os.Stat(cmd.Path)
	if err != nil {
		return cmd.Path + " missing"
	}
	var inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%s %d %d %d", cmd.Path, inode, info.Size(), info.ModTime().UnixNano())
}

// Executable is the path of the executable of a command.
func Executable(command []string, dir string) string {
	return newCommand(launch{Command: command, Dir: dir}).Path
}

// newCommand is the command of l. It never fails: errors of the command appear when
// it is started.
func newCommand(l launch) *exec.Cmd {
	if len(l.Command) == 0 {
		return &exec.Cmd{}
	}
	path := l.Command[0]
	if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
		path = filepath.Join(l.Dir, path)
	}
	cmd := exec.Command(path, l.Command[1:]...) //nolint:noctx // no context ends it
	cmd.Args[0] = l.Command[0]
	cmd.Dir = l.Dir
	cmd.SysProcAttr = processAttributes()
	return cmd
}

// confined puts the program that applies the sandbox before the command. A command
// that cannot run stays as it is, for a clearer error.
func confined(cmd *exec.Cmd, l launch) *exec.Cmd {
	if l.Policy == nil || len(l.Confine) == 0 {
		return cmd
	}
	if _, err := exec.LookPath(cmd.Path); err != nil || cmd.Err != nil {
		return cmd
	}
	outer := newCommand(launch{Command: append(append([]string{}, l.Confine...), append([]string{cmd.Path}, cmd.Args[1:]...)...), Dir: l.Dir})
	return outer
}

// withSockets is the policy of a process that makes its socket in dir.
func withSockets(p *sandbox.Policy, dir string) *sandbox.Policy {
	return sandbox.Union(p, &sandbox.Policy{Write: []string{dir}, FileSize: p.FileSize, OpenFiles: p.OpenFiles, Background: p.Background, KeepModes: p.KeepModes})
}
