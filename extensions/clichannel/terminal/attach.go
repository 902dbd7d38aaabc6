package terminal

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// file is a file that goes with a message. It stays open, so that it can be sent again
// also if its name is gone.
type file struct {
	name    string
	size    int64
	content *os.File
}

func (f *file) describe() string { return markdown.Clean(f.name) + ", " + sizeText(f.size) }

func (f *file) close() { _ = f.content.Close() }

// sizeText is a size for people.
func sizeText(bytes int64) string { return humanize.Bytes(uint64(max(bytes, 0))) }

// openFile opens a file to be attached. The error is for people. limit is the largest
// size; 0: unknown.
func openFile(path string, limit int64) (*file, error) {
	shown := markdown.Clean(path)
	info, err := os.Stat(path) // first: opening a pipe waits, and a device may do something
	if err != nil {
		return nil, unreadable(shown, err)
	}
	if err := attachable(shown, info, limit); err != nil {
		return nil, err
	}
	content, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadable(shown, err)
	}
	if info, err = content.Stat(); err == nil { // the name may be another file by now
		err = attachable(shown, info, limit)
	}
	if err != nil {
		_ = content.Close()
		return nil, err
	}
	return &file{name: filepath.Base(path), size: info.Size(), content: content}, nil
}

func unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return words.Errorf("there is no file %s", path)
	case errors.Is(err, fs.ErrPermission):
		return words.Errorf("you may not read %s", path)
	}
	if reason, ok := errors.AsType[*fs.PathError](err); ok {
		err = reason.Err
	}
	return words.Errorf("the file %s can't be read: %w", path, err)
}

func attachable(path string, info fs.FileInfo, limit int64) error {
	switch {
	case info.IsDir():
		return words.Errorf("%s is a folder: name the files in it", path)
	case !info.Mode().IsRegular():
		return words.Errorf("%s isn't an ordinary file", path)
	case info.Size() == 0:
		return words.Errorf("the file %s is empty", path)
	case limit > 0 && info.Size() > limit:
		return words.Errorf("%s is larger than %s (files.file in config.yaml)", path,
			humanize.IBytes(uint64(limit))) //nolint:gosec // positive
	}
	return nil
}

// attached are the files of the next message.
type attached []*file

// add opens the files that arguments name: one path with or without spaces, or several.
func (a *attached) add(arguments string, limit int64) (problems []error) {
	for _, path := range pathsOf(arguments) {
		if len(*a) == wire.MaxFiles {
			return append(problems, words.Errorf("a message can have %d files", wire.MaxFiles))
		}
		f, err := openFile(path, limit)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		*a = append(*a, f)
	}
	return problems
}

// take returns the files for a message.
func (a *attached) take() []*file {
	all := *a
	*a = nil
	return all
}

// drop closes the files. They go with no message.
func (a *attached) drop() {
	for _, f := range a.take() {
		f.close()
	}
}

func (a attached) describe() string {
	all := make([]string, len(a))
	for i, f := range a {
		all[i] = f.describe()
	}
	return strings.Join(all, "; ")
}

// pathsOf returns the paths that arguments name. A path with spaces needs no quotes if
// there is such a file.
func pathsOf(arguments string) []string {
	arguments = strings.TrimSpace(arguments)
	if arguments == "" {
		return nil
	}
	whole := expand(arguments)
	if exists(whole) {
		return []string{whole}
	}
	paths, ok := splitPaths(arguments)
	if !ok || len(paths) > 1 && !hasQuotes(arguments) && !slices.ContainsFunc(paths, exists) {
		return []string{whole}
	}
	return paths
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func hasQuotes(s string) bool { return strings.ContainsAny(s, `'"\`) }

// splitPaths splits a line into paths as a shell does, with quotes and backslashes. ok is
// false if a quote has no end.
func splitPaths(line string) (paths []string, ok bool) {
	var word strings.Builder
	var quote rune
	started, escaped, literal := false, false, false // literal: its first character is quoted
	end := func() {
		if started {
			path := word.String()
			if !literal {
				path = expand(path)
			}
			paths = append(paths, path)
		}
		word.Reset()
		started, literal = false, false
	}
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			literal = literal || !started
			started, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			// Terminals quote a dropped path as a whole, also one with ~.
			quote, started = r, true
		case r == ' ' || r == '\t' || r == '\n':
			end()
		default:
			word.WriteRune(r)
			started = true
		}
	}
	end()
	return paths, quote == 0 && !escaped
}

// expand returns the path for what a person or a terminal writes: ~ is the home, and
// file managers paste file:// addresses.
func expand(path string) string {
	if u, err := url.Parse(path); err == nil && u.Scheme == "file" && u.Path != "" &&
		(u.Host == "" || u.Host == "localhost") {
		return u.Path
	}
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			return home + path[1:]
		}
	}
	return path
}

// dropped returns the files that a line consists of, such as a terminal writes when
// files are dropped on it: full paths of files that exist, and nothing else.
func dropped(line string) []string {
	line = strings.TrimSpace(line)
	first := strings.TrimLeft(line, `'"`)
	address := strings.HasPrefix(first, "file://")
	if len(first) < 2 || len(line) > maxDropped || strings.ContainsRune(line, '\n') && !address {
		return nil
	}
	if first[0] != '/' && !strings.HasPrefix(first, "~/") && !address {
		return nil
	}
	paths := pathsOf(line)
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil || !info.Mode().IsRegular() || !filepath.IsAbs(p) {
			return nil
		}
	}
	return paths
}

const maxDropped = 16 << 10
