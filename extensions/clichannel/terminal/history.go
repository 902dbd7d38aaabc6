package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	historyLimit = 1000    // lines
	historyLine  = 8 << 10 // bytes of a line; longer ones are not stored
)

// history is the file of typed lines, private to the user. Several terminals
// append to it; each reads it once.
type history struct{ path string }

var (
	escapeLine   = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	unescapeLine = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
)

// load returns the newest lines, oldest first, and shortens a file with more than
// twice the limit.
func (h history) load() ([]string, error) {
	if h.path == "" {
		return nil, nil
	}
	f, err := os.Open(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer f.Close()
	var lines []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 4*historyLine)
	for s.Scan() {
		if s.Text() != "" {
			lines = append(lines, unescapeLine.Replace(s.Text()))
		}
	}
	if err := s.Err(); err != nil {
		return lines, fmt.Errorf("read history %s: %w", h.path, err)
	}
	grown := len(lines) > 2*historyLimit
	lines = lines[max(0, len(lines)-historyLimit):]
	if grown {
		return lines, h.rewrite(lines)
	}
	return lines, nil
}

func (h history) rewrite(lines []string) error {
	f, err := os.CreateTemp(filepath.Dir(h.path), ".history-*") // 0600
	if err != nil {
		return fmt.Errorf("shorten history: %w", err)
	}
	w := bufio.NewWriter(f)
	for _, l := range lines {
		_, _ = w.WriteString(escapeLine.Replace(l) + "\n")
	}
	if err := errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("shorten history: %w", err), os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), h.path); err != nil {
		return fmt.Errorf("shorten history: %w", err)
	}
	return nil
}

// add appends one text.
func (h history) add(text string) error {
	if h.path == "" || text == "" || len(text) > historyLine {
		return nil
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm() != 0o600 {
		if err := f.Chmod(0o600); err != nil {
			return fmt.Errorf("make history private: %w", err)
		}
	}
	if _, err := f.WriteString(escapeLine.Replace(text) + "\n"); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}
