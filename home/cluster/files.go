package cluster

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/commitlog"
)

// Files implements blobs.Files: the bytes are in PostgreSQL before a file has its name,
// and each node keeps copies of those that it has stored or read.
type Files struct {
	local blobfiles.Dir
	blobs commitlog.Blobs
}

var _ blobs.Files = (*Files)(nil)

// newFiles keeps the files of a cell; dir is for copies of them.
func newFiles(dir string, blobs commitlog.Blobs) *Files { return &Files{blobfiles.Dir(dir), blobs} }

type newFile struct {
	blobs.NewFile
	files *Files
}

// Create implements blobs.Files.
func (f *Files) Create() (blobs.NewFile, error) {
	n, err := f.local.Create()
	if err != nil {
		return nil, err
	}
	return &newFile{n, f}, nil
}

// Keep implements blobs.NewFile.
func (n *newFile) Keep(hash string) error {
	if err := n.NewFile.Keep(hash); err != nil {
		return err
	}
	r, err := n.files.local.Open(hash)
	if err != nil {
		return err
	}
	return errors.Join(n.files.blobs.PutBlob(context.Background(), hash, r), r.Close())
}

// Open implements blobs.Files.
func (f *Files) Open(hash string) (io.ReadSeekCloser, error) {
	r, err := f.local.Open(hash)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	from, err := f.blobs.Blob(context.Background(), hash)
	if errors.Is(err, commitlog.ErrNone) {
		return nil, errors.Join(os.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	local, err := f.local.Create()
	if err != nil {
		return nil, err
	}
	defer local.Discard()
	if _, err := io.Copy(local, from); err != nil {
		return nil, err
	}
	if err := local.Keep(hash); err != nil {
		return nil, err
	}
	return f.local.Open(hash)
}

// Remove implements blobs.Files.
func (f *Files) Remove(hash string) error {
	return errors.Join(f.blobs.DeleteBlob(context.Background(), hash), f.local.Remove(hash))
}

// Each implements blobs.Files for the files of this node.
func (f *Files) Each(each func(hash string) error) error { return f.local.Each(each) }
