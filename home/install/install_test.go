package install

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
)

func newHome(t *testing.T) *config.Home {
	t.Helper()
	h, err := config.OpenHomeAt(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func open(t *testing.T, h *config.Home, change ...func(*Options)) *Installer {
	t.Helper()
	o := Options{Home: h, KernelVersion: "1.5.0", Environ: os.Environ()}
	for _, c := range change {
		c(&o)
	}
	i, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

func manifest(id, version string, more ...string) string {
	return fmt.Sprintf("api: 1\nid: %s\nname: %s\nversion: %s\nrun: {command: ./run}\nprovides: {tools: true}\n%s",
		id, strings.ToUpper(id), version, strings.Join(more, "\n"))
}

// files are those of a directory or an archive, by name; a name that ends in a slash is a
// directory.
type files map[string]string

func extension(id, version string) files {
	return files{"manifest.yaml": manifest(id, version), "run": "#!/bin/sh\n", "lib/deep/a.txt": version}
}

func mode(name string) fs.FileMode {
	if filepath.Base(name) == "run" {
		return 0o755
	}
	return 0o644
}

func (f files) dir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range f {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode(name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func gzipped(t *testing.T, headers []tar.Header, f files) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range f {
		headers = append(headers, tar.Header{Name: name, Mode: int64(mode(name)), Size: int64(len(text)), Typeflag: tar.TypeReg})
	}
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := fmt.Fprint(w, f[h.Name]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, f files, change func(*zip.FileHeader)) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range f {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(mode(name))
		if change != nil {
			change(h)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = fmt.Fprint(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// put installs from a source.
func put(t *testing.T, i *Installer, source, index string) (*Staged, error) {
	t.Helper()
	from, err := ParseSource(source, index)
	if err != nil {
		return nil, err
	}
	s, err := i.Fetch(t.Context(), from)
	if err != nil {
		return nil, err
	}
	return s, errors.Join(s.Commit(t.Context(), false), s.Discard())
}

// nothingLeft checks that the home has these extensions and nothing else.
func nothingLeft(t *testing.T, h *config.Home, ids ...string) {
	t.Helper()
	all, err := os.ReadDir(h.Extensions())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), strings.Join(ids, " "); got != want {
		t.Errorf("the home has the extensions %q, want %q", got, want)
	}
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSources(t *testing.T) {
	t.Parallel()
	wrapped := files{}
	for name, text := range extension("jotter", "1.0.0") {
		wrapped["jotter-1.0.0/"+name] = text
	}
	for name, source := range map[string]string{
		"directory": extension("jotter", "1.0.0").dir(t),
		"tar.gz":    file(t, "j.tar.gz", gzipped(t, nil, extension("jotter", "1.0.0"))),
		"wrapped":   file(t, "j.tgz", gzipped(t, nil, wrapped)),
		"zip":       file(t, "j.zip", zipped(t, extension("jotter", "1.0.0"), nil)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			s, err := put(t, open(t, h), source, "")
			if err != nil {
				t.Fatal(err)
			}
			nothingLeft(t, h, "jotter")
			if got := read(t, h.Extensions(), "jotter", "lib/deep/a.txt"); got != "1.0.0" {
				t.Errorf("a file has %q", got)
			}
			for name, want := range map[string]fs.FileMode{"run": 0o700, "manifest.yaml": 0o600, "lib": fs.ModeDir | 0o700} {
				if info, err := os.Stat(filepath.Join(h.Extensions(), "jotter", name)); err != nil || info.Mode() != want {
					t.Errorf("%s: mode %v, %v, want %v", name, info.Mode(), err, want)
				}
			}
			x, err := Read(t.Context(), h, "jotter")
			if err != nil || x.Changed || x.Record == nil || *x.Record != s.Record || x.Record.Hash == "" {
				t.Fatalf("read %+v: %v", x, err)
			}
			if err := os.WriteFile(filepath.Join(h.Extensions(), "jotter", "lib", "b.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if x, err = Read(t.Context(), h, "jotter"); err != nil || !x.Changed {
				t.Errorf("a file more isn't a change: %v", err)
			}
		})
	}
}

// TestHostileArchives checks that each is refused with a clear word, and leaves nothing.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	good := extension("jotter", "1.0.0")
	link := func(name, target string) []tar.Header {
		return []tar.Header{{Name: name, Linkname: target, Typeflag: tar.TypeSymlink}}
	}
	with := func(name, text string) files {
		f := extension("jotter", "1.0.0")
		f[name] = text
		return f
	}
	for name, c := range map[string]struct {
		headers []tar.Header
		files   files
		want    string
	}{
		"parent":          {nil, with("../evil", "x"), "leads out of the archive"},
		"inner parent":    {nil, with("a/../../evil", "x"), "leads out of the archive"},
		"absolute":        {nil, with("/tmp/evil", "x"), "is absolute"},
		"backslash":       {nil, with(`..\evil`, "x"), "has a backslash"},
		"control":         {nil, with("a\x1b[31m", "x"), "has control characters"},
		"link out":        {link("evil", "../../../etc/passwd"), good, "the link \"evil\" leads"},
		"absolute link":   {link("evil", "/etc/passwd"), good, "links to \"/etc/passwd\", outside of the extension"},
		"link to nothing": {link("evil", "nothing"), good, "the link \"evil\" leads nowhere"},
		"link chain": {
			append(link("lib/deep/up", "../.."), link("evil", "lib/deep/up/..")...), good, "outside of the extension",
		},
		"through a link":      {link("evil", "/tmp"), with("evil/x", "x"), "outside of the extension"},
		"through a fine link": {link("here", "."), with("here/run2", "x"), "is there twice"},
		"hard link": {
			[]tar.Header{{Name: "evil", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}}, good, "is a hard link",
		},
		"device":              {[]tar.Header{{Name: "evil", Typeflag: tar.TypeChar, Devmajor: 1}}, good, "is a device"},
		"pipe":                {[]tar.Header{{Name: "evil", Typeflag: tar.TypeFifo}}, good, "is a pipe"},
		"setuid":              {[]tar.Header{{Name: "evil", Mode: 0o4755, Typeflag: tar.TypeReg}}, good, "setuid"},
		"case":                {nil, with("RUN", "x"), "differ only in case"},
		"case of a directory": {nil, with("LIB/x", "x"), "differ only in case"},
		"twice":               {[]tar.Header{{Name: "./lib/deep/a.txt", Typeflag: tar.TypeReg}}, good, "is there twice"},
		"a manifest that is a link": {
			link("manifest.yaml", "run"), files{"run": "x"}, "manifest.yaml is not a regular file",
		},
		"no manifest":   {nil, files{"a": "x"}, "manifest.yaml not found"},
		"no executable": {nil, files{"manifest.yaml": manifest("jotter", "1.0.0")}, "the executable ./run is missing"},
		"mistakes": {
			nil, files{"manifest.yaml": "api: 1\nid: Jotter\nname: 3\nversion: x\n"},
			"manifest.yaml:3:7: name: expected a string",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			_, err := put(t, open(t, h), file(t, "j.tar.gz", gzipped(t, c.headers, c.files)), "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			russian(t, err)
			nothingLeft(t, h)
			if _, err := os.Lstat(filepath.Join(h.Path(), "evil")); err == nil {
				t.Error("a file was written outside of the extension")
			}
		})
	}
}

func TestHostileZips(t *testing.T) {
	t.Parallel()
	setMode := func(name string, m fs.FileMode) func(*zip.FileHeader) {
		return func(h *zip.FileHeader) {
			if h.Name == name {
				h.SetMode(m)
			}
		}
	}
	with := func(name, text string) files {
		f := extension("jotter", "1.0.0")
		f[name] = text
		return f
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"parent": {zipped(t, with("../evil", "x"), nil), "leads out of the archive"},
		"link":   {zipped(t, with("evil", "/etc/passwd"), setMode("evil", fs.ModeSymlink|0o777)), "outside of the extension"},
		"device": {zipped(t, with("evil", ""), setMode("evil", fs.ModeDevice|0o600)), "is a device"},
		"setuid": {zipped(t, with("evil", ""), setMode("evil", fs.ModeSetuid|0o755)), "setuid"},
		"encrypted": {
			zipped(t, with("evil", "x"), func(h *zip.FileHeader) { h.Flags |= 1 }), "is encrypted",
		},
		"cut off":   {zipped(t, extension("jotter", "1.0.0"), nil)[:200], "the archive is damaged"},
		"text":      {[]byte("hello"), "make a .tar.gz or a .zip"},
		"cut short": {gzipped(t, nil, extension("jotter", "1.0.0"))[:100], "the archive is damaged"},
		"nothing":   {nil, "make a .tar.gz or a .zip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			_, err := put(t, open(t, h), file(t, "j.zip", c.data), "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			russian(t, err)
			nothingLeft(t, h)
		})
	}
}

func TestBombs(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", ratioFrom+1<<20)
	bomb := extension("jotter", "1.0.0")
	bomb["bomb"] = zeros
	many := extension("jotter", "1.0.0")
	for n := range 50 {
		many[fmt.Sprintf("many/%d", n)] = ""
	}
	for name, c := range map[string]struct {
		data   []byte
		limits Limits
		want   string
	}{
		"tar bomb":   {gzipped(t, nil, bomb), Limits{}, "more than 100 times its size"},
		"zip bomb":   {zipped(t, bomb, nil), Limits{}, "more than 100 times its size"},
		"large":      {gzipped(t, nil, bomb), Limits{Unpacked: 1 << 20}, "more than 1.0 MiB unpacked"},
		"many":       {gzipped(t, nil, many), Limits{Files: 20}, "more than 20 files"},
		"many (zip)": {zipped(t, many, nil), Limits{Files: 20}, "more than 20 files"},
		"packed":     {gzipped(t, nil, bomb), Limits{Download: 1 << 10}, "larger than 1.0 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			i := open(t, h, func(o *Options) { o.Limits = c.limits })
			_, err := put(t, i, file(t, "j.tar.gz", c.data), "")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			russian(t, err)
			nothingLeft(t, h)
		})
	}
	// What follows the end of the tar archive is unpacked as well, by gzip.
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := errors.Join(w.Close(), func() error { _, err := z.Write([]byte(zeros)); return err }(), z.Close()); err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	if _, err := put(t, open(t, h), file(t, "j.tgz", b.Bytes()), ""); err == nil || !strings.Contains(err.Error(), "100 times") {
		t.Errorf("error %v", err)
	}
}

func TestLinksWithin(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	data := gzipped(t, []tar.Header{
		{Name: "bin/", Typeflag: tar.TypeDir}, {Name: "bin/tool", Linkname: "../lib/deep/a.txt", Typeflag: tar.TypeSymlink},
	}, extension("jotter", "1.0.0"))
	if _, err := put(t, open(t, h), file(t, "j.tgz", data), ""); err != nil {
		t.Fatal(err)
	}
	if got := read(t, h.Extensions(), "jotter", "bin", "tool"); got != "1.0.0" {
		t.Errorf("the link leads to %q", got)
	}
}

func TestUpdateReplacesAll(t *testing.T) {
	t.Parallel()
	for name, noExchange := range map[string]bool{"exchanged": false, "in two steps": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			i := open(t, h, func(o *Options) { o.noExchange = noExchange })
			if _, err := put(t, i, extension("jotter", "1.0.0").dir(t), ""); err != nil {
				t.Fatal(err)
			}
			next := extension("jotter", "2.0.0")
			delete(next, "lib/deep/a.txt")
			from, err := ParseSource(next.dir(t), "")
			if err != nil {
				t.Fatal(err)
			}
			s, err := i.Fetch(t.Context(), from)
			if err != nil {
				t.Fatal(err)
			}
			if old, err := s.Replaces(t.Context()); err != nil || old == nil || old.Record.Version != "1.0.0" {
				t.Fatalf("replaces %+v: %v", old, err)
			}
			if err := s.Commit(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if got := read(t, s.tree, "lib/deep/a.txt"); got != "1.0.0" { // the process that runs may still read it
				t.Errorf("the old version has %q", got)
			}
			if err := s.Discard(); err != nil {
				t.Fatal(err)
			}
			nothingLeft(t, h, "jotter")
			if x, err := Read(t.Context(), h, "jotter"); err != nil || x.Manifest.Version != "2.0.0" || x.Changed {
				t.Errorf("read %+v: %v", x, err)
			}
			if _, err := os.Lstat(filepath.Join(h.Extensions(), "jotter", "lib")); err == nil {
				t.Error("a file of the old version is there")
			}
		})
	}
}

func TestForeignAndChangedStay(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	i := open(t, h)
	mine := filepath.Join(h.Extensions(), "jotter")
	if err := os.Rename(extension("jotter", "0.1.0").dir(t), mine); err != nil {
		t.Fatal(err)
	}
	source := extension("jotter", "1.0.0").dir(t)
	if _, err := put(t, i, source, ""); !errors.Is(err, ErrForeign) {
		t.Errorf("error %v", err)
	}
	from, _ := ParseSource(source, "")
	s, err := i.Fetch(t.Context(), from)
	if err == nil {
		err = errors.Join(s.Commit(t.Context(), true), s.Discard())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mine, "run"), []byte("edited"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := put(t, i, source, ""); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
	if got := read(t, mine, "run"); got != "edited" {
		t.Errorf("the edit is lost: %q", got)
	}
	nothingLeft(t, h, "jotter")
}

func TestWrittenFilesStay(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	i := open(t, h)
	f := extension("jotter", "1.0.0")
	f["manifest.yaml"] = manifest("jotter", "1.0.0", "permissions: {files: [{path: box, write: true}]}")
	f["box/in"] = "shipped"
	if _, err := put(t, i, f.dir(t), ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Extensions(), "jotter", "box", "in"), []byte("written"), 0o600); err != nil {
		t.Fatal(err)
	}
	if x, err := Read(t.Context(), h, "jotter"); err != nil || x.Changed {
		t.Errorf("a file that it may write is a change: %v", err)
	}
	f["manifest.yaml"] = manifest("jotter", "1.1.0", "permissions: {files: [{path: box, write: true}]}")
	if _, err := put(t, i, f.dir(t), ""); err != nil {
		t.Fatal(err)
	}
	if got := read(t, h.Extensions(), "jotter", "box", "in"); got != "written" {
		t.Errorf("after an update the file has %q", got)
	}
}

func TestOneAtATime(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	first := open(t, h)
	if _, err := Open(Options{Home: h}); !errors.Is(err, ErrBusy) {
		t.Errorf("a second installer: %v", err)
	}
	if err := os.Mkdir(filepath.Join(h.Extensions(), stagingPrefix+"x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Recover(h); err != nil { // as a kernel that starts meanwhile
		t.Fatal(err)
	}
	nothingLeft(t, h, stagingPrefix+"x")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Recover(h); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, h)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	i := open(t, h)
	for _, id := range []string{"jotter", "../data"} {
		if _, err := i.Remove(t.Context(), id); !errors.Is(err, ErrNotInstalled) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := put(t, i, extension("jotter", "1.0.0").dir(t), ""); err != nil {
		t.Fatal(err)
	}
	data := i.DataDir("jotter")
	if err := os.MkdirAll(filepath.Join(data, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "closed", "x"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(data, "closed"), 0o500); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	discard, err := i.Remove(t.Context(), "jotter")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), h, "jotter"); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("before its files are gone: %v", err)
	}
	if err := discard(); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, h)
	if _, err := os.Stat(data); err != nil {
		t.Errorf("the data is gone: %v", err)
	}
	if err := errors.Join(i.RemoveData("jotter"), i.RemoveData("jotter")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data is there: %v", err)
	}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func TestIndex(t *testing.T) {
	t.Parallel()
	one, two := gzipped(t, nil, extension("jotter", "1.0.0")), gzipped(t, nil, extension("jotter", "2.0.0"))
	index := "api: 1\npublisher: Jane\nextensions:\n"
	entry := func(name, version, kernel, archive, sum string) string {
		return fmt.Sprintf("  - {name: %s, version: %s, kernel: %q, archive: %s, sha256: %q}\n", name, version, kernel, archive, sum)
	}
	index += entry("jotter", "1.0.0", ">=1.0", "a/one.tar.gz", sum(one)) +
		entry("jotter", "2.0.0", "^1.2", "a/two.tar.gz", sum(two)) +
		entry("jotter", "3.0.0", ">=9", "a/two.tar.gz", sum(two)) +
		entry("jotter", "1.9.0", ">=0.1", "a/one.tar.gz", sum(one)) +
		entry("jotter", "2.1.0-rc1", ">=0.1", "a/one.tar.gz", sum(one)) +
		entry("tomorrow", "1.0.0", ">=9", "a/one.tar.gz", sum(one)) +
		entry("broken", "1.0.0", ">=0.1", "a/one.tar.gz", sum(two)) +
		entry("gone", "1.0.0", ">=0.1", "a/gone.tar.gz", sum(two))
	dir := files{"index.yaml": index, "a/one.tar.gz": string(one), "a/two.tar.gz": string(two),
		"bad.yaml": "api: 2\nextensions:\n  - {name: X, version: one, archive: ../x, sha256: 12}\n" +
			"  - {name: a, version: 1.0.0, archive: x, sha256: " + sum(one) + "}\n  - {name: a, version: 1.0.0, archive: x, sha256: " + sum(one) + "}\n",
	}.dir(t)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	for _, where := range []string{dir, filepath.Join(dir, "index.yaml"), server.URL + "/", server.URL + "/index.yaml"} {
		for name, want := range map[string]string{
			"jotter": "2.0.0", "jotter@1.0.0": "1.0.0",
			"jotter@3.0.0": "jotter 3.0.0 needs kernel >=9, and this is 1.5.0: update Switchboard first",
			"jotter@1.9.0": "the index has jotter 1.9.0, but its archive has jotter 1.0.0",
			"jotter@4.0.0": "the index has no version 4.0.0 of jotter; it has 1.0.0, 2.0.0",
			"tomorrow":     "tomorrow 1.0.0 needs kernel >=9, and this is 1.5.0",
			"joter":        "the index has no extension joter (did you mean jotter?)",
			"xyz":          "the index has no extension xyz; it has broken, gone, jotter, tomorrow",
			"broken":       "another hash",
			"./jotter":     "with --index, give a name in it",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := newHome(t)
				s, err := put(t, open(t, h), name, where)
				if err != nil {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %v, want %q", err, want)
					}
					nothingLeft(t, h)
				} else if s.Record.Version != want || s.Record.Publisher != "Jane" || s.Record.Archive == "" {
					t.Errorf("installed %+v, want %s", s.Record, want)
				}
			})
		}
	}
	h := newHome(t)
	i := open(t, h)
	_, err := put(t, i, "a", filepath.Join(dir, "bad.yaml"))
	for _, want := range []string{
		"index.yaml:1:6: api", "3:12: extensions[0].name", "extensions[0].version", "extensions[0].archive", "extensions[0].sha256",
		"extensions[1] is a 1.0.0 already",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := put(t, i, "gone", server.URL); err == nil || !strings.Contains(err.Error(), "the server answered 404") {
		t.Errorf("error %v", err)
	}
	if _, err := put(t, i, "gone", filepath.Join(dir, "nowhere")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v", err)
	}
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	data := gzipped(t, nil, extension("jotter", "1.0.0"))
	hang := make(chan struct{})
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good.tar.gz":
			_, _ = w.Write(data)
		case "/moved.tar.gz":
			http.Redirect(w, r, server.URL+"/good.tar.gz", http.StatusFound)
		case "/round.tar.gz":
			http.Redirect(w, r, server.URL+"/round.tar.gz", http.StatusFound)
		case "/away.tar.gz":
			http.Redirect(w, r, "http://example.invalid/good.tar.gz", http.StatusFound)
		case "/large.tar.gz":
			for range 1 << 10 {
				_, _ = w.Write(make([]byte, 1<<10))
			}
		case "/mute.tar.gz":
			<-hang
		case "/half.tar.gz":
			_, _ = w.Write(data[:100])
			w.(http.Flusher).Flush() //nolint:forcetypeassert // it is one
			<-hang
		case "/broken.tar.gz":
			w.Header().Set("Content-Length", "10000")
			_, _ = w.Write(data[:100])
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	for path, want := range map[string]string{
		"/good.tar.gz": "", "/moved.tar.gz": "", "/round.tar.gz": "more than 5 redirects",
		"/away.tar.gz":  "http://example.invalid/good.tar.gz is not encrypted",
		"/large.tar.gz": "larger than 64 KiB", "/nothing.tar.gz": "the server answered 404 Not Found",
		"/mute.tar.gz": "has sent nothing for", "/half.tar.gz": "has sent nothing for", "/broken.tar.gz": "the download broke off",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			i := open(t, h, func(o *Options) {
				o.Limits.Download = 64 << 10
				if strings.Contains(want, "nothing") {
					o.Stall = 1
				}
			})
			_, err := put(t, i, server.URL+path, "")
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("error %v, want %q", err, want)
			}
			if want != "" {
				russian(t, err)
				nothingLeft(t, h)
			}
		})
	}
}

