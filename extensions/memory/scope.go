package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

// reach is what a call may see and change.
type reach struct {
	scopes    []string // nil: all
	principal contract.Principal
}

// use reports whether the call may see and change a memory.
func (r reach) use(i item.Item) bool {
	return r.granted(i) && r.principal.Sees(i.Principal)
}

// granted reports whether the call may use the scope of a memory.
func (r reach) granted(i item.Item) bool {
	return r.scopes == nil || slices.Contains(r.scopes, i.Scope)
}

// damaged reports whether the call may see and remove unreadable memories. It is not known
// whose they are, so they are the owner's.
func (r reach) damaged() bool { return r.principal.SeesOwners() }

// readable returns what a call may read: the given scope, or all that the manifest of
// its agent grants; without an agent, all.
func readable(c sdk.ToolCall, scope string) (reach, error) {
	r := reach{principal: c.Principal}
	switch {
	case scope != "":
		r.scopes = []string{scope}
		return r, granted(c, scope)
	case c.Agent == "":
		return r, nil
	case len(c.Memory) == 0:
		return r, refused(c, item.Personal)
	}
	r.scopes = c.Memory
	return r, nil
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
