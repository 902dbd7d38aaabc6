//go:build !linux

package confine

import "github.com/switchboard-run/switchboard/contract/sandbox"

// Enforce does nothing: this system has no sandbox.
func Enforce(*sandbox.Policy) error { return nil }
