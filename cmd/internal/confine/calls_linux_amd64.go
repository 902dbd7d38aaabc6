package confine

import "golang.org/x/sys/unix"

// Constants of this architecture for the filter.
const (
	auditArch = unix.AUDIT_ARCH_X86_64
	x32       = 0x40000000 // system calls from here on have 32-bit pointers
)

// olderModes lists system calls that only older architectures have.
var olderModes = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}
