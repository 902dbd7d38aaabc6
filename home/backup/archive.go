package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// archived is a file, or a directory if its name ends in a slash.
type archived struct{ name, path string }

// syncEvery bounds what the disk has to take at once: whoever waits for a commit
// waits for it, too.
const syncEvery = 4 << 20

// writeArchive writes a durable archive. Files that may change are copied into
// dir first.
func writeArchive(ctx context.Context, path, dir string, gently bool, info Info, files []archived) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	pieces := bufio.NewWriterSize(&gentle{ctx: ctx, f: f, rest: rests{gently, time.Now()}}, 1<<16)
	compressed, err := gzip.NewWriterLevel(pieces, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(compressed)
	about, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	if err := writeMember(out, aboutName, about, info.CreatedAt, &sums); err != nil {
		return err
	}
	for _, a := range files {
		if err := writeFile(out, a, dir, &sums); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	if err := writeMember(out, sumsName, sums.Bytes(), info.CreatedAt, io.Discard); err != nil {
		return err
	}
	return errors.Join(out.Close(), compressed.Close(), pieces.Flush(), f.Sync())
}

// workFor is how long it is compressed without a pause.
const workFor = 5 * time.Millisecond

// gentle writes, and syncs as it goes.
type gentle struct {
	ctx   context.Context
	f     *os.File
	dirty int
	rest  rests
}

// rests leaves half of the time of a processor to others.
type rests struct {
	wanted bool
	since  time.Time // work began
}

func (r *rests) rest() {
	if worked := time.Since(r.since); r.wanted && worked > workFor {
		time.Sleep(worked)
		r.since = time.Now()
	}
}

// reader reads, with rests.
type reader struct {
	io.Reader
	rest rests
}

func (r *reader) Read(b []byte) (int, error) {
	r.rest.rest()
	return r.Reader.Read(b)
}

func (g *gentle) Write(b []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	g.rest.rest()
	n, err := g.f.Write(b)
	if g.dirty += n; g.dirty >= syncEvery && err == nil {
		g.dirty = 0
		err = errors.Join(g.f.Sync(), leaves(filepath.Dir(g.f.Name()), syncEvery, spare))
	}
	return n, err
}

func writeMember(out *tar.Writer, name string, content []byte, at time.Time, sums io.Writer) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: at}); err != nil {
		return err
	}
	if _, err := out.Write(content); err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	writeSum(sums, sum[:], name)
	return nil
}

func writeFile(out *tar.Writer, a archived, dir string, sums io.Writer) error {
	info, err := os.Stat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // gone since
		return nil
	case err != nil:
		return err
	}
	if strings.HasSuffix(a.name, "/") {
		return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: a.name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()})
	}
	f, err := steady(a.path, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: a.name, Mode: int64(info.Mode().Perm()), Size: size, ModTime: info.ModTime()}); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(out, io.TeeReader(f, sum), size); err != nil {
		return err
	}
	writeSum(sums, sum.Sum(nil), a.name)
	return nil
}

// steady opens a file that does not change while it is read: a copy, unless it
// is in dir already.
func steady(path, dir string) (*os.File, error) {
	in, err := os.Open(path)
	if err != nil || filepath.Dir(path) == dir {
		return in, err
	}
	defer in.Close()
	f, err := os.CreateTemp(dir, "steady-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // it goes when it is closed
	info, err := in.Stat()
	if err == nil {
		err = leaves(dir, info.Size(), spare)
	}
	if err == nil { // not further: somebody may write to it as fast as it is read
		_, err = io.CopyN(f, in, info.Size())
	}
	if err != nil && !errors.Is(err, io.EOF) { // it has become shorter
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// extract unpacks an archive into a directory and compares all sums. What it
// says of itself is not yet compared with what is in it.
func extract(ctx context.Context, file, dir string, left uint64) (info Info, err error) {
	if err := read(ctx, file, false, func(in io.Reader, h *tar.Header) (string, error) { return extractMember(in, h, dir, left) }); err != nil {
		return info, err
	}
	about, err := os.ReadFile(filepath.Join(dir, aboutName))
	if err != nil {
		return info, fmt.Errorf("it does not say what it is: %w", err)
	}
	if err := json.Unmarshal(about, &info); err != nil {
		return info, fmt.Errorf("it does not say what it is: %s: %w", aboutName, err)
	}
	return info, nil
}

// readBack reads an archive that was just written, and compares all sums.
func readBack(ctx context.Context, file string, gently bool) error {
	return read(ctx, file, gently, func(in io.Reader, h *tar.Header) (string, error) {
		if h.Typeflag == tar.TypeDir {
			return "", nil
		}
		hash := sha256.New()
		_, err := io.CopyN(hash, in, h.Size)
		return hex.EncodeToString(hash.Sum(nil)), err
	})
}

// read reads an archive to its end and compares the sums of its members.
func read(ctx context.Context, file string, gently bool, member func(io.Reader, *tar.Header) (sum string, err error)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	compressed, err := gzip.NewReader(bufio.NewReaderSize(&reader{f, rests{gently, time.Now()}}, 1<<16))
	if err != nil {
		return fmt.Errorf("it is not a tar.gz: %w", err)
	}
	in := tar.NewReader(compressed)
	sums := map[string]string{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("it ends before its sums")
		}
		if err != nil {
			return fmt.Errorf("it is broken: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if h.Name == sumsName {
			break
		}
		sum, err := member(in, h)
		if err != nil {
			return fmt.Errorf("%q in it: %w", h.Name, err)
		}
		if sum != "" {
			sums[h.Name] = sum
		}
	}
	if err := compareSums(in, sums); err != nil {
		return err
	}
	switch _, err := io.CopyN(io.Discard, compressed, 1<<20); { // to its own checksum
	case err == nil:
		return errors.New("there is more behind its sums")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("it is broken: %w", err)
	}
	return nil
}

// extractMember writes one file and returns its sum; none for a directory.
func extractMember(in io.Reader, h *tar.Header, dir string, left uint64) (sum string, err error) {
	name := strings.TrimSuffix(h.Name, "/")
	if !filepath.IsLocal(name) {
		return "", errors.New("its name leads elsewhere")
	}
	switch first, _, _ := strings.Cut(name, "/"); first {
	case aboutName, storeName, partConfig, partSecrets, partExtensions, partData:
	default:
		return "", errors.New("no backup has such a file")
	}
	if err := leaves(dir, h.Size, left); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if h.Typeflag == tar.TypeDir {
		return "", os.MkdirAll(path, 0o700)
	}
	if h.Typeflag != tar.TypeReg {
		return "", errors.New("it is no plain file")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(h.Mode)&0o777) //nolint:gosec // nine bits
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(f, hash), in, h.Size); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
