package kernel

import (
	"sync"

	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// offer is what an extension said of itself when it was last active. Its schemas
// are compiled once at most: a snapshot is made at each change of any extension.
type offer struct {
	*extensionv1.Description
	tools []directory.Tool
}

// coreTools are the kernel's own.
var coreTools = sync.OnceValue(func() []directory.Tool { return entries(coretool.Extension, coretool.All()) })

func entries(extension string, described []*extensionv1.Tool) []directory.Tool {
	all := make([]directory.Tool, 0, len(described))
	for _, t := range described {
		all = append(all, tools.Entry(extension, t))
	}
	return all
}
