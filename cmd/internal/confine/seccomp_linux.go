package confine

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in the input of a filter; arguments have eight bytes.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

const (
	protocolTCP  = 6
	protocolUDP  = 17
	typeMask     = 0xf
	actionAllow  = unix.SECCOMP_RET_ALLOW
	actionRefuse = unix.SECCOMP_RET_ERRNO

	// newNamespaces are the flags of clone that create namespaces. In its own user
	// namespace a process has all capabilities, and with them far more of the kernel
	// to attack. CLONE_NEWTIME is a signal number for clone.
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

	fchmodat2       = 452 // on all architectures; missing in older headers
	ioprioOfProcess = 1   // as unix.PRIO_PROCESS
)

// System calls that the filter refuses, because nothing else limits them.
var (
	// io_uring creates sockets past the filter. The flags of clone3 are in memory, which
	// a filter cannot read; libraries fall back to clone.
	unseen = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3}
	// Shared by all programs of a user: System V IPC, which outlives its creator, and keys.
	shared = []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_SETNS,
	}
	// The first argument is a process; 0 is the caller.
	ofProcess = []uint32{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY}
	// Likewise; the kernel sets priorities.
	urgency = []uint32{unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}
	// Modes and owners of files by path.
	modes = append([]uint32{unix.SYS_FCHMODAT, fchmodat2, unix.SYS_FCHOWNAT}, olderModes...)
)

// setFilter applies to all threads of the process.
func setFilter(program []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // likewise
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	if r != 0 {
		return fmt.Errorf("thread %d has another filter", r)
	}
	return nil
}

// filter allows Unix sockets, with network also TCP and UDP sockets, and no others. It
// refuses objects shared with the user's other programs, and changes of their scheduling,
// which Landlock does not cover, and new namespaces. It checks the number of a call
// first, so that the system can cache the calls that are always allowed.
func filter(network, keepModes bool) []unix.SockFilter {
	refuse := func(errno unix.Errno) string { return fmt.Sprint("refuse ", uint32(errno)) }
	b := &program{labels: map[string]int{}}
	each := func(calls []uint32, label string) {
		for _, call := range calls {
			b.when(call, label)
		}
	}
	b.load(offsetArch)
	b.unless(auditArch, refuse(unix.ENOSYS))
	b.load(offsetCall)
	if x32 > 0 {
		b.ifAtLeast(x32, refuse(unix.ENOSYS))
	}
	each(unseen, refuse(unix.ENOSYS))
	each(shared, refuse(unix.EPERM))
	each(urgency, refuse(unix.EPERM))
	if keepModes {
		each(modes, refuse(unix.EPERM))
	}
	each(ofProcess, "process")
	b.when(unix.SYS_CLONE, "clone")
	b.when(unix.SYS_UNSHARE, "unshare")
	b.when(unix.SYS_SETPRIORITY, "priority")
	b.when(unix.SYS_IOPRIO_SET, "disk priority")
	b.when(unix.SYS_SOCKET, "socket")
	b.jump("allow")

	b.label("process")
	b.load(offsetArgs)
	b.unless(0, refuse(unix.EPERM))
	b.jump("allow")
	b.label("disk priority")
	b.load(offsetArgs)
	b.unless(ioprioOfProcess, refuse(unix.EPERM))
	b.jump("whose priority")
	b.label("priority")
	b.load(offsetArgs)
	b.unless(unix.PRIO_PROCESS, refuse(unix.EPERM))
	b.label("whose priority")
	b.load(offsetArgs + 8)
	b.unless(0, refuse(unix.EPERM))
	b.jump("allow")

	b.label("clone")
	b.load(offsetArgs)
	b.and(newNamespaces)
	b.unless(0, refuse(unix.EPERM))
	b.jump("allow")
	b.label("unshare")
	b.load(offsetArgs)
	b.and(newNamespaces | unix.CLONE_NEWTIME)
	b.unless(0, refuse(unix.EPERM))
	b.jump("allow")

	b.label("socket")
	b.load(offsetArgs)
	b.when(unix.AF_UNIX, "allow")
	b.when(unix.AF_NETLINK, "netlink")
	if network {
		b.when(unix.AF_INET, "internet")
		b.when(unix.AF_INET6, "internet")
	}
	b.jump(refuse(unix.EACCES))
	b.label("netlink") // to list the addresses of this machine
	b.load(offsetArgs + 16)
	b.when(unix.NETLINK_ROUTE, "allow")
	b.jump(refuse(unix.EACCES))
	b.label("internet")
	b.load(offsetArgs + 8)
	b.and(typeMask)
	b.when(unix.SOCK_STREAM, "stream")
	b.when(unix.SOCK_DGRAM, "datagram")
	b.jump(refuse(unix.EACCES))
	b.label("stream") // not MPTCP or SCTP, which the port limits do not cover
	b.load(offsetArgs + 16)
	b.when(0, "allow")
	b.when(protocolTCP, "allow")
	b.jump(refuse(unix.EPROTONOSUPPORT))
	b.label("datagram")
	b.load(offsetArgs + 16)
	b.when(0, "allow")
	b.when(protocolUDP, "allow")
	b.jump(refuse(unix.EPROTONOSUPPORT))
	return b.assemble()
}

// program assembles a filter. Jumps go forward to labels; "allow" and "refuse <errno>" are
// predefined.
type program struct {
	code   []unix.SockFilter
	jumps  []jump
	labels map[string]int
}

type jump struct {
	at    int
	yes   bool // taken if the condition holds; else if it does not
	label string
}

func (b *program) add(code uint16, k uint32) int {
	b.code = append(b.code, unix.SockFilter{Code: code, K: k})
	return len(b.code) - 1
}

func (b *program) load(offset uint32) { b.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }
func (b *program) and(mask uint32)    { b.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, mask) }
func (b *program) label(name string)  { b.labels[name] = len(b.code) }

func (b *program) when(value uint32, label string) {
	b.jumps = append(b.jumps, jump{b.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, value), true, label})
}

func (b *program) unless(value uint32, label string) {
	b.jumps = append(b.jumps, jump{b.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, value), false, label})
}

func (b *program) ifAtLeast(value uint32, label string) {
	b.jumps = append(b.jumps, jump{b.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, value), true, label})
}

// jump is unconditional.
func (b *program) jump(label string) {
	at := b.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0)
	b.jumps = append(b.jumps, jump{at, true, label}, jump{at, false, label})
}

func (b *program) assemble() []unix.SockFilter {
	for _, j := range b.jumps {
		to, known := b.labels[j.label]
		if !known {
			to = len(b.code)
			b.labels[j.label] = to
			action := uint32(actionAllow)
			if j.label != "allow" {
				var errno uint32
				if _, err := fmt.Sscanf(j.label, "refuse %d", &errno); err != nil {
					panic("sandbox: a filter has no label " + j.label)
				}
				action = actionRefuse | errno
			}
			b.add(unix.BPF_RET|unix.BPF_K, action)
		}
		distance := to - j.at - 1
		if distance < 0 || distance > math.MaxUint8 {
			panic("sandbox: a filter jumps too far to " + j.label)
		}
		if j.yes {
			b.code[j.at].Jt = uint8(distance)
		} else {
			b.code[j.at].Jf = uint8(distance)
		}
	}
	return b.code
}
