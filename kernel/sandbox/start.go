package sandbox

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
)

// Enter puts the policy of the environment in force, if there is one: for a
// program that serves extensions itself, first of all that it does.
func Enter() error {
	text, set := os.LookupEnv(Variable)
	if !set {
		return nil
	}
	if err := os.Unsetenv(Variable); err != nil {
		return fmt.Errorf("entering the sandbox: %w", err)
	}
	p, err := Decode(text)
	if err != nil {
		return err
	}
	return p.Enforce()
}

// Exec puts the policy of the environment in force and becomes the command. It
// returns only if that fails.
func Exec(command []string) error {
	if len(command) == 0 {
		return errors.New("there is no command to run in the sandbox")
	}
	if _, set := os.LookupEnv(Variable); !set {
		return fmt.Errorf("%s is not set: only the kernel runs this", Variable)
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // priorities are those of a thread
	defer runtime.UnlockOSThread()
	if err := Enter(); err != nil {
		return err
	}
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, Variable+"=") })
	err = syscall.Exec(path, command, env) //nolint:gosec // to run what a manifest names is the purpose
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine (is it built for another system, or a script without #!): %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s exists, but the interpreter or loader it asks for does not: %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be run in its sandbox (is its interpreter outside of the system's directories?): %w", path, err)
	}
	return fmt.Errorf("starting %s: %w", path, err)
}
