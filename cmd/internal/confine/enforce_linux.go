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

	"github.com/switchboard-run/switchboard/home/support"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// Versions of Landlock's interface from which on a right exists.
const (
	abiRename  = 2 // to move files between directories
	abiSockets = 9 // to connect to sockets in the file system
)

const nameService = 53

// killFirst makes the system, when it runs out of memory, end extensions before
// the kernel.
const killFirst = "500"

// What gives way to the kernel has this niceness, and computes for so long at a
// time: from Linux 6.12 on, who wakes up and wants less than that at a time need
// not wait for the end of it.
const (
	behind   = 10
	longTurn = 20 * time.Millisecond
)

func giveWay() {
	if unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: behind, Runtime: uint64(longTurn)}, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, behind)
	}
}

// Enforce puts the policy in force for this process and all that it starts, as
// far as support.Detect says that the system can. After an error the process must not
// go on.
func Enforce(p *sandbox.Policy) error {
	system := support.Detect()
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(killFirst), 0) // a preference, not a limit
	if p.Background {
		giveWay()
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
		return fmt.Errorf("give up the privileges of root: %w", err)
	}
	if system.Seccomp {
		if err := install(filter(p.Network != nil, p.KeepModes)); err != nil {
			return fmt.Errorf("limit system calls with seccomp: %w", err)
		}
	}
	return nil
}

// limit bounds what each process may hold. Nothing of its memory is written to
// a core file.
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
		// Of all processes of the user, a part is left for the kernel.
		{"processes", unix.RLIMIT_NPROC, tasks.Max / 4 * 3, p.Background && tasks.Max != unix.RLIM_INFINITY},
		{"priority", unix.RLIMIT_NICE, 0, p.Background},
		{"urgency", unix.RLIMIT_RTPRIO, 0, p.Background},
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

// Rights over files, as Landlock names them.
const (
	mayRead  landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	mayRun   landlock.AccessFSSet = mayRead | ll.AccessFSExecute
	mayWrite landlock.AccessFSSet = mayRead | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
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
			// What is not there needs no right. What has become a link meanwhile, to
			// somewhere else, gets none.
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
		rules = append(rules, landlock.BindUDP(0), landlock.ConnectSendUDP(nameService))
	}
	return config.BestEffort().Restrict(rules...)
}

// dropPrivileges takes from a process of root what root may beyond others: with
// it, it could read the environment of the kernel.
func dropPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has, none [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return err
	}
	if has == none {
		return nil
	}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0) //nolint:gosec // for all threads
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&none)
	if errno != 0 {
		return errno
	}
	return nil
}

// install puts a filter before the system calls of all threads.
func install(program []unix.SockFilter) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return setFilter(program)
}
