package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"golang.org/x/text/unicode/norm"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/manifests"
)

// tree writes a directory from entries that others made. It refuses what an extension does
// not have, before it writes it.
type tree struct {
	root   *os.Root
	limits Limits
	packed int64            // size of the archive; 0: a directory, whose size needs no comparison
	names  map[string]named // by folded name
	links  [][2]string      // name and target, made last so that nothing is written through them
	bytes  int64
}

type named struct {
	name string
	dir  bool
}

// item is a file, a directory or a symbolic link in an archive.
type item struct {
	name    string
	mode    fs.FileMode
	target  string // of a symbolic link
	content io.Reader
}

func newTree(dir string, limits Limits, packed int64) (*tree, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	return &tree{root: root, limits: limits, packed: packed, names: map[string]named{}}, err
}

// add writes an item.
func (t *tree) add(x item) error {
	name, err := cleanName(x.name)
	if err != nil {
		return err
	}
	if name == "." {
		return nil
	}
	if err := t.place(name, x.mode.IsDir()); err != nil {
		return err
	}
	switch kind := x.mode.Type(); {
	case kind == fs.ModeDir:
		return t.root.MkdirAll(name, 0o700)
	case x.mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return words.Errorf("%q has a setuid or setgid bit, which no extension needs", name)
	case kind == fs.ModeSymlink:
		if !localTarget(x.target) {
			return words.Errorf("%q links to %q, outside of the extension", name, x.target)
		}
		t.links = append(t.links, [2]string{name, x.target})
		return nil
	case kind != 0:
		return words.Errorf("%q is %v: an extension has files, directories and links", name, kindOf(kind))
	}
	return t.write(name, x)
}

// place makes sure that a name is new, its parents are directories, and no other name
// differs only in case.
func (t *tree) place(name string, dir bool) error {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		part := named{name: name[:i], dir: dir || i < len(name)}
		folded := fold(part.name)
		before, taken := t.names[folded]
		switch {
		case !taken:
			if len(t.names) == t.limits.Files {
				return words.Errorf("more than %d files: pack only what the extension needs", t.limits.Files)
			}
			t.names[folded] = part
		case before.name != part.name:
			return words.Errorf("%q and %q differ only in case, so some file systems take them for one", before.name, part.name)
		case !before.dir || !part.dir:
			return words.Errorf("%q is there twice", part.name)
		}
	}
	return nil
}

func (t *tree) write(name string, x item) (err error) {
	if err := t.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if x.mode&0o111 != 0 {
		mode = 0o700
	}
	f, err := t.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(&meter{f, t}, x.content)
	return err
}

// meter counts what is written to a tree, and refuses too much.
type meter struct {
	w io.Writer
	t *tree
}

func (m *meter) Write(b []byte) (int, error) {
	t := m.t
	t.bytes += int64(len(b))
	if t.bytes > t.limits.Unpacked {
		return 0, words.Errorf("more than %s unpacked: pack only what the extension needs",
			humanize.IBytes(uint64(t.limits.Unpacked))) //nolint:gosec // not negative
	}
	if t.packed > 0 && t.bytes > ratioFrom && t.bytes/t.packed > t.limits.Ratio {
		return 0, words.Errorf("more than %d times its size unpacked, as an archive that is made to fill a disk",
			t.limits.Ratio)
	}
	return m.w.Write(b)
}

// finish makes the links.
func (t *tree) finish() (err error) {
	defer func() { err = errors.Join(err, t.root.Close()) }()
	for _, l := range t.links {
		if err := t.root.MkdirAll(path.Dir(l[0]), 0o700); err != nil {
			return err
		}
		if err := t.root.Symlink(l[1], l[0]); err != nil {
			return err
		}
	}
	return nil
}

