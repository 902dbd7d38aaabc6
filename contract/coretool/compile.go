package coretool

import (
	"fmt"
	"regexp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/schema"
)

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Compile checks a described tool and compiles its schema. Nil: the tool has none
// and accepts anything.
func Compile(extension string, t *extensionv1.Tool) (*schema.Schema, error) {
	if !toolName.MatchString(t.GetName()) {
		return nil, fmt.Errorf("%w: invalid tool name %q: use lower-case letters, digits and underscores",
			contract.ErrInvalid, t.GetName())
	}
	if len(t.GetSchema()) == 0 {
		return nil, nil
	}
	s, err := schema.Compile(t.GetSchema())
	if err != nil {
		return nil, fmt.Errorf("%w: the schema of the tool %s/%s: %w", contract.ErrInvalid, extension, t.GetName(), err)
	}
	return s, nil
}
