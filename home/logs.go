package home

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/launch"
	"github.com/switchboard-run/switchboard/home/output"
)

// Bounds of each log file.
const (
	logMegabytes = 10
	logBackups   = 3 // older files kept
)

// logs holds the log files of the kernel and of each extension, JSON lines.
type logs struct {
	dir string

	mu    sync.Mutex
	files map[string]*lumberjack.Logger
}

func openLogs(home *config.Home) (*logs, error) {
	dir := filepath.Join(home.Path(), "logs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of logs: %w", err)
	}
	return &logs{dir: dir, files: map[string]*lumberjack.Logger{}}, nil
}

// kernelLog is the name of the kernel's log.
const kernelLog = "kernel"

func (l *logs) kernel() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: kernelLog, Level: hclog.Info, Output: l.extension(kernelLog), JSONFormat: true,
	})
}

// maxTail is how much of the end of a log tail reads, in bytes.
const maxTail = 1 << 20

// tail returns at most n of the newest lines of the current file of a log.
func (l *logs) tail(name string, n int) ([]string, error) {
	f, err := os.Open(l.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	start := max(0, info.Size()-maxTail)
	text, err := io.ReadAll(io.NewSectionReader(f, start, maxTail))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(valid(string(text)), "\n"), "\n")
	if start > 0 {
		lines = lines[1:] // the first one may be cut
	}
	return lines[max(0, len(lines)-max(0, n)):], nil
}

// extension returns the log file of an extension.
func (l *logs) extension(id string) io.Writer {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.files[id]
	if f == nil {
		f = &lumberjack.Logger{Filename: l.file(id), MaxSize: logMegabytes, MaxBackups: logBackups}
		l.files[id] = f
	}
	return f
}

// output takes what a process that serves extensions writes.
func (l *logs) output(ids []string) launch.Output { return output.New(ids, l.extension) }

func (l *logs) file(id string) string { return filepath.Join(l.dir, id+".log") }

func (l *logs) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, f := range l.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