// cleanName returns a name in an archive without "./" and a slash at its end; ".": the top.
func cleanName(name string) (string, error) {
	refuse := func(why string) (string, error) { return "", words.Errorf("the name %q %v", shortName(name), why) }
	switch {
	case !utf8.ValidString(name):
		return refuse(words.Sprintf("is not UTF-8"))
	case strings.IndexFunc(name, unicode.IsControl) >= 0:
		return refuse(words.Sprintf("has control characters"))
	case strings.ContainsRune(name, '\\'):
		return refuse(words.Sprintf("has a backslash: separate directories by slashes"))
	case strings.HasPrefix(name, "/"):
		return refuse(words.Sprintf("is absolute"))
	case len(name) > 1024:
		return refuse(words.Sprintf("is longer than 1024 bytes"))
	}
	clean := strings.TrimSuffix(name, "/")
	for strings.HasPrefix(clean, "./") {
		clean = clean[2:]
	}
	if clean == "" || clean == "." {
		return ".", nil
	}
	for part := range strings.SplitSeq(clean, "/") {
		switch {
		case part == "..":
			return refuse(words.Sprintf("leads out of the archive"))
		case part == "" || part == ".":
			return refuse(words.Sprintf("has an empty part"))
		case len(part) > 255:
			return refuse(words.Sprintf("has a part longer than 255 bytes"))
		}
	}
	return clean, nil
}

func shortName(name string) string {
	if len(name) > 100 {
		return name[:100] + "..."
	}
	return name
}

// fold returns the same text for names that some file systems take for one.
func fold(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(name))))
}

// localTarget reports whether the text of a link is relative and ascends only at its
// beginning. Where it leads is checked when all files are there.
func localTarget(target string) bool {
	if target == "" || path.IsAbs(target) || !utf8.ValidString(target) || len(target) > 1024 {
		return false
	}
	descended := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && descended {
			return false
		}
		descended = descended || part != ".." && part != "."
	}
	return true
}

func kindOf(kind fs.FileMode) string {
	switch {
	case kind&fs.ModeDevice != 0:
		return words.Sprintf("a device")
	case kind&fs.ModeNamedPipe != 0:
		return words.Sprintf("a pipe")
	case kind&fs.ModeSocket != 0:
		return words.Sprintf("a socket")
	}
	return words.Sprintf("something else")
}

// checkLinks checks that each link leads to something in the directory.
func checkLinks(dir string) error {
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() != fs.ModeSymlink {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		target, err := filepath.EvalSymlinks(p)
		if err != nil {
			return words.Errorf("the link %q leads nowhere", name)
		}
		if rest, err := filepath.Rel(top, target); err != nil || !filepath.IsLocal(rest) {
			return words.Errorf("the link %q leads out of the extension", name)
		}
		return nil
	})
}

// hashOf returns the hash of an extension: names, contents, executable bits and links,
// except the record and what the extension may write.
func hashOf(ctx context.Context, dir string, m *manifests.Manifest) (string, error) {
	return hashBut(ctx, dir, append(writable(m), manifests.RecordName))
}

// Programs returns the hash of what an extension runs: how it is started, and all files of
// its directory but for the rest of the manifest, the record and what it may write.
func Programs(ctx context.Context, m *manifests.Manifest) (string, error) {
	run, err := json.Marshal([]any{m.Run.Command, m.Run.Args, m.Run.Env})
	if err != nil {
		return "", err
	}
	files, err := hashBut(ctx, m.Dir(), append(writable(m), manifests.RecordName, manifests.FileName))
	sum := sha256.Sum256([]byte(files + string(run)))
	return hex.EncodeToString(sum[:]), err
}

func hashBut(ctx context.Context, dir string, skip []string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		switch {
		case within(name, skip) && d.IsDir():
			return fs.SkipDir
		case within(name, skip) || d.IsDir():
			return nil
		}
		line, err := describe(p, d)
		fmt.Fprintf(sum, "%q %s\n", filepath.ToSlash(name), line)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the files of the extension: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func describe(file string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	switch {
	case err != nil:
		return "", err
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := os.Readlink(file)
		return fmt.Sprintf("link %q", target), err
	case !info.Mode().IsRegular():
		return kindOf(info.Mode().Type()), nil
	}
	sum, err := hashFile(file)
	if info.Mode()&0o100 != 0 {
		return "program " + sum, err
	}
	return "file " + sum, err
}

func hashFile(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
