// Package confine applies a sandbox to this process. Programs that run extensions call it
// before any code of the extension. Package sandbox describes the promises.
package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/switchboard-run/switchboard/contract/sandbox"
)

// Enter applies the policy in the environment, if there is one. A program that serves
// extensions itself calls it first.
func Enter() error {
	text, set := os.LookupEnv(sandbox.Variable)
	if !set {
		return nil
	}
	if err := os.Unsetenv(sandbox.Variable); err != nil {
		return fmt.Errorf("enter the sandbox: %w", err)
	}
	p, err := sandbox.Decode(text)
	if err != nil {
		return err
	}
	return Enforce(p)
}

// Exec applies the policy in the environment and executes the command. It returns only an
// error.
func Exec(command []string) error {
	if len(command) == 0 {
		return errors.New("the command is missing")
	}
	if _, set := os.LookupEnv(sandbox.Variable); !set {
		return fmt.Errorf("%s is not set: only the kernel runs this", sandbox.Variable)
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // priorities belong to a thread
	defer runtime.UnlockOSThread()
	if err := Enter(); err != nil {
		return err
	}
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, sandbox.Variable+"=")
	})
	err = syscall.Exec(path, command, env) //nolint:gosec // to run what a manifest names is the purpose
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine (is it built for another system, or a script without #!): %w",
			path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s exists, but its interpreter or loader does not: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be run in its sandbox (is its interpreter outside of the system's directories?): %w",
			path, err)
	}
	return fmt.Errorf("start %s: %w", path, err)
}
