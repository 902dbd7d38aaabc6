package install

import "golang.org/x/sys/unix"

// exchange gives two directories each other's name, at once.
func exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
