package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"

	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/home/support"
)

// First versions of Landlock's interface with a right.
const (
	abiRename  = 2 // to move files between directories
	abiSockets = 9 // to connect to sockets in the file system
)

const portDNS = 53

// oomScoreAdj makes the system kill extensions before the kernel when it runs out of
// memory.
const oomScoreAdj = "500"

// Scheduling of extensions. From Linux 6.12 on, a woken process with a shorter slice
// preempts one with a longer slice, so the kernel need not wait for extensions.
const (
	niceness  = 10
	timeSlice = 20 * time.Millisecond
)

func lowerPriority() {
	attr := unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: niceness, Runtime: uint64(timeSlice)}
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness)
	}
}

// Enforce applies the policy to this process and its descendants, as far as the system
// supports it (see support.Detect). After an error the process must exit.
func Enforce(p *sandbox.Policy) error {
	system := support.Detect()
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(oomScoreAdj), 0) // best effort
	if p.Background {
		lowerPriority()
	}
	if err := limit(p); err != nil {
		return err
	}
	if system.Landlock > 0 {
		if err := restrict(p, system.Landlock); err != nil {
			return fmt.Errorf("limit files and ports with Landlock: %w", err)
		}
	}
	if err := dropPrivileges(); err != nil {
		return fmt.Errorf("drop the privileges of root: %w", err)
	}
	if system.Seccomp {
		if err := install(filter(p.Network != nil, p.KeepModes)); err != nil {
			return fmt.Errorf("limit system calls with seccomp: %w", err)
		}
	}
	return nil
}

// limit sets the resource limits of each process, and disables core files.
func limit(p *sandbox.Policy) error {
	var tasks unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NPROC, &tasks)
	for _, l := range []struct {
		name     string
		resource int
		most     uint64
		set      bool
	}{
		{"open files", unix.RLIMIT_NOFILE, p.OpenFiles, p.OpenFiles > 0},
		{"the size of a file", unix.RLIMIT_FSIZE, p.FileSize, p.FileSize > 0},
		{"core files", unix.RLIMIT_CORE, 0, true},
		// Leaves a part of the user's processes to the kernel.
		{"processes", unix.RLIMIT_NPROC, tasks.Max / 4 * 3, p.Background && tasks.Max != unix.RLIM_INFINITY},
		{"priority", unix.RLIMIT_NICE, 0, p.Background},
		{"realtime priority", unix.RLIMIT_RTPRIO, 0, p.Background},
	} {
		var now unix.Rlimit
		if !l.set {
			continue
		}
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
		if now.Max <= l.most {
			continue
		}
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: min(now.Cur, l.most), Max: l.most}); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
	}
	return nil
}

// Landlock's access rights for files.
const (
	mayRead  landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	mayRun   landlock.AccessFSSet = mayRead | ll.AccessFSExecute
	mayWrite landlock.AccessFSSet = mayRead | ll.AccessFSWriteFile | ll.AccessFSTruncate |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym
	ofFiles landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSTruncate
)

func restrict(p *sandbox.Policy, abi int) error {
	config := landlock.V11
	write := mayWrite
	if abi >= abiRename {
		write |= ll.AccessFSRefer
	}
	var rules []landlock.Rule
	grant := func(rights landlock.AccessFSSet, paths []string) {
		for _, path := range paths {
			// A missing path needs no right. A path that became a link since gets none.
			info, err := os.Lstat(path)
			if at, linked := filepath.EvalSymlinks(path); err != nil || linked != nil || at != filepath.Clean(path) {
				continue
			}
			mine := rights
			if !info.IsDir() {
				mine &= ofFiles
			}
			rules = append(rules, landlock.PathAccess(mine, path).IgnoreIfMissing())
		}
	}
	grant(mayRead, p.Read)
	grant(mayRun, p.Execute)
	grant(write, p.Write)
	if abi >= abiSockets {
		grant(ll.AccessFSResolveUnix, p.Sockets)
	}
	switch n := p.Network; {
	case n == nil:
	case n.Any:
		config.HandledAccessNet = 0
	default:
		for _, port := range n.Connect {
			rules = append(rules, landlock.ConnectTCP(port))
		}
		for _, port := range n.Listen {
			rules = append(rules, landlock.BindTCP(port))
		}
		rules = append(rules, landlock.BindUDP(0), landlock.ConnectSendUDP(portDNS))
	}
	return config.BestEffort().Restrict(rules...)
}

// dropPrivileges drops all capabilities of a root process: with them it could read the
// environment of the kernel.
func dropPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has, none [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return err
	}
	if has == none {
		return nil
	}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), //nolint:gosec // for all threads
		uintptr(unsafe.Pointer(&none[0])), 0) //nolint:gosec // likewise
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&none)
	if errno != 0 {
		return errno
	}
	return nil
}

// install applies a seccomp filter to all threads.
func install(program []unix.SockFilter) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return setFilter(program)
}
