package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// newCommand is the command of l. It never fails: what is wrong with it shows
// when it is started.
func newCommand(l launch) *exec.Cmd {
	if len(l.Command) == 0 {
		return &exec.Cmd{}
	}
	path := l.Command[0]
	if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
		path = filepath.Join(l.Dir, path)
	}
	cmd := exec.Command(path, l.Command[1:]...) //nolint:noctx // its life hangs on no context
	cmd.Args[0] = l.Command[0]
	cmd.Dir = l.Dir
	cmd.SysProcAttr = processAttributes()
	return cmd
}
