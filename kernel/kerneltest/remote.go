package kerneltest

import (
	"context"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// remote reaches the extensions that the test plays, for one run of the kernel.
type remote struct {
	w   *World
	run int64
}

var _ tools.Remote = remote{}

// CallTool implements tools.Remote.
func (r remote) CallTool(
	ctx context.Context,
	extension string,
	request *extensionv1.CallRequest,
) (*extensionv1.CallResult, error) {
	if r.Actor(extension) == nil {
		return nil, fmt.Errorf("%w: %s is not running", contract.ErrUnavailable, extension)
	}
	return r.w.serving[extension+"/"+request.GetName()](ctx, request)
}

// Actor implements tools.Remote.
func (r remote) Actor(extension string) *bus.Actor {
	if x := r.w.extensions[extension]; x != nil && r.run == r.w.run.Load() {
		return x.Running()
	}
	return nil
}

func describedTool(w *World, extension string, t *extensionv1.Tool) directory.Tool {
	w.T.Helper()
	if _, err := coretool.Compile(extension, t); err != nil {
		w.T.Fatal(err)
	}
	return tools.Entry(extension, t)
}
