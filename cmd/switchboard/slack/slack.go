//go:build !linux

// Package slack does nothing where timers have no slack that can be set.
package slack
