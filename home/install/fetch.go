package install

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/manifests"
)

// fetched is what is known of a source besides its files.
type fetched struct {
	commit, sum, publisher string
	entry                  *Entry // of an index
}

// matches compares what was fetched with what the index announced.
func (f fetched) matches(m *manifests.Manifest) error {
	if e := f.entry; e != nil && (e.Name != m.ID || e.Version != m.Version) {
		return words.Errorf("the index has %s %s, but its archive has %s %s: tell its publisher",
			e.Name, e.Version, m.ID, m.Version)
	}
	return nil
}

// fetch puts the files of a source into a new directory in dir.
func (i *Installer) fetch(ctx context.Context, dir string, from Source) (unpacked string, got fetched, err error) {
	unpacked = filepath.Join(dir, "new")
	switch from.Kind {
	case Directory:
		if err := i.outside(from.Location); err != nil {
			return "", got, err
		}
		err = copyDir(ctx, from.Location, unpacked, i.options.Limits)
	case Archive:
		got.publisher = publisherOf(from.Location)
		got.sum, err = i.fetchArchive(ctx, dir, from.Location, "", unpacked)
	case Git:
		got.publisher = publisherOf(from.Location)
		got.commit, err = i.fetchGit(ctx, dir, from, unpacked)
	case Index:
		var entry Entry
		if entry, err = i.find(ctx, dir, from); err == nil {
			got.entry, got.publisher = &entry, entry.Publisher
			got.sum, err = i.fetchArchive(ctx, dir, entry.Archive, strings.ToLower(entry.SHA256), unpacked)
		}
	default:
		err = words.Errorf("a source of the kind %q is not known", from.Kind)
	}
	if err != nil {
		return "", got, words.Errorf("fetch %s: %w", from, err)
	}
	return unpacked, got, nil
}

// outside refuses a directory that is in the home's extensions, or has them in it.
func (i *Installer) outside(dir string) error {
	own, err := filepath.EvalSymlinks(i.options.Home.Extensions())
	if err != nil {
		return err
	}
	source, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, pair := range [][2]string{{own, source}, {source, own}} {
		if rest, err := filepath.Rel(pair[0], pair[1]); err == nil && filepath.IsLocal(rest) {
			return words.Errorf("the directory is part of %s: extensions there run without being installed", own)
		}
	}
	return nil
}

// fetchArchive unpacks an archive and returns its hash, which must be sum unless that is
// empty.
func (i *Installer) fetchArchive(ctx context.Context, dir, location, sum, unpacked string) (string, error) {
	file := location
	if hasScheme().MatchString(location) {
		file = filepath.Join(dir, "archive")
		u, err := url.Parse(location)
		if err != nil {
			return "", err
		}
		if err := i.download(ctx, u, file, i.options.Limits.Download); err != nil {
			return "", err
		}
		defer os.Remove(file)
	} else {
		info, err := os.Stat(file)
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			return "", words.Errorf("%s is neither a directory nor a regular file", file)
		}
		if info.Size() > i.options.Limits.Download {
			return "", tooLarge(i.options.Limits.Download)
		}
	}
	got, err := hashFile(file)
	if err != nil {
		return "", err
	}
	if sum != "" && got != sum {
		return "", words.Errorf("the archive %s has another hash (%s...) than the index says (%s...): "+
			"it was changed or damaged, so nothing is installed", location, got[:12], sum[:12])
	}
	return got, unpack(ctx, file, unpacked, i.options.Limits)
}
