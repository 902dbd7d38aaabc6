package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// Entry returns the directory's entry for a described tool. Its schema is valid:
// coretool.Compile, or the test of a built-in, has checked it.
func Entry(extension string, t *extensionv1.Tool) directory.Tool {
	sum := sha256.Sum256(append([]byte(t.GetDescription()+"\n"), t.GetSchema()...))
	entry := directory.Tool{Name: extension + "/" + t.GetName(), Extension: extension, Tool: t}
	entry.Sum = hex.EncodeToString(sum[:])
	if len(t.GetSchema()) > 0 {
		entry.Schema = sync.OnceValue(func() *schema.Schema {
			s, _ := coretool.Compile(extension, t)
			return s
		})
	}
	return entry
}
