//go:build !linux

package orphans

// adopt does nothing: what has left its process group escapes.
func adopt() error { return nil }
