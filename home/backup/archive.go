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

// archiveFile is a file, or a directory if its name ends in a slash.
type archiveFile struct{ name, path string }

// syncEvery bounds how many bytes one sync writes: commits of the store wait for
// the same disk.
const syncEvery = 4 << 20

// writeArchive writes a durable archive. Files that may change are copied into
// dir first.
func writeArchive(ctx context.Context, path, dir string, gently bool, info Info, files []archiveFile) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffered := bufio.NewWriterSize(&syncWriter{ctx: ctx, f: f, throttle: throttle{gently, time.Now()}}, 1<<16)
	compressed, err := gzip.NewWriterLevel(buffered, gzip.BestSpeed)
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
	return errors.Join(out.Close(), compressed.Close(), buffered.Flush(), f.Sync())
}

// workFor is the longest work between two pauses of a throttle.
const workFor = 5 * time.Millisecond

// syncWriter writes to a file and syncs it every syncEvery bytes.
type syncWriter struct {
	ctx      context.Context
	f        *os.File
	dirty    int // bytes since the last sync
	throttle throttle
}

// throttle pauses for as long as it worked: it uses half of a processor.
type throttle struct {
	enabled bool
	since   time.Time // the current stretch of work began
}

func (t *throttle) pause() {
	if worked := time.Since(t.since); t.enabled && worked > workFor {
		time.Sleep(worked)
		t.since = time.Now()
	}
}

// throttledReader pauses between reads.
type throttledReader struct {
	io.Reader
	throttle throttle
}

func (r *throttledReader) Read(b []byte) (int, error) {
	r.throttle.pause()
	return r.Reader.Read(b)
}

func (w *syncWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	w.throttle.pause()
	n, err := w.f.Write(b)
	if w.dirty += n; w.dirty >= syncEvery && err == nil {
		w.dirty = 0
		err = errors.Join(w.f.Sync(), checkSpace(filepath.Dir(w.f.Name()), syncEvery, reserved))
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

func writeFile(out *tar.Writer, a archiveFile, dir string, sums io.Writer) error {
	info, err := os.Stat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // deleted since it was listed
		return nil
	case err != nil:
		return err
	}
	if strings.HasSuffix(a.name, "/") {
		mode := int64(info.Mode().Perm())
		return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: a.name, Mode: mode, ModTime: info.ModTime()})
	}
	f, err := openStable(a.path, dir)
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
	header := &tar.Header{Name: a.name, Mode: int64(info.Mode().Perm()), Size: size, ModTime: info.ModTime()}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(out, io.TeeReader(f, sum), size); err != nil {
		return err
	}
	writeSum(sums, sum.Sum(nil), a.name)
	return nil
}

// openStable opens a file that does not change while it is read: a copy in dir,
// unless the file is in dir itself.
func openStable(path, dir string) (*os.File, error) {
	in, err := os.Open(path)
	if err != nil || filepath.Dir(path) == dir {
		return in, err
	}
	defer in.Close()
	f, err := os.CreateTemp(dir, "stable-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // closing it frees its space
	info, err := in.Stat()
	if err == nil {
		err = checkSpace(dir, info.Size(), reserved)
	}
	if err == nil { // only its size of now: a process may append as fast as this reads
		_, err = io.CopyN(f, in, info.Size())
	}
	if err != nil && !errors.Is(err, io.EOF) { // EOF: the file was truncated meanwhile
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// extract unpacks an archive into a directory, compares all sums and returns its
// backup.json, not yet compared with the content.
func extract(ctx context.Context, file, dir string, left uint64) (info Info, err error) {
	member := func(in io.Reader, h *tar.Header) (string, error) { return extractMember(in, h, dir, left) }
	if err := read(ctx, file, false, member); err != nil {
		return info, err
	}
	about, err := os.ReadFile(filepath.Join(dir, aboutName))
	if err != nil {
		return info, fmt.Errorf("read %s of the archive: %w", aboutName, err)
	}
	if err := json.Unmarshal(about, &info); err != nil {
		return info, fmt.Errorf("read %s of the archive: %w", aboutName, err)
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
func read(
	ctx context.Context, file string, gently bool, member func(io.Reader, *tar.Header) (sum string, err error),
) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	compressed, err := gzip.NewReader(bufio.NewReaderSize(&throttledReader{f, throttle{gently, time.Now()}}, 1<<16))
	if err != nil {
		return fmt.Errorf("the file is not a tar.gz archive: %w", err)
	}
	in := tar.NewReader(compressed)
	sums := map[string]string{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the archive ends before %s", sumsName)
		}
		if err != nil {
			return fmt.Errorf("the archive is damaged: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if h.Name == sumsName {
			break
		}
		sum, err := member(in, h)
		if err != nil {
			return fmt.Errorf("file %q: %w", h.Name, err)
		}
		if sum != "" {
			sums[h.Name] = sum
		}
	}
	if err := compareSums(in, sums); err != nil {
		return err
	}
	switch _, err := io.CopyN(io.Discard, compressed, 1<<20); { // to the checksum of gzip
	case err == nil:
		return fmt.Errorf("the archive has data after %s", sumsName)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	return nil
}

// extractMember writes one file and returns its sum; "" for a directory.
func extractMember(in io.Reader, h *tar.Header, dir string, left uint64) (sum string, err error) {
	name := strings.TrimSuffix(h.Name, "/")
	if !filepath.IsLocal(name) {
		return "", errors.New("the name leads out of the archive")
	}
	switch first, _, _ := strings.Cut(name, "/"); first {
	case aboutName, storeName, partConfig, partSecrets, partServers, partConsent, partExtensions, partData,
		partFiles:
	default:
		return "", errors.New("a backup does not contain such a file")
	}
	if err := checkSpace(dir, h.Size, left); err != nil {
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
		return "", errors.New("it is not a regular file")
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
