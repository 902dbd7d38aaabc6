package sdk

import (
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
)

// guard, deferred, turns a panic into an error of the named operation.
func guard(log hclog.Logger, operation string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	log.Error("panic", "in", operation, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = fmt.Errorf("%s: panic: %v", operation, p)
}
