package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Source says where the content of a backup comes from.
type Source struct {
	Home    *config.Home
	Version string // of the program
	// Copy writes a consistent copy of the store to a new file. The files of messages
	// that it names stay where they are until the backup is made.
	Copy    func(ctx context.Context, path string) error
	Secrets bool // include secrets.env
	// FilesBeside keeps the files of messages in files/ beside the backup, once for all
	// backups there, and leaves them out of the backup.
	FilesBeside bool
	// Gentle uses half of a processor to compress.
	Gentle bool
}

const unfinished = ".unfinished-"

// Create makes a backup in a new file.
func Create(ctx context.Context, s Source, file string) (Info, error) {
	info, err := create(ctx, s, file)
	if err != nil {
		return info, fmt.Errorf("create backup %s: %w", file, err)
	}
	return info, nil
}

func create(ctx context.Context, s Source, file string) (info Info, err error) {
	if _, err := os.Lstat(file); err == nil {
		return info, errors.New("file exists: choose another name")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return info, err
	}
	_ = syncFile(filepath.Dir(filepath.Dir(file))) // the new directory; its parent may belong to another user
	dir, err := os.MkdirTemp(filepath.Dir(file), unfinished)
	if err != nil {
		return info, err
	}
	defer os.RemoveAll(dir)
	store := filepath.Join(dir, storeName)
	if info, err := os.Stat(s.Home.Database()); err == nil {
		if err := checkSpace(dir, info.Size(), reserved); err != nil {
			return Info{}, err
		}
	}
	if err := s.Copy(ctx, store); err != nil {
		return info, err
	}
	contents, err := sqlite.Examine(ctx, store)
	if err != nil {
		return info, fmt.Errorf("check the copy: %w", err)
	}
	info = Info{
		CreatedAt: time.Now().UTC(), MadeBy: s.Version, Secrets: s.Secrets,
		Parts: []string{storeName, partConfig, partConsent, partExtensions, partData, partFiles},
	}
	if s.Secrets {
		info.Parts = append(info.Parts, partSecrets, partServers)
	}
	info.describe(contents)
	if s.FilesBeside {
		if err := info.keepBeside(newCopier(ctx, reserved, s.Gentle), s.Home, file, contents.Blobs); err != nil {
			return info, err
		}
	}
	files := []archiveFile{{name: storeName, path: store}}
	for _, part := range info.Parts[1:] {
		if part == partFiles && s.FilesBeside {
			continue
		}
		files, err = info.collect(files, s.Home.Path(), part, dir)
		if err != nil {
			return info, err
		}
	}
	info.Files = len(files)
	if stat, err := os.Stat(store); err == nil {
		info.StoreBytes = stat.Size()
	}
	archive := filepath.Join(dir, "archive")
	if err := writeArchive(ctx, archive, dir, s.Gentle, info, files); err != nil {
		return info, err
	}
	if err := readBack(ctx, archive, s.Gentle); err != nil {
		return info, fmt.Errorf("read the backup again: %w", err)
	}
	stat, err := os.Stat(archive)
	if err != nil {
		return info, err
	}
	info.File, info.Bytes = file, stat.Size()
	return info, place(archive, file)
}

// collect adds the files of a part of the home, except the directory in which the
// backup is being made.
func (i *Info) collect(files []archiveFile, home, part, making string) ([]archiveFile, error) {
	err := filepath.WalkDir(filepath.Join(home, part), func(path string, entry fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(home, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case path == making, part == partExtensions && entry.IsDir() && install.Unfinished(entry.Name()):
			return fs.SkipDir
		case entry.IsDir() && isCache(path):
			return fs.SkipDir
		case entry.IsDir():
			files = append(files, archiveFile{name: name + "/", path: path})
		case entry.Type().IsRegular():
			files = append(files, archiveFile{name: name, path: path})
		default:
			i.LeftOut = append(i.LeftOut, name)
		}
		return nil
	})
	return files, err
}

// isCache reports whether a directory says that it need not be backed up.
func isCache(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "CACHEDIR.TAG"))
	return err == nil
}
