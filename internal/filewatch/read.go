package filewatch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ReadLimit is the size of the largest file that Read reads, in bytes.
const ReadLimit = 1 << 20

// ErrUnreadable means that Read does not read a file because of what it is.
var ErrUnreadable = errors.New("not a file that can be read here")

// Read reads a file that a person edits. It refuses with ErrUnreadable what is no
// regular file, such as a pipe, on which reading would wait, or a device, which may
// never end, and what is longer than ReadLimit. A symbolic link is followed.
func Read(file string) ([]byte, error) {
	f, err := OpenRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, ReadLimit+1))
	if err == nil && len(data) > ReadLimit {
		err = fmt.Errorf("%w: %s is longer than %d bytes", ErrUnreadable, file, ReadLimit)
	}
	return data, err
}

// OpenRegular opens a file for reading, and refuses with ErrUnreadable what is no
// regular file.
func OpenRegular(file string) (*os.File, error) {
	info, err := os.Stat(file) // opening a device may do something
	if err != nil {
		return nil, err
	}
	if err := regular(file, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe by now
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(file, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func regular(file string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	kind := "a device"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return fmt.Errorf("%w: %s is %s, not a regular file", ErrUnreadable, file, kind)
}
