package confine

import "golang.org/x/sys/unix"

// machine is what a filter needs to know of this one.
const (
	auditArch = unix.AUDIT_ARCH_X86_64
	x32       = 0x40000000 // from here on, system calls of another size of pointers
)

// System calls that only older machines have.
var olderModes = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}
