package launch

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// newCommand is the command of l, with the program before it that applies the
// sandbox. It never fails: errors of the command appear when it is started.
func newCommand(l supervisor.Launch) *exec.Cmd {
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
