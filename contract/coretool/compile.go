package coretool

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/command"
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

// Check refuses tools that an extension may not describe. The commands are those that its
// manifest provides; compile: the schemas are compiled too.
func Check(extension string, tools []*extensionv1.Tool, commands []string, compile bool) error {
	seen := map[string]bool{}
	for _, t := range tools {
		if seen[t.GetName()] {
			return fmt.Errorf("%w: it describes the tool %q twice", contract.ErrInvalid, t.GetName())
		}
		seen[t.GetName()] = true
		if compile {
			if _, err := Compile(extension, t); err != nil {
				return err
			}
		}
		switch name := t.GetCommand(); {
		case name == "" || slices.Contains(commands, name):
		case command.IsBuiltin(name):
			return fmt.Errorf("%w: the tool %s/%s wants to be the command /%s, which is the kernel's own: rename it",
				contract.ErrInvalid, extension, t.GetName(), name)
		default:
			return fmt.Errorf("%w: the tool %s/%s is the command /%s, but the manifest lacks \"provides: {commands: [%s]}\"",
				contract.ErrDenied, extension, t.GetName(), name, name)
		}
	}
	return nil
}
