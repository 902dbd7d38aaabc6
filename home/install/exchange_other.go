//go:build !linux && !darwin

package install

func exchange(string, string) error { return errUnsupported }
