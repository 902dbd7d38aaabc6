package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
	"golang.org/x/sys/unix"
)

// What no directory and no list of processes shows, and what is shared with
// others.

// threads keeps threads, as a program does whose calls do not return.
func threads(ctx context.Context, _ *sdk.Kernel) error {
	for ctx.Err() == nil {
		go func() {
			runtime.LockOSThread()
			var fds [2]int
			if syscall.Pipe(fds[:]) == nil {
				_, _ = syscall.Read(fds[0], make([]byte, 1))
			}
		}()
		time.Sleep(time.Millisecond)
	}
	return nil
}

// unnamed fills files that have no name any more.
func unnamed(ctx context.Context, k *sdk.Kernel) error {
	return hoard(ctx, func(i int) (*os.File, error) {
		f, err := os.Create(filepath.Join(k.DataDir(), fmt.Sprint("unnamed", i)))
		return f, errors.Join(err, os.Remove(f.Name()))
	})
}

// memfd fills files that never had one and lie in memory.
func memfd(ctx context.Context, _ *sdk.Kernel) error {
	return hoard(ctx, func(int) (*os.File, error) {
		fd, err := unix.MemfdCreate("hoard", 0)
		return os.NewFile(uintptr(fd), "hoard"), err
	})
}

func hoard(ctx context.Context, next func(i int) (*os.File, error)) error {
	block := bytes.Repeat([]byte("x"), 1<<20)
	var kept []*os.File
	for i := 0; ctx.Err() == nil; i++ {
		f, err := next(i)
		if err != nil {
			return err
		}
		_, _ = f.Write(block)
		kept = append(kept, f)
		time.Sleep(5 * time.Millisecond)
	}
	runtime.KeepAlive(kept)
	return nil
}

// shared has a child that keeps memory which it could share.
func shared(ctx context.Context, _ *sdk.Kernel) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := exec.Command(self, "shared", "child").Start(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func sharedChild() {
	for {
		m, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		for i := 0; err == nil && i < len(m); i += 4096 {
			m[i] = 1
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sockets fills the directory that is for its sockets.
func sockets(ctx context.Context, k *sdk.Kernel) error {
	block := make([]byte, 256<<10)
	for i := 0; ctx.Err() == nil; i++ {
		_ = os.WriteFile(filepath.Join(k.RunDir(), fmt.Sprint("fill", i)), block, 0o600)
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// stubborn does not end when it is asked to.
func stubborn(_ context.Context, k *sdk.Kernel) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	begun(k)
	select {}
}

// connects opens the sockets of the kernel and of the command line without end,
// says nothing, or nonsense, and keeps what it can.
func connects(ctx context.Context, k *sdk.Kernel) error {
	run := filepath.Join(filepath.Dir(filepath.Dir(k.DataDir())), "run")
	nonsense := [][]byte{
		nil, []byte("GET /v1/status HTTP/1.1\r\nHost: switchboard\r\n"), []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), bytes.Repeat([]byte{0xff}, 4096)...),
		bytes.Repeat([]byte("x"), 64<<10),
	}
	var kept []net.Conn
	for i := 0; ctx.Err() == nil; i++ {
		c, err := net.Dial("unix", filepath.Join(run, []string{"kernel.sock", "control.sock", "chat.sock"}[i%3]))
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		go func() { _, _ = c.Write(nonsense[i/3%len(nonsense)]) }()
		if kept = append(kept, c); len(kept) > 3000 {
			_ = kept[0].Close()
			kept = kept[1:]
		}
		if i > 200 { // soon it is refused, its own connection to the kernel too
			begun(k)
		}
	}
	return nil
}

// files opens what it can.
func files(ctx context.Context, k *sdk.Kernel) error {
	var kept []io.Closer
	for {
		f, err := os.Open("manifest.yaml")
		if err != nil {
			break
		}
		kept = append(kept, f)
	}
	n := len(kept)
	for _, f := range kept[:100] {
		_ = f.Close()
	}
	note(k, fmt.Sprint(n))
	<-ctx.Done()
	runtime.KeepAlive(kept)
	return nil
}

// meddle tries to change how the kernel runs.
func meddle(try func(string, error), home string) {
	kernel := os.Getppid()
	now := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	try("limits of the kernel", unix.Prlimit(kernel, unix.RLIMIT_CORE, nil, &now))
	try("priority of the kernel", unix.Setpriority(unix.PRIO_PROCESS, kernel, 1))
	try("priority of all", unix.Setpriority(unix.PRIO_USER, 0, 1))
	try("processors of the kernel", unix.SchedSetaffinity(kernel, &unix.CPUSet{1}))
	try("tracing the kernel", func() error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return syscall.PtraceAttach(kernel)
	}())
	buffer := make([]byte, 8)
	_, err := unix.ProcessVMReadv(kernel, []unix.Iovec{{Base: &buffer[0], Len: 8}},
		[]unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	try("memory of the kernel by another way", err)
	try("modes of the home", os.Chmod(home, 0o700))
	try("modes of the secrets", os.Chmod(filepath.Join(home, "secrets.env"), 0o600))
	self, err := os.Executable()
	if err == nil {
		err = os.Rename(self, self+".old")
	}
	try("its own executable", err)
	f, err := os.OpenFile(self, os.O_WRONLY, 0)
	if err == nil {
		_ = f.Close()
	}
	try("the inside of its own executable", err)
	try("a link to the store", func() error {
		link := filepath.Join(home, "data", "hostile", "link")
		if err := os.Symlink(filepath.Join(home, "switchboard.db"), link); err != nil {
			return err
		}
		_, err := os.ReadFile(link)
		return err
	}())
}
