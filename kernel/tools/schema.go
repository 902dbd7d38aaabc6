package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"sync"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/kernel/directory"
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

// Entry returns the directory's entry for a described tool. Its schema is valid:
// Compile, or the test of a built-in, has checked it.
func Entry(extension string, t *extensionv1.Tool) directory.Tool {
	sum := sha256.Sum256(append([]byte(t.GetDescription()+"\n"), t.GetSchema()...))
	entry := directory.Tool{Name: extension + "/" + t.GetName(), Extension: extension, Tool: t}
	entry.Sum = hex.EncodeToString(sum[:])
	if len(t.GetSchema()) > 0 {
		entry.Schema = sync.OnceValue(func() *schema.Schema {
			s, _ := Compile(extension, t)
			return s
		})
	}
	return entry
}
