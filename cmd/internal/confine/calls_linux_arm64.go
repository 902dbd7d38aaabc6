package confine

import "golang.org/x/sys/unix"

// machine is what a filter needs to know of this one.
const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32       = 0 // there are none
)

// System calls that only older machines have.
var olderModes []uint32
