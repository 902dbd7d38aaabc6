package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

// readable tells what a call may see: the scope that it names, or all that the
// manifest of its agent grants; without an agent, everything.
func readable(c sdk.ToolCall, scope string) (func(scope string) bool, error) {
	if scope != "" {
		if err := granted(c, scope); err != nil {
			return nil, err
		}
		return func(s string) bool { return s == scope }, nil
	}
	if c.Agent == "" {
		return func(string) bool { return true }, nil
	}
	if len(c.Memory) == 0 {
		return nil, refused(c, item.Personal)
	}
	return func(s string) bool { return slices.Contains(c.Memory, s) }, nil
}

// writable is the scope that a call writes: the one that it names, or the first
// that it is granted.
func writable(c sdk.ToolCall, scope string) (string, error) {
	switch {
	case scope != "":
		return scope, granted(c, scope)
	case c.Agent == "":
		return item.Personal, nil
	case len(c.Memory) == 0:
		return "", refused(c, item.Personal)
	}
	return c.Memory[0], nil
}

func granted(c sdk.ToolCall, scope string) error {
	if err := item.CheckScope(scope); err != nil {
		return err
	}
	if c.Agent != "" && !slices.Contains(c.Memory, scope) {
		return refused(c, scope)
	}
	return nil
}

func refused(c sdk.ToolCall, scope string) error {
	has := "it grants no scope of memory"
	if len(c.Memory) > 0 {
		has = "it grants " + strings.Join(c.Memory, ", ")
	}
	return fmt.Errorf("%w: the manifest of %q lacks \"memory: [%s]\" under agent; %s", contract.ErrDenied, c.Agent, scope, has)
}
