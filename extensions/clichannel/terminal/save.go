package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/sdk/attachment"
)

// save is what /save asks for.
type save struct {
	reference string
	path      string // empty: the default directory
	overwrite bool
}

var errSaveUsage = words.Errorf("Usage: /save FILE [PATH], where FILE is as in the conversation, such as 3f2a9c; " +
	"/save -f overwrites PATH")

// parseSave reads the arguments of /save.
func parseSave(arguments string) (s save, err error) {
	rest := strings.TrimSpace(arguments)
	if after, ok := strings.CutPrefix(rest, "-f "); ok {
		s.overwrite, rest = true, strings.TrimSpace(after)
	}
	if end := strings.Index(rest, "]"); strings.HasPrefix(rest, "[") && end > 0 {
		s.reference, rest = rest[:end+1], rest[end+1:]
	} else {
		s.reference, rest, _ = strings.Cut(rest, " ")
	}
	if s.reference == "" {
		return s, errSaveUsage
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		if paths, ok := splitPaths(rest); ok && len(paths) == 1 {
			rest = paths[0]
		}
		s.path = expand(rest)
	}
	return s, nil
}

// saving is a file that is being saved. It is written under another name first.
type saving struct {
	save
	done func(path string, size int64, err error)

	target string
	free   bool // another name will do
	to     *os.File
	size   int64
}

func (s *saving) begin(a contract.Attachment) (err error) {
	s.target, s.free, err = s.place(a)
	if err != nil {
		return err
	}
	if !s.free && !s.overwrite && exists(s.target) {
		return existsAlready(s.target)
	}
	s.to, err = os.CreateTemp(filepath.Dir(s.target), ".switchboard-*.part")
	if err != nil {
		return unwritable(s.target, err)
	}
	return nil
}

func (s *saving) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	if s.size += int64(n); err != nil {
		err = unwritable(s.target, err)
	}
	return n, err
}

func (s *saving) end(err error) {
	if s.to == nil {
		s.done("", 0, err)
		return
	}
	if err == nil {
		err = s.to.Sync()
	}
	err = errors.Join(err, s.to.Close())
	if err == nil {
		err = s.name()
	}
	if err != nil {
		_ = os.Remove(s.to.Name())
	}
	s.done(s.target, s.size, err)
}

// name gives the file its name.
func (s *saving) name() error {
	if s.overwrite {
		if info, err := os.Lstat(s.target); err == nil && !info.Mode().IsRegular() {
			return words.Errorf("%s isn't an ordinary file", markdown.Clean(s.target))
		}
		if err := os.Rename(s.to.Name(), s.target); err != nil {
			return unwritable(s.target, err)
		}
		return nil
	}
	first := s.target
	for n := 2; ; n++ {
		err := os.Link(s.to.Name(), s.target) // fails if the name is taken, unlike a rename
		switch {
		case err == nil:
			return os.Remove(s.to.Name())
		case !errors.Is(err, fs.ErrExist):
			return s.copyWithoutLinks(err)
		case !s.free || n > maxCopies:
			return existsAlready(s.target)
		}
		end := filepath.Ext(first)
		s.target = fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(first, end), n, end)
	}
}

const maxCopies = 1000

// copyWithoutLinks gives the file its name where a file can have only one.
func (s *saving) copyWithoutLinks(reason error) error {
	if exists(s.target) {
		return existsAlready(s.target)
	}
	if err := os.Rename(s.to.Name(), s.target); err != nil {
		return unwritable(s.target, errors.Join(reason, err))
	}
	return nil
}

// place returns where a file is saved, and whether another name will do if that is taken.
func (s *saving) place(a contract.Attachment) (path string, free bool, err error) {
	dir := s.path
	if dir == "" {
		if dir, err = defaultDirectory(); err != nil {
			return "", false, err
		}
	} else if info, err := os.Stat(dir); strings.HasSuffix(dir, "/") && (err != nil || !info.IsDir()) {
		return "", false, words.Errorf("there is no folder %s", markdown.Clean(dir))
	} else if err != nil || !info.IsDir() {
		path, err := filepath.Abs(dir)
		return path, false, err
	}
	path, err = filepath.Abs(filepath.Join(dir, fileName(a)))
	return path, true, err
}

// defaultDirectory is the person's Downloads or, if there is none, the working directory.
func defaultDirectory() (string, error) {
	if home, err := os.UserHomeDir(); err == nil {
		dir := filepath.Join(home, "Downloads")
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return os.Getwd()
}

// fileName returns a name to save a file under. It has no directories.
func fileName(a contract.Attachment) string {
	if name := attachment.Name(a.Name); name != "" {
		return name
	}
	end := ""
	if all, err := mime.ExtensionsByType(a.MIME); err == nil && len(all) > 0 {
		end = all[len(all)-1] // .jpg, not .jfif
	}
	return attachment.Name(a.Kind + "-" + a.Blob[:min(len(a.Blob), contract.ReferenceDigits)] + end)
}

func existsAlready(path string) error {
	return words.Errorf("%s exists: choose another name, or overwrite it with /save -f", markdown.Clean(path))
}

func unwritable(path string, err error) error {
	path = markdown.Clean(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return words.Errorf("there is no folder %s", filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		return words.Errorf("you may not write %s", path)
	}
	if reason, ok := errors.AsType[*fs.PathError](err); ok {
		err = reason.Err
	}
	return words.Errorf("the file %s can't be written: %w", path, err)
}
