package confine

import "golang.org/x/sys/unix"

// Constants of this architecture for the filter.
const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32       = 0 // none
)

// olderModes lists system calls that only older architectures have.
var olderModes []uint32
