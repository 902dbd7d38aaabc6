package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

// scopes reports whether a call may use a scope.
type scopes func(scope string) bool

// readable returns the scopes that a call may read: the given one, or all that
// the manifest of its agent grants; without an agent, all.
func readable(c sdk.ToolCall, scope string) (scopes, error) {
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

// writable returns the scope that a call writes: the given one, or the first that
// it is granted.
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
	has := "it grants no scopes"
	if len(c.Memory) > 0 {
		has = "it grants " + strings.Join(c.Memory, ", ")
	}
	return fmt.Errorf("%w: the manifest of %q lacks \"memory: [%s]\" under agent; %s",
		contract.ErrDenied, c.Agent, scope, has)
}
