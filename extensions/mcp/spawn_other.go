//go:build !linux

package mcp

import "syscall"

// processAttributes put a process into a group of its own.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopt does nothing: what has left its process group escapes.
func adopt() {}

// awaitExit does nothing: the caller waits.
func awaitExit(int) bool { return false }
