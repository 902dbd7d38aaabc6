//go:build unix

package document

import "syscall"

// limit bounds the time and memory of this process.
func limit() {
	const seconds, memory = 30, 1 << 30
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: memory, Max: memory})
}
