package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/store/blobfiles"
)

// filesName is the directory beside nightly backups that keeps the files of messages:
// each once, by its hash, as a copy of its own.
const filesName = "files"

// filesBeside returns the directory of the files of messages beside a backup.
func filesBeside(file string) blobfiles.Dir {
	return blobfiles.Dir(filepath.Join(filepath.Dir(file), filesName))
}

// NightlyFiles returns the directory of the files of messages of the nightly backups.
func NightlyFiles(home *config.Home) blobfiles.Dir {
	return blobfiles.Dir(filepath.Join(home.Backups(), filesName))
}

// Missing returns the files of messages that a backup keeps beside it and that are not
// there. It reads only the beginning of the backup and no file.
func Missing(file string) (hashes []string, err error) {
	needed, err := neededBy(file)
	for _, hash := range needed {
		if !slices.ContainsFunc(fileSources(file), func(d blobfiles.Dir) bool { return exists(d.Path(hash)) }) {
			hashes = append(hashes, hash)
		}
	}
	return hashes, err
}

// fileSources returns the directories that may have files of messages that a backup
// lacks. The backup may be a link.
func fileSources(file string) []blobfiles.Dir {
	sources := []blobfiles.Dir{filesBeside(file)}
	if target, err := filepath.EvalSymlinks(file); err == nil && filesBeside(target) != sources[0] {
		sources = append(sources, filesBeside(target))
	}
	return sources
}

// copier reads and copies files of messages.
type copier struct {
	ctx  context.Context
	left uint64 // bytes that stay free on the disk
	in   throttledReader
}

func newCopier(ctx context.Context, left uint64, gently bool) *copier {
	return &copier{ctx: ctx, left: left, in: throttledReader{throttle: throttle{gently, time.Now()}}}
}

// read writes a file to out and reports whether its bytes are those of its hash.
func (c *copier) read(from blobfiles.Dir, hash string, out io.Writer) (intact bool, err error) {
	if err := c.ctx.Err(); err != nil {
		return false, err
	}
	f, err := from.Open(hash)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha256.New()
	c.in.Reader = f
	if _, err := io.Copy(io.MultiWriter(out, sum), &c.in); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == hash, nil
}

// copy copies a file from the first directory that has it intact, and reports whether
// one has. The copy is durable.
func (c *copier) copy(hash string, to blobfiles.Dir, from ...blobfiles.Dir) (copied bool, err error) {
	for _, d := range from {
		if copied, err = c.copyFrom(hash, to, d); copied || err != nil {
			return copied, err
		}
	}
	return false, nil
}

func (c *copier) copyFrom(hash string, to, from blobfiles.Dir) (copied bool, err error) {
	info, err := os.Stat(from.Path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	out, err := to.Create()
	if err != nil {
		return false, err
	}
	defer out.Discard()
	if err := checkSpace(string(to), info.Size(), c.left); err != nil {
		return false, err
	}
	if copied, err = c.read(from, hash, out); !copied || err != nil {
		return false, err
	}
	return true, out.Keep(hash)
}

// keepBeside makes sure that the directory beside a backup has the files with these sizes.
// Those that it lacks or that are damaged there are copied from the home.
func (i *Info) keepBeside(c *copier, home *config.Home, file string, sizes map[string]int64) error {
	beside := filesBeside(file)
	for _, hash := range slices.Sorted(maps.Keys(sizes)) {
		kept, err := c.read(beside, hash, io.Discard)
		if err == nil && !kept {
			kept, err = c.copy(hash, beside, blobfiles.Dir(home.Files()))
		}
		switch {
		case err != nil:
			return fmt.Errorf("keep the file %s of a message: %w", hash, err)
		case kept:
			i.Beside = append(i.Beside, hash)
		default:
			i.Lost = append(i.Lost, hash)
		}
	}
	return nil
}

// fetch copies files of messages that a backup lacks into the directory in which it was
// unpacked: from beside the backup, else from the home. It returns those that neither has.
func fetch(c *copier, home *config.Home, file, dir string, hashes []string) (lost []string, err error) {
	sources := append(fileSources(file), NightlyFiles(home), blobfiles.Dir(home.Files()))
	for _, hash := range hashes {
		copied, err := c.copy(hash, blobfiles.Dir(filepath.Join(dir, partFiles)), sources...)
		if err != nil {
			return nil, fmt.Errorf("restore the file %s of a message: %w", hash, err)
		}
		if !copied {
			lost = append(lost, hash)
		}
	}
	return lost, nil
}

// sweepFiles removes the files beside the backups of a home that none of them needs. It
// removes none if it cannot tell what a backup needs.
func sweepFiles(home *config.Home) error {
	beside := NightlyFiles(home)
	if !exists(string(beside)) {
		return nil
	}
	// A removed backup must not come back after a loss of power, without its files.
	if err := syncFile(home.Backups()); err != nil {
		return err
	}
	entries, err := os.ReadDir(home.Backups())
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, e := range entries {
		file := filepath.Join(home.Backups(), e.Name())
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue // a directory, or a link without a target
		}
		hashes, err := neededBy(file)
		if err != nil {
			return fmt.Errorf("read what %s needs: %w", file, err)
		}
		for _, hash := range hashes {
			needed[hash] = true
		}
	}
	return beside.Each(func(hash string) error {
		if needed[hash] {
			return nil
		}
		return remove(beside.Path(hash))
	})
}

// neededBy returns the files beside a backup that it needs. It reads only the beginning
// of the backup. A file that is no backup needs none.
func neededBy(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	compressed, err := gzip.NewReader(bufio.NewReader(f))
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	in := tar.NewReader(compressed)
	h, err := in.Next()
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.EOF) || err == nil && h.Name != aboutName {
		return nil, nil
	}
	var info Info
	if err == nil {
		err = json.NewDecoder(in).Decode(&info)
	}
	return info.Beside, err
}
