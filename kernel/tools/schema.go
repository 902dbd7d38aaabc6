package tools

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Compile checks a tool as it was described, and compiles its schema; one
// without a schema takes anything.
func Compile(extension string, t *extensionv1.Tool) (*jsonschema.Schema, error) {
	if !toolName.MatchString(t.GetName()) {
		return nil, fmt.Errorf("%w: %q is no name of a tool: lower-case letters, digits and underscores", contract.ErrInvalid, t.GetName())
	}
	if len(t.GetSchema()) == 0 {
		return nil, nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(t.GetSchema()))
	if err != nil {
		return nil, fmt.Errorf("%w: the schema of the tool %s/%s is no JSON: %w", contract.ErrInvalid, extension, t.GetName(), err)
	}
	c := jsonschema.NewCompiler()
	name := extension + "/" + t.GetName()
	if err := c.AddResource(name, document); err != nil {
		return nil, fmt.Errorf("%w: the schema of the tool %s: %w", contract.ErrInvalid, name, err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: the schema of the tool %s: %w", contract.ErrInvalid, name, err)
	}
	return s, nil
}

// Entry is a described tool as the directory has it. A schema that does not
// compile was refused before.
func Entry(extension string, t *extensionv1.Tool) directory.Tool {
	schema, _ := Compile(extension, t)
	return directory.Tool{Name: extension + "/" + t.GetName(), Extension: extension, Tool: t, Schema: schema}
}
