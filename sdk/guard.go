package sdk

import (
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
)

// guard, deferred, turns a panic into an error of what was running.
func guard(log hclog.Logger, what string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	log.Error("panic", "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = fmt.Errorf("%s: panic: %v", what, p)
}
