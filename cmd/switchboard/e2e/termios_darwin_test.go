package e2e

import "golang.org/x/sys/unix"

// readTermios reads the modes of a terminal.
const readTermios = unix.TIOCGETA
