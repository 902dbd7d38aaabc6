//go:build !linux

package rest

func unmapProgram() {}
