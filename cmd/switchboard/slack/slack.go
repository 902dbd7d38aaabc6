//go:build !linux

// Package slack does nothing: this system has no timer slack.
package slack
