//go:build !linux

package confine

import "github.com/switchboard-run/switchboard/kernel/sandbox"

// Enforce puts the policy in force for this process, as far as the system can:
// here, not at all.
func Enforce(*sandbox.Policy) error { return nil }
