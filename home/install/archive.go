package install

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/manifests"
)

// unpack unpacks an archive into a new directory. It tells the formats by their first
// bytes.
func unpack(ctx context.Context, file, dir string, limits Limits) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, 4)
	n, _ := f.ReadAt(head, 0)
	head = head[:n]
	t, err := newTree(dir, limits, max(1, info.Size()))
	if err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		err = unpackGzip(ctx, f, t)
	case bytes.Equal(head, []byte("PK\x03\x04")):
		err = unpackZip(ctx, f, info.Size(), t)
	default:
		err = words.Errorf("the file is no archive that can be read here: make a .tar.gz or a .zip")
	}
	if err != nil {
		_ = t.root.Close()
		return err
	}
	return t.finish()
}

func unpackGzip(ctx context.Context, in io.Reader, t *tree) error {
	compressed, err := gzip.NewReader(bufio.NewReaderSize(in, 1<<16))
	if err != nil {
		return words.Errorf("the archive is damaged: %w", err)
	}
	// What follows the last file counts as well.
	rest := &meter{io.Discard, &tree{limits: t.limits, packed: t.packed}}
	limited := io.TeeReader(compressed, rest)
	if err := unpackTar(ctx, limited, t); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, limited); err != nil { // to the checksum
		return words.Errorf("the archive is damaged: %w", err)
	}
	return nil
}

func unpackTar(ctx context.Context, from io.Reader, t *tree) error {
	in := tar.NewReader(from)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return words.Errorf("the archive is damaged: %w", err)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		x := item{name: h.Name, mode: h.FileInfo().Mode(), target: h.Linkname, content: in}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
			continue
		case tar.TypeLink:
			return words.Errorf("%q is a hard link: pack with `tar --hard-dereference`", shortName(h.Name))
		case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		default:
			return words.Errorf("%q is of a kind that can't be unpacked here (%q)", shortName(h.Name), h.Typeflag)
		}
		if err := t.add(x); err != nil {
			return err
		}
	}
}

func unpackZip(ctx context.Context, f io.ReaderAt, size int64, t *tree) error {
	in, err := zip.NewReader(f, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked below
		return words.Errorf("the archive is damaged: %w", err)
	}
	if len(in.File) > t.limits.Files {
		return words.Errorf("more than %d files: pack only what the extension needs", t.limits.Files)
	}
	for _, file := range in.File {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := unpackMember(file, t); err != nil {
			return err
		}
	}
	return nil
}

func unpackMember(file *zip.File, t *tree) error {
	x := item{name: file.Name, mode: file.Mode()}
	if x.mode.IsDir() {
		return t.add(x)
	}
	if file.Flags&1 != 0 {
		return words.Errorf("%q is encrypted: pack without a password", shortName(file.Name))
	}
	content, err := file.Open()
	if err != nil {
		return words.Errorf("%q can't be unpacked: %w", shortName(file.Name), err)
	}
	defer content.Close()
	if x.mode.Type() == fs.ModeSymlink {
		target, err := io.ReadAll(io.LimitReader(content, 2048))
		if err != nil {
			return words.Errorf("the archive is damaged: %w", err)
		}
		x.target = string(target)
	}
	x.content = content
	if err := t.add(x); errors.Is(err, zip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) {
		return words.Errorf("the archive is damaged: %w", err)
	} else if err != nil {
		return err
	}
	return nil
}

// leftOut are not copied from a directory.
var leftOut = []string{".git", manifests.RecordName, ".DS_Store"}

// copyDir copies a directory into a new one. Links stay links.
func copyDir(ctx context.Context, from, to string, limits Limits) error {
	t, err := newTree(to, limits, 0)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		if slices.Contains(leftOut, d.Name()) && name != "." {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return copyInto(t, p, name, d)
	})
	if err != nil {
		_ = t.root.Close()
		return err
	}
	return t.finish()
}

func copyInto(t *tree, file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	x := item{name: filepath.ToSlash(name), mode: info.Mode()}
	if x.mode.IsDir() {
		x.mode = fs.ModeDir // a directory inherits setgid from its group
	}
	switch {
	case x.mode.Type() == fs.ModeSymlink:
		x.target, err = os.Readlink(file)
	case x.mode.IsRegular():
		f, openErr := os.Open(file)
		if openErr != nil {
			return openErr
		}
		defer f.Close()
		x.content = f
	}
	return errors.Join(err, t.add(x))
}
