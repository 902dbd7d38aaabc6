package filewatch_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/internal/filewatch"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	largest := bytes.Repeat([]byte("a"), filewatch.ReadLimit)
	socket, listenErr := net.Listen("unix", in("socket"))
	if err := errors.Join(
		listenErr, os.WriteFile(in("largest"), largest, 0o600), os.WriteFile(in("larger"), append(largest, 'a'), 0o600),
		os.Symlink("largest", in("link")), os.Symlink("/dev/zero", in("endless")), os.Mkdir(in("directory"), 0o700),
		syscall.Mkfifo(in("pipe"), 0o600), os.Symlink("pipe", in("link to a pipe")),
	); err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, name := range []string{"largest", "link"} {
		if data, err := filewatch.Read(in(name)); err != nil || !bytes.Equal(data, largest) {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	for name, want := range map[string]string{
		"larger": "longer than", "endless": "a device", "directory": "a directory", "pipe": "a pipe",
		"link to a pipe": "a pipe", "socket": "a socket",
	} {
		_, err := filewatch.Read(in(name))
		if !errors.Is(err, filewatch.ErrUnreadable) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), in(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := filewatch.Read(in("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