// russian fails the test if a part of an error is in English in another language, too. Mistakes
// of manifests, for their authors, and what libraries say of an archive are.
func russian(t *testing.T, err error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "manifest.yaml:") || strings.Contains(err.Error(), "zip: ") {
		return
	}
	said := words.Translate("ru", err.Error())
	if english := regexp.MustCompile(`\b[a-z]+ [a-z]+ [a-z]+`).FindString(said); english != "" {
		t.Errorf("%q is not translated in %q", english, said)
	}
}

func TestInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	ctx, cancel := context.WithCancel(t.Context())
	i := open(t, h, func(o *Options) {
		o.step = func(string) { cancel() }
	})
	from, err := ParseSource(file(t, "j.tgz", gzipped(t, nil, extension("jotter", "1.0.0"))), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Fetch(ctx, from); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	nothingLeft(t, h)
}

func TestParseSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"https://example.org/jane/jotter":                   "git https://example.org/jane/jotter ",
		"https://example.org/jane/jotter@v1.2":              "git https://example.org/jane/jotter v1.2",
		"git+https://example.org/jane/jotter.git@feature/x": "git https://example.org/jane/jotter.git feature/x",
		"ssh://git@example.org:2222/jotter@v1":              "git ssh://git@example.org:2222/jotter v1",
		"git@example.org:jane/jotter.git@v1":                "git git@example.org:jane/jotter.git v1",
		"example.org:jane/jotter":                           "git example.org:jane/jotter ",
		"file:///srv/jotter@v1":                             "git file:///srv/jotter v1",
		"https://example.org/a/v1.tar.gz":                   "archive https://example.org/a/v1.tar.gz ",
		"https://example.org/a.ZIP?token=1":                 "archive https://example.org/a.ZIP?token=1 ",
		dir:                                                 "directory " + dir + " ",
		dir + "@v1":                                         "git " + dir + " v1",
		"":                                                  "the source is empty",
		"--upload-pack=x":                                   "does not begin with a hyphen",
		"jotter":                                            "for a name in an index, add --index",
		"./nowhere":                                         "no such file or directory",
		"ext::sh -c x":                                      "no such file or directory",
		"ftp://example.org/x":                               "ftp addresses are not supported",
		"https://jane:secret@example.org/x":                 "has a password",
		"https://example.org/x@--upload-pack=y":             "is not a branch, a tag or a commit",
		"https://example.org/x@a..b":                        "is not a branch, a tag or a commit",
		"https://example.org/x\n":                           "control characters",
		"-oProxyCommand=x:path":                             "does not begin with a hyphen",
		"git@-oProxyCommand=x:path":                         "no such file or directory",
	} {
		s, err := ParseSource(text, "")
		got := fmt.Sprintf("%s %s %s", s.Kind, s.Location, s.Ref)
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	refused := errors.New("not here")
	i := open(t, h, func(o *Options) { o.Check = func(*manifests.Manifest) error { return refused } })
	if _, err := put(t, i, extension("jotter", "1.0.0").dir(t), ""); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	if _, err := put(t, i, h.Path(), ""); err == nil || !strings.Contains(err.Error(), "is part of") {
		t.Errorf("error %v", err)
	}
	nothingLeft(t, h)
}
